"""The authors' own metric functions on ten edge cases."""

import json

import numpy as np
import pytest

from rbrl.metrics import METRICS

AUTHORS_NAMES = {
    "hamming_loss": "HammingLoss",
    "subset_accuracy": "SubsetAccuracy",
    "accuracy_example": "AccuracyExample",
    "f1_example": "F1_Example",
    "ranking_loss": "Ranking_Loss",
    "coverage": "Coverage",
    "average_precision": "Average_Precision",
    "f1_micro": "F1_Micro_Label",
    "f1_macro": "F1_Macro_Label",
    "auc_macro": "AUC_Macro_Label",
    "one_error": "One_Error",
}


@pytest.fixture(scope="session")
def cases(golden):
    return json.loads((golden / "metric_cases.json").read_text())


@pytest.mark.parametrize("name", AUTHORS_NAMES)
def test_equals_the_authors_functions(cases, name):
    metric = METRICS[name]
    for case in cases:
        F, Y, L = (np.atleast_2d(case[key]) for key in "FYL")
        expected = float(case[AUTHORS_NAMES[name]])
        # Theirs is NaN (0/0) only for a row that is empty in truth and prediction: it counts 1 here.
        expected = 1.0 if np.isnan(expected) else expected
        value = metric.value((Y > 0).astype(int), (L > 0).astype(int), F)
        assert value == pytest.approx(expected, abs=1e-11), case["name"]


def test_their_undefined_cases_are_the_documented_ones(cases):
    undefined = {(case["name"], key) for case in cases for key in AUTHORS_NAMES.values() if case[key] == "NaN"}
    assert undefined == {
        ("empty_prediction_empty_truth", "AccuracyExample"),
        ("empty_prediction_empty_truth", "F1_Example"),
    }


@pytest.mark.parametrize("run", ["kernel_1_0.01_0.1", "linear_1_0.01_0.1", "ranksvm_rbf_C1"])
def test_equals_the_authors_figures_on_emotions(golden, run):
    Y = np.load(golden / "emotions-split.npz")["Y_test"] > 0
    labels = np.loadtxt(golden / run / "labels_test.csv", delimiter=",") > 0
    scores = np.loadtxt(golden / run / "scores_test.csv", delimiter=",")
    expected = json.loads((golden / run / "summary.json").read_text())["test"]
    for name, theirs in AUTHORS_NAMES.items():
        assert METRICS[name].value(Y, labels, scores) == pytest.approx(expected[theirs], abs=1e-9), name
