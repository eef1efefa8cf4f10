"""Files that are written and read again have the same content."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io.arff import loadarff
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from rbrl.datasets import Dataset, convert, load, load_file, save_file
from rbrl.exceptions import DataFormatError

from .examples import assert_same, datasets, dense, small

ENDINGS = [".arff", ".csv", ".tsv", ".mat", ".npz", ".parquet", ".svm", ".arff.gz", ".csv.gz", ".svm.gz"]
KEEPS_DENSE = {".arff", ".csv", ".tsv", ".mat", ".npz", ".parquet", ".arff.gz", ".csv.gz"}
KEEPS_SPARSE = {".arff", ".arff.gz", ".mat", ".npz", ".svm", ".svm.gz"}


def as_read_back(data, ending):
    """Return `data` as dense or sparse as files of this ending give it back."""
    keeps = KEEPS_SPARSE if sparse.issparse(data.X) else KEEPS_DENSE
    if ending in keeps:
        return data
    X = data.X.toarray() if sparse.issparse(data.X) else sparse.csr_array(data.X)
    return Dataset(X, data.Y, data.feature_names, data.label_names)


@pytest.mark.parametrize("labels_first", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("ending", ENDINGS)
def test_small_data_with_odd_names(tmp_path, ending, is_sparse, labels_first):
    data, path = small(is_sparse), tmp_path / f"data{ending}"
    save_file(data, path, labels_first=labels_first)
    assert_same(as_read_back(data, ending), load_file(path))
    extra = {"data.xml"} if any(ending.startswith(kind) for kind in (".arff", ".csv", ".tsv")) else set()
    assert {file.name for file in tmp_path.iterdir()} == {path.name} | extra


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_data(tmp_path, ending, data):
    example = data.draw(datasets(missing=not ending.startswith(".svm")))
    path = tmp_path / f"data{ending}"
    save_file(example, path, labels_first=data.draw(st.booleans()))
    assert_same(as_read_back(example, ending), load_file(path))


@pytest.mark.parametrize("ending", ENDINGS)
def test_sparse_labels_on_request(tmp_path, ending):
    data, path = small(is_sparse=True), tmp_path / f"data{ending}"
    save_file(data, path)
    read = load_file(path, sparse_labels=True)
    assert sparse.issparse(read.Y)
    assert read.Y.dtype == np.int8
    np.testing.assert_array_equal(read.Y.toarray(), data.Y)
    save_file(read, tmp_path / f"again{ending}")
    np.testing.assert_array_equal(load_file(tmp_path / f"again{ending}").Y, data.Y)


@pytest.mark.parametrize("ending", [".arff", ".npz", ".mat", ".parquet"])
def test_categories_are_kept(tmp_path, ending):
    X = np.array([[1.5, 3, 0], [2.5, 1, 1], [0.0, 2, 0], [1.0, 2, 1]])
    data = Dataset(X, [[1], [0], [1], [0]], categorical_index=[1])
    save_file(data, tmp_path / f"data{ending}")
    read = load_file(tmp_path / f"data{ending}")
    assert_same(data, read)
    assert read.categorical_index.tolist() == [1]


def test_sparse_categories_keep_their_zeros(tmp_path):
    X = sparse.csr_array(np.array([[1.5, 3], [0, 0], [0, 2], [0, 1]]))
    save_file(Dataset(X, [[1], [0], [1], [0]], categorical_index=[1]), tmp_path / "data.arff")
    np.testing.assert_array_equal(dense(load_file(tmp_path / "data.arff").X), dense(X))


@pytest.mark.parametrize("ending", [".npz", ".mat"])
def test_the_split_source_is_kept(tmp_path, ending):
    data = Dataset(np.eye(4), np.eye(4), splits={"source": ([2, 0], [1, 3])})
    save_file(data, tmp_path / f"data{ending}")
    read = load_file(tmp_path / f"data{ending}")
    assert read.train_index.tolist() == [2, 0]
    assert read.test_index.tolist() == [1, 3]


def test_convert_goes_through_all_formats(tmp_path):
    data = small(is_sparse=True)
    save_file(data, tmp_path / "0.npz")
    for i, ending in enumerate([".arff", ".svm.gz", ".mat", ".npz"]):
        before = next(tmp_path.glob(f"{i}.[!x]*"))
        convert(before, tmp_path / f"{i + 1}{ending}")
    assert_same(data, load_file(tmp_path / "4.npz"))


def test_yeast_reads_back_equal(tmp_path):
    data = load("yeast")
    save_file(data, tmp_path / "yeast.arff")
    again = load("yeast", tmp_path)
    assert_same(data, again)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "data.arff"
    path.write_text("precious")
    broken = Dataset([[np.inf]], [[1]])
    with pytest.raises(DataFormatError, match=r"data.arff: infinite values cannot be written: X has 1"):
        save_file(broken, path)
    assert path.read_text() == "precious"
    assert [file.name for file in tmp_path.iterdir()] == ["data.arff"]


def test_packed_files_are_packed(tmp_path):
    save_file(small(), tmp_path / "data.arff.gz")
    assert gzip.decompress((tmp_path / "data.arff.gz").read_bytes()).startswith(b"@relation")


@pytest.mark.parametrize(
    ("ending", "name"),
    [(".arff", "a\x00b"), (".csv", "a\x0bb"), (".mat", "\ud800"), (".svm", "\ud800")],
)
def test_names_that_a_format_cannot_hold_are_refused(tmp_path, ending, name):
    with pytest.raises(DataFormatError):
        save_file(Dataset([[1.0]], [[1]], label_names=[name]), tmp_path / f"data{ending}")
    assert not list(tmp_path.iterdir())


def plain(is_sparse):
    """Return a data set with names that every reader takes."""
    data = small(is_sparse)
    names = [[f"{letter}{i}" for i in range(size)] for letter, size in (("f", data.n_features), ("l", data.n_labels))]
    return Dataset(data.X, data.Y, *names)


def test_scipy_reads_our_arff(tmp_path):
    data = plain(is_sparse=False)
    save_file(data, tmp_path / "data.arff")
    table, meta = loadarff(tmp_path / "data.arff")
    assert tuple(meta.names()) == data.feature_names + data.label_names
    for j, name in enumerate(data.feature_names):
        np.testing.assert_array_equal(table[name], data.X[:, j])
    np.testing.assert_array_equal(table["l0"].astype(int), data.Y[:, 0])


def test_sklearn_reads_our_svmlight(tmp_path):
    data = plain(is_sparse=True)
    save_file(data, tmp_path / "data.svm")
    X, labels = load_svmlight_file(str(tmp_path / "data.svm"), n_features=data.n_features, multilabel=True)
    np.testing.assert_array_equal(X.toarray(), data.X.toarray())
    assert [sorted(map(int, row)) for row in labels] == [np.flatnonzero(row).tolist() for row in data.Y]


def test_we_read_the_svmlight_of_sklearn(tmp_path):
    data = plain(is_sparse=True)
    X, Y = data.take(slice(2, None))  # sklearn writes a row with neither labels nor features as a blank line
    dump_svmlight_file(X, Y, str(tmp_path / "data.svm"), multilabel=True, zero_based=False)
    read = load_file(tmp_path / "data.svm")
    np.testing.assert_allclose(read.X.toarray(), X.toarray()[:, : read.n_features], rtol=1e-12)
    np.testing.assert_array_equal(read.Y, Y)


@pytest.mark.parametrize("ending", ["svm", "arff"])
def test_sparse_rows_are_stored_without_gaps(tmp_path, ending):
    """scikit-learn's scalers refuse arrays that are not contiguous."""
    save_file(small(is_sparse=True), tmp_path / f"data.{ending}")
    X = load_file(tmp_path / f"data.{ending}").X
    assert all(array.flags.c_contiguous for array in (X.data, X.indices, X.indptr))
