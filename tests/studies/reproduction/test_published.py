"""From the published results to the published statistics."""

from pathlib import Path

import pandas as pd
import pytest
from published_rows import published_rows

from rbrl.metrics import get_metric
from studies.reproduction.cells import friedman_beside, published_table, ranks_beside, time_beside
from studies.reproduction.paper import as_published, published, published_results

GOLDEN = Path(__file__).parents[2] / "golden"
F_F = {"Hal": 13.1812, "Sa": 31.7855, "F1e": 23.4032, "Ral": 52.5736, "Cov": 46.6988, "Ap": 51.9481}


def test_the_published_tables_are_the_golden_ones():
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


def test_published_tables_are_as_printed():
    first, ablation = published_table(3), published_table(6)
    assert (len(first.rows), len(ablation.rows)) == (540, 24)
    assert [cell.text for cell in first.rows[0]] == ["emotions", "Hal ↓", "Rank-SVM", "0.189 ± 0.008", "–", "–"]
    assert (first.frame.printed[0], first.frame.printed_std[0]) == (0.189, 0.008)


def test_times_stand_beside_the_published_ones():
    frame = time_beside(as_published(published_rows(datasets=["yeast"]))).frame
    row = frame[(frame.dataset == "yeast") & (frame.method == "RBRL")].iloc[0]
    assert (row.printed_train, row.train_seconds) == (5158, 0.5)
    assert frame[frame.dataset != "yeast"].train_seconds.isna().all()


def test_unknown_tables_are_refused():
    with pytest.raises(ValueError, match="table9"):
        published("table9")


def test_published_results_have_ten_sets_and_nine_methods():
    results = published_results()
    assert (len(results.datasets), len(results.methods), len(results.metrics)) == (10, 9, 6)
