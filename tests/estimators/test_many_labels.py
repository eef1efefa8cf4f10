"""Label matrices with many columns: sparse from end to end, and the best labels alone."""

import tracemalloc
import weakref

import numpy as np
import pytest
from scipy import sparse

from rbrl import CPNL, BRLClassifier, MLkNN, RBRLClassifier
from rbrl._common import environment
from rbrl._common.matrices import SparseLabels
from rbrl.decision import top_labels
from rbrl.estimators import base, convex_problem
from rbrl.estimators.convex_problem import split_labels
from rbrl.targets import SignedTargets


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    return X, (X @ rng.standard_normal((6, 9)) > 1).astype(np.int64)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize(
    "model", [RBRLClassifier(), RBRLClassifier(kernel="rbf", non_empty=True), BRLClassifier()], ids=str
)
def test_sparse_labels_give_the_same_model_and_answer_in_blocks(problem, model, container, monkeypatch):
    X, Y = problem
    dense = model.fit(X, Y)
    expected = dense.predict(X), dense.decision_function(X)
    monkeypatch.setattr(base, "BLOCK_ENTRIES", 9 * 7)
    fitted = model.fit(X, container(Y))
    np.testing.assert_array_equal(fitted.decision_function(X), expected[1])
    answer = fitted.predict(X)
    assert type(answer) is container
    assert answer.dtype == Y.dtype
    assert answer.nnz == np.count_nonzero(expected[0])
    np.testing.assert_array_equal(answer.toarray(), expected[0])


def test_encoding_sparse_labels_takes_a_byte_each():
    Y = sparse.random_array((2000, 1000), density=0.01, rng=0, dtype=np.float64, format="csr")
    Y.data[:] = 1
    targets = SignedTargets().fit(Y)
    tracemalloc.start()
    signed = targets.encode(Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * Y.shape[0] * Y.shape[1]
    np.testing.assert_array_equal(signed, np.where(Y.toarray() > 0, 1, -1))


def test_explicit_zeros_and_minus_ones_are_irrelevant():
    Y = sparse.csr_array(([1, 0, 1], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert SignedTargets().fit(Y).encode(Y).tolist() == [[1, -1], [-1, 1]]
    full = sparse.csr_array(np.array([[1, -1], [-1, 1]]))
    targets = SignedTargets().fit(full)
    assert targets.encode(full).tolist() == [[1, -1], [-1, 1]]
    assert targets.decode(np.eye(2, dtype=bool), None).toarray().tolist() == [[1, -1], [-1, 1]]


@pytest.mark.parametrize("model", [RBRLClassifier(), MLkNN(3)], ids=str)
def test_the_best_labels_are_those_of_all_scores(problem, model, monkeypatch):
    X, Y = problem
    scores = model.fit(X, Y).decision_function(X)
    monkeypatch.setattr(base, "BLOCK_ENTRIES", 9 * 7)
    labels, best = model.predict_top(X, 4)
    np.testing.assert_array_equal(labels, np.argsort(-scores, axis=1, kind="stable")[:, :4])
    np.testing.assert_allclose(best, np.take_along_axis(scores, labels, axis=1), rtol=1e-12)


def test_equal_scores_keep_the_order_of_the_labels():
    labels, scores = top_labels(np.array([[1.0, 2.0, 1.0, 2.0]]), 3)
    assert labels.tolist() == [[1, 3, 0]]
    assert scores.tolist() == [[2.0, 2.0, 1.0]]


@pytest.mark.parametrize("k", [1, 3, 7])
def test_many_equal_scores_keep_the_order_of_the_labels(k):
    scores = np.random.default_rng(0).integers(-1, 2, (50, 7)).astype(float)
    labels, best = top_labels(scores, k)
    np.testing.assert_array_equal(labels, np.argsort(-scores, axis=1, kind="stable")[:, :k])
    np.testing.assert_array_equal(best, -np.sort(-scores, axis=1)[:, :k])


def test_the_best_labels_do_not_keep_the_others(problem, monkeypatch):
    """The answer of a block must not hold the order of all labels: 3000 x 500 of them are 12 MB."""
    X = np.tile(problem[0], (60, 1))
    model = RBRLClassifier().fit(problem[0], np.tile(problem[1], (1, 72))[:, :500])
    monkeypatch.setattr(base, "BLOCK_ENTRIES", 50 * 500)
    tracemalloc.start()
    model.predict_top(X, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.shape[0] * 500 * 8 / 4


@pytest.mark.parametrize("k", [0, 10, 1.5])
def test_a_wrong_number_of_best_labels_is_refused(problem, k):
    with pytest.raises(ValueError, match=f"Got {k}"):
        RBRLClassifier().fit(*problem).predict_top(problem[0], k)


def test_classes_have_best_ones_and_a_binary_target_has_not(problem):
    X, _ = problem
    labels, _ = RBRLClassifier().fit(X, np.arange(50) % 3).predict_top(X, 1)
    np.testing.assert_array_equal(labels[:, 0], RBRLClassifier().fit(X, np.arange(50) % 3).predict(X))
    with pytest.raises(ValueError, match="binary 1-D target"):
        RBRLClassifier().fit(X, np.arange(50) % 2).predict_top(X, 1)


def text_problem(dtype=np.float64):
    """Return sparse rows and sparse labels; every label follows some of the features."""
    rng = np.random.default_rng(1)
    X = sparse.random_array((120, 90), density=0.05, rng=rng, format="csr", dtype=np.float64)
    scores = X @ rng.standard_normal((90, 23)) + 0.1 * rng.standard_normal((120, 23))
    return X.astype(dtype), sparse.csr_array((scores > 0.4).astype(np.int64))


def refuse_dense_labels(monkeypatch):
    """Fail a test if all labels become a dense array, except the first dual scores of a fit."""
    make_array = SparseLabels.__array__

    def refuse_labels(self, dtype=None, copy=None):
        assert dtype == np.float64, "all labels became a dense array"
        return make_array(self, dtype)

    monkeypatch.setattr(SparseLabels, "__array__", refuse_labels)


@pytest.mark.parametrize("ranking", [0.0, 1.0])
@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_reads_sparse_labels_in_blocks(ranking, is_dense, dtype, monkeypatch):
    X, Y = text_problem(dtype)
    X = X.toarray() if is_dense else X
    model = RBRLClassifier(ridge=0.5, ranking=ranking, nuclear=0, solver="dual-ascent", non_empty="auto")
    expected = model.fit(X, Y.toarray()).coef_, model.objective_, model.gap_
    refuse_dense_labels(monkeypatch)
    monkeypatch.setattr(environment, "SMALLEST_BLOCK", 5 * 23)
    monkeypatch.setattr(environment, "LARGEST_BLOCK", 5 * 23)
    np.testing.assert_array_equal(model.fit(X, Y).coef_, expected[0])
    # The sums over blocks are added in another order.
    np.testing.assert_allclose((model.objective_, model.gap_), expected[1:], rtol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        RBRLClassifier(ranking=0, nuclear=0, ridge=0.5),
        RBRLClassifier(ranking=0, nuclear=0, ridge=1e-3, tol=1e-6),
        BRLClassifier(nuclear=0, class_weight="balanced", ridge=0.5),
        CPNL(positive=0, negative=0, ridge=0.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_of_independent_labels_have_one_certificate(model, dtype, monkeypatch):
    X, Y = text_problem(dtype)
    weights = np.random.default_rng(2).random(120)
    model.fit(X, Y, sample_weight=weights)
    whole = model.objective_, model.gap_, model.decision_function(X)
    monkeypatch.setattr(convex_problem, "LARGEST_GROUP", 8 * (120 + 91) * 4)
    groups = split_labels(model.problem(X, Y, weights).row_objective)
    assert [group.stop - group.start for group in groups] == [4, 4, 4, 3, 4, 4]
    model.fit(X, Y, sample_weight=weights)
    assert model.gap_ <= model.tol
    assert len(model.history_) == model.n_iter_
    assert model.objective_ <= whole[0] * (1 + model.tol)
    assert whole[0] <= model.objective_ * (1 + whole[1])
    # Both are within the gap of the optimum, and the ridge makes the objective strongly convex.
    reach = np.sqrt(2 * model.objective_ * 2 * model.tol * (squares_of_rows(X).max() / model.ridge + 1))
    assert np.abs(model.decision_function(X) - whole[2]).max() <= 2 * reach


def test_the_arrays_of_a_group_are_freed_before_the_next_group(monkeypatch):
    X, Y = text_problem()
    monkeypatch.setattr(convex_problem, "LARGEST_GROUP", 8 * (120 + 91) * 4)
    solved = []
    solve = convex_problem.solve_and_certify

    def solve_alone(*arguments):
        assert all(array() is None for array in solved)
        solution = solve(*arguments)
        weights = solution.coefficients
        # A view keeps the array with its data in memory.
        weights = weights if weights.base is None else weights.base
        solved.extend(weakref.ref(array) for array in (solution.result.dual_scores, weights))
        return solution

    monkeypatch.setattr(convex_problem, "solve_and_certify", solve_alone)
    RBRLClassifier(ranking=0, nuclear=0, ridge=0.5).fit(X, Y)
    assert len(solved) == 12


def squares_of_rows(X):
    return np.asarray(X.multiply(X).sum(axis=1))


def test_missing_labels_and_weights_of_entries_are_fitted_in_groups(monkeypatch):
    X, Y = text_problem()
    rng = np.random.default_rng(3)
    mask, weights = rng.random(Y.shape) < 0.7, rng.random(Y.shape) + 0.1
    model = RBRLClassifier(ranking=0, nuclear=0, ridge=0.5, tol=1e-8)
    expected = model.fit(X, Y, weights, label_mask=mask).coef_
    monkeypatch.setattr(convex_problem, "LARGEST_GROUP", 8 * (120 + 91) * 4)
    assert len(split_labels(model.problem(X, Y.toarray(), weights).row_objective)) == 6
    np.testing.assert_allclose(model.fit(X, Y, weights, label_mask=mask).coef_, expected, atol=1e-3)


def test_labels_that_are_coupled_are_one_group(monkeypatch):
    monkeypatch.setattr(convex_problem, "LARGEST_GROUP", 1)
    X, Y = text_problem()
    for model in (RBRLClassifier(nuclear=0), RBRLClassifier(ranking=0, nuclear=0.1), CPNL()):
        assert split_labels(model.problem(X, Y).row_objective) == [slice(0, 23)]
    assert len(split_labels(RBRLClassifier(ranking=0).problem(X, Y).row_objective)) == 23


def test_label_sets_are_fitted_in_sparse_form_and_predictions_are_dense(monkeypatch):
    X, Y = text_problem()
    names = [f"tag {j:02}" for j in range(23)]
    sets = [[names[j] for j in row] for row in np.split(Y.indices, Y.indptr[1:-1])]
    settings = {"ridge": 0.5, "ranking": 0, "solver": "dual-ascent"}
    expected = RBRLClassifier(**settings, label_names=names).fit(X, Y.toarray())
    refuse_dense_labels(monkeypatch)
    model = RBRLClassifier(**settings).fit(X, sets)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert type(model.predict(X)) is np.ndarray
