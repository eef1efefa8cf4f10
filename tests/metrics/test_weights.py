"""Weights of samples: a sample of weight 2 counts like two equal samples, and one of weight 0 is left out."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.metrics import f1_score, hamming_loss, log_loss, ndcg_score, roc_auc_score

from rbrl.metrics import (
    CONVENTIONS,
    METRICS,
    Metric,
    classification_report,
    evaluate,
    propensities,
    psndcg_at_k,
    psp_at_k,
    reliability_bins,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")

RNG = np.random.default_rng(0)
Y = (RNG.random((40, 5)) < 0.3).astype(int)
Y[0], Y[1] = 0, 1
Y[:, 4] = 0
SCORES = RNG.normal(size=Y.shape).round(1)  # with ties
LABELS = (SCORES > 0.2).astype(int)
HIDDEN = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y)
HIDDEN[7] = np.nan
REPEATS = RNG.integers(0, 4, len(Y))
P = propensities(Y)
ALL = [
    *METRICS.values(),
    Metric("psp", "PSP", "PSP", True, "scores", partial(psp_at_k, k=2, propensities=P)),
    Metric("psndcg", "PSN", "PSN", True, "scores", partial(psndcg_at_k, k=2, propensities=P)),
]
RULES = pytest.mark.parametrize("convention", CONVENTIONS)
EVERY = pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
CONTAINERS = pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])


def value(metric, truth, rows, convention, weights=None, container=np.asarray):
    # Propensity-scored metrics take no negative scores that are sparse.
    scores = SCORES + 9 if metric.name.startswith("ps") else SCORES
    predicted = {"labels": LABELS, "scores": scores, "probabilities": expit(SCORES)}
    found = {name: container(values[rows]) for name, values in predicted.items()}
    missing = "ignore" if np.isnan(truth).any() else "raise"
    return metric.value(container(truth[rows]), **found, convention=convention, missing=missing, sample_weight=weights)


@CONTAINERS
@EVERY
@RULES
def test_whole_weights_are_repeated_rows(metric, convention, container):
    repeated = np.repeat(np.arange(len(Y)), REPEATS)
    expected = value(metric, Y, repeated, convention, None, container)
    found = value(metric, Y, slice(None), convention, REPEATS, container)
    assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


@EVERY
@RULES
def test_whole_weights_are_repeated_rows_with_missing_labels(metric, convention):
    if metric.name.startswith("ps"):
        pytest.skip("propensity-scored metrics take no missing labels")
    repeated = np.repeat(np.arange(len(Y)), REPEATS)
    expected = value(metric, HIDDEN, repeated, convention)
    assert value(metric, HIDDEN, slice(None), convention, REPEATS) == pytest.approx(expected, rel=1e-12, nan_ok=True)


@EVERY
@RULES
def test_rows_of_weight_zero_are_left_out_and_equal_weights_change_nothing(metric, convention):
    kept = np.flatnonzero(REPEATS > 0)
    plain = value(metric, Y, kept, convention)
    assert value(metric, Y, slice(None), convention, REPEATS > 0) == plain
    assert value(metric, Y, kept, convention, np.ones(len(kept))) == plain
    # Only the ratios of the weights matter.
    assert value(metric, Y, kept, convention, np.full(len(kept), 0.37)) == pytest.approx(plain, rel=1e-12, nan_ok=True)


def test_weights_are_those_of_scikit_learn():
    weights = RNG.random(len(Y))
    probabilities = expit(SCORES)
    found = evaluate(
        Y, LABELS, SCORES, ["Hal", "F1mi", "F1ma", "F1w", "N@3", "AUCmi"], "sklearn", sample_weight=weights
    )
    assert found["hamming_loss"] == pytest.approx(hamming_loss(Y, LABELS, sample_weight=weights))
    for name in ("micro", "macro", "weighted"):
        expected = f1_score(Y, LABELS, average=name, sample_weight=weights, zero_division=0)
        assert found[f"f1_{name}"] == pytest.approx(expected)
    assert found["auc_micro"] == pytest.approx(roc_auc_score(Y, SCORES, average="micro", sample_weight=weights))
    expected = ndcg_score(Y, SCORES, k=3, sample_weight=weights)
    assert found["ndcg_at_3"] == pytest.approx(expected)
    entries = np.repeat(weights, 5)
    expected = log_loss(Y.ravel(), probabilities.ravel(), sample_weight=entries)
    assert METRICS["log_loss"].value(Y, probabilities=probabilities, sample_weight=weights) == pytest.approx(expected)


def test_every_label_by_itself_and_the_report_are_weighted():
    repeated = np.repeat(np.arange(len(Y)), REPEATS)
    expected = evaluate(Y[repeated], LABELS[repeated], SCORES[repeated], per_label=True)
    found = evaluate(Y, LABELS, SCORES, per_label=True, sample_weight=REPEATS)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-12)
    text = classification_report(Y, LABELS, sample_weight=REPEATS)
    assert text == classification_report(Y[repeated], LABELS[repeated])
    assert "      0.80\n" in classification_report(Y, LABELS, sample_weight=np.full(40, 0.1))


def test_bins_hold_sums_of_weights():
    repeated = np.repeat(np.arange(len(Y)), REPEATS)
    expected = reliability_bins(Y[repeated], expit(SCORES[repeated]), 4, per_label=True)
    found = reliability_bins(Y, expit(SCORES), 4, per_label=True, sample_weight=REPEATS)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_scorers_take_weights():
    class Model:
        def predict(self, X):
            return LABELS

        def decision_function(self, X):
            return SCORES

    for name in ("hamming_loss", "average_precision"):
        metric = METRICS[name]
        sign = 1 if metric.greater_is_better else -1
        expected = sign * metric.value(Y, LABELS, SCORES, sample_weight=REPEATS)
        assert metric(Model(), None, Y, sample_weight=REPEATS) == expected


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight must have shape \(40,\), one weight per row of Y. Got \(3,\)"),
        (-np.ones(40), "sample_weight must be finite and >= 0. Got values from -1.0"),
        (np.zeros(40), "sample_weight is zero for all 40 rows"),
        (np.ma.masked_equal(np.arange(40), 3), "sample_weight must have a value in every entry"),
    ],
)
def test_wrong_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        evaluate(Y, LABELS, SCORES, sample_weight=weights)


def test_weights_of_other_rows():
    frame, weights = pd.DataFrame(Y), pd.Series(np.ones(40))[::-1]
    with pytest.raises(ValueError, match="Y and sample_weight must have the same rows"):
        evaluate(frame, LABELS, SCORES, sample_weight=weights)
