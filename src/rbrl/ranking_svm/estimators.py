"""Estimators of the ranking SVMs: Rank-SVM with a learned threshold, and two with a learned zero label."""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from rbrl._common.checks import check_choice, check_number, users_level
from rbrl._common.typing import Array, ArrayLike, FloatArray, IntArray, LabelNames, Matrix, MatrixLike
from rbrl.decision import RowThreshold
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.coefficients import check_kernel, kernel_values, store_row_coefficients
from rbrl.estimators.display import show_certificate
from rbrl.estimators.entries import observed_rows
from rbrl.estimators.forms import form_of
from rbrl.exceptions import ConvergenceWarning
from rbrl.kernels import WITH_WIDTH, check_gram
from rbrl.problem.kernel import check_semidefinite
from rbrl.ranking_svm.certificate import KernelSpace, LinearSpace, PairProblem, Space, solve_and_certify
from rbrl.ranking_svm.pairs import GramRows, Rows, Start, calibrated_pairs, choose_rows, ranking_pairs, zero_label_pairs
from rbrl.scales import Width, kernel_width

# Square of the constant feature whose weights are the biases; it is infinite for free biases.
LIFTS = {"free": np.inf, "absorbed": 1.0, "none": 0.0}
# Dual variables, biases, and upper bounds on the variables, from which the next fit starts.
Duals: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


class PairSVM(MultiLabelClassifier):
    """Base class of the ranking SVMs, linear or with a kernel.

    A subclass sets `_pairs`. If the pairs have one column more than Y, this is the zero label, whose score is
    subtracted from the others.
    """

    # Function from labels Y, C and the weights of the rows to the hinges.
    _pairs = staticmethod(ranking_pairs)
    dual_coef_: FloatArray
    # State that is passed to the next model of a path, or to the next fit of a warm start.
    _shared_rows: Rows | None = None
    _last: Duals | None = None

    def __init__(
        self, C: float = 1.0, bias: str = "free",
        kernel: str | Callable[[Any, Any], Any] = "linear", gamma: Width = None, degree: int = 3,
        coef0: float = 1.0, non_empty: bool = False, tol: float = 1e-3, max_iter: int = 10_000, warm_start: bool = False,
        verbose: int = 0, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
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
        self.label_names = label_names

    def fit(self, X: MatrixLike, y: MatrixLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
            Features, or the kernel matrix (n_samples, n_samples) with ``kernel="precomputed"``.
        y : array or sparse matrix (n_samples, n_labels)
            Labels in 0/1 or -1/+1; `predict` returns the same coding. A 1-D y of classes works, too.
        sample_weight : array (n_samples,), default=None
            Factors of C, one per row. A row of weight 0 is ignored.
        """
        self._learn(X, y, sample_weight)
        self._shared_rows = None
        if not self.warm_start:
            self._last = None
        return self

    def path(
        self, X: MatrixLike, y: MatrixLike | None, Cs: Sequence[float], sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Return models for several values of C, each started at the previous one; kernel values are computed once.

        Parameters
        ----------
        X, y, sample_weight
            Arguments of :meth:`fit`.
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
        """Yield a fitted copy for each dict of parameters; use :meth:`path` if they only set C.

        Parameters
        ----------
        X, y
            Arguments of :meth:`fit`.
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
        """Solve from the last dual variables, if they fit; store the model, its gap and the duals."""
        started = time.perf_counter()
        kept, weights = self._kept(Y, weights)
        if self.kernel in WITH_WIDTH:
            self.gamma_ = kernel_width(self.gamma, X[kept], weights)
        pairs = self._pairs(Y[kept], self.C, weights)
        rows = self._shared_rows or self._rows(X, kept)
        space: Space
        if isinstance(rows, GramRows) and not form_of(self).is_linear:
            space = KernelSpace(rows.K)
        else:
            space = LinearSpace(X[kept].astype(np.float64, copy=False), centred=self.bias == "free")
        start = _start(self._last, pairs.cap, pairs.n_labels)
        problem = PairProblem(rows, space, pairs, LIFTS[self.bias], Y.shape[1], X.dtype)
        solution = solve_and_certify(problem, start, self.tol, self.max_iter)
        result = solution.result
        self._shared_rows = rows
        self._last = (result.duals, result.biases, pairs.cap)
        if form_of(self).is_linear:
            self.coef_ = np.ascontiguousarray(solution.coefficients.T)
        else:
            store_row_coefficients(self, X, kept, solution.coefficients)
        self.intercept_ = solution.biases
        self.objective_ = solution.certificate.objective
        self.dual_objective_ = solution.certificate.dual_objective
        self.gap_ = solution.certificate.gap
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
        """Return the ascending indices of the rows that are used, and their weights (None for ones)."""
        return observed_rows(weights, len(Y))

    def _rows(self, X: Matrix, kept: IntArray) -> Rows:
        """Return the rows `kept` of X in the form of the solver.

        `gamma_` must be set. A kernel that the user computed is checked to be positive
        semidefinite.
        """
        if form_of(self).is_linear:
            return choose_rows(X[kept].astype(np.float64, copy=False))
        K = check_gram(kernel_values(self, X))[np.ix_(kept, kept)]
        if self.kernel == "precomputed" or callable(self.kernel):
            check_semidefinite(K)
        return GramRows(K)

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the scores of the linear or kernel model, without any threshold."""
        return form_of(self).scores(self, X)

    def _sk_visual_block_(self) -> Any:
        """Return the box of a notebook, which scikit-learn calls for."""
        return show_certificate(self)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        check_number(owner, "C", self.C, strict=True)
        check_choice(owner, "bias", self.bias, tuple(LIFTS))
        check_number(owner, "tol", self.tol, strict=True)
        check_number(owner, "max_iter", self.max_iter, low=1, integer=True)
        check_kernel(self)


def _start(last: Duals | None, cap: FloatArray, n_labels: int) -> Start | None:
    """Return the dual variables and biases of the last fit, or None if they do not fit.

    They do not fit if the pairs or labels had other numbers. `cap` (n_pairs,) are the new bounds.
    Dual variables at their bound are moved to the bound for the new C.
    """
    if last is None or len(last[2]) != len(cap) or len(last[1]) != n_labels:
        return None
    duals, biases, last_cap = last
    return np.where(duals >= last_cap, cap, duals), biases


class RankSVM(PairSVM):
    r"""Rank-SVM: ranks relevant labels above irrelevant labels, and learns a threshold for each row.

    .. math:: \min_{W, b} \tfrac12 \|W\|_F^2 + C \sum_i \tfrac{1}{|Y_i^+||Y_i^-|}
              \sum_{p \in Y_i^+,\, q \in Y_i^-} |1 - (f_{ip} - f_{iq})|_+, \qquad f_i = W'x_i + b

    A label is relevant if its score is at least the threshold :math:`t(f) = \langle a, f \rangle + c`, which is
    fitted by least squares to the best threshold of every training row. Rows with no label or with all labels
    have no pair and are left out. A single label is ranked against its absence.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a violated pair.
    bias : {"free", "absorbed", "none"}, default="free"
        Kind of biases: "free" are biases without a penalty, as in the original program; "absorbed" are weights
        of a constant feature with the same penalty, as in the RBRL paper; "none" uses no biases.
    threshold : {"middle", "smallest"}, default="middle"
        Choice among the best thresholds of a row: the middle of the widest gap, as in the paper, or the
        smallest, as in the widely used program.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        Kernel. "linear" learns weights of the features. The others learn a coefficient for each training row
        and label.
    gamma : {"median", "scale", "paper"} or float, default=None
        Width of the "rbf" kernel and scale of the "poly" kernel; see :class:`rbrl.RBRLClassifier`. None means
        1 / n_features, as "paper" does. The value is stored in `gamma_`.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel.
    non_empty : bool, default=False
        Whether a row without a positive score gets its best label.
    tol : float, default=1e-3
        Relative duality gap at which the solver stops.
    max_iter : int, default=10000
        Largest number of sweeps over the rows.
    warm_start : bool, default=False
        Whether to start from the dual variables of the previous `fit`, which must have had the same labels, for
        example with another C. See also :meth:`path`.
    verbose : int, default=0
        Whether to write a line about the solution to standard error.
    label_names : sequence of str, default=None
        Names of the labels in the order of the columns of y; by default those of a data frame.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        Weights of a linear model.
    dual_coef_ : array (n_samples, n_labels)
        Coefficients of a kernel model, with the training rows in `X_fit_`.
    intercept_ : array (n_labels,)
    objective_ : float
        Objective of the stored coefficients.
    dual_objective_ : float
        Proved lower bound on the optimum.
    gap_ : float
        Difference between the two, relative to the lower bound, with the rounding error of the objective.
    n_iter_ : int
        Number of sweeps over the rows.
    history_ : array
        Best objective value at each certificate.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.
    threshold_coef_, threshold_intercept_ : array (n_labels,), float
        Coefficients a and c of the threshold.

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
        """Fit the ranking, and then the threshold to the scores of the training rows."""
        if Y.shape[1] == 1:
            super()._fit(X, np.hstack([-Y, Y]), weights)
            self._fit_no_threshold(np.zeros((1, 1)))
            return
        super()._fit(X, Y, weights)
        kept, weights = self._kept(Y, weights)
        if not len(kept):
            self._fit_no_threshold(Y)
            return
        rule = RowThreshold(self.threshold).fit(PairSVM._scores(self, X)[kept].astype(np.float64), Y[kept], weights)
        self.threshold_coef_ = rule.coef_.astype(X.dtype)
        self.threshold_intercept_ = rule.intercept_

    def _fit_no_threshold(self, Y: Array) -> None:
        """Set the threshold of scores of 0: -1 if most entries of Y are relevant, else +1."""
        self.threshold_coef_ = np.zeros(len(self.intercept_), dtype=self.intercept_.dtype)
        self.threshold_intercept_ = -float(np.sign(Y.sum()))

    def _kept(self, Y: IntArray, weights: FloatArray | None) -> tuple[IntArray, FloatArray | None]:
        """Return the indices and weights of the rows that have a relevant and an irrelevant label."""
        rows, weights = observed_rows(weights, len(Y))
        relevant = Y[rows] > 0
        both = relevant.any(axis=1) & ~relevant.all(axis=1)
        return rows[both], None if weights is None else weights[both]

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the scores less the threshold of each row; for a single label, less the score of its absence."""
        scores = PairSVM._scores(self, X)
        if self.targets_.n_columns == 1:
            return scores[:, 1:] - scores[:, :1]
        rule = RowThreshold(ties_relevant=True)
        rule.coef_ = self.threshold_coef_
        rule.intercept_ = self.threshold_intercept_
        return rule.shift(scores)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(type(self).__name__, "threshold", self.threshold, ("middle", "smallest"))


class RankSVMz(PairSVM):
    r"""Rank-SVM with a zero label: ranks relevant labels above it and irrelevant labels below it.

    .. math:: \min_{W, b} \tfrac12 \sum_{k=0}^l \|w_k\|^2 + C \sum_i \Big( \tfrac{1}{|Y_i^+|} \sum_{k \in Y_i^+}
              |1 - (f_{ik} - f_{i0})|_+ + \tfrac{1}{|Y_i^-|} \sum_{k \in Y_i^-} |1 - (f_{i0} - f_{ik})|_+ \Big)

    A label is relevant if its score is above that of the zero label, which is subtracted from `coef_` and
    `intercept_`. If a row has no relevant or no irrelevant label, that sum is left out.

    The parameters that are not listed are those of :class:`RankSVM`.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a violated pair.
    bias : {"free", "absorbed", "none"}, default="free"
        Kind of biases; see :class:`RankSVM`.

    Attributes
    ----------
    coef_, dual_coef_, intercept_, objective_, dual_objective_, gap_, n_iter_, history_
        Model and certificate; see :class:`RankSVM`.
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
    r"""Calibrated Rank-SVM: ranks a zero label between the relevant and the irrelevant labels.

    .. math:: \min_{W, b} \tfrac12 \sum_{k=0}^l \|w_k\|^2 + C \sum_i \tfrac{1}{|Y_i^+||Y_i^-|} \Big( \sum_{p, q}
              |2 - (f_{ip} - f_{iq})|_+ + \sum_p |1 - (f_{ip} - f_{i0})|_+ + \sum_q |1 - (f_{i0} - f_{iq})|_+
              \Big)

    with p over the relevant and q over the irrelevant labels of row i. A label is relevant if its score is above
    that of the zero label, which is subtracted from `coef_` and `intercept_`. If a row has no relevant or no
    irrelevant label, this number counts as 1, so that the row contributes to the zero label.

    The parameters that are not listed are those of :class:`RankSVM`.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a violated pair.
    bias : {"free", "absorbed", "none"}, default="absorbed"
        Kind of biases; see :class:`RankSVM`.

    Attributes
    ----------
    coef_, dual_coef_, intercept_, objective_, dual_objective_, gap_, n_iter_, history_
        Model and certificate; see :class:`RankSVM`.
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
