"""Propensity-scored metrics and the report by label frequency."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning

from rbrl.exceptions import InvalidLabelsError
from rbrl.metrics import (
    Metric,
    evaluate,
    frequency_report,
    get_metric,
    ndcg_at_k,
    precision_at_k,
    propensities,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)

METRICS = {"psp": psp_at_k, "psndcg": psndcg_at_k}


def by_formula(name, Y, scores, k, p):
    """The metric of dense labels, by the definitions in loops over rows and ranks."""
    k = min(k, Y.shape[1])
    found = largest = 0.0
    for labels, row in zip(Y, scores):
        if not labels.any():
            continue
        ranking = np.argsort(-row, kind="stable")[:k]
        ideal = sorted((1 / p[labels == 1]).tolist(), reverse=True)[:k]
        if name == "psp":
            found += sum(labels[j] / p[j] for j in ranking)
            largest += sum(ideal)
        else:
            scale = sum(1 / np.log2(r + 2) for r in range(min(k, labels.sum())))
            found += sum(labels[j] / p[j] / np.log2(r + 2) for r, j in enumerate(ranking)) / scale
            largest += sum(gain / np.log2(r + 2) for r, gain in enumerate(ideal)) / scale
    return found / largest


def example(seed, n_rows=30, n_labels=8):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, n_labels)) < rng.uniform(0.05, 0.5, n_labels)).astype(int)
    Y[0] = 0
    Y[1] = 1
    scores = rng.integers(0, 4, size=Y.shape) / 4  # ties, and zeros that a sparse matrix does not store
    return Y, scores, propensities(rng.random((50, n_labels)) < 0.2)


@pytest.mark.parametrize("k", [1, 3, 8, 20])
@pytest.mark.parametrize("name", METRICS)
def test_the_direct_formula(name, k):
    for seed in range(5):
        Y, scores, p = example(seed)
        expected = by_formula(name, Y, scores, k, p)
        for truth in (Y, sparse.csr_array(Y), sparse.coo_matrix(Y)):
            for predicted in (scores, sparse.csr_array(scores), sparse.csc_matrix(scores)):
                found = METRICS[name](truth, predicted, k, propensities=p)
                assert found == pytest.approx(expected, rel=1e-12)


def test_values_by_hand():
    p = [0.5, 0.25, 1.0]
    Y = [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    scores = [[0.9, 0.1, 0.5], [0.1, 0.2, 0.3], [0.5, 0.5, 0.5]]
    assert psp_at_k(Y, scores, 1, propensities=p) == pytest.approx(2 / 8)  # the first of the tied labels is wrong
    assert psp_at_k(Y, scores, 2, propensities=p) == pytest.approx((2 + 4) / (6 + 5))
    assert psp_at_k(Y, scores, 3, propensities=p) == psp_at_k(Y, scores, 9, propensities=p) == 1.0
    second, third = 1 / np.log2(3), 1 / 2
    gains = (2 + 4 * third) + (4 * second + third)
    assert psndcg_at_k(Y, scores, 3, propensities=p) == pytest.approx(gains / (4 + 2 * second + 4 + second))


def test_propensities_of_the_paper():
    Y = np.zeros((1000, 3), dtype=int)
    Y[:100, 1] = 1
    Y[:, 2] = 1
    C = (np.log(1000) - 1) * 2.5**0.55
    expected = [1 / (1 + C * np.exp(-0.55 * np.log(n + 1.5))) for n in (0, 100, 1000)]
    for given in (Y, sparse.csr_array(Y), Y.astype(bool)):
        np.testing.assert_allclose(propensities(given), expected, rtol=1e-12)
    C = (np.log(1000) - 1) * 3.6**0.6
    np.testing.assert_allclose(propensities(Y, a=0.6, b=2.6)[1], 1 / (1 + C * 102.6**-0.6), rtol=1e-12)


def test_equal_propensities_weight_nothing():
    Y, scores, _ = example(7)
    Y[0, 0] = 1
    p = np.full(8, 0.3)
    ideal = np.minimum(Y.sum(axis=1), 3).mean() / 3
    assert psp_at_k(Y, scores, 3, propensities=p) == pytest.approx(precision_at_k(Y, scores, 3) / ideal)
    assert psndcg_at_k(Y, scores, 3, propensities=p) == pytest.approx(ndcg_at_k(Y, scores, 3))


@pytest.mark.parametrize("k", [1, 2, 5, 20])
@pytest.mark.parametrize("metric", [precision_at_k, recall_at_k, ndcg_at_k])
def test_sparse_scores_are_zero_where_nothing_is_stored(metric, k):
    """Also with negative scores, with stored zeros, and with entries that occur twice."""
    for seed in range(5):
        Y, scores, _ = example(seed)
        scores = scores - 0.5 * (np.random.default_rng(seed).random(Y.shape) < 0.5)
        packed = sparse.csr_array(scores)
        packed.data[::5] = 0
        rows, columns = packed.tocoo().coords
        halves = np.tile(packed.data / 2, 2)
        twice = sparse.coo_array((halves, (np.tile(rows, 2), np.tile(columns, 2))), shape=Y.shape)
        for predicted in (packed, twice):
            for truth in (Y, sparse.csr_array(Y)):
                expected = metric(Y, packed.toarray(), k)
                assert metric(truth, predicted, k) == pytest.approx(expected, rel=1e-12)


def test_the_best_labels_of_millions():
    """A dense matrix of this shape has 400 GB: only the stored entries and n_rows * k count."""
    rng = np.random.default_rng(0)
    n_rows, n_labels, n_stored = 50_000, 1_000_000, 10
    columns = np.sort(rng.integers(n_labels, size=(n_rows, n_stored)), axis=1)
    starts = np.arange(0, n_rows * n_stored + 1, n_stored)
    scores = sparse.csr_array((rng.random(columns.size) + 0.1, columns.ravel(), starts), shape=(n_rows, n_labels))
    scores.sum_duplicates()
    Y = (scores > 0).astype(np.int8)
    p = propensities(Y)
    for value in (
        psp_at_k(Y, scores, 5, propensities=p),
        psndcg_at_k(Y, scores, 5, propensities=p),
        precision_at_k(Y, scores, 5),
        ndcg_at_k(Y, scores, 5),
    ):
        assert 0.5 < value <= 1
    assert frequency_report(Y, scores, Y, k=10).loc["all", "found_at_k"] == 1


def test_a_record_makes_it_a_scorer():
    Y, scores, p = example(1)
    record = Metric("psp_at_3", "PSP at 3", "PSP@3", True, "scores", partial(psp_at_k, k=3, propensities=p))
    assert evaluate(Y, scores=scores, metrics=[record]) == {"psp_at_3": psp_at_k(Y, scores, 3, propensities=p)}


@pytest.mark.parametrize("metric", METRICS.values())
def test_without_relevant_labels_the_value_is_nan(metric):
    with pytest.warns(UndefinedMetricWarning, match="None of the samples has a relevant label"):
        assert np.isnan(metric(np.zeros((2, 3)), np.zeros((2, 3)), propensities=[0.5] * 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: propensities([[1, 0], [0, 1]]), r"at least 3 training rows\. Got 2 instead; pass the labels of all"),
        (lambda: propensities(np.eye(4), a=-1), "a must be a finite number of at least 0. Got -1"),
        (lambda: propensities(np.eye(4), b=np.nan), "b must be a finite number of at least 0. Got nan"),
        (lambda: propensities([[1, 2]] * 3), r"Y_train must hold only 0 and 1\. Got the values 1, 2"),
        (
            lambda: psp_at_k([[1, 0]], [[1, 0]], propensities=[0.5]),
            r"one value for each of the 2 labels\. Got shape \(1,\) instead; pass propensities\(Y_train\)",
        ),
        (
            lambda: psp_at_k([[1, 0]], [[1, 0]], propensities=[0.5, 2.0]),
            r"must lie in \(0, 1\]\. Got 2 instead; pass p, not 1 / p",
        ),
        (lambda: psp_at_k([[1, 0]], [[1, 0]], 0, propensities=[0.5, 0.5]), "k must be a whole number .* Got 0"),
        (
            lambda: psndcg_at_k([[1, 0]], sparse.csr_array([[-1.5, 0]]), propensities=[0.5, 0.5]),
            r"Sparse scores must not be negative: .* Got -1\.5 instead; `scores\.data \+= 1 - scores\.data\.min\(\)`",
        ),
        (
            lambda: frequency_report([[1, 0]], [[1, 0]], [[1]]),
            "Y and Y_train must have the same labels. Got 2 and 1 columns",
        ),
        (lambda: frequency_report([[1, 0]], [[1, 0]], [[0, 0]]), "Y_train must have relevant labels. Got 0; pass"),
    ],
)
def test_errors_name_the_rule_the_value_and_the_remedy(call, message):
    with pytest.raises((ValueError, InvalidLabelsError), match=message):
        call()


def test_the_parts_of_the_report_add_up():
    Y, scores, _ = example(3, n_rows=200, n_labels=12)
    Y_train, _, _ = example(4, n_rows=300, n_labels=12)
    report = frequency_report(Y, scores, Y_train, k=3)
    for given in ((sparse.csr_array(Y), scores), (Y, sparse.csr_array(scores))):
        assert report.equals(frequency_report(*given, sparse.csr_array(Y_train), k=3))
    parts, whole = report.iloc[:3], report.loc["all"]
    assert parts["labels"].sum() == whole["labels"] == 12
    assert parts["relevant"].sum() == whole["relevant"] == Y.sum()
    assert parts["precision_at_k"].sum() == pytest.approx(precision_at_k(Y, scores, 3))
    assert whole["precision_at_k"] == pytest.approx(precision_at_k(Y, scores, 3))
    assert (report["lowest"] <= report["highest"]).all()
    assert report.loc["head", "lowest"] >= report.loc["torso", "highest"] >= report.loc["tail", "highest"]


def test_the_report_by_hand():
    Y_train = np.zeros((9, 5), dtype=int)
    for j, frequency in enumerate([1, 6, 0, 3, 2]):
        Y_train[:frequency, j] = 1
    Y = [[1, 1, 0, 0, 1], [0, 0, 0, 1, 0]]
    scores = [[0, 3, 0, 2, 1], [0, 3, 1, 2, 0]]
    report = frequency_report(Y, scores, Y_train, k=2)
    # A third of 12 entries is 4: label 1 has 6, label 3 follows after 6, labels 4, 0 and 2 after 9, 11 and 12.
    assert report["labels"].tolist() == [1, 1, 3, 5]
    assert report["lowest"].tolist() == [6, 3, 0, 0]
    assert report["highest"].tolist() == [6, 3, 2, 6]
    assert report["relevant"].tolist() == [1, 1, 2, 4]
    assert report["precision_at_k"].tolist() == [0.25, 0.25, 0.0, 0.5]
    assert report["found_at_k"].tolist() == [1.0, 1.0, 0.0, 0.5]


def test_one_label_may_be_all_three_thirds():
    report = frequency_report([[1]], [[1.0]], [[1], [1]], k=1)
    assert report["labels"].tolist() == [1, 0, 0, 1]
    assert report.loc["tail", "found_at_k"] != report.loc["tail", "found_at_k"]


@pytest.mark.parametrize(
    ("name", "kind", "k"),
    [("psp_at_2", psp_at_k, 2), ("PSP@2", psp_at_k, 2), ("psndcg_at_3", psndcg_at_k, 3), ("PSN@3", psndcg_at_k, 3)],
)
def test_the_metric_of_a_name_has_the_propensities(name, kind, k):
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(20, 6))
    scores = rng.standard_normal((20, 6))
    p = propensities(Y)
    metric = get_metric(name, p)
    assert metric.value(Y, scores=scores) == kind(Y, scores, k, propensities=p)
    assert metric.value(Y, scores=scores, missing="ignore") == metric.value(Y, scores=scores)
    with pytest.raises(InvalidLabelsError, match="missing"):
        metric.value(np.where(Y > 0, 1.0, np.nan), scores=scores, missing="ignore")
    with pytest.raises(ValueError, match=f"{metric.name} needs the propensities of the labels"):
        get_metric(name)
