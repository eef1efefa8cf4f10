"""How much a file may claim before it is refused."""

from rbrl.datasets.formats.errors import bad

MAX_BYTES = 4 << 30  # of a file once unpacked
MAX_DENSE_CELLS = 1 << 29  # of a matrix that has to be dense: 4 GiB of float64


def dense_labels(path, Y):
    """Return the sparse array Y as a dense one, unless it is too large."""
    if Y.shape[0] * Y.shape[1] > MAX_DENSE_CELLS:
        raise bad(path, f"labels of shape {Y.shape} are too large for a dense array; read with sparse_labels=True")
    return Y.toarray()


def check_compressed(values, indexes, starts, n_lines, length):
    """Raise ValueError unless the arrays are a CSR or CSC matrix of `n_lines` rows or columns of `length` places.

    SciPy's own check looks no further where the last start is 0, and what then decreases crashes the interpreter.
    """
    whole = all(array.ndim == 1 and array.dtype.kind in "iu" for array in (indexes, starts))
    if not whole or values.ndim != 1:
        raise ValueError("its indexes and starts must be lists of whole numbers")
    if len(starts) != n_lines + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"its starts must rise from 0 in {n_lines + 1} steps")
    if not starts[-1] <= len(values) == len(indexes):
        raise ValueError(f"there are {len(values)} values and {len(indexes)} indexes where {starts[-1]} are said to be")
    if len(indexes) and not (indexes.min() >= 0 and indexes.max() < length):
        raise ValueError(f"its indexes must lie in 0..{length - 1}; got {indexes.min()}..{indexes.max()}")
