"""The paper's tables on the command line."""

import json

import pytest

F_F = {
    "hamming_loss": 13.1812,
    "subset_accuracy": 31.7855,
    "f1_example": 23.4032,
    "ranking_loss": 52.5736,
    "coverage": 46.6988,
    "average_precision": 51.9481,
}


def test_table_4_prints_every_rank(rbrl):
    lines = rbrl("reproduce", "table4").out.splitlines()
    overall = next(line.split() for line in lines if line.startswith("Overall"))
    assert overall[1:] == ["5.28", "6.27", "6.83", "7.13", "3.82", "5.25", "2.60", "5.18", "1.73"]
    assert "63 of 63 figures are those that the paper prints." in lines


def test_table_4_as_json(rbrl):
    records = json.loads(rbrl("reproduce", "table4", "--json").out)
    assert len(records) == 63
    assert all(abs(round(r["average_rank"], 2) - r["printed"]) < 1e-9 for r in records)


def test_table_5(rbrl):
    assert "31.7855" in rbrl("reproduce", "table5").out
    records = json.loads(rbrl("reproduce", "table5", "--json").out)
    assert {r["metric"]: r["F_F"] for r in records} == pytest.approx(F_F, abs=1e-3)
    assert all(r["critical_value"] == pytest.approx(2.0698, abs=5e-5) for r in records)
    assert all(r["critical_distance"] == pytest.approx(3.799, abs=1e-3) for r in records)


OTHERS = {1: "cardinality 1.240", 2: "Rank-SVMz", 3: "0.189 ± 0.008", 6: "BRL", 7: "5158"}


@pytest.mark.parametrize(("number", "text"), OTHERS.items())
def test_other_tables(rbrl, number, text):
    answer = rbrl("reproduce", f"table{number}")
    assert answer.code == 0
    assert text in answer.out


def test_all_writes_figures_and_a_page(rbrl, tmp_path):
    answer = rbrl("reproduce", "all", "-o", tmp_path / "paper")
    assert answer.code == 0
    names = {path.name for path in (tmp_path / "paper").iterdir()}
    assert {"figure1.svg", "figure1.png", "figure2-ranking_loss.svg", "report.html"} <= names


def test_figure_2_names_its_files(rbrl, tmp_path):
    answer = rbrl("reproduce", "figure2", "-o", tmp_path)
    assert answer.out.count(".svg") == 6


def test_convergence_of_a_file(rbrl, tmp_path):
    from sklearn.datasets import make_multilabel_classification

    from rbrl.datasets import Dataset, save_file

    X, Y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=4, random_state=0)
    save_file(Dataset(X, Y, name="small"), tmp_path / "small.npz")
    answer = rbrl("reproduce", "figure3", "-o", tmp_path, "-d", tmp_path / "small.npz", "--json")
    assert [name.rpartition("/")[2] for name in json.loads(answer.out)] == ["figure3.svg", "figure3.png", "figure3.csv"]
