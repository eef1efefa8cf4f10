"""Drawings of the paper's studies: the same bytes every time."""

from itertools import product

import pandas as pd
import pytest

from rbrl.experiments.figures import save_figure
from rbrl.metrics import PAPER_METRICS
from studies.reproduction.drawings import draw_convergence, draw_gamma, draw_pairs

NAMES = [metric.name for metric in PAPER_METRICS]


def curves():
    steps = {
        "evaluations": [1, 2, 4],
        "seconds": [0.1, 0.3, 2.0],
        "objective": [9.0, 5.0, 4.0],
        "gap": [1.2, 0.2, 1e-9],
    }
    return pd.concat([pd.DataFrame(steps).assign(problem="$a", solver=solver) for solver in ("x", "y")])


def gamma():
    rows = [("RBRL", factor, name, factor) for factor in (0.1, 1, 10) for name in NAMES]
    return pd.DataFrame(rows, columns=["method", "factor", "metric", "value"])


def pairs():
    grid = product(("ridge", "nuclear"), (0.1, 1), (0.1, 1), (0.1, 1), NAMES)
    rows = [(fixed, 1.0, a, b, c, name, a + b) for fixed, a, b, c, name in grid]
    study = pd.DataFrame(rows, columns=["fixed", "at", "ridge", "ranking", "nuclear", "metric", "value"])
    at_fixed = [line[line.fixed] == 1 for _, line in study.iterrows()]
    return study[at_fixed]


STUDIES = {
    "convergence": (draw_convergence, curves()),
    "gamma": (draw_gamma, gamma(), "title"),
    "pairs": (draw_pairs, pairs(), "title"),
}


@pytest.mark.parametrize("name", STUDIES)
def test_the_same_study_gives_the_same_bytes(name, tmp_path):
    draw, *what = STUDIES[name]
    first, second = (save_figure(draw(*what), tmp_path / folder / name) for folder in ("first", "second"))
    assert [path.suffix for path in first] == [".svg", ".png"]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second))
