"""Figures: deterministic, nothing outside the picture, no two names on one place."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from fake_rows import make_rows, published_results

from rbrl.experiments import Results, compare, figures, label_figures, rank_table
from rbrl.experiments.page import inline_svg


def many(k):
    """Results of k methods on twelve data sets, at random: many ranks are close."""
    rng = np.random.default_rng(k)
    rows = make_rows([f"d{i}" for i in range(12)], [f"a-method-{i}" for i in range(k)], n_splits=1)
    return Results.from_rows(rows.assign(value=rng.random(len(rows))))


def texts(figure):
    """Texts with their boxes in pixels."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
    found = [t for axes in figure.axes for t in axes.texts if t.get_text()]
    return [(t.get_text(), t.get_window_extent(renderer)) for t in found]


@pytest.mark.parametrize("k", [2, 3, 9, 17, 30])
def test_names_in_critical_difference_diagrams_do_not_overlap(k):
    figure = figures.draw_critical_difference(compare(many(k), "coverage"))
    boxes = [box for text, box in texts(figure) if "a-method" in text]
    assert len(boxes) == k
    for i, first in enumerate(boxes):
        assert not any(first.overlaps(other) for other in boxes[i + 1 :])
    width, height = figure.get_size_inches() * figure.dpi
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)


@pytest.mark.parametrize("k", [9, 17, 30])
def test_bars_on_one_level_stay_apart(k):
    """Methods in the same order on every data set: each stands in several groups."""
    rows = make_rows([f"d{i}" for i in range(12)], [f"m{i}" for i in range(k)], n_splits=1)
    (axes,) = figures.draw_critical_difference(compare(Results.from_rows(rows), "coverage")).axes
    bars = [line for line in axes.lines if line.get_color() == figures.ACCENT]
    levels = {bar.get_ydata()[0] for bar in bars}
    assert 1 < len(levels) < len(bars)
    for level in levels:
        spans = sorted(tuple(bar.get_xdata()) for bar in bars if bar.get_ydata()[0] == level)
        assert all(first[1] < second[0] for first, second in pairwise(spans))


def test_a_diagram_needs_two_data_sets():
    comparison = compare(Results.from_rows(make_rows(datasets=("sea",))), "coverage")
    with pytest.raises(ValueError, match="Got 3 and 1"):
        figures.draw_critical_difference(comparison)


def test_a_diagram_needs_data_sets_enough_to_tell_methods_apart():
    comparison = compare(Results.from_rows(make_rows(datasets=("sea", "hill"))), "coverage")
    with pytest.raises(ValueError, match=r"differ by 2 at most.*Got 2.34 for coverage on 2 data sets"):
        figures.draw_critical_difference(comparison)


def every_figure():
    results = published_results()
    ranks = rank_table(results).loc["Overall"]
    seconds = pd.Series(np.geomspace(1, 1000, len(ranks)), index=ranks.index)
    Y = np.random.default_rng(0).integers(0, 2, (30, 5))
    return {
        "ranks": lambda: figures.draw_average_ranks(ranks),
        "cd": lambda: figures.draw_critical_difference(compare(results, "Ral")),
        "trade-off": lambda: figures.draw_trade_off(seconds, ranks),
        "cooccurrence": lambda: label_figures.draw_cooccurrence(Y, list("abcde")),
        "singular-values": lambda: label_figures.draw_singular_values(np.diag([3.0, 1.0, 0.0])),
        "label-quality": lambda: label_figures.draw_label_quality(Y.mean(axis=0), np.linspace(0, 1, 5), list("abcde")),
    }


@pytest.mark.parametrize("name", every_figure())
def test_the_same_figure_gives_the_same_bytes(name, tmp_path):
    draw = every_figure()[name]
    first = figures.save_figure(draw(), tmp_path / "first" / name)
    second = figures.save_figure(draw(), tmp_path / "second" / name)
    assert [path.suffix for path in first] == [".svg", ".png"]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second))


def test_inline_figures_are_xml_with_ids_of_their_own():
    figure = figures.draw_average_ranks(pd.Series({"<b>&\"'": 1.0, "$x_1$": 2.0}))
    text = inline_svg(figure, "a <title>", "a & b", "key")
    root = ElementTree.fromstring(text)
    assert root.find("{*}title").text == "a <title>"
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("key-") for name in ids)
    assert "var(--accent)" in text
    assert "$x_1$" in text


def test_a_line_joins_the_undominated_methods():
    seconds, ranks = pd.Series([1, 2, 3, 4], index=list("abcd")), pd.Series([4.0, 5.0, 2.0, 2.5], index=list("abcd"))
    (axes,) = figures.draw_trade_off(seconds, ranks).axes
    assert axes.lines[0].get_xdata().tolist() == [1, 3]
    assert axes.lines[0].get_ydata().tolist() == [4.0, 2.0]
