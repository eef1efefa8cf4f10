"""What is said while training goes on."""

import io
from contextlib import closing

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import make_multilabel_classification

from rbrl import RBRLClassifier
from rbrl._common.progress import Display, Lines, Live, Passes, display_for, duration

X, Y = make_multilabel_classification(60, 5, n_classes=4, random_state=0)
PARTS = [(X[:30], Y[:30]), (X[30:], Y[30:])]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(progress, gaps=(1.0, 0.1, 0.01, 0.001)):
    for gap in gaps:
        progress.advance(1, 2)
        progress.advance(2, 2)
        progress.on_gap(gap)
    return progress


def test_time_left_follows_the_gap():
    progress = run(Passes(1e-5))
    assert progress.n_passes == 4
    progress._start -= 8.0  # two seconds a pass
    assert progress.seconds_left() == pytest.approx(2 * 2.0, rel=0.01), "a factor of ten a pass, two factors to go"
    assert run(Passes(0.5)).seconds_left() is None
    assert run(Passes(1e-5), (0.1, 0.1, 0.1, 0.2)).seconds_left() is None
    assert run(Passes(1e-5), (0.1, np.inf)).seconds_left() is None


def test_lines_for_pipes():
    stream = io.StringIO()
    run(Passes(1e-5, Lines(stream)))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0] == "pass 1, certified gap 1.0e+00"
    assert lines[3].startswith("pass 4, certified gap 1.0e-03, about 0 s left")


def test_a_bar_on_a_terminal_that_vanishes():
    stream = Terminal()
    with closing(Live(Console(file=stream, force_terminal=True, width=80))) as display:
        run(Passes(1e-5, display))
    assert "certified gap 1.0e-03" in stream.getvalue()


def test_the_display_depends_on_the_stream_and_on_verbose():
    assert isinstance(display_for(False, Terminal()), Live)
    assert isinstance(display_for(True, io.StringIO()), Lines)
    assert type(display_for(False, io.StringIO())) is Display


def test_what_is_quick_opens_no_view():
    stream = Terminal()
    with closing(Live(Console(file=stream, force_terminal=True, width=80), patience=60.0)) as display:
        run(Passes(1e-5, display))
    assert stream.getvalue() == ""


def test_a_fit_is_silent_unless_asked(capsys):
    RBRLClassifier().fit(PARTS)
    assert capsys.readouterr().err == ""
    RBRLClassifier(verbose=1).fit(PARTS)
    said = capsys.readouterr().err
    assert "certified gap" in said
    assert "RBRLClassifier: " in said


def test_durations():
    assert [duration(s) for s in (3, 89, 100, 5399, 9000)] == ["3 s", "89 s", "2 min", "90 min", "2.5 h"]
