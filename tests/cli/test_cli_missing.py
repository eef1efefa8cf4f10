"""Missing labels on the command line."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from rbrl import load
from rbrl.datasets import Dataset, load_file, save_file
from rbrl.metrics import evaluate


@pytest.fixture
def hidden(tmp_path):
    """A file in which labels are missing."""
    X, Y = make_multilabel_classification(90, 6, n_classes=4, random_state=0)
    Y = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
    save_file(Dataset(X, Y), tmp_path / "hidden.csv")
    return tmp_path / "hidden.csv"


def test_compare_measures_known_labels(rbrl, hidden, tmp_path):
    arguments = ["--dataset", hidden, "--method", "br", "--splits", "2", "-o", tmp_path / "run"]
    answer = rbrl("compare", *arguments)
    assert answer.code == 0, answer.err
    assert "2 runs done, 0 reused, 0 failed" in answer.err


def test_compare_names_the_methods_that_need_all_labels(rbrl, hidden, tmp_path):
    methods = ["--method", "br", "--method", "ml-knn", "--method", "clr"]
    answer = rbrl("compare", "--dataset", hidden, *methods, "-o", tmp_path / "run")
    assert answer.code == 2
    assert "labels missing, and these methods need all of them: ml-knn, clr." in answer.err
    assert not (tmp_path / "run" / "report").exists()


def test_a_model_is_fitted_and_evaluated(rbrl, hidden, tmp_path):
    assert rbrl("fit", hidden, "--method", "br", "-o", tmp_path / "m.rbrl").code == 0
    answer = rbrl("evaluate", tmp_path / "m.rbrl", hidden, "--json")
    assert answer.code == 0, answer.err
    model, data = load(tmp_path / "m.rbrl"), load_file(hidden)
    expected = evaluate(data.Y, model.predict(data.X).astype(int), model.decision_function(data.X), missing="ignore")
    assert json.loads(answer.out) == pytest.approx(expected)


def test_a_method_that_needs_all_labels_is_refused(rbrl, hidden, tmp_path):
    answer = rbrl("fit", hidden, "--method", "ml-knn", "-o", tmp_path / "m.rbrl")
    assert answer.code != 0
    assert "ml-knn needs to know every label of every row" in answer.err


def test_data_are_shown_and_converted(rbrl, hidden, tmp_path):
    n_missing = load_file(hidden).missing_labels
    assert json.loads(rbrl("data", "show", hidden, "--json").out)["missing_labels"] == n_missing
    assert rbrl("data", "convert", hidden, tmp_path / "hidden.arff").code == 0
    assert load_file(tmp_path / "hidden.arff").missing_labels == n_missing
    answer = rbrl("data", "convert", hidden, tmp_path / "hidden.svm")
    assert answer.code != 0
    assert f"missing values cannot be written in this format: Y has {n_missing}" in answer.err
