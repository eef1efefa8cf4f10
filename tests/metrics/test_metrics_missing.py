"""Entries of Y that nobody looked at leave every metric: against each row, or each label, with what is known of it."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import UndefinedMetricWarning

from rbrl.exceptions import InvalidLabelsError
from rbrl.metrics import CONVENTIONS, METRICS, evaluate

# Averages over samples, and over labels; the others take all entries together.
OF_LABELS = ("f1_macro", "auc_macro", "calibration_error_macro")
OF_PROBABILITIES = ("log_loss", "brier_score", "expected_calibration_error")
OF_ENTRIES = ("hamming_loss", "f1_micro", "f1_weighted", "auc_micro", *OF_PROBABILITIES)
OF_ROWS = [name for name in METRICS if name not in (*OF_LABELS, *OF_ENTRIES)]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")


def hidden(rng, Y, share):
    """Labels of which a share is hidden."""
    return np.where(rng.random(Y.shape) < share, np.nan, Y)


def predicted_for(metric, labels, scores):
    return {"labels": labels, "scores": scores, "probabilities": expit(scores)}[metric.needs]


def mean(values):
    defined = [value for value in values if not np.isnan(value)]
    return sum(defined) / len(defined) if defined else np.nan


def by_row(metric, Y, predicted, convention):
    """The mean over the rows that have a value, each with its known labels alone."""
    known = [(y[~np.isnan(y)], p[~np.isnan(y)]) for y, p in zip(Y, predicted)]
    return mean([metric.value([y], [p], [p], convention) for y, p in known if len(y)])


def by_label(metric, Y, predicted, convention):
    known = [(y[:, None], {metric.needs: p[:, None]}) for y, p in columns(Y, predicted)]
    return mean([metric.value(y, convention=convention, **p) for y, p in known])


def columns(Y, predicted):
    """Each label that somebody looked at, on its known rows."""
    known = [(y[~np.isnan(y)], p[~np.isnan(y)]) for y, p in zip(Y.T, predicted.T)]
    return [(y, p) for y, p in known if len(y)]


def of_entries(name, Y, labels, scores, convention):
    known = ~np.isnan(Y)
    if not known.any():
        return np.nan
    y, h, f = Y[known], labels[known], scores[known]
    if name == "hamming_loss":
        return np.mean(y != h)
    if name == "f1_micro":
        return METRICS[name].value(y[:, None], h[:, None], convention=convention)
    if name in OF_PROBABILITIES:
        return METRICS[name].value(y[:, None], probabilities=expit(f)[:, None])
    if name == "auc_micro":
        return METRICS[name].value(y[:, None], scores=f[:, None])
    pairs = columns(Y, labels)
    weighted = [y.sum() * METRICS["f1_macro"].value(y[:, None], h[:, None]) for y, h in pairs]
    return sum(weighted) / max(1, sum(y.sum() for y, _ in pairs))


def brute_force(metric, Y, labels, scores, convention):
    if metric.name in OF_ENTRIES:
        return of_entries(metric.name, Y, labels, scores, convention)
    predicted = predicted_for(metric, labels, scores)
    return (by_label if metric.name in OF_LABELS else by_row)(metric, Y, predicted, convention)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", METRICS)
def test_what_is_missing_leaves_the_metric(name, convention, random_prediction):
    metric, rng = METRICS[name], np.random.default_rng(5)
    for _ in range(60):
        Y, labels, scores = random_prediction(rng)
        Y = hidden(rng, Y, rng.choice([0.0, 0.2, 0.5, 0.8]))
        expected = brute_force(metric, Y, labels, scores, convention)
        received = metric.value(Y, labels, scores, convention, "ignore", expit(scores))
        assert received == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", METRICS)
def test_infinite_scores_keep_their_order(name, random_prediction):
    """What is put below all scores must not tie with the lowest that there is."""
    metric, rng = METRICS[name], np.random.default_rng(6)
    for _ in range(60):
        Y, labels, scores = random_prediction(rng)
        scores[rng.random(scores.shape) < 0.3] = -np.inf
        scores[rng.random(scores.shape) < 0.1] = np.inf
        Y = hidden(rng, Y, 0.4)
        expected = brute_force(metric, Y, labels, scores, "paper")
        received = metric.value(Y, labels, scores, missing="ignore", probabilities=expit(scores))
        assert received == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_nothing_missing_changes_no_digit(convention, prediction):
    Y, labels, scores = prediction
    P = expit(scores)
    plain = evaluate(Y, labels, scores, METRICS, convention, probabilities=P)
    assert evaluate(Y.astype(float), labels, scores, METRICS, convention, "ignore", P) == plain


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_sparse_labels_may_hold_nan(convention, prediction):
    Y, labels, scores = prediction
    Y = hidden(np.random.default_rng(0), Y, 0.4)
    P = expit(scores)
    dense = evaluate(Y, labels, scores, METRICS, convention, "ignore", P)
    for given in (Y, sparse.csr_array(Y)):
        for predicted in (sparse.csr_array(labels), labels):
            rest = sparse.csr_array(scores), METRICS, convention, "ignore", sparse.csr_array(P)
            received = evaluate(given, predicted, *rest)
            assert received == pytest.approx(dense, rel=1e-12)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_row_or_a_label_of_which_nothing_is_known_is_as_if_absent(convention, prediction):
    Y, labels, scores = prediction
    hiding = Y.astype(float)
    hiding[5:9] = np.nan
    hiding[:, 2] = np.nan
    rows, columns = np.r_[0:5, 9 : len(Y)], [0, 1, 3, 4, 5, 6]
    P = expit(scores)
    Y, *predicted, P_left = (M[np.ix_(rows, columns)] for M in (Y, labels, scores, P))
    absent = evaluate(Y, *predicted, METRICS, convention, probabilities=P_left)
    found = evaluate(hiding, labels, scores, METRICS, convention, "ignore", P)
    assert found == pytest.approx(absent, rel=1e-12)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", METRICS)
def test_of_nothing_every_metric_is_undefined(name, convention):
    nothing, ones = np.full((3, 2), np.nan), np.ones((3, 2))
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(METRICS[name].value(nothing, ones, ones, convention, "ignore", ones))


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_nan_is_refused_with_the_way_out(make):
    Y = make([[1.0, np.nan], [0.0, np.nan]])
    for name in METRICS:
        with pytest.raises(InvalidLabelsError, match=r'NaN in 2 of 4 entries.*missing="ignore"'):
            METRICS[name].value(Y, np.ones((2, 2)), np.ones((2, 2)), probabilities=np.ones((2, 2)))


def test_only_y_may_have_unknown_entries_and_only_of_labels():
    with pytest.raises(InvalidLabelsError, match="labels must hold only 0 and 1"):
        evaluate([[1, 0]], [[1.0, np.nan]], metrics=["Hal"], missing="ignore")
    with pytest.raises(InvalidLabelsError, match=r"pass \(Y > 0\)"):
        evaluate([[1, -1, np.nan]], [[1, 0, 0]], metrics=["Hal"], missing="ignore")
    with pytest.raises(ValueError, match=r"missing must be one of raise, ignore\. Got 'drop'"):
        evaluate([[1, 0]], [[1, 0]], metrics=["Hal"], missing="drop")


def test_a_scorer_can_ignore_them_too(prediction):
    Y, labels, _ = prediction

    class Constant:
        def predict(self, X):
            return labels

    Y = hidden(np.random.default_rng(1), Y, 0.3)
    metric = METRICS["hamming_loss"]
    assert metric.scorer(missing="ignore")(Constant(), None, Y) == -metric.value(Y, labels, missing="ignore")


def test_no_warning_where_something_is_known(prediction):
    Y, labels, scores = prediction
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Y = hidden(np.random.default_rng(2), Y, 0.3)
        evaluate(Y, labels, scores, METRICS, missing="ignore", probabilities=expit(scores))
