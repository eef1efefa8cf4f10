"""`rbrl data`."""

import json

import numpy as np

from rbrl.datasets import load_file


def test_list(rbrl):
    assert "yeast" in rbrl("data", "list").out
    names = [record["dataset"] for record in json.loads(rbrl("data", "list", "--json").out)]
    assert {"emotions", "yeast", "arts"} <= set(names)


def test_show(rbrl):
    assert "2417 samples, 103 features, 14 labels" in rbrl("data", "show", "yeast").out
    shown = json.loads(rbrl("data", "show", "yeast", "--json").out)
    assert (shown["n_labels"], shown["label_names"][0]) == (14, "Class1")


def test_fetch_of_local_data(rbrl):
    answer = rbrl("data", "fetch", "yeast")
    assert (answer.code, answer.out) == (0, "")
    assert "content checked" in answer.err


def test_convert_there_and_back(rbrl, tmp_path):
    assert rbrl("data", "convert", "yeast", tmp_path / "yeast.arff").code == 0
    assert rbrl("data", "convert", tmp_path / "yeast.arff", tmp_path / "yeast.svm").code == 0
    first, second = load_file(tmp_path / "yeast.arff"), load_file(tmp_path / "yeast.svm")
    np.testing.assert_array_equal(first.Y, second.Y)


def test_labels_by_name(rbrl, tmp_path):
    (tmp_path / "my.csv").write_text("a,sea,b,sand\n1,0,2,1\n3,1,4,0\n", encoding="utf-8")
    answer = rbrl("data", "convert", tmp_path / "my.csv", tmp_path / "my.npz", "--labels", "sand, sea")
    assert answer.code == 0
    assert load_file(tmp_path / "my.npz").label_names == ("sand", "sea")
    answer = rbrl("data", "convert", tmp_path / "my.csv", tmp_path / "my.npz")
    assert answer.code == 2
    assert "does not say which of its 4 columns are labels" in answer.err


def test_convert_to_shards_fit_and_predict(rbrl, tmp_path):
    assert rbrl("data", "convert", "yeast", tmp_path / "yeast.svm").code == 0
    answer = rbrl("data", "convert", tmp_path / "yeast.svm", tmp_path / "shards", "--rows-per-shard", 900)
    assert answer.code == 0
    assert "3 shards of 900 rows" in answer.err
    answer = rbrl("data", "convert", "yeast", tmp_path / "first", "--rows-per-shard", 900, "--labels-first")
    assert answer.code == 2
    assert "--labels-first goes with one output file" in answer.err
    answer = rbrl("fit", tmp_path / "shards", "-o", tmp_path / "model", "--set", "tol=0.001", "--json")
    facts = json.loads(answer.out)
    assert facts["gap"] <= 1e-3
    assert (facts["n_samples"], facts["n_labels"]) == (2417, 14)
    whole = rbrl("predict", tmp_path / "model", "yeast").out.splitlines()
    parts = rbrl("predict", tmp_path / "model", tmp_path / "shards").out.splitlines()
    assert len(parts) == 2418
    assert parts == whole
    answer = rbrl("fit", tmp_path / "shards", "-o", tmp_path / "model", "--method", "ml-knn")
    assert answer.code == 2
    assert "Shards can be fitted with --method rbrl, brl or cpnl" in answer.err
