"""Metrics over samples: areas under ROC curves, and loss and calibration of probabilities."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rbrl._common.typing import ArrayLike, BoolArray, FloatArray, MatrixLike
from rbrl.metrics.inputs import Comparison, check_scores, row_blocks, warn_undefined

# Default number of bins of equal width between 0 and 1.
N_BINS = 15
# A wrong probability of exactly 0 or 1 would have an infinite loss. scikit-learn clips here too.
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


class ReliabilityBins(NamedTuple):
    """Expected and observed numbers of relevant labels in bins of predicted probability.

    Attributes
    ----------
    n : array (n_bins,) or (n_labels, n_bins)
        Number of entries whose probability is in the bin, or sum of their weights. An edge belongs to
        the bin above it, and 1 to the last bin.
    foretold : array of the same shape
        Expected number of relevant entries: the sum of their probabilities.
    relevant : array of the same shape
        Observed number of relevant entries.

    Examples
    --------
    >>> from rbrl.metrics import reliability_bins
    >>> bins = reliability_bins([[1, 0], [1, 0]], [[0.9, 0.1], [0.6, 0.4]], n_bins=2)
    >>> bins.n.tolist(), bins.relevant.tolist(), round(float(bins.error), 2)
    ([2.0, 2.0], [0.0, 2.0], 0.25)
    """

    n: FloatArray
    foretold: FloatArray
    relevant: FloatArray

    @property
    def error(self) -> FloatArray:
        """Expected calibration error: the mean distance of probability and share, over entries; NaN without entries."""
        return np.abs(self.foretold - self.relevant).sum(axis=-1) / self.n.sum(axis=-1)


def log_loss(
    Y: MatrixLike, probabilities: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Mean negative logarithm of the probability of the true value, over sample-label pairs.

    .. math:: -\frac{1}{nl} \sum_{i=1}^n \sum_{j=1}^l y_{ij} \log p_{ij} + (1 - y_{ij}) \log (1 - p_{ij})

    Probabilities are clipped at 2.2e-16 from 0 and 1: a wrong probability of 0 or 1 costs 36.

    Parameters
    ----------
    Y, probabilities : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted probabilities that they are relevant.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        0 or more; smaller is better.

    Examples
    --------
    >>> from rbrl.metrics import log_loss
    >>> round(log_loss([[1, 0]], [[0.5, 0.5]]), 4)
    0.6931
    """

    def loss(relevant: BoolArray, P: FloatArray) -> FloatArray:
        return -np.log(np.maximum(np.where(relevant, P, 1 - P), SMALLEST_PROBABILITY))

    return _mean_over_entries(loss, Y, probabilities, convention, missing, sample_weight)


def brier_score(
    Y: MatrixLike, probabilities: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Mean squared distance of the probability from the true value, over sample-label pairs.

    .. math:: \frac{1}{nl} \sum_{i=1}^n \sum_{j=1}^l (p_{ij} - y_{ij})^2

    Parameters
    ----------
    Y, probabilities : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted probabilities that they are relevant.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; smaller is better.

    Examples
    --------
    >>> from rbrl.metrics import brier_score
    >>> brier_score([[1, 0]], [[0.5, 0.0]])
    0.125
    """
    return _mean_over_entries(_square, Y, probabilities, convention, missing, sample_weight)


def _square(relevant: BoolArray, P: FloatArray) -> FloatArray:
    return (P - relevant) ** 2


def expected_calibration_error(
    Y: MatrixLike, probabilities: MatrixLike, *, n_bins: int = N_BINS, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Mean distance of predicted probabilities from observed shares, over all sample-label pairs.

    .. math:: \frac{1}{nl} \sum_b \Big| \sum_{(i, j) \in b} (p_{ij} - y_{ij}) \Big|

    The pairs of all labels are put into bins b of equal width by their probability.

    Parameters
    ----------
    Y, probabilities : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted probabilities that they are relevant.
    n_bins : int, default=15
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; smaller is better. Errors of different labels may cancel; see
        :func:`calibration_error_macro`.

    Examples
    --------
    >>> from rbrl.metrics import expected_calibration_error
    >>> expected_calibration_error([[1, 0], [1, 0]], [[0.75, 0.25], [0.75, 0.25]])
    0.25
    """
    bins = _count_bins(Y, probabilities, n_bins, convention, missing, sample_weight, per_label=False)
    return float(bins.error) if bins.n.any() else warn_undefined()


def calibration_error_macro(
    Y: MatrixLike, probabilities: MatrixLike, *, n_bins: int = N_BINS, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Expected calibration error of each label by itself, averaged over labels.

    .. math:: \frac{1}{l} \sum_{j=1}^l \frac{1}{n} \sum_b \Big| \sum_{i : (i, j) \in b} (p_{ij} - y_{ij}) \Big|

    With few samples the value is large by chance: a bin of m samples is off by about
    :math:`\sqrt{p (1 - p) / m}`, however good the probabilities. Labels that are missing in every
    sample are left out.

    Parameters
    ----------
    Y, probabilities : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted probabilities that they are relevant.
    n_bins : int, default=15
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; smaller is better.

    Examples
    --------
    >>> from rbrl.metrics import calibration_error_macro
    >>> calibration_error_macro([[1, 0], [1, 0]], [[0.75, 0.5], [0.75, 0.5]])
    0.375
    """
    bins = _count_bins(Y, probabilities, n_bins, convention, missing, sample_weight, per_label=True)
    known = bins.n.any(axis=1)
    errors = ReliabilityBins(*(part[known] for part in bins)).error
    return float(errors.mean()) if len(errors) else warn_undefined()


def reliability_bins(
    Y: MatrixLike, probabilities: MatrixLike, n_bins: int = N_BINS, *, per_label: bool = False, missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> ReliabilityBins:  # fmt: skip
    """Count expected and observed relevant labels by predicted probability, for a diagram.

    Parameters
    ----------
    Y, probabilities : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted probabilities that they are relevant.
    n_bins : int, default=15
        Number of bins of equal width.
    per_label : bool, default=False
        If True, each label has bins of its own; otherwise all labels share the bins.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y: an error, or left out.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Examples
    --------
    >>> from rbrl.metrics import reliability_bins
    >>> reliability_bins([[1, 0], [1, 1]], [[0.9, 0.1], [0.8, 0.4]], n_bins=2)
    ReliabilityBins(n=array([2., 2.]), foretold=array([0.5, 1.7]), relevant=array([1., 2.]))
    """
    return _count_bins(Y, probabilities, n_bins, "paper", missing, sample_weight, per_label)


def _check_probabilities(
    Y: MatrixLike, probabilities: MatrixLike, convention: str, missing: str, sample_weight: ArrayLike | None
) -> Comparison:
    """Return true labels and probabilities of one shape; reject numbers outside 0 and 1."""
    checked = check_scores(Y, probabilities, convention, missing, sample_weight, name="probabilities")
    values = checked.predicted if isinstance(checked.predicted, np.ndarray) else checked.predicted.data
    low = float(values.min(initial=0))
    high = float(values.max(initial=0))
    if low < 0 or high > 1:
        raise ValueError(
            f"probabilities must lie between 0 and 1. Got values from {low:g} to {high:g} instead; if these are scores, "
            "wrap the classifier in rbrl.CalibratedMultiLabelClassifier to get probabilities."
        )
    return checked


def _mean_over_entries(
    loss: Callable[[BoolArray, FloatArray], FloatArray], Y: MatrixLike, probabilities: MatrixLike, convention: str,
    missing: str, sample_weight: ArrayLike | None,
) -> float:  # fmt: skip
    """Average a function of relevance and probability over the entries that are known."""
    total = 0.0
    weight = 0.0
    for rows in row_blocks(*_check_probabilities(Y, probabilities, convention, missing, sample_weight)):
        known = ~rows.missing
        values = loss(rows.relevant[known], rows.scores[known].astype(np.float64))
        total += float((rows.entry_weights * values).sum())
        weight += float(rows.entry_weights.sum())
    return total / weight if weight else warn_undefined()


def _count_bins(
    Y: MatrixLike, probabilities: MatrixLike, n_bins: int, convention: str, missing: str,
    sample_weight: ArrayLike | None, per_label: bool,
) -> ReliabilityBins:  # fmt: skip
    """Return the bins of each label, or of all labels together; missing labels are in no bin."""
    if n_bins != int(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1. Got {n_bins!r} instead.")
    checked = _check_probabilities(Y, probabilities, convention, missing, sample_weight)
    n_groups = checked.Y.shape[1] if per_label else 1
    sums = np.zeros((3, n_groups * n_bins))
    for rows in row_blocks(*checked):
        known = ~rows.missing
        P = rows.scores[known].astype(np.float64)
        index = np.minimum((P * n_bins).astype(np.intp), n_bins - 1)
        if per_label:
            index += n_bins * np.nonzero(known)[1]
        weights = rows.entry_weights
        for total, values in zip(sums, (weights, weights * P, weights * rows.relevant[known])):
            total += np.bincount(index, values, minlength=len(total))
    shape = (n_groups, n_bins) if per_label else (n_bins,)
    return ReliabilityBins(*(total.reshape(shape) for total in sums))


def auc_macro(
    Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Area under each label's ROC curve, averaged over labels.

    .. math:: \frac{1}{l} \sum_{j=1}^l
        \frac{|\{(i, k) \in Y_j \times \bar Y_j : f_j(x_i) \ge f_j(x_k)\}|}{|Y_j| |\bar Y_j|}

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    convention : {"paper", "mulan", "sklearn"}
        "paper", "mulan": as in the authors' program, ties count as right, and labels that all samples have
        or lack count 0. "sklearn": ties count one half, and such labels are left out
        (scikit-learn itself returns NaN).
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import auc_macro
    >>> auc_macro([[1, 0], [0, 1], [0, 1]], [[0.9, 0.1], [0.2, 0.0], [0.1, 0.7]])
    0.75
    """
    areas = label_areas(Y, scores, convention, missing, sample_weight, keep_unknown=False)
    defined = areas[~np.isnan(areas)] if convention == "sklearn" else np.nan_to_num(areas)
    if not len(defined):
        return warn_undefined("None of the labels has samples with and without it")
    return float(defined.mean())


def label_areas(
    Y: MatrixLike, scores: MatrixLike, convention: str, missing: str, sample_weight: ArrayLike | None = None,
    keep_unknown: bool = True,
) -> FloatArray:  # fmt: skip
    """Return the area under the ROC curve of each label; NaN for a label without a pair.

    A label that is missing in all samples is left out, unless `keep_unknown`.
    """
    checked = check_scores(Y, scores, convention, missing, sample_weight)
    tie = 0.5 if convention == "sklearn" else 1.0
    w = checked.weights
    T, F, hidden = (M if M is None else M.T if isinstance(M, np.ndarray) else M.tocsc().T for M in checked[:3])
    by_label = row_blocks(T, F, hidden, np.ones(checked.Y.shape[1]))
    blocks = ((rows.scores, rows.relevant, rows.irrelevant) for rows in by_label)
    found = np.array([_area(f[t], f[n], tie, w[t], w[n]) for block in blocks for f, t, n in zip(*block)])
    if checked.missing is None or not keep_unknown:
        return found
    n_samples, n_labels = checked.Y.shape
    areas = np.full(n_labels, np.nan)
    areas[np.ravel(checked.missing.sum(axis=0)) < n_samples] = found
    return areas


def auc_micro(
    Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    """Area under the ROC curve of all sample-label pairs taken together; ties count one half.

    Unlike the other metrics, this one needs a copy of all scores, because it sorts them at once.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better; NaN, with a warning, if Y holds one value only.

    Examples
    --------
    >>> from rbrl.metrics import auc_micro
    >>> auc_micro([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.1]])
    0.625
    """
    parts = []
    for rows in row_blocks(*check_scores(Y, scores, convention, missing, sample_weight)):
        entry_weights = np.broadcast_to(rows.weights[:, None], rows.scores.shape)
        parts.append([M[of] for M in (rows.scores, entry_weights) for of in (rows.relevant, rows.irrelevant)])
    positive, negative, *weights = (np.concatenate(part) for part in zip(*parts))
    if not len(positive) or not len(negative):
        return warn_undefined("Y holds only one value")
    return _area(positive, negative, 0.5, *weights)


def _area(
    positive: FloatArray, negative: FloatArray, tie: float, positive_weights: FloatArray, negative_weights: FloatArray
) -> float:
    """Return the share of (positive, negative) pairs in the right order; NaN without a pair.

    The weight of a pair is the product of its weights.
    """
    if not len(positive) or not len(negative):
        return float("nan")
    if (positive_weights != 1).any() or (negative_weights != 1).any():
        order = np.argsort(negative, kind="stable")
        until = np.concatenate([[0.0], np.cumsum(negative_weights[order])])
        right, right_or_tied = (until[np.searchsorted(negative[order], positive, side)] for side in ("left", "right"))
        shares = (right + tie * (right_or_tied - right)) / until[-1]
        return float(np.average(shares, weights=positive_weights))
    positive = np.sort(positive)
    negative = np.sort(negative)
    below = np.searchsorted(negative, positive, side="left").sum()
    not_above = np.searchsorted(negative, positive, side="right").sum()
    return float((below + tie * (not_above - below)) / (len(positive) * len(negative)))
