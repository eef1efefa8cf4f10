"""MATLAB files (versions 5 to 7): `X, Y`, or `data, target`, or `train_data, train_target, test_data, test_target`.

`target` may be labels × rows and -1/1, as in the files of Min-Ling Zhang. `feature_names` and `label_names` are cells
of text; `train_index` and `test_index` count from 1, as MATLAB does.
"""

import numpy as np
from scipy import io, sparse

from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats.atomic import replacing
from rbrl.datasets.formats.errors import bad, quote
from rbrl.datasets.formats.limits import dense_labels
from rbrl.datasets.formats.mat5 import BrokenMatError, read_variables
from rbrl.datasets.formats.writable import check_names

PAIRS = (("X", "Y"), ("data", "target"))
NAMES = ("feature_names", "label_names")


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
        raise bad(path, f"a MATLAB 7.3 file, which begins {quote(data[:10])}; save it with -v7")
    try:
        return read_variables(data, _wanted(), max_bytes)
    except BrokenMatError as error:
        raise bad(path, f"not a readable MATLAB file: {error}") from error


def _wanted():
    parts = [f"{part}_{name}" for part in ("train", "test") for name in ("data", "target", "index")]
    return [name for pair in PAIRS for name in pair] + [*parts, *NAMES, "categorical_index"]


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
    if isinstance(array, list) or array.ndim != 2:
        raise bad(path, f"{key} must be a matrix of numbers; got {quote(array)}")
    return sparse.csr_array(array) if sparse.issparse(array) else array


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
    index = variables[key]
    whole = not isinstance(index, list) and not sparse.issparse(index) and (index == np.floor(index)).all()
    if not whole or not (np.abs(index) < 2**31).all():
        raise bad(path, f"{key} must be whole numbers; got {quote(index)}")
    return index.ravel().astype(np.int64) - 1


def _names(path, key, names):
    if not isinstance(names, list):
        raise bad(path, f"{key} must be a cell array of texts; got {quote(names)}")
    return names


def _matlab(A):
    return sparse.csc_matrix(A, dtype=np.float64) if sparse.issparse(A) else A


def _cells(names):
    cells = np.empty(len(names), dtype=object)
    cells[:] = list(names)
    return cells
