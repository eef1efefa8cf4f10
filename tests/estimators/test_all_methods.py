"""What every method must survive, present and future ones: the registry is the list."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from rbrl.estimators import CPNL
from rbrl.ranking_svm.estimators import RankSVM
from rbrl.registry import REGISTRY

# Parameters that keep a method quick here; a method that is not named runs with its defaults.
SMALL = {"ecc": {"n_chains": 2, "random_state": 0}, "rakel": {"random_state": 0}}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# Every method, and once more with a kernel where it can have one.
KERNELS = [(name, {"kernel": "rbf"}) for name in sorted(REGISTRY) if "kernel" in REGISTRY[name]().get_params()]
VARIANTS = [(name, {}) for name in sorted(REGISTRY)] + KERNELS


@pytest.fixture(params=VARIANTS, ids=lambda v: "-".join([v[0], *v[1].values()]))
def method(request):
    name, parameters = request.param
    return REGISTRY[name](**SMALL.get(name, {}), **parameters)


def problem(n_samples=40, n_features=6, n_labels=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features))
    noise = 0.3 * random.standard_normal((n_samples, n_labels))
    return X, (X @ random.standard_normal((n_features, n_labels)) + noise > 0.2).astype(np.int64)


def check_answers(model, X, Y):
    """Scores are finite, and predictions are their signs in the coding of Y."""
    scores, labels = model.decision_function(X), model.predict(X)
    assert scores.shape == labels.shape == (X.shape[0], Y.shape[1])
    assert np.isfinite(scores).all()
    assert labels.dtype == Y.dtype
    np.testing.assert_array_equal(labels, scores > 0)
    return labels


def test_learns_something(method):
    X, Y = problem(n_samples=120)
    labels = check_answers(method.fit(X[:80], Y[:80]), X[80:], Y)
    assert np.mean(labels == Y[80:]) > 0.75


def test_labels_constant_in_a_fold(method):
    X, Y = problem()
    Y[:30, 0], Y[:30, 1] = 0, 1
    labels = check_answers(method.fit(X[:30], Y[:30]), X[30:], Y)
    assert not labels[:, 0].any()
    # CPNL's cost of a label that is always relevant is 0: nothing in its objective holds such a label up.
    assert labels[:, 1].all() or isinstance(method, CPNL)


def test_all_labels_constant(method):
    X, Y = problem()
    Y[:] = [0, 1, 1, 0]
    np.testing.assert_array_equal(check_answers(method.fit(X, Y), X, Y), Y)


def test_one_label(method):
    X, Y = problem(n_labels=1)
    check_answers(method.fit(X, Y), X, Y)


def test_many_labels_of_a_small_integer_type(method):
    X, _ = problem(n_samples=16)
    # Nested labels: no row has the later of two without the earlier, which spares CLR its 36,315 learners.
    Y = (X[:, :1] > np.linspace(-1, 1, 270)).astype(np.uint8)
    labels = check_answers(clone(method).fit(X, Y), X, Y)
    # No sum or index wrapped around at 256: wider integers give the same, and late labels are found too.
    np.testing.assert_array_equal(labels, method.fit(X, Y.astype(np.int64)).predict(X))
    # Rank-SVM's threshold is regressed on all 270 scores, from 16 rows: it may lie anywhere.
    assert labels[:, 256:].any() or isinstance(method, RankSVM)


def test_duplicated_rows_with_conflicting_labels(method):
    X, Y = problem(n_samples=20)
    X, Y = np.vstack([X, X, X]), np.vstack([Y, Y, 1 - Y])
    check_answers(method.fit(X, Y), X, Y)


def test_all_rows_equal(method):
    _, Y = problem()
    check_answers(method.fit(np.ones((40, 3)), Y), np.ones((5, 3)), Y)


def test_fewer_rows_than_neighbours(method):
    X, Y = problem(n_samples=4)
    check_answers(method.fit(X, Y), X, Y)


def test_more_labels_than_rows(method):
    X, Y = problem(n_samples=10, n_labels=25)
    check_answers(method.fit(X, Y), X, Y)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_all_zero_row(method, container):
    X, Y = problem()
    X[3] = 0
    check_answers(method.fit(container(X), Y), container(X), Y)


def test_sparse_rows_give_what_dense_rows_give(method):
    X, Y = problem()
    X[np.abs(X) < 0.7] = 0
    dense = clone(method).fit(X, Y).decision_function(X)
    other = clone(method).fit(sparse.csr_array(X), Y).decision_function(sparse.csr_array(X))
    np.testing.assert_allclose(other, dense, atol=1e-3)


def test_signed_labels_are_answered_in_kind(method):
    X, Y = problem()
    expected = clone(method).fit(X, Y).predict(X)
    np.testing.assert_array_equal(clone(method).fit(X, 2 * Y - 1).predict(X), 2 * expected - 1)


def test_sparse_labels_are_answered_in_kind(method):
    X, Y = problem()
    labels = clone(method).fit(X, sparse.csr_array(Y)).predict(X)
    assert sparse.issparse(labels)
    np.testing.assert_array_equal(labels.toarray(), clone(method).fit(X, Y).predict(X))


def test_non_empty_gives_every_row_a_label(method):
    X, Y = problem()
    Y[:, 1:] = 0
    model = method.set_params(non_empty=True).fit(X, Y)
    labels = model.predict(X)
    empty = ~(model.decision_function(X) > 0).any(axis=1)
    assert labels.any(axis=1).all()
    assert (labels[empty].sum(axis=1) == 1).all()


def test_fitting_twice_gives_the_same(method):
    X, Y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (clone(method).fit(X, Y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
