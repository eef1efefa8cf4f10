"""Metrics of probabilities: how much they know, and whether they mean what they say."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rbrl._common.typing import BoolArray, FloatArray, MatrixLike
from rbrl.metrics.inputs import Compared, Rows, check_scores, row_blocks, undefined

# Bins of equal width between 0 and 1.
N_BINS = 15
# A probability of exactly 0 or 1 that is wrong would cost infinitely much; scikit-learn's log loss stops here too.
SMALLEST = float(np.finfo(np.float64).eps)


class ReliabilityBins(NamedTuple):
    """Probabilities put into bins of equal width: what was foretold in each, and what came.

    Attributes
    ----------
    n : array (n_bins,) or (n_labels, n_bins)
        Number of entries whose probability is in the bin. An edge belongs to the bin above it, 1 to the last.
    foretold : array of the same shape
        Sum of their probabilities: how many of them should be relevant.
    relevant : array of the same shape
        How many of them are.

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
        """Expected calibration error: the distance of mean and share in a bin, averaged over entries; of each label."""
        return np.abs(self.foretold - self.relevant).sum(axis=-1) / self.n.sum(axis=-1)


def log_loss(Y: MatrixLike, probabilities: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""Mean over sample-label pairs of the negative logarithm of the probability of what is true.

    .. math:: -\frac{1}{nl} \sum_{i=1}^n \sum_{j=1}^l y_{ij} \log p_{ij} + (1 - y_{ij}) \log (1 - p_{ij})

    Probabilities are cut at 2.2e-16 from 0 and 1, so that one that is certain and wrong costs 36.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    probabilities : array or sparse matrix, shape (n_samples, n_labels)
        Between 0 and 1, that each label is relevant.
    convention : {"paper", "mulan", "sklearn"}
        They agree: scikit-learn has a log loss of classes, which this is of a single label.
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        0 or more; the smaller, the better.

    Examples
    --------
    >>> from rbrl.metrics import log_loss
    >>> round(log_loss([[1, 0]], [[0.5, 0.5]]), 4)
    0.6931
    """
    loss, n = 0.0, 0
    for relevant, P in _known_entries(check_probabilities(Y, probabilities, convention, missing)):
        of_truth = np.where(relevant, P, 1 - P)
        loss, n = loss - float(np.log(np.maximum(of_truth, SMALLEST)).sum()), n + len(P)
    return loss / n if n else undefined("Nothing is known of Y")


def brier_score(
    Y: MatrixLike, probabilities: MatrixLike, *, convention: str = "paper", missing: str = "raise"
) -> float:
    r"""Mean over sample-label pairs of the squared distance of the probability from what is true.

    .. math:: \frac{1}{nl} \sum_{i=1}^n \sum_{j=1}^l (p_{ij} - y_{ij})^2

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    probabilities : array or sparse matrix, shape (n_samples, n_labels)
        Between 0 and 1, that each label is relevant.
    convention : {"paper", "mulan", "sklearn"}
        They agree here.
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the smaller, the better.

    Examples
    --------
    >>> from rbrl.metrics import brier_score
    >>> brier_score([[1, 0]], [[0.5, 0.0]])
    0.125
    """
    loss, n = 0.0, 0
    for relevant, P in _known_entries(check_probabilities(Y, probabilities, convention, missing)):
        loss, n = loss + float(((P - relevant) ** 2).sum()), n + len(P)
    return loss / n if n else undefined("Nothing is known of Y")


def expected_calibration_error(
    Y: MatrixLike, probabilities: MatrixLike, *, n_bins: int = N_BINS, convention: str = "paper", missing: str = "raise"
) -> float:
    r"""Mean distance of what probabilities foretell from what comes, over all sample-label pairs together.

    .. math:: \frac{1}{nl} \sum_b \Big| \sum_{(i, j) \in b} (p_{ij} - y_{ij}) \Big|

    The pairs of all labels are put into bins b of equal width by their probability.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    probabilities : array or sparse matrix, shape (n_samples, n_labels)
        Between 0 and 1, that each label is relevant.
    n_bins : int, default=15
    convention : {"paper", "mulan", "sklearn"}
        They agree: scikit-learn has no such metric.
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the smaller, the better. Errors of labels may cancel in it; in
        :func:`calibration_error_macro` they do not.

    Examples
    --------
    >>> from rbrl.metrics import expected_calibration_error
    >>> expected_calibration_error([[1, 0], [1, 0]], [[0.75, 0.25], [0.75, 0.25]])
    0.25
    """
    bins = _binned(Y, probabilities, n_bins, convention, missing, per_label=False)
    return float(bins.error) if bins.n.any() else undefined("Nothing is known of Y")


def calibration_error_macro(
    Y: MatrixLike, probabilities: MatrixLike, *, n_bins: int = N_BINS, convention: str = "paper", missing: str = "raise"
) -> float:
    r"""Expected calibration error of each label by itself, averaged over labels.

    .. math:: \frac{1}{l} \sum_{j=1}^l \frac{1}{n} \sum_b \Big| \sum_{i : (i, j) \in b} (p_{ij} - y_{ij}) \Big|

    Of few samples it is large by chance: a bin of m of them is off by about :math:`\sqrt{p (1 - p) / m}`, however good
    the probabilities. Labels of which nothing is known are left out.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    probabilities : array or sparse matrix, shape (n_samples, n_labels)
        Between 0 and 1, that each label is relevant.
    n_bins : int, default=15
    convention : {"paper", "mulan", "sklearn"}
        They agree: scikit-learn has no such metric.
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or leaves the metric; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; the smaller, the better.

    Examples
    --------
    >>> from rbrl.metrics import calibration_error_macro
    >>> calibration_error_macro([[1, 0], [1, 0]], [[0.75, 0.5], [0.75, 0.5]])
    0.375
    """
    bins = _binned(Y, probabilities, n_bins, convention, missing, per_label=True)
    known = bins.n.any(axis=1)
    errors = ReliabilityBins(*(part[known] for part in bins)).error
    return float(errors.mean()) if len(errors) else undefined("Nothing is known of Y")


def reliability_bins(
    Y: MatrixLike, probabilities: MatrixLike, n_bins: int = N_BINS, *, per_label: bool = False, missing: str = "raise"
) -> ReliabilityBins:
    """What a reliability diagram shows, and the expected calibration error is made of.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    probabilities : array or sparse matrix, shape (n_samples, n_labels)
        Between 0 and 1, that each label is relevant.
    n_bins : int, default=15
        Of equal width.
    per_label : bool, default=False
        Whether each label has bins of its own; otherwise the entries of all labels share them.
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y, an entry that nobody looked at, is an error or is in no bin.

    Returns
    -------
    ReliabilityBins

    Examples
    --------
    >>> from rbrl.metrics import reliability_bins
    >>> reliability_bins([[1, 0], [1, 1]], [[0.9, 0.1], [0.8, 0.4]], n_bins=2)
    ReliabilityBins(n=array([2., 2.]), foretold=array([0.5, 1.7]), relevant=array([1., 2.]))
    """
    return _binned(Y, probabilities, n_bins, "paper", missing, per_label)


def check_probabilities(Y: MatrixLike, probabilities: MatrixLike, convention: str, missing: str) -> Compared:
    """Return true labels and probabilities of one shape; numbers outside 0 and 1 are refused: they are scores.

    Parameters
    ----------
    Y, probabilities, convention, missing
        As for the metrics.

    Returns
    -------
    Compared
    """
    checked = check_scores(Y, probabilities, convention, missing, name="probabilities")
    values = checked.predicted if isinstance(checked.predicted, np.ndarray) else checked.predicted.data
    low, high = (float(bound) for bound in (values.min(initial=0), values.max(initial=0)))
    if low < 0 or high > 1:
        raise ValueError(
            f"probabilities must lie between 0 and 1. Got values from {low:g} to {high:g} instead; where these are scores, "
            "rbrl.CalibratedMultiLabelClassifier around the classifier has probabilities."
        )
    return checked


def _known(rows: Rows) -> BoolArray:
    return np.ones(rows.relevant.shape, dtype=bool) if rows.unseen is None else ~rows.unseen


def _known_entries(checked: Compared) -> Iterator[tuple[BoolArray, FloatArray]]:
    """Yield which entries are relevant, and their probabilities, a block of rows at a time."""
    for rows in row_blocks(*checked):
        known = _known(rows)
        yield rows.relevant[known], rows.scores[known].astype(np.float64)


def _binned(
    Y: MatrixLike, probabilities: MatrixLike, n_bins: int, convention: str, missing: str, per_label: bool
) -> ReliabilityBins:
    if n_bins != int(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1. Got {n_bins!r} instead.")
    checked = check_probabilities(Y, probabilities, convention, missing)
    n_groups = checked.Y.shape[1] if per_label else 1
    sums = np.zeros((3, n_groups * n_bins))
    for rows in row_blocks(*checked):
        known = _known(rows)
        P = rows.scores[known].astype(np.float64)
        place = np.minimum((P * n_bins).astype(np.intp), n_bins - 1)
        if per_label:
            place += n_bins * np.nonzero(known)[1]
        for total, values in zip(sums, (None, P, rows.relevant[known])):
            total += np.bincount(place, values, minlength=len(total))
    shape = (n_groups, n_bins) if per_label else (n_bins,)
    return ReliabilityBins(*(total.reshape(shape) for total in sums))
