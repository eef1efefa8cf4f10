"""MATLAB files (up to version 7): `X, Y`, or `data, target`, or `train_data, train_target, test_data, test_target`.

`target` may be labels × rows and -1/1, as in the files of Min-Ling Zhang. `feature_names` and `label_names` are cells
of text; `train_index` and `test_index` count from 1, as MATLAB does.
"""

import struct
import warnings
import zlib

import numpy as np
from scipy import io, sparse
from scipy.io.matlab import MatReadError

from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats.atomic import replacing
from rbrl.datasets.formats.errors import bad, quote
from rbrl.datasets.formats.limits import dense_labels
from rbrl.datasets.formats.writable import check_names

BROKEN = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MatReadError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    struct.error,
    TypeError,
    ValueError,
    zlib.error,
)
PAIRS = (("X", "Y"), ("data", "target"))
NAMES = ("feature_names", "label_names")
HEADER, COMPRESSED = 128, 15


def read_mat(path, options):
    """Read a MATLAB file; see the module's text."""
    if options.labels is not None:
        raise bad(path, f"a MATLAB file has its labels in a variable of their own; got labels={options.labels!r}")
    variables = _variables(path, options.max_bytes)
    X, Y, splits = _arrays(path, variables)
    if sparse.issparse(Y) or options.sparse_labels:
        Y = sparse.csr_array(Y) if options.sparse_labels else dense_labels(path, Y)
    names = {key: _names(path, key, variables[key]) for key in NAMES if key in variables}
    coded = _index(path, variables, "categorical_index") if "categorical_index" in variables else ()
    return Dataset(X, Y, **names, name=path.stem, splits=splits, categorical_index=coded)


def write_mat(dataset, path):
    """Write a MATLAB file with X, Y, names and the source's own split."""
    check_names([*dataset.feature_names, *dataset.label_names], path)
    variables = {"X": _matlab(dataset.X), "Y": _matlab(dataset.Y)}
    variables |= {"feature_names": _cells(dataset.feature_names), "label_names": _cells(dataset.label_names)}
    if dataset.train_index is not None:
        variables |= {"train_index": dataset.train_index + 1, "test_index": dataset.test_index + 1}
    if len(dataset.categorical_index):
        variables["categorical_index"] = dataset.categorical_index + 1
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        io.savemat(stream, variables, do_compression=True)


def _variables(path, max_bytes):
    data = path.read_bytes()
    if data[:8] == b"\x89HDF\r\n\x1a\n" or data[:10] == b"MATLAB 7.3":
        raise bad(path, "a MATLAB 7.3 file; save it with -v7")
    _check_unpacked_size(path, data, max_bytes)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a damaged file also raises, or lacks its variables
            return io.loadmat(path, spmatrix=False, variable_names=_wanted())
    except BROKEN as error:
        raise bad(path, f"not a readable MATLAB file: {type(error).__name__}: {error}") from error


def _wanted():
    parts = [f"{part}_{name}" for part in ("train", "test") for name in ("data", "target", "index")]
    return [name for pair in PAIRS for name in pair] + [*parts, *NAMES, "categorical_index"]


def _check_unpacked_size(path, data, max_bytes):
    """Unpack the compressed elements of a version 5 file once, up to the limit, and throw the result away."""
    order = "<" if data[126:128] == b"IM" else ">"
    place, left = HEADER, max_bytes
    while place + 8 <= len(data):
        kind, size = struct.unpack(f"{order}II", data[place : place + 8])
        if kind == COMPRESSED:
            left -= _unpacked_size(data[place + 8 : place + 8 + size], left)
        if left <= 0:
            raise bad(path, f"longer than {max_bytes} bytes once unpacked; raise max_bytes to read it")
        place += 8 + size


def _unpacked_size(data, limit):
    unpack, total = zlib.decompressobj(), 0
    try:
        while data and total <= limit and not unpack.eof:
            total += len(unpack.decompress(data, 1 << 20))
            data = unpack.unconsumed_tail
    except zlib.error:
        return 0  # loadmat will say so
    return total


def _arrays(path, variables):
    parts = ("train_data", "train_target", "test_data", "test_target")
    if all(part in variables for part in parts):
        return _joined(path, variables, parts)
    for x, y in PAIRS:
        if x in variables and y in variables:
            X, Y = _numbers(path, variables, x), _numbers(path, variables, y)
            splits = {}
            if "train_index" in variables and "test_index" in variables:
                splits["source"] = tuple(_index(path, variables, key) for key in ("train_index", "test_index"))
            return X, _labels(path, Y, X.shape[0], turned=y == "target"), splits
    found = sorted(name for name in variables if not name.startswith("__"))
    raise bad(path, f"it needs variables X and Y, data and target, or train_data … test_target; it has {found}")


def _joined(path, variables, parts):
    X, Y, X_test, Y_test = (_numbers(path, variables, part) for part in parts)
    if X.shape[1] != X_test.shape[1]:
        raise bad(path, f"train_data and test_data have {X.shape[1]} and {X_test.shape[1]} columns")
    n_train, n_samples = X.shape[0], X.shape[0] + X_test.shape[0]
    Y, Y_test = (_labels(path, y, x.shape[0], turned=True) for x, y in ((X, Y), (X_test, Y_test)))
    if Y.shape[1] != Y_test.shape[1]:
        raise bad(path, f"train_target and test_target have {Y.shape[1]} and {Y_test.shape[1]} labels")
    stack = sparse.vstack if sparse.issparse(X) or sparse.issparse(X_test) else np.vstack
    Y = np.vstack([y.toarray() if sparse.issparse(y) else y for y in (Y, Y_test)])
    return stack([X, X_test]), Y, {"source": (np.arange(n_train), np.arange(n_train, n_samples))}


def _numbers(path, variables, key):
    array = variables[key]
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise bad(path, f"{key} must be a matrix of numbers; got shape {array.shape} of type {array.dtype}")
    if sparse.issparse(array):
        array = sparse.csc_array(array)
        try:
            array.check_format(full_check=True)
        except ValueError as error:
            raise bad(path, f"the sparse matrix {key} is damaged: {error}") from error
        return sparse.csr_array(array)
    return array


def _labels(path, Y, n_samples, turned):
    if Y.shape[0] != n_samples or (turned and Y.shape[1] == n_samples):
        Y = Y.T
    if Y.shape[0] != n_samples:
        raise bad(path, f"{n_samples} rows do not go with labels of shape {Y.shape[::-1]}")
    values = Y.data if sparse.issparse(Y) else Y
    odd = ~np.isin(values, (-1, 0, 1)) if (values == -1).any() else ~np.isin(values, (0, 1))
    if odd.any():
        raise bad(path, f"labels must be 0 and 1, or -1 and 1; got {values[odd][0]}")
    return sparse.csr_array(Y > 0) if sparse.issparse(Y) else Y > 0


def _index(path, variables, key):
    index = np.asarray(variables[key]).ravel()
    if index.dtype.kind not in "iuf" or (index != index.astype(np.int64)).any():
        raise bad(path, f"{key} must be whole numbers; got {quote(index[:3])}")
    return index.astype(np.int64) - 1


def _names(path, key, cells):
    if cells.dtype.kind == "U":
        return [str(name).rstrip() for name in cells.ravel()]
    try:
        return [str(cell.item()) if cell.size else "" for cell in cells.ravel()]
    except (AttributeError, ValueError) as error:
        raise bad(path, f"{key} must be a cell array of texts; got {quote(cells.ravel()[:3])}") from error


def _matlab(A):
    return sparse.csc_matrix(A, dtype=np.float64) if sparse.issparse(A) else A


def _cells(names):
    cells = np.empty(len(names), dtype=object)
    cells[:] = list(names)
    return cells
