"""The fit that the ranking SVMs share: pairs of labels, dual ascent, coefficients."""

import sys
import time
from abc import abstractmethod

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.base import clone

from rbrl._validation import check_choice, check_number
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.kernel_model import KernelModel
from rbrl.estimators.objective import present_rows
from rbrl.kernels import check_gram
from rbrl.solvers.dual_ascent import DualAscent
from rbrl.solvers.pair_rows import GramRows, feature_rows

# The constant feature whose weights are the biases, squared; a free bias has an infinite one.
LIFTS = {"free": np.inf, "absorbed": 1.0, "none": 0.0}


class PairSVM(KernelModel, MultiLabelClassifier):
    """A ranking SVM, linear or with a kernel.

    A subclass lists its pairs in :meth:`_pairs`; a last score column beyond those of Y is the zero label, whose score is
    subtracted from the others.
    """

    def __init__(
        self,
        C=1.0,
        bias="free",
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1.0,
        non_empty=False,
        tol=1e-3,
        max_iter=10_000,
        warm_start=False,
        verbose=0,
    ):
        self.C = C
        self.bias = bias
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.non_empty = non_empty
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    @abstractmethod
    def _pairs(self, Y, C, weights):
        """The hinges of labels Y, a HingePairs."""

    def fit(self, X, y=None, sample_weight=None):
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel matrix (n_samples, n_samples).
        y : array or sparse matrix (n_samples, n_labels)
            0/1 or -1/+1; `predict` answers in the same coding. A 1-D y of classes works too.
        sample_weight : array (n_samples,), default=None
            Factors of C, one per row; a row of weight 0 is as if it were absent.

        Returns
        -------
        self
        """
        self._learn(X, y, sample_weight)
        self._shared_rows = None
        if not self.warm_start:
            self._last = None
        return self

    def path(self, X, y, Cs, sample_weight=None):
        """Models for several values of C, each started at its neighbour; kernel values are computed once.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        Cs : sequence of floats

        Returns
        -------
        list of fitted classifiers, in the order of `Cs`
        """
        models, rows, last = {}, None, None
        for C in sorted(set(Cs)):
            model = models[C] = clone(self).set_params(C=C)
            model._shared_rows, model._last = rows, last
            model._learn(X, y, sample_weight)
            rows, last = model._shared_rows, model._last
            model._shared_rows = model._last = None
        return [models[C] for C in Cs]

    def fit_many(self, X, y, points):
        """Yield a fitted copy for each dict of parameters; along a path where they differ in C only."""
        if any(set(params) != {"C"} for params in points):
            return super().fit_many(X, y, points)
        return iter(self.path(X, y, [params["C"] for params in points]))

    def _fit(self, X, Y, weights):
        started = time.perf_counter()
        kept, weights = self._kept(Y, weights)
        pairs = self._pairs(Y[kept], self.C, weights)
        rows = getattr(self, "_shared_rows", None) or self._rows(X, kept)
        start = _carried(getattr(self, "_last", None), pairs)
        result = DualAscent().solve(rows, pairs, LIFTS[self.bias], start, self.tol, self.max_iter)
        self._shared_rows, self._last = rows, (result.alpha, result.biases, pairs.cap)
        self._store(X, kept, rows, *_without_zero_label(result, Y.shape[1]))
        self.objective_, self.dual_objective_, self.gap_ = result.objective, result.dual_objective, result.gap
        self.n_iter_, self.history_ = result.n_iter, result.history
        self._report(time.perf_counter() - started)

    def _kept(self, Y, weights):
        """Indices and weights of the rows that take part."""
        return present_rows(weights, len(Y))

    def _rows(self, X, kept):
        if self._is_linear():
            return feature_rows(X[kept].astype(np.float64, copy=False))
        K = check_gram(self._gram(X))[np.ix_(kept, kept)]
        if self._is_precomputed() or callable(self.kernel):
            _check_positive(K)
        return GramRows(K)

    def _store(self, X, kept, rows, weights, biases):
        self.intercept_ = biases.astype(X.dtype)
        if self._is_linear():
            if isinstance(rows, GramRows):
                weights = np.asarray(X[kept].T.astype(np.float64, copy=False) @ weights)
            self.coef_ = np.ascontiguousarray(weights.T.astype(X.dtype, copy=False))
            return
        self.dual_coef_ = np.zeros((X.shape[0], weights.shape[1]), dtype=X.dtype)
        self.dual_coef_[kept] = weights
        self.X_fit_ = None if self._is_precomputed() else X

    def _scores(self, X):
        return self._raw_scores(X)

    def _report(self, seconds):
        if self.verbose:
            sys.stderr.write(
                f"{type(self).__name__}: {self.n_iter_} sweeps, objective {self.objective_:.6g}, dual "
                f"{self.dual_objective_:.6g}, certified gap {self.gap_:.1e}, {seconds:.2f} s\n"
            )

    def _check_parameters(self):
        owner = type(self).__name__
        check_number(owner, "C", self.C, strict=True)
        check_choice(owner, "bias", self.bias, tuple(LIFTS))
        check_number(owner, "tol", self.tol, strict=True)
        check_number(owner, "max_iter", self.max_iter, low=1, integer=True)
        self._check_kernel()


def _carried(last, pairs):
    """Start from the dual variables of a fit to the same pairs with another C: those at their bound stay there."""
    if last is None or len(last[2]) != len(pairs.cap) or len(last[1]) != pairs.n_labels:
        return None
    alpha, biases, cap = last
    return np.where(alpha >= cap, pairs.cap, alpha), biases


def _without_zero_label(result, n_labels):
    """Weights and biases of the labels, those of the zero label subtracted where there is one."""
    W, b = result.weights, result.biases
    if W.shape[1] == n_labels:
        return W, b
    return W[:, :n_labels] - W[:, n_labels:], b[:n_labels] - b[n_labels]


def _check_positive(K):
    size = float(np.max(np.abs(K), initial=0.0))
    try:
        cholesky(K + 1e-6 * max(size, 1e-300) * np.eye(len(K)), overwrite_a=True, check_finite=False)
    except LinAlgError:
        lowest = np.linalg.eigvalsh(K)[0]
        raise ValueError(
            f"A kernel matrix must be positive semidefinite. Got an eigenvalue of {lowest:.3g}; a multiple of the "
            "identity added to it would mend that."
        ) from None
