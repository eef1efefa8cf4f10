"""Base learners of the reductions, and what all reductions share."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, cast

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_softmax, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from rbrl._common.bases import BaseEstimator
from rbrl._common.checks import check_choice, check_number, users_level
from rbrl._common.typing import ArrayLike, FloatArray, IntArray, LabelNames, Matrix, MatrixLike
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.kernels import gram
from rbrl.scales import WIDTHS, Width, kernel_width

# A classifier of scikit-learn, which has no types.
Learner: TypeAlias = Any
# Factors of scores from hardly any preference to hard votes.
SHARPNESS = (1e-2, 1e3)
# Values of parameters of these names.
CHOICES = {"kernel": ("linear", "rbf"), "votes": ("hard", "soft"), "scores": ("decision", "hard")}


@dataclass(frozen=True)
class Inputs:
    """What base learners are given: rows of features, or of a kernel matrix that all of them share."""

    matrix: Matrix
    pairwise: bool = False

    def take(self, rows: IntArray | None) -> Matrix:
        """The given training rows; all, uncopied, for None.

        Parameters
        ----------
        rows : array of int or None

        Returns
        -------
        array or sparse matrix
        """
        if rows is None:
            return self.matrix
        return self.matrix[np.ix_(rows, rows)] if self.pairwise else self.matrix[rows]


def liblinear_rows(X: Matrix) -> Matrix:
    """Rows as LIBLINEAR takes them, so that no single fit converts them again.

    Parameters
    ----------
    X : array or sparse matrix (n_samples, n_features)

    Returns
    -------
    array or sparse matrix of float64
    """
    X = X.astype(np.float64, copy=False)
    if isinstance(X, np.ndarray) or X.indices.dtype == np.int32 or max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    return sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def linear_svm(C: float, tol: float | None) -> LinearSVC:
    """LIBLINEAR: L2-regularised squared hinge, solved in the primal, which is deterministic and needs no seed.

    Parameters
    ----------
    C : float
        Weight of the hinge.
    tol : float or None
        Stopping tolerance; None means LIBLINEAR's own.

    Returns
    -------
    LinearSVC
    """
    return LinearSVC(C=C, tol=1e-4 if tol is None else tol, dual=False)


def kernel_svm(C: float, tol: float | None, **kernel: Any) -> SVC:
    """LIBSVM's C-SVC; on a kernel matrix unless `kernel` says otherwise.

    Parameters
    ----------
    C : float
        Weight of the hinge.
    tol : float or None
        Stopping tolerance; None means LIBSVM's own.
    **kernel
        Parameters of the kernel.

    Returns
    -------
    SVC
    """
    return SVC(C=C, tol=1e-3 if tol is None else tol, **(kernel or {"kernel": "precomputed"}))


def fit_learner(
    learner: Learner, inputs: Inputs, y: IntArray, weights: FloatArray | None = None, rows: IntArray | None = None
) -> Learner:
    """Fit a fresh learner to classes y of the given rows (y and weights cover all rows), and return it.

    Parameters
    ----------
    learner : scikit-learn classifier
    inputs : Inputs
    y : array (n_samples,) of int
    weights : array (n_samples,), default=None
    rows : array of int, default=None
        Rows to learn from; None means all.

    Returns
    -------
    scikit-learn classifier, fitted
    """
    if rows is not None:
        y, weights = y[rows], None if weights is None else weights[rows]
    if weights is not None:
        check_takes_weights(learner)
    if isinstance(learner, LinearSVC):
        _weigh_stopping_rule(learner, y, weights)
    X = inputs.take(rows)
    # The rows were checked once, for all learners.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        learner.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    if _minimises_squared_hinge(learner):
        _keep_tolerance(learner, X, y, weights)
    return learner


def check_takes_weights(learner: Learner) -> None:
    """Refuse row weights for a base learner without them."""
    if not has_fit_parameter(learner, "sample_weight"):
        raise ValueError(
            f"sample_weight needs a base learner whose fit takes it. Got {learner!r}, which does not; "
            "leave sample_weight out, or choose another estimator."
        )


def _weigh_stopping_rule(learner: LinearSVC, y: IntArray, weights: FloatArray | None) -> None:
    """Let a row of weight 2 count as two rows in LIBLINEAR's stopping rule too.

    LIBLINEAR scales its tolerance by the share of the rarer class among the rows, whatever their weights.
    """
    if weights is None or len(classes := np.unique(y)) != 2:
        return
    code = (y == classes[1]).astype(np.intp)
    rows, mass = np.bincount(code), np.bincount(code, weights)
    learner.tol = learner.tol * (mass.min() / mass.sum()) / (rows.min() / rows.sum())


def _minimises_squared_hinge(learner: Learner) -> bool:
    """Whether a learner is what `linear_svm` makes, whose problem `_SquaredHinge` writes down."""
    if not isinstance(learner, LinearSVC):
        return False
    free = {name: getattr(learner, name) for name in ("C", "tol", "max_iter", "verbose")}
    return learner.get_params() == linear_svm(1.0, None).get_params() | free


class _SquaredHinge:
    r"""LIBLINEAR's problem for one class: :math:`\tfrac12 \|v\|^2 + C \sum_i c_i |1 - y_i f_i|_+^2`, f = X w + b.

    The intercept is the last entry of v = (w, b). The Hessian is at least the identity, so a gradient g at v says that
    the solution is no farther from v than its norm.
    """

    def __init__(self, X: Matrix, y: FloatArray, weights: FloatArray | None, C: float) -> None:
        self.X, self.y, self.scale = X, y, 2.0 * C * (np.ones(len(y)) if weights is None else weights)

    def gradient(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient at v, and the weight of each row in the Hessian there."""
        slack = np.maximum(1.0 - self.y * (self.X @ v[:-1] + v[-1]), 0.0)
        return v - self._transposed(self.scale * slack * self.y), self.scale * (slack > 0)

    def minimise(self, v: FloatArray, bound: float, max_steps: int) -> tuple[FloatArray, float]:
        """Newton's method from v until the gradient's norm is at most `bound`, or no step lowers it; v and that norm."""
        g, row_weights = self.gradient(v)
        for _ in range(max_steps):
            if np.linalg.norm(g) <= bound:
                break
            step = self._newton_step(g, row_weights)
            for share in 0.5 ** np.arange(10):
                tried = v + share * step
                g_tried, weights_tried = self.gradient(tried)
                if np.linalg.norm(g_tried) < np.linalg.norm(g):
                    break
            else:
                break
            v, g, row_weights = tried, g_tried, weights_tried
        return v, float(np.linalg.norm(g))

    def _newton_step(self, g: FloatArray, row_weights: FloatArray) -> FloatArray:
        """Solve H d = -g, to a digit less than g has been reduced to."""

        def hessian_product(d: FloatArray) -> FloatArray:
            return d + self._transposed(row_weights * (self.X @ d[:-1] + d[-1]))

        return cg(LinearOperator((len(g), len(g)), hessian_product, dtype=g.dtype), -g, rtol=1e-6)[0]

    def _transposed(self, r: FloatArray) -> FloatArray:
        return np.append(self.X.T @ r, r.sum())


def _keep_tolerance(
    learner: LinearSVC, X: Matrix, y: IntArray, weights: FloatArray | None, max_steps: int = 20
) -> None:
    """Go on with Newton's steps from where LIBLINEAR ended, if that is short of its tolerance.

    LIBLINEAR also ends where a step lowers the objective by less than 1e-12 of it, some 1e-6 from the solution: which
    one of the points there it ends at is a matter of rounding, so of the processor and of the order of the rows.
    """
    for k in range(len(learner.coef_)):
        sign = np.where(y == learner.classes_[k if len(learner.classes_) > 2 else 1], 1.0, -1.0)
        problem = _SquaredHinge(X, sign, weights, learner.C)
        rarer = max(min(np.count_nonzero(sign > 0), np.count_nonzero(sign < 0)), 1)
        v = np.append(learner.coef_[k], learner.intercept_[k])
        bound = learner.tol * rarer / len(y) * np.linalg.norm(problem.gradient(np.zeros_like(v))[0])
        v, norm = problem.minimise(v, bound, max_steps)
        learner.coef_[k], learner.intercept_[k] = v[:-1], v[-1]
        if norm > bound:
            left = f"LIBLINEAR and {max_steps} steps more left a gradient of norm {norm:.1e}"
            remedy = f"where tol asks for {bound:.1e}; scale X, or raise tol."
            warnings.warn(f"{left}, {remedy}", ConvergenceWarning, stacklevel=users_level())


def margins(learner: Learner, matrix: Matrix) -> FloatArray:
    """Scores of a fitted two-class learner; positive for its second class.

    Parameters
    ----------
    learner : scikit-learn classifier, fitted
    matrix : array or sparse matrix (n_rows, n_columns)

    Returns
    -------
    array (n_rows,)
    """
    if hasattr(learner, "decision_function"):
        return np.asarray(learner.decision_function(matrix))
    if hasattr(learner, "predict_proba"):
        return learner.predict_proba(matrix)[:, 1] - 0.5
    return np.where(learner.predict(matrix) == learner.classes_[1], 0.5, -0.5)


def probabilities(learner: Learner, matrix: Matrix, sharpness: float = 1.0) -> FloatArray:
    """Return class probabilities of a fitted learner; without its own, the logistic or softmax function of its scores.

    Parameters
    ----------
    learner : scikit-learn classifier, fitted
    matrix : array or sparse matrix (n_rows, n_columns)
    sharpness : float, default=1.0
        Factor of the scores, as :func:`fit_sharpness` returns it.

    Returns
    -------
    array (n_rows, n_classes)
    """
    if hasattr(learner, "predict_proba"):
        return learner.predict_proba(matrix)
    if not hasattr(learner, "decision_function"):
        return (learner.predict(matrix)[:, None] == learner.classes_).astype(np.float64)
    scores = sharpness * np.asarray(learner.decision_function(matrix))
    if scores.ndim == 1:
        second = logistic(scores)
        return np.column_stack([1 - second, second])
    return softmax(scores, axis=1)


def fit_sharpness(learner: Learner, matrix: Matrix, classes: IntArray) -> float:
    r"""Return the factor of a learner's scores that makes their softmax fit the classes best.

    .. math:: \min_{t > 0} -\sum_i \log \operatorname{softmax}(t\, s_i)_{y_i}

    Margins of an SVM are about as large for two classes as for two hundred. The softmax of such margins spreads the
    probability over all classes, so that no class has a large one. The factor is the inverse of the temperature in
    temperature scaling (Guo and others, ICML 2017).

    Parameters
    ----------
    learner : scikit-learn classifier, fitted
    matrix : array or sparse matrix (n_rows, n_columns)
        Training rows; some of them are enough for one number.
    classes : array (n_rows,)

    Returns
    -------
    float
        1 for a learner with probabilities of its own, or without scores.
    """
    if hasattr(learner, "predict_proba") or not hasattr(learner, "decision_function"):
        return 1.0
    scores = np.asarray(learner.decision_function(matrix), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    own = np.searchsorted(learner.classes_, classes)

    def negative_log_likelihood(log_factor: float) -> float:
        return -float(log_softmax(np.exp(log_factor) * scores, axis=1)[np.arange(len(own)), own].mean())

    lowest, highest = SHARPNESS
    found = minimize_scalar(negative_log_likelihood, bounds=(np.log(lowest), np.log(highest)), method="bounded")
    return float(np.exp(found.x))


def logistic(scores: FloatArray) -> FloatArray:
    """1 / (1 + exp(-score)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * scores))


def tie_shift(votes: str, hard: float) -> float:
    """What makes ties positive and nothing else: `hard` of whole votes, the smallest positive number of shares."""
    return hard if votes == "hard" else float(np.finfo(np.float64).tiny)


class ReductionClassifier(MultiLabelClassifier):
    """A classifier made of base learners.

    A subclass writes ``_fit_learners(inputs, Y, weights)``, where all weights are positive, and ``_scores(X)``. Its own
    constructor names all parameters, as scikit-learn wants it, and hands on those of the base learners.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
        Base learner, instead of the two that `kernel` names.
    kernel : {"linear", "rbf"}
        LIBLINEAR on the features, or LIBSVM on one kernel matrix that all base learners share.
    C, gamma, tol : float
        Of the two; `gamma` and `tol` may be None.
    non_empty : bool
        Give a row without a relevant label its best one.
    label_names : sequence of str, default=None
        Names of the labels.
    """

    decision_parameters = ("non_empty", "votes")
    n_jobs: int | None
    X_fit_: Matrix | None
    gamma_: float

    def __init__(
        self, estimator: BaseEstimator | None, kernel: str, C: float, gamma: Width, tol: float | None,
        non_empty: bool, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.non_empty = non_empty
        self.label_names = label_names

    def fit(self, X: MatrixLike, y: MatrixLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : array or sparse matrix (n_samples, n_labels)
            0/1 or -1/+1; `predict` answers in the same coding. A 1-D y of classes works too.
        sample_weight : array (n_samples,), default=None
            Weights of the rows, handed to the base learners; a row of weight 0 is as if it were absent.

        Returns
        -------
        self
        """
        return self._learn(X, y, sample_weight)

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        if weights is not None and not weights.all():
            rows = np.flatnonzero(weights)
            X, Y, weights = X[rows], Y[rows], weights[rows]
        self.X_fit_ = X if self._share_kernel() else None
        if self.estimator is None and self.kernel == "rbf":
            self.gamma_ = kernel_width(self.gamma, X, weights)
        self._fit_learners(self._inputs(X), Y, weights)

    @abstractmethod
    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        """Learn from inputs, labels in {-1, +1} and positive row weights (None for ones)."""

    def _inputs(self, X: Matrix) -> Inputs:
        """Rows as the base learners take them: kernel values with the training rows, or features."""
        if self._share_kernel():
            return Inputs(gram(X, self.X_fit_, kernel="rbf", gamma=self._width()), pairwise=True)
        return Inputs(X if self.estimator is not None else liblinear_rows(X))

    def _width(self) -> float | None:
        """The gamma of the last fit; model files without it have one that is a number, or None: 1 / n_features."""
        return cast(float | None, getattr(self, "gamma_", self.gamma))

    def _learner(self) -> Learner:
        """A fresh base learner."""
        if self.estimator is not None:
            return clone(self.estimator)
        return kernel_svm(self.C, self.tol) if self._share_kernel() else linear_svm(self.C, self.tol)

    def _share_kernel(self) -> bool:
        """Whether the base learners see one kernel matrix, in place of features."""
        return self.estimator is None and self.kernel == "rbf"

    def _check_parameters(self) -> None:
        owner, parameters = type(self).__name__, self.get_params(deep=False)
        for name, allowed in CHOICES.items():
            if name in parameters:
                check_choice(owner, name, parameters[name], allowed)
        check_number(owner, "C", self.C, strict=True)
        check_number(owner, "gamma", self.gamma, strict=True, words=WIDTHS)
        if self.tol is not None:
            check_number(owner, "tol", self.tol, strict=True)
        if self.estimator is not None and not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict")):
            raise ValueError(
                f"The estimator parameter of {owner} must be a classifier with fit and predict, or None. "
                f"Got {self.estimator!r} instead."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
