"""Recorded rows, computed anew; those of yeast, which needs no download."""

import pytest

from studies.comparison import rows
from studies.comparison.check import ALWAYS, check_row, lines, sample


@pytest.fixture(scope="module")
def recorded():
    return rows.read()


def row(recorded, method):
    of_yeast = recorded[(recorded.dataset == "yeast") & (recorded.split == 0) & (recorded.variant == "tuned")]
    return of_yeast[of_yeast.method == method].iloc[0]


@pytest.mark.parametrize("method", ["rbrl-linear", "rbrl-rbf", "ml-knn", "logistic"])
def test_a_recorded_row_comes_out_again(recorded, method):
    checked = check_row(row(recorded, method))
    assert checked.agrees, lines([checked])


def test_a_row_that_is_wrong_is_found(recorded):
    wrong = row(recorded, "ml-knn").copy()
    wrong["ranking_loss"] += 0.02
    checked = check_row(wrong)
    assert not checked.agrees
    assert checked.metric == "ranking_loss"
    assert lines([checked])[0].startswith("DIFFERS")
    assert lines([checked])[-1].startswith("0 of 1 rows agree")


def test_ten_random_rows_with_ml_knn_among_them(recorded):
    some = sample(recorded, 10, seed=3)
    assert len(some) == 10
    assert set(ALWAYS) <= set(some.method)
    assert not some.index.equals(sample(recorded, 10, seed=4).index)
