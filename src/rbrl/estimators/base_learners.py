"""Base learners of the reductions: their construction, fits, scores and probabilities."""

import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_softmax, softmax
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import has_fit_parameter

from rbrl._common.checks import users_level
from rbrl._common.typing import FloatArray, IntArray, Matrix

# A classifier of scikit-learn, which has no type annotations.
Learner: TypeAlias = Any
# Values of the parameter `random_state` of scikit-learn.
RandomSource: TypeAlias = int | np.random.RandomState | None
# Range of the factor of scores in soft votes: from nearly equal probabilities to hard votes.
SHARPNESS_RANGE = (1e-2, 1e3)


@dataclass(frozen=True)
class Inputs:
    """Input of the base learners: rows of features, or of a kernel matrix that all learners share.

    Attributes
    ----------
    matrix : array or sparse matrix (n_samples, n_columns)
        Features, or kernel values with the training rows.
    pairwise : bool
        True for a kernel matrix.
    """

    matrix: Matrix
    pairwise: bool = False

    def take(self, rows: IntArray | None) -> Matrix:
        """Return some of the training rows, or for None all rows without a copy.

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


def to_liblinear_rows(X: Matrix) -> Matrix:
    """Convert rows to the types of LIBLINEAR, so that the fits need not convert them again; X itself if it has them.

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


def make_linear_svm(C: float, tol: float | None) -> LinearSVC:
    """Return LIBLINEAR's classifier with the L2-regularised squared hinge.

    It is solved in the primal, which is deterministic and needs no seed.

    Parameters
    ----------
    C : float
        Weight of the hinge.
    tol : float or None
        Stopping tolerance; None means the default of LIBLINEAR.

    Returns
    -------
    LinearSVC
    """
    return LinearSVC(C=C, tol=1e-4 if tol is None else tol, dual=False)


def make_kernel_svm(C: float, tol: float | None, **kernel: Any) -> SVC:
    """Return LIBSVM's C-SVC, by default for a kernel matrix.

    Parameters
    ----------
    C : float
        Weight of the hinge.
    tol : float or None
        Stopping tolerance; None means the default of LIBSVM.
    **kernel
        Parameters of another kernel.

    Returns
    -------
    SVC
    """
    return SVC(C=C, tol=1e-3 if tol is None else tol, **(kernel or {"kernel": "precomputed"}))


def fit_learner(
    learner: Learner, inputs: Inputs, y: IntArray, weights: FloatArray | None = None, rows: IntArray | None = None
) -> Learner:
    """Fit a new learner to the classes of some rows, and return this learner.

    Parameters
    ----------
    learner : scikit-learn classifier
    inputs : Inputs
    y : array (n_samples,) of int
        Classes of all rows.
    weights : array (n_samples,), default=None
        Weights of all rows.
    rows : array of int, default=None
        Rows to learn from; None means all rows.

    Returns
    -------
    scikit-learn classifier, fitted
    """
    if rows is not None:
        y = y[rows]
        weights = None if weights is None else weights[rows]
    if weights is not None:
        check_accepts_weights(learner)
    if isinstance(learner, LinearSVC):
        _weigh_stopping_rule(learner, y, weights)
    X = inputs.take(rows)
    # The rows were checked once for all learners.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        learner.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    if _minimises_squared_hinge(learner):
        _reach_tolerance(learner, X, y, weights)
    return learner


def check_accepts_weights(learner: Learner) -> None:
    """Raise ValueError for a base learner that does not accept row weights."""
    if not has_fit_parameter(learner, "sample_weight"):
        raise ValueError(
            f"sample_weight needs a base learner whose fit accepts it. Got {learner!r}, which does not; "
            "leave sample_weight out, or choose another estimator."
        )


def _weigh_stopping_rule(learner: LinearSVC, y: IntArray, weights: FloatArray | None) -> None:
    """Scale the tolerance of LIBLINEAR, so that a row of weight 2 counts as two rows.

    LIBLINEAR multiplies its tolerance by the share of the rarer class among the rows, and ignores the
    weights of the rows.
    """
    if weights is None or len(classes := np.unique(y)) != 2:
        return
    code = (y == classes[1]).astype(np.intp)
    counts = np.bincount(code)
    sums = np.bincount(code, weights)
    learner.tol = learner.tol * (sums.min() / sums.sum()) / (counts.min() / counts.sum())


def _minimises_squared_hinge(learner: Learner) -> bool:
    """Return whether a learner minimises `_SquaredHinge`, as those of `make_linear_svm` do."""
    if not isinstance(learner, LinearSVC):
        return False
    free = {name: getattr(learner, name) for name in ("C", "tol", "max_iter", "verbose")}
    return learner.get_params() == make_linear_svm(1.0, None).get_params() | free


class _SquaredHinge:
    r"""LIBLINEAR's problem for one class: :math:`\tfrac12 \|v\|^2 + C \sum_i c_i |1 - y_i f_i|_+^2`, f = X w + b.

    The intercept is the last entry of v = (w, b). The Hessian is at least the identity. Therefore the
    distance from v to the solution is at most the norm of the gradient at v.
    """

    def __init__(self, X: Matrix, y: FloatArray, weights: FloatArray | None, C: float) -> None:
        self.X = X
        self.y = y
        self.scale = 2.0 * C * (np.ones(len(y)) if weights is None else weights)

    def gradient(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient at v, and the weight of each row in the Hessian at v."""
        slack = np.maximum(1.0 - self.y * (self.X @ v[:-1] + v[-1]), 0.0)
        return v - self._multiply_transpose(self.scale * slack * self.y), self.scale * (slack > 0)

    def minimise(self, v: FloatArray, bound: float, max_steps: int) -> tuple[FloatArray, float]:
        """Apply Newton's method from v; return the last point and the norm of its gradient.

        It stops when the norm is at most `bound`, or when no step reduces the norm.
        """
        g, row_weights = self.gradient(v)
        for _ in range(max_steps):
            if np.linalg.norm(g) <= bound:
                break
            step = self._newton_step(g, row_weights)
            for share in 0.5 ** np.arange(10):
                g_next, weights_next = self.gradient(v + share * step)
                if np.linalg.norm(g_next) < np.linalg.norm(g):
                    break
            else:
                break
            v = v + share * step
            g = g_next
            row_weights = weights_next
        return v, float(np.linalg.norm(g))

    def _newton_step(self, g: FloatArray, row_weights: FloatArray) -> FloatArray:
        """Solve H d = -g by conjugate gradients."""

        def hessian_product(d: FloatArray) -> FloatArray:
            return d + self._multiply_transpose(row_weights * (self.X @ d[:-1] + d[-1]))

        return cg(LinearOperator((len(g), len(g)), hessian_product, dtype=g.dtype), -g, rtol=1e-6)[0]

    def _multiply_transpose(self, r: FloatArray) -> FloatArray:
        """Return (X, 1)' @ r, whose last entry belongs to the intercept."""
        return np.append(self.X.T @ r, r.sum())


def _reach_tolerance(
    learner: LinearSVC, X: Matrix, y: IntArray, weights: FloatArray | None, max_steps: int = 20
) -> None:
    """Continue from the solution of LIBLINEAR with Newton's steps, until its tolerance is reached.

    LIBLINEAR also stops when a step reduces the objective by less than 1e-12 of its value, about 1e-6
    from the solution. Where it stops then depends on rounding, and so on the processor and on the order
    of the rows.
    """
    for k in range(len(learner.coef_)):
        sign = np.where(y == learner.classes_[k if len(learner.classes_) > 2 else 1], 1.0, -1.0)
        problem = _SquaredHinge(X, sign, weights, learner.C)
        rarer = max(min(np.count_nonzero(sign > 0), np.count_nonzero(sign < 0)), 1)
        v = np.append(learner.coef_[k], learner.intercept_[k])
        bound = learner.tol * rarer / len(y) * np.linalg.norm(problem.gradient(np.zeros_like(v))[0])
        v, norm = problem.minimise(v, bound, max_steps)
        learner.coef_[k] = v[:-1]
        learner.intercept_[k] = v[-1]
        if norm > bound:
            text = (
                f"LIBLINEAR and {max_steps} further steps did not reach tol: the norm of the gradient is "
                f"{norm:.1e}, and tol allows {bound:.1e}. Scale X, or use a larger tol."
            )
            warnings.warn(text, ConvergenceWarning, stacklevel=users_level())


def compute_margins(learner: Learner, matrix: Matrix) -> FloatArray:
    """Return the scores of a fitted two-class learner; a positive score means its second class.

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


def compute_probabilities(learner: Learner, matrix: Matrix, sharpness: float = 1.0) -> FloatArray:
    """Return the class probabilities of a fitted learner.

    For a learner without probabilities, they are the logistic or softmax function of its scores.

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
        Factor of the scores; 1 for a learner with probabilities, or without scores.
    """
    if hasattr(learner, "predict_proba") or not hasattr(learner, "decision_function"):
        return 1.0
    scores = np.asarray(learner.decision_function(matrix), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    own = np.searchsorted(learner.classes_, classes)

    def negative_log_likelihood(log_factor: float) -> float:
        return -float(log_softmax(np.exp(log_factor) * scores, axis=1)[np.arange(len(own)), own].mean())

    bounds = tuple(np.log(SHARPNESS_RANGE))
    best = minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded")
    return float(np.exp(best.x))


def logistic(scores: FloatArray) -> FloatArray:
    """Compute 1 / (1 + exp(-score)) without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * scores))


def get_tie_shift(votes: str, hard: float) -> float:
    """Return the shift of scores that makes ties positive, and changes no other sign.

    It is `hard` for hard votes, and the smallest positive number for soft votes.
    """
    return hard if votes == "hard" else float(np.finfo(np.float64).tiny)
