"""What metrics accept, what they refuse, and that size does not matter."""

import time

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import UndefinedMetricWarning

from rbrl.exceptions import InvalidLabelsError
from rbrl.metrics import METRICS, evaluate, hamming_loss, ranking_loss
from rbrl.metrics import inputs as _inputs

ALL = pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
RANKING = ("ranking_loss", "coverage", "average_precision", "one_error", "precision_at_5", "recall_at_5", "ndcg_at_5")


@ALL
def test_signed_labels_are_refused(metric, prediction):
    Y, labels, scores = prediction
    with pytest.raises(InvalidLabelsError, match=r"Y must hold only 0 and 1. Got the values -1, 1 .*\(Y > 0\)"):
        metric.value(2 * Y - 1, labels, scores, probabilities=expit(scores))


def test_signed_predictions_are_refused(prediction):
    Y, labels, _ = prediction
    with pytest.raises(InvalidLabelsError, match=r"labels must hold only 0 and 1.*-1, 1.*\(labels > 0\)"):
        hamming_loss(Y, 2 * labels - 1)


def test_signed_sparse_labels_are_refused():
    with pytest.raises(InvalidLabelsError, match="Got the values -1, 1"):
        hamming_loss(sparse.csr_array([[1, -1]]), [[1, 0]])


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([0, 1, 1], r"shape \(3,\)"),
        ([[0, 1], [1]], "MultiLabelBinarizer"),
        ([["a", "b"]], "MultiLabelBinarizer"),
        ([[0, 2]], "Got the values 0, 2"),
        ([[0.5, 1]], "Got the values 0.5, 1"),
        (np.arange(12).reshape(3, 4), "0, 1, 2, 3, 4, ..."),
    ],
)
def test_other_labels_are_refused_with_their_values(Y, message):
    with pytest.raises(InvalidLabelsError, match=message):
        hamming_loss(Y, Y)


@pytest.mark.parametrize(
    ("Y", "scores", "message"),
    [
        ([[0, 1]], [[0.1, np.nan]], "NaN"),
        ([[0, 1]], [[0.1, 1.0, 2.0]], r"\(1, 2\) and \(1, 3\)"),
        ([[0, 1]], [["a", "b"]], "dtype <U1"),
        (np.zeros((0, 2)), np.zeros((0, 2)), r"shape \(0, 2\)"),
    ],
)
def test_bad_scores_are_refused(Y, scores, message):
    with pytest.raises(ValueError, match=message):
        ranking_loss(Y, scores)


@ALL
def test_convention_is_checked(metric, prediction):
    with pytest.raises(ValueError, match="Got 'weka'"):
        metric.value(*prediction, convention="weka", probabilities=expit(prediction[2]))


@ALL
@pytest.mark.parametrize("convention", _inputs.CONVENTIONS)
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_equals_dense(metric, convention, container, prediction):
    Y, labels, scores = prediction
    dense = {"labels": labels, "scores": scores, "probabilities": expit(scores)}
    expected = metric.value(Y, convention=convention, **dense)
    packed = {name: container(M) for name, M in dense.items()}
    for truth, predicted in ((container(Y), packed), (container(Y), dense), (Y, packed)):
        assert metric.value(truth, convention=convention, **predicted) == pytest.approx(expected)


@ALL
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.float32, np.float64])
def test_label_type_does_not_matter(metric, dtype, prediction):
    Y, labels, scores = prediction
    rest = {"scores": scores, "probabilities": expit(scores)}
    value = metric.value(Y.astype(dtype), labels.astype(dtype), **rest)
    assert value == pytest.approx(metric.value(Y, labels, **rest))


@ALL
@pytest.mark.parametrize("convention", _inputs.CONVENTIONS)
def test_blocks_do_not_matter(metric, convention, prediction, monkeypatch):
    options = {"convention": convention, "probabilities": expit(prediction[2])}
    expected = metric.value(*prediction, **options)
    monkeypatch.setattr(_inputs, "METRIC_BLOCK_ENTRIES", 20)
    assert metric.value(*prediction, **options) == pytest.approx(expected, rel=1e-12)


@ALL
def test_order_of_samples_does_not_matter(metric, prediction):
    P = expit(prediction[2])
    shuffled = metric.value(*(M[::-1] for M in prediction), probabilities=P[::-1])
    assert shuffled == pytest.approx(metric.value(*prediction, probabilities=P), rel=1e-12)


@pytest.mark.parametrize("name", ["ranking_loss", "average_precision", "one_error", "auc_micro", "recall_at_3"])
def test_nothing_to_measure_is_nan_with_a_warning(name):
    for answer in (METRICS[name].value, lambda Y, scores: evaluate(Y, scores=scores, metrics=[name])[name]):
        with pytest.warns(UndefinedMetricWarning, match="undefined") as caught:
            assert np.isnan(answer(np.zeros((3, 2)), scores=np.zeros((3, 2))))
        assert [warning.filename for warning in caught] == [__file__]


def test_infinite_scores_are_ranked():
    assert evaluate([[1, 0, 0]], scores=[[-np.inf, 0.0, np.inf]], metrics=["ranking_loss", "coverage"]) == {
        "ranking_loss": 1.0,
        "coverage": pytest.approx(2 / 3),
    }


def test_sparse_labels_are_never_made_dense():
    shape = (500_000, 100_000)
    rng = np.random.default_rng(0)
    indices = [rng.integers(size, size=100_000) for size in shape]
    Y = sparse.coo_array((np.ones(100_000, dtype=bool), indices), shape=shape).tocsr().astype(np.int8)
    Y.data[:] = 1
    values = evaluate(Y, Y, metrics=[m for m in METRICS.values() if m.needs == "labels"])
    assert values["hamming_loss"] == 0
    assert values["f1_micro"] == 1


@pytest.mark.soak
@pytest.mark.parametrize("name", RANKING)
def test_twenty_million_scores_take_less_than_two_seconds(name):
    rng = np.random.default_rng(0)
    scores = np.round(rng.standard_normal((20_000, 1_000)), 1)
    Y = (rng.random(scores.shape) < 0.05).astype(np.int8)
    start = time.process_time()
    METRICS[name].value(Y, scores=scores)
    assert time.process_time() - start < 2
