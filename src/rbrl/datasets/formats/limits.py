"""How much a file may claim before it is refused."""

from rbrl.datasets.formats.errors import bad

MAX_BYTES = 4 << 30  # of a file once unpacked
MAX_DENSE_CELLS = 1 << 29  # of a matrix that has to be dense: 4 GiB of float64


def dense_labels(path, Y):
    """Return the sparse array Y as a dense one, unless it is too large."""
    if Y.shape[0] * Y.shape[1] > MAX_DENSE_CELLS:
        raise bad(path, f"labels of shape {Y.shape} are too large for a dense array; read with sparse_labels=True")
    return Y.toarray()
