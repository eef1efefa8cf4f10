"""What counts of a label matrix: which entries somebody looked at, and how much each of them weighs."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rbrl._common.checks import check_row_weights, users_level
from rbrl._common.frames import check_no_mask
from rbrl._common.typing import Array, BoolArray, FloatArray, IntArray, MatrixLike, issparse
from rbrl.exceptions import InvalidLabelsError, MissingLabelsWarning
from rbrl.losses.base import apply_class_weights
from rbrl.losses.label_graph import LabelCounts, label_counts
from rbrl.targets import SignedTargets

# "balanced"; or a weight of the relevant entries, or a pair for irrelevant and relevant ones, by label: column or name; or,
# of a 1-D target, a weight by class.
ClassWeight: TypeAlias = str | Mapping[Any, float | Sequence[float]] | None


def known_entries(Y: IntArray, label_mask: MatrixLike | None) -> IntArray:
    """Labels with 0 for the entries that a mask leaves out.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}.
    label_mask : bool array or sparse matrix (n_samples, n_labels), or None
        True where somebody looked.

    Returns
    -------
    array (n_samples, n_labels) of int8

    Examples
    --------
    >>> known_entries(np.array([[1, -1]], dtype=np.int8), [[True, False]]).tolist()
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
            f"label_mask must hold True where a label is known, and False elsewhere. Got the values {shown}."
        )
    return np.where(mask, Y, np.int8(0))


def checked_weights(sample_weight: MatrixLike | None, Y: IntArray, is_matrix: bool) -> FloatArray | None:
    """Weights of rows (n_samples,), or of the entries of a label matrix (n_samples, n_labels).

    Parameters
    ----------
    sample_weight : array or sparse matrix, number or None
    Y : array (n_samples, n_labels)
    is_matrix : bool
        Whether the user gave a label matrix.

    Returns
    -------
    array or None

    Examples
    --------
    >>> checked_weights([[1.0, 0.0]], np.array([[1, -1]]), is_matrix=True)
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


def weighted_entries(
    Y: IntArray, weights: FloatArray | None, class_weight: ClassWeight, targets: SignedTargets, names: Array | None
) -> tuple[IntArray, FloatArray | None]:
    """Labels and weights after `class_weight`; an entry of weight 0 is one that nobody looked at.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}.
    weights : array (n_samples,) or (n_samples, n_labels), or None
    class_weight : "balanced", dict or None
    targets : SignedTargets
    names : array (n_labels,) or None
        Of the labels.

    Returns
    -------
    Y, weights
        As they were given.

    Examples
    --------
    >>> Y = np.array([[1, -1], [-1, -1]], dtype=np.int8)
    >>> targets = SignedTargets().fit(Y)
    >>> weighted_entries(Y, None, {0: 3.0}, targets, None)[1].tolist()
    [[3.0, 1.0], [1.0, 1.0]]
    """
    if class_weight is not None and not targets.is_matrix:
        by_class = _weights_of_classes(class_weight, Y, weights, targets)
        weights = by_class if weights is None else weights * by_class
    elif class_weight is not None:
        weights = apply_class_weights(Y, weights, weights_of_labels(class_weight, label_counts(Y, weights), names))
    if weights is not None and weights.ndim == 2:
        Y = np.where(weights > 0, Y, np.int8(0))
    if weights is not None and not weights.any():
        raise ValueError(f"class_weight={class_weight!r} and sample_weight leave no entry to learn from.")
    return Y, weights


def weights_of_labels(class_weight: ClassWeight, counts: LabelCounts, names: Any = None) -> FloatArray:
    """The weights of the irrelevant and the relevant entries of every label: (2, n_labels).

    Parameters
    ----------
    class_weight : "balanced" or dict
    counts : LabelCounts
        Of what is known, weighted.
    names : sequence of str, default=None
        Of the labels.

    Returns
    -------
    array (2, n_labels)

    Examples
    --------
    >>> counts = label_counts(np.array([[1, -1], [-1, -1], [-1, 0]]))
    >>> weights_of_labels("balanced", counts).tolist()
    [[0.75, 1.0], [1.5, 1.0]]
    """
    sides: FloatArray = np.vstack([counts.irrelevant, counts.relevant])
    table: FloatArray = np.ones((2, len(counts.relevant)))
    if isinstance(class_weight, str):
        # Where a label has one side alone there is nothing to balance.
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


def _weights_of_classes(
    class_weight: ClassWeight, Y: IntArray, weights: FloatArray | None, targets: SignedTargets
) -> FloatArray:
    """Weights of the rows of a 1-D target, by their class."""
    classes = targets.classes_
    # Of one class alone there is a column of ones.
    index = Y.argmax(axis=1) if Y.shape[1] > 1 else np.minimum(Y[:, 0] > 0, len(classes) - 1).astype(np.int64)
    if isinstance(class_weight, str):
        counts = np.bincount(index, weights, minlength=len(classes))
        return (counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1e-300)))[index]
    table: dict[Any, Any] = dict(class_weight or {})
    if strange := [key for key in table if key not in classes]:
        raise ValueError(f"The keys of class_weight must be classes of y, among {classes}. Got {strange[0]!r}.")
    return np.array([float(table.get(one, 1.0)) for one in classes.tolist()])[index]


def check_class_weight(owner: str, class_weight: ClassWeight) -> None:
    """Refuse what is neither None, nor "balanced", nor a dict of weights.

    Parameters
    ----------
    owner : str
        The class that has the parameter.
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
    """Refuse a threshold for a 1-D target of three or more classes, of which the largest score decides.

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


def warn_of_unseen(Y: IntArray, names: Sequence[Any] | Array | None) -> None:
    """Refuse labels that nobody looked at at all, and warn of columns that nobody looked at.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}.
    names : sequence of str, or None
        Of the labels.
    """
    seen: BoolArray = np.asarray(Y.any(axis=0))
    if seen.all():
        return
    if not seen.any():
        raise InvalidLabelsError(
            f"No label of any row is known: all {Y.size} entries of y are missing or have weight 0."
        )
    unseen = np.flatnonzero(~seen)
    shown = ", ".join(str(j if names is None else names[j]) for j in unseen[:5])
    warnings.warn(
        f"Nobody looked at {len(unseen)} of {len(seen)} labels in any row: {shown}{', …' if len(unseen) > 5 else ''}. "
        "Their scores are 0, and predictions call them irrelevant.",
        MissingLabelsWarning,
        stacklevel=users_level(),
    )
