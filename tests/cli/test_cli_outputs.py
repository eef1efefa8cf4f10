"""No command overwrites one of its inputs, even under another name."""

import os

import pytest
from sklearn.datasets import make_multilabel_classification

from rbrl.datasets import Dataset, save_file


@pytest.fixture
def folder(rbrl, tmp_path):
    X, Y = make_multilabel_classification(n_samples=40, n_features=4, n_classes=3, random_state=0)
    save_file(Dataset(X, Y, list("abcd"), ["sea", "sand", "sun"]), tmp_path / "data.csv")
    assert rbrl("fit", tmp_path / "data.csv", "-o", tmp_path / "m.rbrl").code == 0
    (tmp_path / "plan.toml").write_text('datasets = ["data.csv"]\nmethods = ["br"]\nsplits.number = 1\n')
    os.symlink(tmp_path / "m.rbrl", tmp_path / "symbolic.rbrl")
    os.link(tmp_path / "m.rbrl", tmp_path / "hard.rbrl")
    return tmp_path


@pytest.mark.parametrize(
    "typed",
    [
        "predict m.rbrl data.csv -o m.rbrl",
        "predict m.rbrl data.csv -o symbolic.rbrl",
        "predict m.rbrl data.csv -o hard.rbrl",
        "predict symbolic.rbrl data.csv -o m.rbrl",
        "predict m.rbrl data.csv -o data.csv",
        "predict m.rbrl data.csv -o ../{folder}/data.csv",
        "predict m.rbrl *.csv -o data.csv",
        "fit data.csv -o data.csv",
        "fit data.csv -o data.xml",
        "fit data.csv --labels data.xml -o data.xml",
        "data convert data.csv data.csv",
        "compare plan.toml -o plan.toml",
        "compare plan.toml -o data.csv",
        "compare -d data.csv -m br --splits 1 -o data.csv",
    ],
)
def test_an_input_is_not_overwritten(rbrl, folder, monkeypatch, typed):
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    answer = rbrl(*typed.format(folder=folder.name).split())
    assert answer.code == 2
    assert "is read as an input" in answer.err
    assert "would be overwritten: name another output file." in answer.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_data_set_of_a_folder_is_not_overwritten(rbrl, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert rbrl("data", "convert", "yeast", "yeast.npz").code == 0
    before = (folder / "yeast.npz").read_bytes()
    assert rbrl("data", "convert", "yeast", "yeast.npz", "--data-home", ".").code == 2
    assert rbrl("fit", "yeast", "--data-home", ".", "-o", "yeast.npz").code == 2
    assert (folder / "yeast.npz").read_bytes() == before


def test_files_of_a_run_are_not_overwritten(rbrl, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert rbrl("compare", "plan.toml", "-o", "run", "--quiet").code == 0
    answer = rbrl("report", "run", "-o", "run/runs.sqlite")
    assert answer.code == 2
    assert "run/runs.sqlite is read as an input and would be overwritten" in answer.err
    (folder / "run" / "report" / "results.csv").write_bytes((folder / "data.csv").read_bytes())
    answer = rbrl("compare", "-d", "run/report/results.csv", "--labels", "-3", "-m", "br", "--splits", 1, "-o", "run")
    assert answer.code == 2
    assert "run/report/results.csv is read as an input and would be overwritten" in answer.err


def test_another_output_is_written(rbrl, folder):
    (folder / "old.csv").write_text("something else")
    assert rbrl("predict", folder / "m.rbrl", folder / "data.csv", "-o", folder / "old.csv").code == 0
    assert (folder / "old.csv").read_text().startswith("sea,sand,sun\n")
