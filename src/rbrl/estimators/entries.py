"""Entries of a label matrix: which of them are known, and what they weigh."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from rbrl._common.checks import check_row_weights, users_level
from rbrl._common.frames import check_no_mask
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray, MatrixLike, issparse
from rbrl.exceptions import InvalidLabelsError, MissingLabelsWarning
from rbrl.losses import ClassWeighted, Loss
from rbrl.losses.label_graph import LabelCounts, label_counts
from rbrl.losses.weights import apply_class_weights, mean_weights
from rbrl.targets import SignedTargets

# Values of the parameter `class_weight`: "balanced"; or a dict from labels, by column or name, to the weight of
# their relevant entries or to a pair of weights (irrelevant, relevant); or, for a 1-D target, from classes to weights.
ClassWeight: TypeAlias = str | Mapping[Any, float | Sequence[float]] | None


def apply_label_mask(Y: IntArray, label_mask: MatrixLike | None) -> IntArray:
    """Return labels with 0 for the entries that a mask excludes; Y itself without a mask.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}.
    label_mask : bool array or sparse matrix (n_samples, n_labels), or None
        True for a known label, False for a missing label.

    Returns
    -------
    array (n_samples, n_labels) of int8

    Examples
    --------
    >>> apply_label_mask(np.array([[1, -1]], dtype=np.int8), [[True, False]]).tolist()
    [[1, 0]]
    """
    if label_mask is None:
        return Y
    check_no_mask(label_mask=label_mask)
    mask = label_mask.toarray() if issparse(label_mask) else np.asarray(label_mask)
    if mask.shape != Y.shape:
        raise ValueError(f"label_mask must have the shape of y, {Y.shape}. Got {mask.shape}.")
    values = np.unique(mask)
    if mask.dtype.kind not in "biuf" or not set(values.tolist()) <= {0, 1}:
        shown = ", ".join(map(repr, values[:6].tolist()))
        raise ValueError(
            f"label_mask must hold True for known labels, and False for missing labels. Got the values {shown}."
        )
    return np.where(mask, Y, np.int8(0))


def check_entry_weights(sample_weight: MatrixLike | None, Y: IntArray, is_matrix: bool) -> FloatArray | None:
    """Check the weights of rows, (n_samples,), or of the entries of a label matrix, (n_samples, n_labels).

    Parameters
    ----------
    sample_weight : array or sparse matrix, number or None
    Y : array (n_samples, n_labels)
    is_matrix : bool
        True if the target of the user is a label matrix.

    Examples
    --------
    >>> check_entry_weights([[1.0, 0.0]], np.array([[1, -1]]), is_matrix=True)
    array([[1., 0.]])
    """
    if sample_weight is None:
        return None
    check_no_mask(sample_weight=sample_weight)
    weights = np.asarray(sample_weight.toarray() if issparse(sample_weight) else sample_weight, dtype=np.float64)
    if weights.ndim < 2 or not is_matrix:
        return check_row_weights(weights, len(Y))
    if weights.shape != Y.shape:
        raise ValueError(
            f"sample_weight must have shape ({len(Y)},), one weight per row of X, or {Y.shape}, one per entry of y. "
            f"Got {weights.shape}."
        )
    return check_row_weights(weights.ravel(), weights.size).reshape(Y.shape)


def find_entries(
    Y: IntArray, sample_weight: MatrixLike | None, label_mask: MatrixLike | None, class_weight: ClassWeight,
    targets: SignedTargets, names: Array | None,
) -> tuple[IntArray, FloatArray | None, FloatArray | None]:  # fmt: skip
    """Return the known entries of a label matrix, their weights, and the weights of the rows.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}.
    sample_weight : array or sparse matrix, number or None
        Weights of the rows or of the entries.
    label_mask : bool array or sparse matrix (n_samples, n_labels), or None
        True for a known label.
    class_weight : "balanced", dict or None
    targets : SignedTargets
    names : array (n_labels,) or None
        Names of the labels.

    Returns
    -------
    Y : array (n_samples, n_labels)
        Labels; 0 for an entry that is masked or has weight 0.
    weights : array (n_samples,) or (n_samples, n_labels), or None
    counted : array (n_samples,) or None
        Weights of the rows; None means 1.
    """
    of_entries = issparse(sample_weight) or np.asarray(sample_weight).ndim == 2
    if of_entries or label_mask is not None or class_weight is not None:
        # Entries that differ in more than their label are stored in dense arrays.
        Y = np.asarray(Y)
    Y = apply_label_mask(Y, label_mask)
    weights = check_entry_weights(sample_weight, Y, targets.is_matrix)
    if weights is not None and weights.ndim == 2:
        Y = np.where(weights > 0, Y, np.int8(0))
    # Weights of classes say what errors cost, not how many rows there are.
    counted = None if weights is None else mean_weights(Y, weights)
    Y, weights = weigh_entries(Y, weights, class_weight, targets, names)
    return Y, weights, counted


def weigh_entries(
    Y: IntArray, weights: FloatArray | None, class_weight: ClassWeight, targets: SignedTargets, names: Array | None
) -> tuple[IntArray, FloatArray | None]:
    """Multiply weights by `class_weight`, and make the entries of weight 0 missing labels.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}.
    weights : array (n_samples,) or (n_samples, n_labels), or None
    class_weight : "balanced", dict or None
    targets : SignedTargets
    names : array (n_labels,) or None
        Names of the labels.

    Returns
    -------
    Y : array (n_samples, n_labels)
    weights : array (n_samples,) or (n_samples, n_labels), or None

    Examples
    --------
    >>> Y = np.array([[1, -1], [-1, -1]], dtype=np.int8)
    >>> targets = SignedTargets().fit(Y)
    >>> weigh_entries(Y, None, {0: 3.0}, targets, None)[1].tolist()
    [[3.0, 1.0], [1.0, 1.0]]
    """
    if class_weight is not None and not targets.is_matrix:
        row_weights = _compute_class_weights(class_weight, Y, weights, targets)
        weights = row_weights if weights is None else weights * row_weights
    elif class_weight is not None:
        weights = apply_class_weights(Y, weights, compute_label_weights(class_weight, label_counts(Y, weights), names))
    if weights is not None and weights.ndim == 2:
        Y = np.where(weights > 0, Y, np.int8(0))
    if weights is not None and not weights.any():
        raise ValueError(f"class_weight={class_weight!r} and sample_weight give every known entry of y the weight 0.")
    return Y, weights


def compute_label_weights(class_weight: ClassWeight, counts: LabelCounts, names: Any = None) -> FloatArray:
    """Compute the weights of the irrelevant and the relevant entries of every label.

    Parameters
    ----------
    class_weight : "balanced" or dict
    counts : LabelCounts
        Weighted numbers of the known entries.
    names : sequence of str, default=None
        Names of the labels.

    Returns
    -------
    array (2, n_labels)
        Weights of the irrelevant entries, and of the relevant entries.

    Examples
    --------
    >>> counts = label_counts(np.array([[1, -1], [-1, -1], [-1, 0]]))
    >>> compute_label_weights("balanced", counts).tolist()
    [[0.75, 1.0], [1.5, 1.0]]
    """
    sides: FloatArray = np.vstack([counts.irrelevant, counts.relevant])
    table: FloatArray = np.ones((2, len(counts.relevant)))
    if isinstance(class_weight, str):
        # A label without relevant or without irrelevant entries keeps the weight 1.
        return np.divide(sides.sum(axis=0), 2 * sides, out=table, where=sides.min(axis=0) > 0)
    columns = {name: j for j, name in enumerate(() if names is None else map(str, names))}
    for label, weight in dict(class_weight or {}).items():
        j = columns.get(label, label)
        if not isinstance(j, int | np.integer) or not 0 <= j < len(counts.relevant):
            known = ", ".join(list(columns)[:6]) + ", or " if columns else ""
            raise ValueError(
                f"The keys of class_weight must be labels: {known}column indices from 0 to {len(counts.relevant) - 1}. "
                f"Got {label!r}."
            )
        table[:, j] = (1.0, weight) if np.ndim(weight) == 0 else weight
    return table


@dataclass
class WeightedLoss:
    """The loss of a classifier over rows in blocks, with its class weights. The labels are counted if it needs them.

    Parameters
    ----------
    loss : callable
        Method `loss` of the classifier.
    class_weight : "balanced", dict or None
    names : sequence of str or None
        Names of the labels.

    Attributes
    ----------
    made : Loss
        The loss, once it has been made.
    """

    loss: Callable[[Callable[[], LabelCounts]], Loss]
    class_weight: ClassWeight
    names: Sequence[str] | None
    made: Loss = field(init=False)

    def __call__(self, count_labels: Callable[[], LabelCounts]) -> Loss:
        """Make the loss, keep it in `made`, and return it."""
        self.made = self.loss(count_labels)
        if self.class_weight is not None:
            table = compute_label_weights(self.class_weight, count_labels(), self.names)
            self.made = ClassWeighted(self.made, table)
        return self.made


def _compute_class_weights(
    class_weight: ClassWeight, Y: IntArray, weights: FloatArray | None, targets: SignedTargets
) -> FloatArray:
    """Return the weights of the rows of a 1-D target, by their class: (n_samples,).

    `weights` (n_samples,) count the rows for "balanced"; None means 1. They are not in the result.
    """
    classes = targets.classes_
    # A target with only one class has one column, which is constant.
    index = Y.argmax(axis=1) if Y.shape[1] > 1 else np.minimum(Y[:, 0] > 0, len(classes) - 1).astype(np.int64)
    if isinstance(class_weight, str):
        counts = np.bincount(index, weights, minlength=len(classes))
        return (counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1e-300)))[index]
    table: dict[Any, Any] = dict(class_weight or {})
    if unknown := [key for key in table if key not in classes]:
        raise ValueError(f"The keys of class_weight must be classes of y, among {classes}. Got {unknown[0]!r}.")
    return np.array([float(table.get(name, 1.0)) for name in classes.tolist()])[index]


def check_class_weight(owner: str, class_weight: ClassWeight) -> None:
    """Raise ValueError for a class weight that is neither None, nor "balanced", nor a dict of weights.

    Parameters
    ----------
    owner : str
        Name of the class that has the parameter.
    class_weight : object
    """
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    rule = "None, 'balanced', or a dict from labels to weights or pairs of weights (irrelevant, relevant)"
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"The class_weight parameter of {owner} must be {rule}. Got {class_weight!r} instead.")
    for label, weight in class_weight.items():
        values = np.asarray(weight)
        if (
            values.shape not in ((), (2,))
            or values.dtype.kind not in "biuf"
            or not (values >= 0).all() & (values < np.inf).all()
        ):
            raise ValueError(
                f"The class_weight parameter of {owner} must be {rule}, finite and >= 0. Got {weight!r} for {label!r}."
            )


def check_classes(owner: str, threshold: float | str, kind: str) -> None:
    """Raise ValueError for a threshold with a 1-D target of three or more classes.

    The class with the largest score is predicted then, so that a threshold has no effect.

    Parameters
    ----------
    owner : str
        Name of the class.
    threshold : float or str
    kind : {"binary", "multiclass", ...}
        Kind of the target.
    """
    if kind == "multiclass" and threshold != 0:
        raise ValueError(
            f"{owner} predicts the class with the largest score, which a threshold does not change. Got "
            f"threshold={threshold!r} with a 1-D y of three or more classes; leave threshold at 0, or pass a label matrix."
        )


def warn_of_missing_labels(Y: IntArray, names: Sequence[Any] | Array | None) -> None:
    """Warn of labels that are missing in all rows; raise InvalidLabelsError if all labels are.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}.
    names : sequence of str, or None
        Names of the labels.
    """
    is_known: BoolArray = np.asarray(Y.any(axis=0))
    if is_known.all():
        return
    if not is_known.any():
        raise InvalidLabelsError(
            f"No label of any row is known: all {Y.size} entries of y are missing or have weight 0."
        )
    missing = np.flatnonzero(~is_known)
    shown = ", ".join(str(j if names is None else names[j]) for j in missing[:5])
    dots = ", …" if len(missing) > 5 else ""
    warnings.warn(
        f"{len(missing)} of {len(is_known)} labels are missing in all rows: {shown}{dots}. "
        "Their scores are 0, and they are predicted as irrelevant.",
        MissingLabelsWarning,
        stacklevel=users_level(),
    )


def observed_rows(
    weights: FloatArray | None, n_samples: int, Y: IntArray | None = None
) -> tuple[IntArray, FloatArray | None]:
    """Return the indices of the rows with a weight and a known label, and their weights (None if all are 1).

    Parameters
    ----------
    weights : array (n_samples,) or (n_samples, n_labels), or None
    n_samples : int
    Y : array (n_samples, n_labels), default=None
        Labels in {-1, 0, +1}, where some may be missing.

    Returns
    -------
    rows : array of int
    weights : array (n_rows,) or (n_rows, n_labels), or None

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.estimators.entries import observed_rows
    >>> observed_rows(np.array([1.0, 0.0, 1.0]), 3)
    (array([0, 2]), None)
    """
    is_known = np.ones(n_samples, dtype=bool) if Y is None else Y.any(axis=1)
    if weights is None:
        return np.flatnonzero(is_known), None
    has_weight = weights > 0 if weights.ndim == 1 else weights.any(axis=1)
    rows = np.flatnonzero(is_known & has_weight)
    weights = weights[rows]
    return rows, None if np.all(weights == 1) else weights
