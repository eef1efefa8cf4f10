"""From the published results to the published statistics."""

from pathlib import Path

import pandas as pd
import pytest
from reproduction.cells import friedman_beside, ranks_beside, results_beside, time_beside
from reproduction.paper import published, published_results

from rbrl.metrics import get_metric
from rbrl.report.results import Results

GOLDEN = Path(__file__).parents[1] / "golden"
F_F = {"Hal": 13.1812, "Sa": 31.7855, "F1e": 23.4032, "Ral": 52.5736, "Cov": 46.6988, "Ap": 51.9481}


def test_the_package_holds_the_published_tables():
    pd.testing.assert_frame_equal(published("results"), pd.read_csv(GOLDEN / "paper_table3.csv"))
    pd.testing.assert_frame_equal(published("average-ranks"), pd.read_csv(GOLDEN / "paper_table4.csv"))


def test_all_average_ranks_and_the_overall_row_are_the_papers():
    frame = ranks_beside().frame
    assert len(frame) == 63
    assert (frame.average_rank.round(2) - frame.printed).abs().max() < 1e-9


@pytest.mark.parametrize("metric", F_F)
def test_friedman_statistics_are_the_papers(metric):
    row = friedman_beside().frame.set_index("metric").loc[get_metric(metric).name]
    assert pytest.approx(F_F[metric], abs=1e-3) == row.F_F
    assert row.critical_value == pytest.approx(2.0698, abs=5e-5)
    assert row.critical_distance == pytest.approx(3.799, abs=1e-3)


def test_a_run_stands_beside_the_published_figures(rows):
    ours = rows[rows.dataset.isin(["sea"])].assign(dataset="emotions")
    table = results_beside(Results.from_rows(ours))
    here = table.frame.dropna(subset=["mean"])
    assert set(here.method) == {"RBRL", "BR"}
    assert len(table.rows) == 540
    first = here[(here.method == "BR") & (here.metric == "hamming_loss")].iloc[0]
    assert (first.printed, first["mean"]) == (0.183, pytest.approx(0.4, abs=0.01))


def test_times_stand_beside_the_published_ones(rows):
    frame = time_beside(Results.from_rows(rows.assign(dataset="yeast"))).frame
    row = frame[(frame.dataset == "yeast") & (frame.method == "RBRL")].iloc[0]
    assert (row.printed_train, row.train_seconds) == (5158, 1.0)


def test_unknown_tables_are_refused():
    with pytest.raises(ValueError, match="table9"):
        published("table9")


def test_published_results_have_ten_sets_and_nine_methods():
    results = published_results()
    assert (len(results.datasets), len(results.methods), len(results.metrics)) == (10, 9, 6)
