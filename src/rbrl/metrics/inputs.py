"""Arguments of a metric: checks, blocks of rows, and the predictions of a classifier."""

import warnings
from collections.abc import Iterator
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from rbrl._common.checks import check_row_weights, users_level
from rbrl._common.frames import (
    check_no_mask,
    check_same_columns,
    check_same_rows,
    column_names,
    label_values,
)
from rbrl._common.linalg import (
    best_columns,
    best_columns_of_sparse,
    descending_order,
    first_of_tie,
)
from rbrl._common.typing import (
    Array,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    LabelNames,
    MatrixLike,
    issparse,
)
from rbrl.exceptions import InvalidLabelsError

# Conventions for ties and for ratios 0/0; the first is the default.
CONVENTIONS = ("paper", "mulan", "sklearn")
# Treatments of missing labels, NaN in Y; the first is the default.
MISSING = ("raise", "ignore")

# Half a million entries keep the temporary arrays of a block near 20 MB, and in cache.
METRIC_BLOCK_ENTRIES = 2**19

Checked: TypeAlias = Array | sparse.csr_array


class Comparison(NamedTuple):
    """Checked arguments of a metric.

    Attributes
    ----------
    Y : array or CSR matrix, shape (n_samples, n_labels)
        True labels, 0/1; 0 where the label is missing.
    predicted : array or CSR matrix, shape (n_samples, n_labels)
        Predicted labels or scores.
    missing : array or CSR matrix of bool, shape (n_samples, n_labels), or None
        Mask of the missing labels; None if no label is missing.
    weights : array, shape (n_samples,)
        Weights of the rows, all above 0. Rows of weight 0 are left out of all arrays.
    """

    Y: Checked
    predicted: Checked
    missing: Checked | None
    weights: FloatArray


def check_label_pair(
    Y: MatrixLike, labels: MatrixLike, convention: str, missing: str, sample_weight: ArrayLike | None = None
) -> Comparison:
    """Return true and predicted labels, both dense or both CSR; both are 0 where Y is missing.

    Labels in {-1, +1} are rejected. Metrics that accept them silently return wrong values, such
    as a ranking loss of 0.
    """
    T, is_missing = _check_true_labels(Y, labels, "labels", convention, missing, sample_weight)
    P, _ = check_labels(labels, "labels")
    _check_shapes(T, P, "labels")
    if sparse.issparse(T) or sparse.issparse(P):
        T = sparse.csr_array(T)
        P = sparse.csr_array(P)
        if is_missing is not None:
            is_missing = sparse.csr_array(is_missing, dtype=np.int8)
            P = P.astype(np.int8)
            P = P - P.multiply(is_missing)
    elif is_missing is not None:
        P = np.logical_and(P, ~is_missing)
    return _weigh_rows(T, P, is_missing, sample_weight)


def check_scores(
    Y: MatrixLike, scores: MatrixLike, convention: str, missing: str, sample_weight: ArrayLike | None = None,
    name: str = "scores",
) -> Comparison:  # fmt: skip
    """Return true labels and real scores of one shape; either may be CSR, and NaN is rejected.

    Error messages call the scores `name`.
    """
    T, is_missing = _check_true_labels(Y, scores, name, convention, missing, sample_weight)
    F: Any = scores
    F = F.tocsr() if sparse.issparse(F) else np.asarray(F)
    if F.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers. Got dtype {F.dtype} instead.")
    _check_shapes(T, F, name)
    values = F.data if sparse.issparse(F) else F
    if values.dtype.kind == "f" and any(np.isnan(values[rows]).any() for rows in _slices(values)):
        raise ValueError(f"{name} must not be NaN: a ranking of NaN is undefined. Got NaN instead.")
    return _weigh_rows(T, F, is_missing, sample_weight)


def _weigh_rows(Y: Checked, predicted: Checked, missing: Checked | None, sample_weight: ArrayLike | None) -> Comparison:
    """Return checked arguments with checked weights, without the rows of weight 0."""
    check_no_mask(sample_weight=sample_weight)
    weights = check_row_weights(sample_weight, Y.shape[0], "Y")
    if weights.all():
        return Comparison(Y, predicted, missing, weights)
    rows = weights > 0
    return Comparison(Y[rows], predicted[rows], None if missing is None else missing[rows], weights[rows])


def _check_true_labels(
    Y: MatrixLike, predicted: MatrixLike, name: str, convention: str, missing: str, sample_weight: ArrayLike | None
) -> tuple[Checked, Checked | None]:
    """Check the options and the shapes; return 0/1 true labels and their mask of missing ones.

    The mask is None if no label is missing. True labels may be masked, because a masked label is
    missing. Predictions may not.
    """
    options = (("convention", convention, CONVENTIONS), ("missing", missing, MISSING))
    for option, value, allowed in options:
        if value not in allowed:
            raise ValueError(f"{option} must be one of {', '.join(allowed)}. Got {value!r} instead.")
    check_same_rows(**{"Y": Y, name: predicted, "sample_weight": sample_weight})
    check_same_columns(**{"Y": Y, name: predicted})
    check_no_mask(**{name: predicted})
    return check_labels(Y, "Y", missing)


def check_labels(Y: Any, name: str, missing: str | None = None) -> tuple[Checked, Checked | None]:
    """Return 0/1 labels as an array or a CSR matrix, and the mask of NaN; reject other codings.

    The mask is None if no label is missing. The labels are then not copied. If `missing` is None, NaN
    is rejected as another coding.
    """
    given = Y
    Y = _values(given)
    if sparse.issparse(Y):
        if not Y.has_canonical_format:
            Y = Y.copy()
            Y.sum_duplicates()
        values = Y.data
    else:
        values = _check_matrix(Y, name, given)
    if values.dtype == bool or all(_only_zero_one(values[rows]) for rows in _slices(values)):
        return Y, None
    may_be_missing = missing and values.dtype.kind == "f"
    is_missing = np.isnan(values) if may_be_missing else np.zeros(values.shape, bool)
    if not _only_zero_one(values[~is_missing]):
        raise InvalidLabelsError(_coding_message(values[~is_missing], name))
    if missing == "raise":
        raise InvalidLabelsError(
            f"{name} must hold only 0 and 1. Got NaN in {np.count_nonzero(is_missing)} of "
            f"{np.prod(Y.shape)} entries instead; if NaN is a missing label, pass "
            'missing="ignore" to leave these entries out of the metric.'
        )
    if not sparse.issparse(Y):
        return Y == 1, is_missing
    relevant = Y == 1
    mask = Y.copy()
    mask.data = is_missing
    mask.eliminate_zeros()
    return sparse.csr_array(relevant), sparse.csr_array(mask)


def _only_zero_one(values: Array) -> bool:
    """Return whether all values are 0 or 1."""
    # This is several times faster than numpy.isin.
    return bool(np.logical_or(values == 0, values == 1).all())


def _values(Y: MatrixLike) -> Any:
    """Return labels as an array or CSR matrix; rows of different lengths give an empty vector."""
    try:
        return label_values(Y).values
    except ValueError:  # rows of different lengths
        return np.empty(0, dtype=object)


def _check_matrix(Y: Array, name: str, given: Any) -> Array:
    """Return labels that are a dense matrix of numbers; raise InvalidLabelsError for others."""
    if Y.dtype.kind in "OUS":
        first = given[0] if isinstance(given, list | tuple) else Y.flat[0] if Y.size else None
        raise InvalidLabelsError(
            f"{name} must be a matrix of 0/1 labels, n_samples x n_labels. Got {Y.dtype} values "
            f"such as {first!r} instead; convert lists of label sets with sklearn.preprocessing.MultiLabelBinarizer."
        )
    if Y.ndim != 2:
        solution = ""
        if Y.ndim == 1:
            solution = f"; pass {name}.reshape(1, -1) for one sample, and {name}.reshape(-1, 1) for one label"
        raise InvalidLabelsError(
            f"{name} must be a matrix, n_samples x n_labels. Got shape {Y.shape} instead{solution}."
        )
    return Y


def _coding_message(values: Array, name: str) -> str:
    """Return the message for labels in another coding; there must be a value."""
    received = np.unique(values)
    shown = ", ".join(f"{value:g}" for value in received[:5])
    more = ", ..." if len(received) > 5 else ""
    signed = set(received.tolist()) <= {-1, 0, 1}
    way_out = f" For labels coded -1/+1 pass ({name} > 0).astype(int)." if signed else ""
    if not signed and name == "Y":
        way_out = " The true labels are the first argument, and the predictions the second one."
    elif not signed:
        way_out = " Scores and probabilities are no labels: pass model.predict(X)."
    return f"{name} must hold only 0 and 1. Got the values {shown}{more} instead.{way_out}"


def _check_shapes(Y: Checked, other: Checked, name: str) -> None:
    """Raise ValueError for shapes that differ, or without rows or labels."""
    if Y.shape != other.shape:
        raise ValueError(
            f"Y and {name} must have one shape. Got {Y.shape} and {other.shape} instead; pass "
            "the predictions of the same rows and labels."
        )
    if 0 in Y.shape:
        raise ValueError(f"Y must have at least one sample and one label. Got shape {Y.shape} instead.")


class RowBlock(NamedTuple):
    """Dense rows of a comparison: masks of the relevant and of the missing labels, scores, and weights of the rows."""

    relevant: BoolArray
    scores: FloatArray
    missing: BoolArray
    weights: FloatArray

    @property
    def entry_weights(self) -> FloatArray:
        """Weight of the row of each entry that is not missing."""
        return np.broadcast_to(self.weights[:, None], self.missing.shape)[~self.missing]

    @property
    def irrelevant(self) -> BoolArray:
        """Mask of the irrelevant labels."""
        return ~(self.relevant | self.missing)

    @property
    def n_known(self) -> IntArray:
        """Number of labels of each row that are not missing."""
        return np.count_nonzero(~self.missing, axis=1)

    @property
    def ranking_scores(self) -> FloatArray:
        """Scores with the same ranking of the known labels, and with the missing labels below them."""
        F = self.scores
        if not self.missing.any():
            return F
        if np.isneginf(F[~self.missing]).any():
            # No number is below -inf: negative ranks replace the scores.
            order = descending_order(F)
            ranks = first_of_tie(np.take_along_axis(F, order, axis=1))
            F = np.empty(F.shape)
            np.put_along_axis(F, order, -ranks.astype(np.float64), axis=1)
        return np.where(self.missing, -np.inf, F)

    def take(self, rows: Any) -> "RowBlock":
        """Return the rows where the mask is True; the block itself if all are."""
        return self if rows.all() else RowBlock(*(part[rows] for part in self))


def row_blocks(Y: Checked, scores: Checked, missing: Checked | None, weights: FloatArray) -> Iterator[RowBlock]:
    """Yield the rows in blocks of bounded size, without the rows whose labels are all missing."""
    for part in _slices(Y):
        T = _dense_rows(Y, part).astype(bool, copy=False)
        F = _dense_rows(scores, part)
        F = F if F.dtype.kind == "f" else F.astype(np.float64)
        mask = np.zeros(T.shape, bool) if missing is None else _dense_rows(missing, part).astype(bool)
        yield RowBlock(T, F, mask, weights[part]).take(~mask.all(axis=1))


def _dense_rows(M: Checked, rows: slice) -> Array:
    """Return some rows as a dense array in C order, which may be a view."""
    return np.ascontiguousarray(M[rows] if isinstance(M, np.ndarray) else M[rows].toarray())


def check_k(k: int) -> None:
    """Raise an error unless k is a positive whole number."""
    if not isinstance(k, Real) or not np.isfinite(k) or k != int(k) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1. Got {k!r} instead.")


def best_labels(scores: Checked, k: int) -> IntArray:
    """Return the k best labels of each row, best first: (n_samples, k), fewer without k labels.

    The memory is of the size of the answer. Of equal scores, the first column comes first.
    """
    if issparse(scores):
        return best_columns_of_sparse(scores, k)
    blocks = (np.asarray(scores[rows], dtype=np.float64) for rows in _slices(scores))
    return np.vstack([best_columns(F, k) for F in blocks])


def relevance_of(Y: Checked, columns: IntArray) -> BoolArray:
    """Return the relevance of some labels of each row: (n_samples, k), in the order of `columns`."""
    if not issparse(Y):
        return np.take_along_axis(Y, columns, axis=1).astype(bool)
    row, column = Y.nonzero()
    places = np.arange(len(columns))[:, None] * Y.shape[1] + columns
    return np.isin(places, row.astype(np.int64) * Y.shape[1] + column)


def count_relevant(Y: Checked) -> IntArray:
    """Return the number of relevant labels of each row, as int64."""
    return np.asarray(Y.sum(axis=1, dtype=np.int64)).ravel()


def warn_undefined(reason: str = "All labels of Y are missing") -> float:
    """Warn that a metric is undefined, and return NaN."""
    # scikit-learn takes longer to import than all metrics.
    from sklearn.exceptions import UndefinedMetricWarning

    message = f"{reason}: the metric is undefined (NaN)."
    warnings.warn(message, UndefinedMetricWarning, stacklevel=users_level())
    return float("nan")


def _slices(M: Checked) -> Iterator[slice]:
    """Return slices of rows, in order, of at most `METRIC_BLOCK_ENTRIES` entries, of at least one row."""
    step = max(1, METRIC_BLOCK_ENTRIES // max(1, int(np.prod(M.shape[1:]))))
    return (slice(start, start + step) for start in range(0, M.shape[0], step))


def common_names(label_names: LabelNames, **matrices: Any) -> list[str] | None:
    """Return the names of the labels, or None; given names and those of all data frames must agree.

    Examples
    --------
    >>> import pandas as pd
    >>> common_names(None, Y=pd.DataFrame({"sea": [1], "sun": [0]}), labels=[[1, 0]])
    ['sea', 'sun']
    """
    sources = {"label_names": None if label_names is None else [str(name) for name in label_names]}
    sources |= {source: column_names(matrix) for source, matrix in matrices.items()}
    named = [(source, names) for source, names in sources.items() if names is not None]
    for (first, names), (second, others) in pairwise(named):
        if names != others:
            lengths = (len(names), len(others))
            one, other = next((pair for pair in zip(names, others) if pair[0] != pair[1]), lengths)
            raise InvalidLabelsError(
                f"{first} and {second} must have the same labels in the same order. Got {one!r} and {other!r}; "
                "put the columns of one in the order of the other."
            )
    return named[0][1] if named else None


class Classifier(Protocol):
    """A fitted scikit-learn classifier, perhaps with `decision_function` or `predict_proba`."""

    def predict(self, X: MatrixLike, /) -> MatrixLike: ...


def scores_of(estimator: Classifier, X: MatrixLike) -> FloatArray:
    """Return the decision function of a fitted classifier, or else its probabilities.

    Parameters
    ----------
    estimator : scikit-learn classifier, fitted
    X : array or sparse matrix, shape (n_samples, n_features)

    Returns
    -------
    array, shape (n_samples, n_labels)
        Scores. A label that was constant in training has no column in the probabilities of
        scikit-learn's multi-output classifiers; its score is 0 or 1.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from rbrl.metrics import scores_of
    >>> model = KNeighborsClassifier(2).fit([[0.0], [1.0], [2.0]], [[1, 0], [1, 1], [0, 1]])
    >>> scores_of(model, [[0.2]])
    array([[1. , 0.5]])
    """
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores
    if not hasattr(estimator, "predict_proba"):
        name = type(estimator).__name__
        raise TypeError(f"Scores need decision_function or predict_proba. Got {name}, which has neither.")
    return probabilities_of(estimator, X)


def probabilities_of(estimator: Classifier, X: MatrixLike) -> FloatArray:
    """Return the probabilities that labels are relevant, of a classifier with `predict_proba`.

    Parameters
    ----------
    estimator : scikit-learn classifier, fitted
    X : array or sparse matrix, shape (n_samples, n_features)

    Returns
    -------
    array, shape (n_samples, n_labels)
        Probabilities, also of classifiers that return a list with two columns for each label. A
        label that was constant in training has the probability 0 or 1.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from rbrl.metrics import probabilities_of
    >>> model = KNeighborsClassifier(2).fit([[0.0], [1.0], [2.0]], [[1, 0], [1, 1], [0, 1]])
    >>> probabilities_of(model, [[0.2]])
    array([[1. , 0.5]])
    """
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"Probabilities need predict_proba. Got {type(estimator).__name__}, which has none; "
            "wrap it in rbrl.CalibratedMultiLabelClassifier."
        )
    multi_output: Any = estimator
    found = multi_output.predict_proba(X)
    if not isinstance(found, list):
        return np.asarray(found)
    classes = [list(values) for values in multi_output.classes_]
    return np.column_stack([P[:, c.index(1)] if 1 in c else np.zeros(len(P)) for P, c in zip(found, classes)])
