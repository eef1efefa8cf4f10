"""The ranking SVMs: Rank-SVM with a learned threshold, and two that learn a zero label in its place."""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.base import clone

from rbrl._common.checks import check_choice, check_number, users_level
from rbrl._common.typing import Array, ArrayLike, FloatArray, IntArray, LabelNames, Matrix, MatrixLike
from rbrl.decision import RowThreshold
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.convex_problem import present_rows
from rbrl.estimators.display import CertifiedDisplay
from rbrl.estimators.kernel_model import KernelModel
from rbrl.exceptions import ConvergenceWarning
from rbrl.kernels import WITH_WIDTH, check_gram
from rbrl.ranking_svm.certificate import FeatureSpace, KernelSpace, LinearSpace
from rbrl.ranking_svm.pairs import GramRows, Rows, calibrated_pairs, feature_rows, ranking_pairs, zero_label_pairs
from rbrl.ranking_svm.pairwise_ascent import Start
from rbrl.ranking_svm.solve import PairProblem, solve_and_certify
from rbrl.scales import Width, kernel_width

# The constant feature whose weights are the biases, squared; a free bias has an infinite one.
LIFTS = {"free": np.inf, "absorbed": 1.0, "none": 0.0}
# What a fit leaves to the next one: dual variables, biases, and the bounds of the variables.
Duals: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


class PairSVM(CertifiedDisplay, KernelModel, MultiLabelClassifier):
    """A ranking SVM, linear or with a kernel.

    A subclass names its pairs in `_pairs`, where they are not Rank-SVM's; a last score column beyond those of Y is the
    zero label, whose score is subtracted from the others.
    """

    # From labels Y, C and the row weights to the hinges.
    _pairs = staticmethod(ranking_pairs)
    objective_: float
    dual_objective_: float
    gap_: float
    n_iter_: int
    history_: FloatArray
    # What models of a path, and fits of a warm start, leave to the next one.
    _shared_rows: Rows | None = None
    _last: Duals | None = None

    def __init__(
        self, C: float = 1.0, bias: str = "free",
        kernel: str | Callable[[Any, Any], Any] = "linear", gamma: Width = None, degree: int = 3,
        coef0: float = 1.0, non_empty: bool = False, tol: float = 1e-3, max_iter: int = 10_000, warm_start: bool = False,
        verbose: int = 0, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.C, self.bias = C, bias
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, degree, coef0
        self.non_empty, self.tol, self.max_iter = non_empty, tol, max_iter
        self.warm_start, self.verbose, self.label_names = warm_start, verbose, label_names

    def fit(self, X: MatrixLike, y: MatrixLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
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

    def path(
        self, X: MatrixLike, y: MatrixLike | None, Cs: Sequence[float], sample_weight: ArrayLike | None = None
    ) -> list[Self]:
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
        models: dict[float, Self] = {}
        carried: tuple[Rows | None, Duals | None] = (None, None)
        for C in sorted(set(Cs)):
            model = models[C] = clone(self).set_params(C=C)
            model._shared_rows, model._last = carried
            model._learn(X, y, sample_weight)
            carried = model._shared_rows, model._last
            model._shared_rows = model._last = None
        return [models[C] for C in Cs]

    def fit_many(self, X: MatrixLike, y: MatrixLike | None, points: Iterable[Mapping[str, Any]]) -> Iterator[Self]:
        """Yield a fitted copy for each dict of parameters; along a path where they differ in C only.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        points : iterable of dicts
            Parameters of each copy.

        Returns
        -------
        iterator of fitted classifiers, in the order of `points`
        """
        points = list(points)
        if any(set(params) != {"C"} for params in points):
            return super().fit_many(X, y, points)
        return iter(self.path(X, y, [params["C"] for params in points]))

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        started = time.perf_counter()
        kept, weights = self._kept(Y, weights)
        if self.kernel in WITH_WIDTH:
            self.gamma_ = kernel_width(self.gamma, X[kept], weights)
        pairs = self._pairs(Y[kept], self.C, weights)
        rows = self._shared_rows or self._rows(X, kept)
        start = _start(self._last, pairs.cap, pairs.n_labels)
        problem = PairProblem(rows, self._space(X, kept, rows), pairs, LIFTS[self.bias], Y.shape[1], X.dtype)
        solution = solve_and_certify(problem, start, self.tol, self.max_iter)
        result = solution.result
        self._shared_rows, self._last = rows, (result.duals, result.biases, pairs.cap)
        self._store(X, kept, solution.coefficients)
        self.intercept_ = solution.biases
        certificate = solution.certificate
        self.objective_, self.gap_ = certificate.objective, certificate.gap
        self.dual_objective_ = certificate.dual_objective
        self.n_iter_ = result.n_iter
        self.history_ = np.append(result.history[:-1], self.objective_)
        if solution.message:
            warnings.warn(solution.message, ConvergenceWarning, stacklevel=users_level())
        if self.verbose:
            sys.stderr.write(
                f"{type(self).__name__}: {self.n_iter_} sweeps, objective {self.objective_:.6g}, dual "
                f"{self.dual_objective_:.6g}, certified gap {self.gap_:.1e}, {time.perf_counter() - started:.2f} s\n"
            )

    def _kept(self, Y: IntArray, weights: FloatArray | None) -> tuple[IntArray, FloatArray | None]:
        """Indices and weights of the rows that take part."""
        return present_rows(weights, len(Y))

    def _rows(self, X: Matrix, kept: IntArray) -> Rows:
        if self._is_linear():
            return feature_rows(X[kept].astype(np.float64, copy=False))
        K = check_gram(self._gram(X))[np.ix_(kept, kept)]
        if self._is_precomputed() or callable(self.kernel):
            _check_positive(K)
        return GramRows(K)

    def _space(self, X: Matrix, kept: IntArray, rows: Rows) -> FeatureSpace:
        """Return the rows as the certificate needs them."""
        if isinstance(rows, GramRows) and not self._is_linear():
            return KernelSpace(rows.K)
        return LinearSpace(X[kept].astype(np.float64, copy=False), centred=self.bias == "free")

    def _store(self, X: Matrix, kept: IntArray, coefficients: FloatArray) -> None:
        if self._is_linear():
            self.coef_ = np.ascontiguousarray(coefficients.T)
            return
        self.dual_coef_ = np.zeros((X.shape[0], coefficients.shape[1]), dtype=X.dtype)
        self.dual_coef_[kept] = coefficients
        self.X_fit_ = None if self._is_precomputed() else X

    def _scores(self, X: Matrix) -> FloatArray:
        return self._raw_scores(X)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        check_number(owner, "C", self.C, strict=True)
        check_choice(owner, "bias", self.bias, tuple(LIFTS))
        check_number(owner, "tol", self.tol, strict=True)
        check_number(owner, "max_iter", self.max_iter, low=1, integer=True)
        self._check_kernel()


def _start(last: Duals | None, cap: FloatArray, n_labels: int) -> Start | None:
    """Start from the dual variables of a fit to the same pairs with another C: those at their bound stay there."""
    if last is None or len(last[2]) != len(cap) or len(last[1]) != n_labels:
        return None
    duals, biases, last_cap = last
    return np.where(duals >= last_cap, cap, duals), biases


def _check_positive(K: FloatArray) -> None:
    size = float(np.max(np.abs(K), initial=0.0))
    try:
        cholesky(K + 1e-6 * max(size, 1e-300) * np.eye(len(K)), overwrite_a=True, check_finite=False)
    except LinAlgError:
        lowest = np.linalg.eigvalsh(K)[0]
        raise ValueError(
            f"A kernel matrix must be positive semidefinite. Got an eigenvalue of {lowest:.3g}; a multiple of the "
            "identity added to it would mend that."
        ) from None


class RankSVM(PairSVM):
    r"""Rank-SVM: every relevant label above every irrelevant one, then a threshold for each row.

    .. math:: \min_{W, b} \tfrac12 \|W\|_F^2 + C \sum_i \tfrac{1}{|Y_i^+||Y_i^-|}
              \sum_{p \in Y_i^+,\, q \in Y_i^-} |1 - (f_{ip} - f_{iq})|_+, \qquad f_i = W'x_i + b

    A label is relevant if its score reaches the threshold :math:`t(f) = \langle a, f \rangle + c`, fitted by least
    squares to the best threshold of every training row. Rows with no or with all labels have no pair and are left out. A
    single label is ranked against its absence.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated pair.
    bias : {"free", "absorbed", "none"}, default="free"
        "free": biases without a penalty, as in the original program. "absorbed": biases as weights of a constant
        feature, penalised with the rest, as the RBRL paper writes the model. "none": no biases.
    threshold : {"middle", "smallest"}, default="middle"
        Which of a row's best thresholds is fitted: the middle of the widest gap, as in the paper, or the smallest, as in
        the widely used program.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        "linear" learns weights of the features; every other choice learns one coefficient per training row and label.
    gamma : {"median", "scale", "paper"} or float, default=None
        Width of the "rbf" and scale of the "poly" kernel: see :class:`rbrl.RBRLClassifier`; None means 1 / n_features, as
        "paper". The value is in `gamma_`.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel.
    non_empty : bool, default=False
        Give a row without a positive score its best label.
    tol : float, default=1e-3
        Stop when the relative duality gap is at most this.
    max_iter : int, default=10000
        Sweeps over the rows.
    warm_start : bool, default=False
        Start from the dual variables of the previous `fit` if it was to the same labels, for instance with another C.
        See also :meth:`path`.
    verbose : int, default=0
        1 writes a line about the solution to standard error.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        Linear model only.
    dual_coef_ : array (n_samples, n_labels)
        Kernel model only, with `X_fit_`, the training rows.
    intercept_ : array (n_labels,)
    objective_ : float
        Objective of the coefficients as they are stored.
    dual_objective_ : float
        Proved lower bound of the optimum.
    gap_ : float
        Distance between the two, relative to the lower bound: `objective_` is certified to be that near its optimum.
        The gap includes the rounding error of the objective.
    n_iter_ : int
        Sweeps over the rows.
    history_ : array
        Best objective value at each certificate.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.
    threshold_coef_ : array (n_labels,)
        a, with `threshold_intercept_`, c.

    References
    ----------
    A. Elisseeff, J. Weston: A kernel method for multi-labelled classification. NIPS 14, 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RankSVM
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = RankSVM(C=0.01).fit(X, Y)
    >>> model.predict(X[:2])
    array([[0, 0, 1, 0],
           [0, 0, 1, 0]])
    >>> model.gap_ <= 1e-3
    True
    """

    threshold_coef_: FloatArray
    threshold_intercept_: float

    def __init__(
        self, C: float = 1.0, bias: str = "free", threshold: str = "middle",
        kernel: str | Callable[[Any, Any], Any] = "linear", gamma: Width = None, degree: int = 3,
        coef0: float = 1.0, non_empty: bool = False, tol: float = 1e-3, max_iter: int = 10_000, warm_start: bool = False,
        verbose: int = 0, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        super().__init__(
            C, bias, kernel, gamma, degree, coef0, non_empty, tol, max_iter, warm_start, verbose, label_names
        )
        self.threshold = threshold

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        if Y.shape[1] == 1:
            super()._fit(X, np.hstack([-Y, Y]), weights)
            self._fit_no_threshold(np.zeros((1, 1)))
            return
        super()._fit(X, Y, weights)
        kept, weights = self._kept(Y, weights)
        if self.kernel in WITH_WIDTH:
            self.gamma_ = kernel_width(self.gamma, X[kept], weights)
        if not len(kept):
            self._fit_no_threshold(Y)
            return
        rule = RowThreshold(self.threshold).fit(self._raw_scores(X)[kept].astype(np.float64), Y[kept], weights)
        self.threshold_coef_, self.threshold_intercept_ = rule.coef_.astype(X.dtype), rule.intercept_

    def _fit_no_threshold(self, Y: Array) -> None:
        """Without a row to learn from: what most rows are, all relevant or none."""
        self.threshold_coef_ = np.zeros(len(self.intercept_), dtype=self.intercept_.dtype)
        self.threshold_intercept_ = -float(np.sign(Y.sum()))

    def _kept(self, Y: IntArray, weights: FloatArray | None) -> tuple[IntArray, FloatArray | None]:
        rows, weights = present_rows(weights, len(Y))
        relevant = Y[rows] > 0
        both = relevant.any(axis=1) & ~relevant.all(axis=1)
        return rows[both], None if weights is None else weights[both]

    def _scores(self, X: Matrix) -> FloatArray:
        scores = self._raw_scores(X)
        if self.targets_.n_columns == 1:
            return scores[:, 1:] - scores[:, :1]
        rule = RowThreshold(ties_relevant=True)
        rule.coef_, rule.intercept_ = self.threshold_coef_, self.threshold_intercept_
        return rule.shift(scores)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(type(self).__name__, "threshold", self.threshold, ("middle", "smallest"))


class RankSVMz(PairSVM):
    r"""Rank-SVM with a zero label: relevant labels above it, irrelevant ones below.

    .. math:: \min_{W, b} \tfrac12 \sum_{k=0}^l \|w_k\|^2 + C \sum_i \Big( \tfrac{1}{|Y_i^+|} \sum_{k \in Y_i^+}
              |1 - (f_{ik} - f_{i0})|_+ + \tfrac{1}{|Y_i^-|} \sum_{k \in Y_i^-} |1 - (f_{i0} - f_{ik})|_+ \Big)

    A label is relevant if its score is above that of the zero label, which `coef_` and `intercept_` have subtracted
    already. A side without labels is left out of a row's sum.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated pair.
    bias : {"free", "absorbed", "none"}, default="free"
        "free": biases without a penalty, as in the original program. "absorbed": biases as weights of a constant
        feature, penalised with the rest, as the RBRL paper writes the model. "none": no biases.
    kernel, gamma, degree, coef0 : default="linear", None, 3, 1.0
        The kernel, as in :class:`RankSVM`, and so all that follow.
    non_empty : bool, default=False
    tol : float, default=1e-3
    max_iter : int, default=10000
    warm_start : bool, default=False
    verbose : int, default=0
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    coef_, dual_coef_, intercept_, objective_, dual_objective_, gap_, n_iter_, history_
        The model, the zero label subtracted, and its certificate; as in :class:`RankSVM`.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    References
    ----------
    J. Xu: An efficient multi-label support vector machine with a zero label. Expert Systems with Applications 39, 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RankSVMz
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = RankSVMz(C=0.01).fit(X, Y)
    >>> model.predict(X[:2])
    array([[1, 1, 1, 0],
           [0, 0, 1, 0]])
    >>> model.gap_ <= 1e-3
    True
    """

    _pairs = staticmethod(zero_label_pairs)


class CalibratedRankSVM(PairSVM):
    r"""Calibrated Rank-SVM: a zero label between the relevant and the irrelevant ones.

    .. math:: \min_{W, b} \tfrac12 \sum_{k=0}^l \|w_k\|^2 + C \sum_i \tfrac{1}{|Y_i^+||Y_i^-|} \Big( \sum_{p, q}
              |2 - (f_{ip} - f_{iq})|_+ + \sum_p |1 - (f_{ip} - f_{i0})|_+ + \sum_q |1 - (f_{i0} - f_{iq})|_+
              \Big)

    with p over the relevant and q over the irrelevant labels of row i. A label is relevant if its score is above that of
    the zero label, which `coef_` and `intercept_` have subtracted already. A side without labels counts as one label in
    the price, so that such a row still tells where the zero label is.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated pair.
    bias : {"free", "absorbed", "none"}, default="absorbed"
        "free": biases without a penalty, as in the original program. "absorbed": biases as weights of a constant
        feature, penalised with the rest, as the RBRL paper writes the model. "none": no biases.
    kernel, gamma, degree, coef0 : default="linear", None, 3, 1.0
        The kernel, as in :class:`RankSVM`, and so all that follow.
    non_empty : bool, default=False
    tol : float, default=1e-3
    max_iter : int, default=10000
    warm_start : bool, default=False
    verbose : int, default=0
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    coef_, dual_coef_, intercept_, objective_, dual_objective_, gap_, n_iter_, history_
        The model, the zero label subtracted, and its certificate; as in :class:`RankSVM`.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    References
    ----------
    A. Jiang, C. Wang, Y. Zhu: Calibrated Rank-SVM for multi-label image categorization. IJCNN 2008.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import CalibratedRankSVM
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = CalibratedRankSVM(C=0.01).fit(X, Y)
    >>> model.predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 0, 1, 0]])
    >>> model.gap_ <= 1e-3
    True
    """

    _pairs = staticmethod(calibrated_pairs)

    def __init__(
        self, C: float = 1.0, bias: str = "absorbed",
        kernel: str | Callable[[Any, Any], Any] = "linear", gamma: Width = None, degree: int = 3,
        coef0: float = 1.0, non_empty: bool = False, tol: float = 1e-3, max_iter: int = 10_000, warm_start: bool = False,
        verbose: int = 0, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        super().__init__(
            C, bias, kernel, gamma, degree, coef0, non_empty, tol, max_iter, warm_start, verbose, label_names
        )
