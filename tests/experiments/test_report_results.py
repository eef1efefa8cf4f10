"""Rows to results, ranks and tests."""

import numpy as np
import pytest
from fake_rows import failing, make_rows

from rbrl.experiments import Results, compare, rank_table


def test_means_are_over_splits(rows):
    results = Results.from_rows(rows)
    values = rows[(rows.dataset == "hill") & (rows.method == "br") & (rows.metric == "coverage")].value
    assert results.means("coverage").loc["hill", "br"] == pytest.approx(values.mean())
    assert results.stds("coverage").loc["hill", "br"] == pytest.approx(values.std())
    assert (results.n_splits, results.methods) == (3, ("brl", "rbrl", "br"))


def test_one_split_has_no_deviation():
    assert Results.from_rows(make_rows(n_splits=1)).summary["std"].isna().all()


def test_a_failed_run_is_missing_and_never_a_number(rows):
    results = Results.from_rows(failing(rows, "sea", "br", split=1))
    assert results.counts("coverage").loc["sea", "br"] == 2
    assert len(results.failures) == 1
    assert results.failures.error[0] == "MemoryError: no room"


def test_a_data_set_without_every_method_is_left_out(rows):
    comparison = compare(Results.from_rows(failing(rows, "sea", "br")), "ranking_loss")
    assert comparison.left_out == ("sea",)
    assert comparison.n_datasets == 3


def test_a_method_that_always_fails_does_not_spoil_the_rest(rows):
    for dataset in ("sea", "hill", "wood", "town"):
        rows = failing(rows, dataset, "br")
    comparison = compare(Results.from_rows(rows), "ranking_loss")
    assert comparison.without == ("br",)
    assert (comparison.n_datasets, list(comparison.ranks.index)) == (4, ["brl", "rbrl"])


def test_everything_failed_ranks_nothing(rows):
    rows = rows.assign(value=np.nan, status="failed", error="no")
    results = Results.from_rows(rows)
    assert compare(results, "coverage").n_datasets == 0
    assert rank_table(results).isna().all().all()


def test_ranks_of_a_clear_order(rows):
    table = rank_table(Results.from_rows(rows))
    assert table.loc["Overall"].tolist() == [1, 2, 3]


def test_one_data_set_has_no_test():
    comparison = compare(Results.from_rows(make_rows(datasets=("sea",))), "coverage")
    assert comparison.test is None
    assert comparison.ranks.tolist() == [1, 2, 3]


def test_abbreviations_name_metrics(rows):
    renamed = rows[rows.metric == "coverage"].assign(metric="Cov")
    assert [metric.name for metric in Results.from_rows(renamed).metrics] == ["coverage"]


@pytest.mark.parametrize(
    ("change", "message"), [(lambda r: r.drop(columns="status"), "status"), (lambda r: r[:0], "0 rows")]
)
def test_errors_say_what_is_wrong(rows, change, message):
    with pytest.raises(ValueError, match=message):
        Results.from_rows(change(rows))


def test_only_refuses_unknown_methods(rows):
    with pytest.raises(ValueError, match="svm"):
        Results.from_rows(rows).only(["svm"])
