"""Each metric against a slow transcription of its formula, entry by entry."""

from math import log, log2, nan

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from rbrl.metrics import METRICS


def fraction(a, b, undefined=nan):
    return a / b if b else undefined


def mean(values):
    return sum(values) / len(values) if values else nan


def sets(row):
    return {j for j, y in enumerate(row) if y}, {j for j, y in enumerate(row) if not y}


def rank(f, j, lower_first=True):
    before = (lambda k: k < j) if lower_first else (lambda k: k > j)
    return 1 + sum(f[k] > f[j] or (f[k] == f[j] and before(k)) for k in range(len(f)) if k != j)


def with_pair(Y):
    return [i for i, row in enumerate(Y) if 0 < sum(row) < len(row)]


def hamming_loss(Y, H):
    return mean([mean([h != y for h, y in zip(*rows)]) for rows in zip(H, Y)])


def subset_accuracy(Y, H):
    return mean([list(h) == list(y) for h, y in zip(H, Y)])


def f1_example(Y, H):
    return mean([fraction(2 * len(sets(h)[0] & sets(y)[0]), sum(h) + sum(y), 1.0) for h, y in zip(H, Y)])


def accuracy_example(Y, H):
    pairs = [(sets(h)[0], sets(y)[0]) for h, y in zip(H, Y)]
    return mean([fraction(len(p & t), len(p | t), 1.0) for p, t in pairs])


def f1_macro(Y, H):
    return mean([fraction(2 * sum(h * y), sum(h) + sum(y), 0.0) for h, y in zip(H.T, Y.T)])


def f1_weighted(Y, H):
    weighted = [sum(y) * fraction(2 * sum(h * y), sum(h) + sum(y), 0.0) for h, y in zip(H.T, Y.T)]
    return fraction(sum(weighted), Y.sum(), 0.0)


def f1_micro(Y, H):
    return fraction(2 * (H * Y).sum(), H.sum() + Y.sum(), 1.0)


def ranking_loss(Y, F):
    losses = []
    for i in with_pair(Y):
        relevant, irrelevant = sets(Y[i])
        wrong = sum(F[i][p] <= F[i][q] for p in relevant for q in irrelevant)
        losses.append(wrong / (len(relevant) * len(irrelevant)))
    return mean(losses)


def coverage(Y, F):
    depths = [max((rank(f, j) for j in sets(y)[0]), default=0) for y, f in zip(Y, F)]
    return (mean(depths) - 1) / Y.shape[1]


def average_precision(Y, F):
    values = []
    for i in with_pair(Y):
        ranks = [rank(F[i], j, lower_first=False) for j in sets(Y[i])[0]]
        values.append(mean([sum(k <= r for k in ranks) / r for r in ranks]))
    return mean(values)


def one_error(Y, F):
    return mean([not any(F[i][j] == max(F[i]) for j in sets(Y[i])[0]) for i in with_pair(Y)])


def auc_macro(Y, F):
    areas = []
    for y, f in zip(Y.T, F.T):
        pairs = [f[i] >= f[k] for i in range(len(y)) for k in range(len(y)) if y[i] and not y[k]]
        areas.append(mean(pairs) if pairs else 0.0)
    return mean(areas)


def auc_micro(Y, F):
    positive, negative = F[Y == 1], F[Y == 0]
    return mean([1.0 * (p > q) + 0.5 * (p == q) for p in positive for q in negative])


def precision_at_3(Y, F):
    return mean([sum(rank(f, j) <= 3 for j in sets(y)[0]) / 3 for y, f in zip(Y, F)])


def recall_at_3(Y, F):
    return mean([sum(rank(f, j) <= 3 for j in sets(y)[0]) / sum(y) for y, f in zip(Y, F) if sum(y)])


def ndcg_at_3(Y, F):
    values = []
    for y, f in ((y, f) for y, f in zip(Y, F) if sum(y)):
        ranks = [rank(f, j) for j in sets(y)[0]]
        ideal = sum(1 / log2(r + 1) for r in range(1, min(3, sum(y)) + 1))
        values.append(sum(1 / log2(r + 1) for r in ranks if r <= 3) / ideal)
    return mean(values)


def log_loss(Y, P):
    smallest = np.finfo(float).eps
    return mean([-log(max(p if y else 1 - p, smallest)) for p, y in zip(P.ravel(), Y.ravel())])


def brier_score(Y, P):
    return mean([(p - y) ** 2 for p, y in zip(P.ravel(), Y.ravel())])


def expected_calibration_error(Y, P):
    bins = {}
    for p, y in zip(P.ravel(), Y.ravel()):
        bins.setdefault(min(int(p * 15), 14), []).append((p, y))
    distances = [
        (len(pairs), abs(mean([p for p, _ in pairs]) - mean([y for _, y in pairs]))) for pairs in bins.values()
    ]
    return sum(n * distance for n, distance in distances) / P.size


def calibration_error_macro(Y, P):
    return mean([expected_calibration_error(y, p) for y, p in zip(Y.T, P.T)])


def mulan_ranking_loss(Y, F):
    losses = []
    for i in with_pair(Y):
        ranks = [rank(F[i], j, lower_first=False) for j in range(len(F[i]))]
        relevant, irrelevant = sets(Y[i])
        wrong = sum(ranks[p] > ranks[q] for p in relevant for q in irrelevant)
        losses.append(wrong / (len(relevant) * len(irrelevant)))
    return mean(losses)


def mulan_coverage(Y, F):
    depths = [max((rank(f, j, lower_first=False) for j in sets(y)[0]), default=1) for y, f in zip(Y, F)]
    return (mean(depths) - 1) / Y.shape[1]


TRANSCRIPTIONS = {
    function.__name__: function
    for function in (
        *(hamming_loss, subset_accuracy, f1_example, ranking_loss, coverage, average_precision),
        *(accuracy_example, f1_micro, f1_macro, f1_weighted, one_error, auc_macro, auc_micro),
        *(precision_at_3, recall_at_3, ndcg_at_3),
        *(log_loss, brier_score, expected_calibration_error, calibration_error_macro),
    )
}


@st.composite
def predictions(draw):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    Y, labels = (draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 1))) for _ in range(2))
    values = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 2.0]) | st.floats(-2, 2)
    return Y, labels, draw(hnp.arrays(np.float64, shape, elements=values))


@pytest.mark.filterwarnings("ignore:.*metric is undefined")
@settings(max_examples=300, deadline=None)
@given(prediction=predictions())
def test_equals_its_formula(prediction):
    Y, labels, scores = prediction
    for name, transcription in TRANSCRIPTIONS.items():
        metric = METRICS[name]
        predicted = {"labels": labels, "scores": scores, "probabilities": expit(scores)}
        expected = transcription(Y, predicted[metric.needs])
        assert metric.value(Y, **predicted) == pytest.approx(expected, abs=1e-12, nan_ok=True), name


@pytest.mark.filterwarnings("ignore:.*metric is undefined")
@settings(max_examples=300, deadline=None)
@given(prediction=predictions())
def test_mulan_ranks_the_later_of_tied_labels_first(prediction):
    own = {"ranking_loss": mulan_ranking_loss, "coverage": mulan_coverage}
    Y, labels, scores = prediction
    for name, transcription in (TRANSCRIPTIONS | own).items():
        metric = METRICS[name]
        predicted = {"labels": labels, "scores": scores, "probabilities": expit(scores)}
        expected = transcription(Y, predicted[metric.needs])
        found = metric.value(Y, **predicted, convention="mulan")
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True), name


def test_every_metric_is_transcribed():
    families = {name.rsplit("_at_", 1)[0] for name in METRICS}
    assert families == {name.rsplit("_at_", 1)[0] for name in TRANSCRIPTIONS}
