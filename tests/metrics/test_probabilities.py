"""Metrics of probabilities: by hand, beside scikit-learn, and what they refuse."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.multioutput import MultiOutputClassifier

from rbrl import RBRLClassifier
from rbrl.metrics import (
    METRICS,
    brier_score,
    calibration_error_macro,
    evaluate,
    expected_calibration_error,
    log_loss,
    probabilities_of,
    reliability_bins,
)

RNG = np.random.default_rng(0)
P = RNG.random((200, 4))
Y = (RNG.random((200, 4)) < P).astype(int)


def test_a_single_label_is_scikit_learns():
    y, p = Y[:, 0], P[:, 0]
    assert log_loss(y[:, None], p[:, None]) == pytest.approx(sklearn_log_loss(y, p), rel=1e-12)
    assert brier_score(y[:, None], p[:, None]) == pytest.approx(brier_score_loss(y, p), rel=1e-12)


def test_by_hand():
    truth, foretold = [[1, 0, 0], [1, 1, 0]], [[0.9, 0.95, 0.05], [1.0, 0.0, 0.0]]
    assert log_loss([[1, 0]], [[1.0, 0.0]]) == pytest.approx(0, abs=1e-15)
    assert log_loss([[0]], [[1.0]]) == pytest.approx(-np.log(np.finfo(float).eps))
    # Bins of a tenth: [0, .1): .05, 0, 0 with one relevant; [.9, 1]: .9, .95, 1 with two.
    expected = (abs(0.05 - 1) + abs(2.85 - 2)) / 6
    assert expected_calibration_error(truth, foretold, n_bins=10) == pytest.approx(expected)
    by_label = [abs(1.9 - 2) / 2, (0.95 + 1) / 2, 0.05 / 2]
    assert calibration_error_macro(truth, foretold, n_bins=10) == pytest.approx(np.mean(by_label))


def test_errors_of_labels_may_cancel_in_the_pooled_one():
    P = np.full((100, 2), 0.5)
    Y = np.tile([1, 0], (100, 1))
    assert expected_calibration_error(Y, P) == 0
    assert calibration_error_macro(Y, P) == 0.5


def test_true_probabilities_have_small_errors_and_overbold_ones_large():
    assert expected_calibration_error(Y, P) < 0.08
    assert expected_calibration_error(Y, np.round(P)) > 0.2


def test_bins_hold_every_entry_once():
    bins = reliability_bins(Y, P, n_bins=7)
    assert bins.n.sum() == P.size
    assert bins.foretold.sum() == pytest.approx(P.sum())
    assert bins.relevant.sum() == Y.sum()
    by_label = reliability_bins(Y, P, n_bins=7, per_label=True)
    for pooled, parts in zip(bins, by_label):
        np.testing.assert_allclose(parts.sum(axis=0), pooled)


def test_scores_are_refused():
    for name in ("log_loss", "brier_score", "expected_calibration_error", "calibration_error_macro"):
        with pytest.raises(
            ValueError, match=r"between 0 and 1\. Got values from -1 to 2 .*CalibratedMultiLabelClassifier"
        ):
            METRICS[name].value([[1, 0]], probabilities=[[2.0, -1.0]])
    with pytest.raises(ValueError, match="probabilities must not be NaN"):
        log_loss([[1, 0]], [[np.nan, 0.5]])
    with pytest.raises(ValueError, match=r"n_bins must be a whole number of at least 1\. Got 0"):
        expected_calibration_error(Y, P, n_bins=0)
    with pytest.raises(ValueError, match=r"log_loss compares Y with probabilities\. Got probabilities=None"):
        evaluate([[1, 0]], labels=[[1, 0]], scores=[[1, 0]], metrics=["log_loss"])


def test_scorers_ask_for_probabilities():
    X = RNG.standard_normal((200, 3))
    model = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    assert METRICS["log_loss"](model, X, Y) == -log_loss(Y, probabilities_of(model, X))
    with pytest.raises(TypeError, match=r"need predict_proba\. Got RBRLClassifier, which has none"):
        METRICS["log_loss"](RBRLClassifier().fit(X, Y), X, Y)
