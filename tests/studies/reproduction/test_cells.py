"""Cells beside the paper's: distances by hand, counts, and causes that move them."""

import numpy as np
import pytest
from published_rows import published_rows

from studies.reproduction.causes import Cause, effect_table, effects, explain, far_cells, read_causes
from studies.reproduction.cells import agreement, cell_tables, cells, count_table, distance, kind
from studies.reproduction.paper import as_published, paper_methods


def moved(*where, by):
    """Add `by` to the means of cells."""
    return lambda dataset, metric, method: by if (dataset, metric, method) in where else 0.0


@pytest.mark.parametrize(
    ("mean", "printed", "std", "direction", "expected"),
    [
        (0.1815, 0.181, 0.012, -1, 0.0),  # within rounding
        (0.1925, 0.180, 0.004, -1, -3.0),  # a loss that is higher is worse
        (0.1925, 0.180, 0.004, 1, 3.0),
        (0.0525, 0.050, 0.0, 1, 2.0),  # a standard deviation of 0 counts as 0.001
    ],
)
def test_distance_by_hand(mean, printed, std, direction, expected):
    assert distance(mean, printed, std, direction) == pytest.approx(expected, abs=1e-9)


def test_kinds():
    assert [kind(value) for value in (0, -2, 2.5, 3.01, -3.01, np.nan)] == [
        *("near", "near", "within", "better", "worse", "missing")
    ]


def test_the_papers_own_means_agree_everywhere():
    results = as_published(published_rows())
    frame = cells(results)
    found = agreement(results, frame)
    assert len(frame) == found.cells == found.within == 540
    assert (found.ours_good, found.ours_cells) == (60, 60)
    assert found.spearman == pytest.approx(1.0)
    assert len(cell_tables(frame)) == 9


def test_a_moved_cell_is_counted_and_shown():
    there = ("emotions", "hamming_loss", "RBRL")  # printed 0.181 ± 0.012
    frame = cells(as_published(published_rows(change=moved(there, by=0.0485))))
    counted = count_table(frame).frame.set_index("method")
    assert (counted.worse["RBRL"], counted.good["RBRL"], counted.worse["All"]) == (1, 59, 1)
    (table,) = [table for table in cell_tables(frame) if table.title == "RBRL"]
    emotions = next(row for row in table.rows if row[0].text == "emotions")
    assert emotions[1].text == "0.229 (0.181) −4.0 ▼"


def test_missing_cells_are_not_counted():
    rows = published_rows(datasets=["emotions", "arts"])
    results = as_published(rows[rows.method != "br"])
    found = agreement(results, cells(results))
    assert (found.cells, found.ours_cells) == (96, 12)
    assert "BR" not in results.methods


def test_names_are_the_papers():
    assert as_published(published_rows(datasets=["arts"]), "BRL").methods == (*paper_methods(), "BRL")


FAR = [("arts", "ranking_loss", "BR"), ("arts", "coverage", "BR"), ("arts", "coverage", "RBRL")]


@pytest.fixture
def far():
    return cells(as_published(published_rows(change=moved(*FAR, by=0.5))))


def test_causes_explain_what_they_move_near(far):
    assert len(far_cells(far)) == 3
    variant = cells(as_published(published_rows(change=moved(FAR[1], by=0.5))))
    causes = [
        Cause("nothing here", "v", "", datasets=("emotions",)),
        Cause("ties", "v", "", methods=("BR",)),
        Cause("not run", "absent", ""),
    ]
    found = explain(far, causes, {"v": variant}).set_index(["metric", "method"])
    assert found.cause["ranking_loss", "BR"] == 1
    assert found.moved["ranking_loss", "BR"] == 0
    assert found.cause["coverage", "BR"] == -1
    assert found.cause["coverage", "RBRL"] == -1, "the cause is said to concern BR only"


def test_a_change_that_moves_as_many_cells_away_explains_nothing(far):
    other = ("emotions", "coverage", "BR")
    variant = cells(as_published(published_rows(change=moved(FAR[1], other, by=0.5))))
    ties = Cause("ties", "v", "")
    counted = effects(far, ties, variant)
    assert counted.loc["BR"].tolist() == [1, 1]
    assert counted.loc["RBRL"].tolist() == [1, 0]
    found = explain(far, [ties], {"v": variant}).set_index(["metric", "method"])
    assert (found.cause["ranking_loss", "BR"], found.cause["coverage", "RBRL"]) == (-1, 0)
    table = effect_table(far, [ties], {"v": variant})
    there = table.columns.index("BR")
    assert [row[there].text for row in table.rows] == ["2", "−1 +1"]


def test_causes_are_read_and_checked(tmp_path):
    path = tmp_path / "causes.toml"
    assert read_causes(path) == []
    path.write_text('[[cause]]\ntitle = "A"\nchange = "p"\ntext = "B "\nmetrics = ["Ral"]\n')
    assert read_causes(path) == [Cause("A", "p", "B", metrics=("ranking_loss",))]
    path.write_text('[[cause]]\ntitle = "A"\n')
    with pytest.raises(ValueError, match="must have title, change and text"):
        read_causes(path)
