"""Base learners of the reductions: LIBLINEAR, LIBSVM on a shared kernel matrix, or any scikit-learn classifier."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import has_fit_parameter


@dataclass(frozen=True)
class Inputs:
    """What base learners are given: rows of features, or of a kernel matrix that all of them share."""

    matrix: Any
    pairwise: bool = False

    def take(self, rows):
        """The given training rows; all, uncopied, for None."""
        if rows is None:
            return self.matrix
        return self.matrix[np.ix_(rows, rows)] if self.pairwise else self.matrix[rows]


def liblinear_rows(X):
    """Rows as LIBLINEAR takes them, so that no single fit converts them again."""
    X = X.astype(np.float64, copy=False)
    if sparse.issparse(X) and max(X.nnz, *X.shape) <= np.iinfo(np.int32).max and X.indices.dtype != np.int32:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = sparse.csr_array(parts, shape=X.shape)
    return X


def linear_svm(C, tol):
    """LIBLINEAR: L2-regularised squared hinge, solved in the primal, which is deterministic and needs no seed."""
    return LinearSVC(C=C, tol=1e-4 if tol is None else tol, dual=False)


def kernel_svm(C, tol, **kernel):
    """LIBSVM's C-SVC; on a kernel matrix unless `kernel` says otherwise."""
    return SVC(C=C, tol=1e-3 if tol is None else tol, **(kernel or {"kernel": "precomputed"}))


def fit_learner(learner, inputs, y, weights=None, rows=None):
    """Fit a fresh learner to classes y of the given rows (y and weights cover all rows), and return it."""
    if rows is not None:
        y, weights = y[rows], None if weights is None else weights[rows]
    extra = {}
    if weights is not None:
        check_takes_weights(learner)
        extra["sample_weight"] = weights
    if isinstance(learner, LinearSVC):
        _weigh_stopping_rule(learner, y, weights)
    X = inputs.take(rows)
    # The rows were checked once, for all learners.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        learner.fit(X, y, **extra)
    if _minimises_squared_hinge(learner):
        _keep_tolerance(learner, X, y, weights)
    return learner


def check_takes_weights(learner):
    """Refuse row weights for a base learner without them."""
    if not has_fit_parameter(learner, "sample_weight"):
        raise ValueError(
            f"sample_weight needs a base learner whose fit takes it. Got {learner!r}, which does not; "
            "leave sample_weight out, or choose another estimator."
        )


def _weigh_stopping_rule(learner, y, weights):
    """Let a row of weight 2 count as two rows in LIBLINEAR's stopping rule too.

    LIBLINEAR scales its tolerance by the share of the rarer class among the rows, whatever their weights.
    """
    if weights is None or len(classes := np.unique(y)) != 2:
        return
    code = (y == classes[1]).astype(np.intp)
    rows, mass = np.bincount(code), np.bincount(code, weights)
    learner.tol = learner.tol * (mass.min() / mass.sum()) / (rows.min() / rows.sum())


def _minimises_squared_hinge(learner):
    """Whether a learner is what `linear_svm` makes, whose problem `_SquaredHinge` writes down."""
    ours = linear_svm(1.0, None).get_params()
    return isinstance(learner, LinearSVC) and all(
        getattr(learner, name) == value
        for name, value in ours.items()
        if name not in ("C", "tol", "max_iter", "verbose")
    )


class _SquaredHinge:
    r"""LIBLINEAR's problem for one class: :math:`\tfrac12 \|v\|^2 + C \sum_i c_i |1 - y_i f_i|_+^2`, f = X w + b.

    The intercept is the last entry of v = (w, b). The Hessian is at least the identity, so a gradient g at v says that
    the solution is no farther from v than its norm.
    """

    def __init__(self, X, y, weights, C):
        self.X, self.y, self.scale = X, y, 2.0 * C * (np.ones(len(y)) if weights is None else weights)

    def gradient(self, v):
        """Gradient at v, and the weight of each row in the Hessian there."""
        slack = np.maximum(1.0 - self.y * (self.X @ v[:-1] + v[-1]), 0.0)
        return v - self._transposed(self.scale * slack * self.y), self.scale * (slack > 0)

    def newton_step(self, g, row_weights):
        """Solve H d = -g, to a digit less than g has been reduced to."""
        times = LinearOperator(
            (len(g), len(g)), lambda d: d + self._transposed(row_weights * (self.X @ d[:-1] + d[-1])), dtype=g.dtype
        )
        return cg(times, -g, rtol=1e-6)[0]

    def _transposed(self, r):
        return np.append(self.X.T @ r, r.sum())


def _keep_tolerance(learner, X, y, weights, max_steps=20):
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
        v, norm = _newton(problem, v, bound, max_steps)
        learner.coef_[k], learner.intercept_[k] = v[:-1], v[-1]
        if norm > bound:
            warnings.warn(
                f"LIBLINEAR and {max_steps} steps more left a gradient of norm {norm:.1e}, where tol asks for {bound:.1e}; "
                "scale X, or raise tol.",
                ConvergenceWarning,
                stacklevel=2,
            )


def _newton(problem, v, bound, max_steps):
    """Newton's method from v until the gradient's norm is at most `bound`, or no step lowers it; v and that norm."""
    g, row_weights = problem.gradient(v)
    for _ in range(max_steps):
        if np.linalg.norm(g) <= bound:
            break
        step = problem.newton_step(g, row_weights)
        for share in 0.5 ** np.arange(10):
            tried = v + share * step
            g_tried, weights_tried = problem.gradient(tried)
            if np.linalg.norm(g_tried) < np.linalg.norm(g):
                break
        else:
            break
        v, g, row_weights = tried, g_tried, weights_tried
    return v, np.linalg.norm(g)


def margins(learner, matrix):
    """Scores of a fitted two-class learner; positive for its second class."""
    if hasattr(learner, "decision_function"):
        return np.asarray(learner.decision_function(matrix))
    if hasattr(learner, "predict_proba"):
        return learner.predict_proba(matrix)[:, 1] - 0.5
    return np.where(learner.predict(matrix) == learner.classes_[1], 0.5, -0.5)


def probabilities(learner, matrix):
    """Class probabilities of a fitted learner; without its own, the logistic or softmax function of its scores."""
    if hasattr(learner, "predict_proba"):
        return learner.predict_proba(matrix)
    if not hasattr(learner, "decision_function"):
        return (learner.predict(matrix)[:, None] == learner.classes_).astype(np.float64)
    scores = np.asarray(learner.decision_function(matrix))
    if scores.ndim == 1:
        second = logistic(scores)
        return np.column_stack([1 - second, second])
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def logistic(scores):
    """1 / (1 + exp(-score)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * scores))
