"""Thresholds, and a warning of empty predictions, from the scores of the training rows.

A model fits its training rows better than new rows, so that their scores mislead. Let f be the score of a row, and
r the gradient of the loss with respect to this score. A model that was fitted without the row gives it the score

.. math:: \\approx f + \\frac{d}{n - d}\\, r

where d is the effective number of parameters, :math:`\\operatorname{tr} X (X'X + \\lambda_1)^{-1} X'`, and n the number of
rows. For a squared loss, this is the formula of generalised cross-validation. It needs no further fit. Thresholds
from such scores are no worse than those of cross-validation: see table `scores` of ``studies.benchmarks.thresholds``.
"""

import warnings
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from rbrl._common.checks import users_level
from rbrl._common.environment import LARGEST_BLOCK
from rbrl._common.linalg import gram_matrix
from rbrl._common.matrices import SparseLabels
from rbrl._common.typing import BoolArray, FloatArray, IntArray, Matrix, issparse
from rbrl.decision import GlobalThreshold, LabelThresholds
from rbrl.estimators.base import should_fill_empty_rows
from rbrl.exceptions import EmptyPredictionsWarning
from rbrl.losses import Loss
from rbrl.losses.weights import mean_weights
from rbrl.out_of_core.design import Survey
from rbrl.problem import Design

# Metrics for which a threshold can be learned.
THRESHOLD_METRICS = ("f1_micro", "f1_samples", "f1_macro")
Threshold: TypeAlias = float | Literal["f1_micro", "f1_samples", "f1_macro"]
# Largest number of rows of a kernel matrix whose spectrum is computed, which takes about a second.
SPECTRUM_ROWS = 2000
# True while a model is fitted whose scores another model compares with a threshold: its empty predictions do not
# matter then. A filter of warnings would apply to all threads.
THRESHOLD_SET_LATER: ContextVar[bool] = ContextVar("THRESHOLD_SET_LATER", default=False)


class LabelledRows(NamedTuple):
    """Training rows, or a sample of them.

    Attributes
    ----------
    X : array or CSR matrix (n_samples, n_features)
        Checked rows.
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}; 0 is a missing label.
    weights : array (n_samples,) or (n_samples, n_labels), or None
        Weights in the loss.
    counted : array (n_samples,) or None
        Number of rows that each row stands for; None means 1.
    """

    X: Matrix
    Y: IntArray
    weights: FloatArray | None = None
    counted: FloatArray | None = None


def take_sampled_rows(found: Survey) -> LabelledRows:
    """Return the rows that a survey has kept."""
    X, Y, _, weights = found.sample
    return LabelledRows(X, Y, weights, mean_weights(Y, weights))


class TrainingRows(NamedTuple):
    """Training rows, or a sample of them, and their scores before a threshold is subtracted.

    Attributes
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}; 0 is a missing label.
    scores : array (n_samples, n_labels)
        Scores before the threshold is subtracted.
    weights : array (n_samples,) or (n_samples, n_labels), or None
        Weights in the loss.
    counted : array (n_samples,) or None
        Number of rows that each row stands for; None means 1.
    """

    Y: IntArray
    scores: FloatArray
    weights: FloatArray | None = None
    counted: FloatArray | None = None


def count_effective_parameters(design: Design, ridge: float, row_squares: FloatArray | None = None) -> float:
    """Compute the effective number of parameters of a ridge regression over a design.

    The number is exact in whitened coordinates. Otherwise, it is the smaller of two upper bounds. The number
    is a sum of a concave function over the eigenvalues of a matrix. The sum over the diagonal of the matrix is
    an upper bound, for the matrix X'X of the columns and for the matrix XX' of the rows.

    Parameters
    ----------
    design : Design
    ridge : float
    row_squares : array (n_samples,), default=None
        Squared norms of the rows without the column of the intercept, which adds at most one parameter. They
        are used for a design that is not whitened.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import linear_design
    >>> count_effective_parameters(linear_design(np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])), ridge=2.0)
    1.1666666666666665
    """
    diagonal = design.gram_diagonal
    columns = float(_compute_shares(diagonal, ridge * np.ravel(design.ridge_weights)).sum())
    if design.whitened or row_squares is None:
        return columns
    return min(columns, 1.0 + float(_compute_shares(row_squares, ridge).sum()))


def _compute_shares(values: FloatArray, ridge: float | FloatArray) -> FloatArray:
    """Return values / (values + ridge), a new array; negative values count as 0.

    A value of 0 has the share 0, even if the ridge is 0.
    """
    values = np.maximum(values, 0.0)
    return np.divide(values, values + ridge, out=np.zeros_like(values), where=values > 0)


def estimate_kernel_parameters(K: FloatArray, ridge: float, n_samples: float) -> float:
    """Estimate the effective number of parameters of a kernel model from the kernel matrix of some of its rows.

    The eigenvalues of a kernel matrix grow with the number of rows, so that a sample needs a smaller ridge.

    Parameters
    ----------
    K : array (n_sampled, n_sampled)
    ridge : float
        Ridge of the model of all rows.
    n_samples : float
        Number of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> estimate_kernel_parameters(np.eye(3), ridge=1.0, n_samples=3)
    1.5
    """
    return float(_compute_shares(np.linalg.eigvalsh(K), ridge * len(K) / n_samples).sum())


def choose_spectrum_rows(n_samples: int) -> IntArray:
    """Choose at most `SPECTRUM_ROWS` evenly spaced rows; return their indices in ascending order."""
    return np.unique(np.linspace(0, n_samples - 1, min(n_samples, SPECTRUM_ROWS)).round().astype(np.int64))


def estimate_linear_parameters(found: Survey, ridge: float, constant: float) -> float:
    """Estimate the effective number of parameters of a linear model from the rows that a survey has kept.

    Parameters
    ----------
    found : Survey
    ridge : float
    constant : float
        Value in the column of the intercept; 0 means no intercept.
    """
    X, Y, _, weights = found.sample
    X = X[choose_spectrum_rows(X.shape[0])].astype(np.float64)
    K = gram_matrix(X.T.tocsr() if issparse(X) else X.T) + constant**2
    return estimate_kernel_parameters(K, ridge, float(mean_weights(Y, weights).sum()))


def estimate_held_out_scores(loss: Loss, rows: TrainingRows, n_parameters: float) -> FloatArray:
    """Estimate the scores of training rows by models that were fitted without them.

    Parameters
    ----------
    loss : Loss
    rows : TrainingRows
    n_parameters : float
        Effective number of parameters.

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> rows = TrainingRows(np.array([[1], [-1], [-1]]), np.array([[0.5], [0.0], [-2.0]]))
    >>> estimate_held_out_scores(SquaredHinge(), rows, n_parameters=1.0).ravel().tolist()
    [0.25, 0.5, -2.0]
    """
    Y, F, weights, counted = rows
    n_samples = len(Y) if counted is None else float(counted.sum())
    # With more parameters than rows, a row determines its own score.
    factor = n_parameters / max(n_samples - n_parameters, 1.0)
    gradient = loss.gradient(Y, np.asarray(F, dtype=np.float64), weights)
    if counted is not None:
        gradient /= np.maximum(counted, np.finfo(float).tiny)[:, None]
    return F + factor * gradient


def learn_threshold(
    metric: str, loss: Loss, rows: TrainingRows, n_parameters: float, never_empty: bool
) -> float | FloatArray:
    """Learn a threshold that is best for a metric.

    Parameters
    ----------
    metric : {"f1_micro", "f1_samples", "f1_macro"}
    loss : Loss
    rows : TrainingRows
    n_parameters : float
        Effective number of parameters.
    never_empty : bool
        True if a row without a score above the threshold gets its best label.

    Returns
    -------
    float, or array (n_labels,) for "f1_macro"
    """
    estimates = estimate_held_out_scores(loss, rows, n_parameters)
    Y = rows.Y if rows.Y.all() else np.where(rows.Y == 0, np.nan, rows.Y)
    if metric == "f1_macro":
        return LabelThresholds(metric).fit(estimates, Y, rows.counted).thresholds_
    return GlobalThreshold(metric, never_empty=never_empty).fit(estimates, Y, rows.counted).threshold_


def warn_of_empty_rows(owner: str, rows: LabelledRows, is_empty: BoolArray, empty_share: float) -> None:
    """Warn if more than half of the training rows have labels, but get no label from the model.

    Parameters
    ----------
    owner : str
        Name of the class.
    rows : LabelledRows
    is_empty : bool array (n_samples,)
        Rows without a score above the threshold.
    empty_share : float
        Share of the training rows that have no label.
    """
    Y = rows.Y
    labelled = Y.count(axis=1) > 0 if isinstance(Y, SparseLabels) else (Y > 0).any(axis=1)
    counted = np.ones(len(rows.Y)) if rows.counted is None else rows.counted
    if counted[labelled & is_empty].sum() <= 0.5 * counted.sum():
        return
    share = counted[is_empty].sum() / counted.sum()
    warnings.warn(
        f"{owner} gives {share:.0%} of the training rows no label, and {empty_share:.0%} have none. Set "
        "threshold='f1_micro' to learn a lower threshold, or non_empty=True to give every row its best label. "
        "Set non_empty=False to accept empty predictions without this warning.",
        EmptyPredictionsWarning,
        stacklevel=users_level(),
    )


def set_threshold(model: Any, problem: Any) -> None:
    """Set `threshold_` of a fitted model, and warn if most training rows get no label.

    The threshold is learned if the parameter `threshold` names a metric.

    Parameters
    ----------
    model : ConvexClassifier
    problem : ConvexProblem or BlockProblem
        The problem that the model has solved, which has its training rows.
    """
    is_matrix = model.targets_.is_matrix
    is_learned = model.threshold in THRESHOLD_METRICS
    fills = is_matrix and should_fill_empty_rows(model)
    may_be_empty = is_matrix and model.non_empty == "auto" and not fills and not THRESHOLD_SET_LATER.get()
    model.threshold_ = 0.0 if is_learned else float(model.threshold)
    if not (is_learned or may_be_empty):
        return
    rows = problem.training_rows()
    step = max(1, LARGEST_BLOCK // model.targets_.n_columns)
    starts = range(0, rows.X.shape[0], step)
    blocks: Iterable[FloatArray] = (model._untuned_scores(rows.X[start : start + step]) for start in starts)
    if is_learned:
        scored = TrainingRows(np.asarray(rows.Y), model._untuned_scores(rows.X), rows.weights, rows.counted)
        metric = str(model.threshold)
        model.threshold_ = learn_threshold(metric, problem.loss(), scored, problem.count_parameters(), fills)
        blocks = [scored.scores]
    if may_be_empty:
        is_empty = np.concatenate([~(scores > model.threshold_).any(axis=1) for scores in blocks])
        warn_of_empty_rows(type(model).__name__, rows, is_empty, model.empty_share_)
