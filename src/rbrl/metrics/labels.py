"""Metrics of predicted label sets, averaged over samples or labels, and a table of every label."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.environment import import_extra
from rbrl._common.typing import ArrayLike, FloatArray, LabelNames, MatrixLike
from rbrl.metrics.inputs import check_label_pair, common_names, warn_undefined
from rbrl.metrics.probabilities import label_areas

if TYPE_CHECKING:
    from pandas import DataFrame

# F1 and accuracy of two empty sets are 0/0. The sets agree, so the paper's convention says 1;
# scikit-learn's default is 0.
_BOTH_EMPTY = {"paper": 1.0, "mulan": 1.0, "sklearn": 0.0}


# Columns of the data frame of `evaluate_labels`, and the kind of prediction that each column needs.
MEASURES = {"precision": "labels", "recall": "labels", "f1": "labels", "auc": "scores"}
# Columns of this data frame that need no prediction.
COUNTS = ("support", "known")


class Overlap(NamedTuple):
    """Sizes of true sets, of predicted sets and of their intersections, and number of known labels.

    Attributes
    ----------
    hits : array
        Sizes of the intersections.
    true, predicted : arrays
        Sizes of the sets.
    known : array
        Number of entries that are not missing.
    weights : array
        Weights of the rows in an average over rows; 1 for a label.
    """

    hits: FloatArray
    true: FloatArray
    predicted: FloatArray
    known: FloatArray
    weights: FloatArray

    @property
    def misses(self) -> FloatArray:
        """Number of entries that are in one of the two sets only."""
        return self.true + self.predicted - 2 * self.hits

    def where_known(self) -> "Overlap":
        """Return the counts without the sets whose entries are all missing."""
        return Overlap(*(count[self.known > 0] for count in self))

    def f1(self, undefined: float) -> FloatArray:
        """Return twice the intersection over the sum of the sizes, or `undefined` for 0/0."""
        return ratio(2 * self.hits, self.true + self.predicted, undefined)

    def precision(self) -> FloatArray:
        """Return the share of the predicted entries that are true; 0 if none is predicted."""
        return ratio(self.hits, self.predicted, 0.0)

    def recall(self) -> FloatArray:
        """Return the share of the true entries that are predicted; 0 if none is true."""
        return ratio(self.hits, self.true, 0.0)


def overlap(
    Y: MatrixLike, labels: MatrixLike, convention: str, missing: str, axis: int | None,
    sample_weight: ArrayLike | None = None, keep_unknown: bool = False,
) -> Overlap:  # fmt: skip
    """Count per row (axis=1), per label (axis=0) or in total (None); sparse input stays sparse.

    A row of weight w counts w times in the counts of a label and in total. Rows or labels whose entries
    are all missing are left out, unless `keep_unknown`.
    """
    T, P, is_missing, row_weights = check_label_pair(Y, labels, convention, missing, sample_weight)
    both = np.logical_and(T, P) if isinstance(T, np.ndarray) else T.multiply(P)
    repeats = None if axis == 1 or (row_weights == 1).all() else row_weights
    hits, true, predicted = (_count(M, axis, repeats) for M in (both, T, P))
    n_rows = float(row_weights.sum())
    sizes = {None: n_rows * T.shape[1], 0: n_rows, 1: float(T.shape[1])}
    known = np.full(hits.shape, sizes[axis])
    weights = row_weights if axis == 1 else np.ones(hits.shape)
    if is_missing is None:
        return Overlap(hits, true, predicted, known, weights)
    counts = Overlap(hits, true, predicted, known - _count(is_missing, axis, repeats), weights)
    return counts if keep_unknown else counts.where_known()


def _mean(values: FloatArray, weights: FloatArray | None = None) -> float:
    """Return the weighted mean; warn and return NaN if there are no values."""
    return float(np.average(values, weights=weights)) if values.size else warn_undefined()


def _count(M: Any, axis: int | None, repeats: FloatArray | None) -> FloatArray:
    """Return the number of entries that are not 0, each times the repeats of its row."""
    if repeats is not None:
        by_label = np.asarray(M.T @ repeats if sparse.issparse(M) else repeats @ M)
        return by_label if axis == 0 else np.asarray(by_label.sum())
    is_sparse = sparse.issparse(M)
    count = M.astype(np.float64).sum(axis=axis) if is_sparse else np.count_nonzero(M, axis=axis)
    return np.asarray(count, dtype=np.float64)


def ratio(numerator: ArrayLike, denominator: FloatArray, undefined: float) -> FloatArray:
    """Divide entry by entry; where the denominator is 0, the result is `undefined`."""
    out = np.full(np.shape(denominator), undefined)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def hamming_loss(
    Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Fraction of sample-label pairs that are predicted wrongly.

    .. math:: \frac{1}{nl} \sum_{i=1}^n \sum_{j=1}^l [h_j(x_i) \neq y_{ij}]

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
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
    >>> from rbrl.metrics import hamming_loss
    >>> hamming_loss([[1, 0, 1]], [[1, 1, 1]])
    0.3333333333333333
    """
    counts = overlap(Y, labels, convention, missing, None, sample_weight)
    return _mean(counts.misses / counts.known, counts.weights)


def subset_accuracy(
    Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Fraction of samples whose label set is predicted exactly.

    .. math:: \frac{1}{n} \sum_{i=1}^n [H(x_i) = y_i]

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import subset_accuracy
    >>> subset_accuracy([[1, 0], [0, 1]], [[1, 0], [1, 1]])
    0.5
    """
    counts = overlap(Y, labels, convention, missing, 1, sample_weight)
    return _mean(counts.misses == 0, counts.weights)


def f1_example(
    Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""F1 of each sample's label set, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{2 |P_i^+ \cap Y_i^+|}{|P_i^+| + |Y_i^+|}

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        A sample with neither true nor predicted labels counts 1, in "sklearn" 0.
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
    >>> from rbrl.metrics import f1_example
    >>> f1_example([[1, 0, 1], [0, 0, 0]], [[1, 1, 1], [0, 0, 0]])
    0.9
    """
    counts = overlap(Y, labels, convention, missing, 1, sample_weight)
    return _mean(counts.f1(_BOTH_EMPTY[convention]), counts.weights)


def accuracy_example(
    Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Jaccard index of each sample's label sets, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{|P_i^+ \cap Y_i^+|}{|P_i^+ \cup Y_i^+|}

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        A sample with neither true nor predicted labels counts 1, in "sklearn" 0.
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
    >>> from rbrl.metrics import accuracy_example
    >>> accuracy_example([[1, 0, 1]], [[1, 1, 0]])
    0.3333333333333333
    """
    counts = overlap(Y, labels, convention, missing, 1, sample_weight)
    jaccard = ratio(counts.hits, counts.hits + counts.misses, _BOTH_EMPTY[convention])
    return _mean(jaccard, counts.weights)


def f1_micro(
    Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""F1 of all sample-label pairs taken together.

    .. math:: \frac{2 \sum_j |P_j \cap Y_j|}{\sum_j |P_j| + |Y_j|}

    where :math:`Y_j` and :math:`P_j` are the samples that have, and are predicted to have, label j.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention : {"paper", "mulan", "sklearn"}
        If no label is true or predicted anywhere, the value is 1, in "sklearn" 0.
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
    >>> from rbrl.metrics import f1_micro
    >>> f1_micro([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.8
    """
    counts = overlap(Y, labels, convention, missing, None, sample_weight)
    return _mean(counts.f1(_BOTH_EMPTY[convention]), counts.weights)


def f1_macro(
    Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""F1 of each label, averaged over labels.

    .. math:: \frac{1}{l} \sum_{j=1}^l \frac{2 |P_j \cap Y_j|}{|P_j| + |Y_j|}

    A label that is neither true nor predicted anywhere counts 0.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import f1_macro
    >>> f1_macro([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.5
    """
    counts = overlap(Y, labels, convention, missing, 0, sample_weight)
    return _mean(counts.f1(0.0), counts.weights)


def f1_weighted(
    Y: MatrixLike, labels: MatrixLike, *, convention: str = "paper", missing: str = "raise",
    sample_weight: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""F1 of each label, averaged with the label's frequency as weight.

    .. math:: \sum_{j=1}^l \frac{|Y_j|}{\sum_k |Y_k|} \frac{2 |P_j \cap Y_j|}{|P_j| + |Y_j|}

    The value is 0 if no label is true anywhere.

    Parameters
    ----------
    Y, labels : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True and predicted labels.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import f1_weighted
    >>> f1_weighted([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.6666666666666666
    """
    counts = overlap(Y, labels, convention, missing, 0, sample_weight)
    weighted = ratio(np.sum(counts.f1(0.0) * counts.true), counts.true.sum(), 0.0)
    return float(weighted) if counts.known.size else warn_undefined()


def evaluate_labels(
    Y: MatrixLike, labels: MatrixLike | None, scores: MatrixLike | None, measures: Iterable[str] | None, convention: str,
    missing: str, label_names: LabelNames, sample_weight: ArrayLike | None = None,
) -> "DataFrame":  # fmt: skip
    """Return the data frame of :func:`rbrl.metrics.evaluate` with ``per_label=True``.

    The `measures` are columns among `MEASURES`; None means all columns whose predictions are given.
    """
    pandas = import_extra("pandas", "report", "A table of the labels")
    predicted: dict[str, Any] = {"labels": labels, "scores": scores}
    available = [name for name, needs in MEASURES.items() if predicted[needs] is not None]
    chosen = available if measures is None else [_check_measure(name, predicted) for name in measures]
    if not chosen:
        raise ValueError("per_label=True needs predicted labels or scores. Got labels=None and scores=None.")
    names = common_names(label_names, Y=Y, **predicted)
    # Without predicted labels only the counts of true labels are used.
    compared: Any = labels if labels is not None else np.zeros(np.shape(predicted["scores"]), dtype=np.int8)
    counts = overlap(Y, compared, convention, missing, 0, sample_weight, keep_unknown=True)
    columns = {"precision": counts.precision(), "recall": counts.recall(), "f1": counts.f1(0.0)}
    if "auc" in chosen:
        columns["auc"] = label_areas(Y, scores, convention, missing, sample_weight)
    frame = pandas.DataFrame({name: np.where(counts.known > 0, columns[name], np.nan) for name in chosen}, index=names)
    kind = np.int64 if sample_weight is None else np.float64
    return frame.assign(support=counts.true.astype(kind), known=counts.known.astype(kind))


def _check_measure(name: str, predicted: dict[str, Any]) -> str:
    """Return the name of a measure whose predictions are given; raise ValueError for others."""
    if name not in MEASURES:
        raise ValueError(f"A measure of a label must be one of {', '.join(MEASURES)}. Got {name!r} instead.")
    if predicted[MEASURES[name]] is None:
        raise ValueError(f"{name} compares Y with {MEASURES[name]}. Got {MEASURES[name]}=None instead.")
    return name
