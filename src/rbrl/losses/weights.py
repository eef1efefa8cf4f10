"""Weights of rows and of single labels, in the form that the losses take.

Weights are an array of the rows (n_samples,), an array of the entries (n_samples, n_labels), or
None for weights of 1.
``Y`` (n_samples, n_labels) are labels in {-1, 0, +1}, where 0 is a missing label.
"""

import numpy as np

from rbrl._common.typing import Array, FloatArray

# Weights of the rows (n,), or of the entries (n, l); None for weights of 1.
Weights = FloatArray | None


def row_weights(weights: Weights, n_samples: int) -> FloatArray:
    """Return weights of rows or entries as float64, without a copy if they are; ones for None.

    The caller must not change the result.
    """
    return np.ones(n_samples) if weights is None else np.asarray(weights, dtype=np.float64)


def mean_weights(Y: Array, weights: Weights) -> FloatArray:
    """Return the weight of each row, or the mean weight of its known entries: (n_samples,).

    It is 0 if all labels of the row are missing. It may be `weights` itself.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.weights import mean_weights
    >>> Y = np.array([[1, -1, 0], [0, 0, 0]], dtype=np.int8)
    >>> mean_weights(Y, None), mean_weights(Y, np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0]]))
    (array([1., 0.]), array([2., 0.]))
    """
    w = row_weights(weights, len(Y))
    if w.ndim == 1:
        # Y.all() is much faster than Y.any(axis=1), and most data have no missing label.
        return w if Y.all() else w * Y.any(axis=1)
    return np.where(Y != 0, w, 0.0).sum(axis=1) / np.maximum(np.count_nonzero(Y, axis=1), 1)


def entry_weights(Y: Array, weights: Weights) -> FloatArray:
    """Return the weight of each entry: its own or that of its row, and 0 for a missing label.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}; 0 is a missing label.
    weights : array (n_samples,) or (n_samples, n_labels), or None

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import entry_weights
    >>> entry_weights(np.array([[1, -1, 0]], dtype=np.int8), np.array([2.0]))
    array([[2., 2., 0.]])
    """
    w = row_weights(weights, len(Y))
    return np.abs(Y) * (w[:, None] if w.ndim == 1 else w)


def apply_class_weights(Y: Array, weights: Weights, table: FloatArray) -> FloatArray:
    """Return the weights of the entries times the class weights of their labels.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}; 0 is a missing label.
    weights : array (n_samples,) or (n_samples, n_labels), or None
    table : array (2, n_labels)
        Weights of the irrelevant and of the relevant entries of each label.

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses.weights import apply_class_weights
    >>> table = np.array([[1.0, 5.0], [3.0, 1.0]])
    >>> apply_class_weights(np.array([[1, -1], [-1, 0]]), np.array([1.0, 2.0]), table).tolist()
    [[3.0, 5.0], [2.0, 0.0]]
    """
    return np.where(Y > 0, table[1], table[0]) * entry_weights(Y, weights)
