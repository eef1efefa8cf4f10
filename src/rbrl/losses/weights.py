"""What rows and entries count: weights of rows (n,), of entries (n, l), or None for ones.

An entry that nobody looked at is in no hinge and in no pair. With weights of entries, the hinge of entry (i, j) counts
:math:`w_{ij}`, and a pair (p, q) of row i counts :math:`r_i w_{ip} w_{iq} / (S_i^+ S_i^-)`, with the sums S of the weights
of the row's relevant and irrelevant entries, and the mean :math:`r_i` of both: a row of equal weights has that weight.
"""

import numpy as np

from rbrl._common.typing import Array, FloatArray

# Weights of the rows (n,), or of the entries (n, l); None for ones.
Weights = FloatArray | None


def row_weights(weights: Weights, n_samples: int) -> FloatArray:
    """Weights as float64, of rows or entries as they are: ones of the rows when there are none."""
    return np.ones(n_samples) if weights is None else np.asarray(weights, dtype=np.float64)


def mean_weights(Y: Array, weights: Weights) -> FloatArray:
    """What each row counts as a whole: its weight, or the mean of those of its entries; 0 if nobody looked at any: (n,).

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
        # To look at all at once takes a hundredth of the time of looking at each row.
        return w if Y.all() else w * Y.any(axis=1)
    return np.where(Y != 0, w, 0.0).sum(axis=1) / np.maximum(np.count_nonzero(Y, axis=1), 1)


def entry_weights(Y: Array, weights: Weights) -> FloatArray:
    """What each entry counts: its weight or that of its row, and 0 where nobody looked.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}, 0 where nobody looked.
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


def class_weighted(Y: Array, weights: Weights, table: FloatArray) -> FloatArray:
    """Weights of entries (n, l): those given, times what `table` (2, l) says of irrelevant and relevant entries of a label.

    Parameters
    ----------
    Y : array (n_samples, n_labels)
        Labels in {-1, 0, +1}, 0 where nobody looked.
    weights : array (n_samples,) or (n_samples, n_labels), or None
    table : array (2, n_labels)
        What irrelevant and relevant entries of a label count.

    Returns
    -------
    array (n_samples, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import class_weighted
    >>> class_weighted(np.array([[1, -1], [-1, 0]]), np.array([1.0, 2.0]), np.array([[1.0, 5.0], [3.0, 1.0]])).tolist()
    [[3.0, 5.0], [2.0, 0.0]]
    """
    return np.where(Y > 0, table[1], table[0]) * entry_weights(Y, weights)
