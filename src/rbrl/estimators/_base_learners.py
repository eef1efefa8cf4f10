"""Base learners of the reductions: LIBLINEAR, LIBSVM on a shared kernel matrix, or any scikit-learn classifier."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
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
    # The rows were checked once, for all learners.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        return learner.fit(inputs.take(rows), y, **extra)


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
