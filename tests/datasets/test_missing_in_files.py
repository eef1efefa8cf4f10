"""Data sets with missing labels: they are NaN, are counted, and are written and read."""

import numpy as np
import pytest
from scipy import sparse

from rbrl.datasets import Dataset, load_file, save_file
from rbrl.datasets.dataset import row_digests
from rbrl.exceptions import DataFormatError

from .examples import small

KEEP_THEM = [".arff", ".arff.gz", ".csv", ".tsv", ".mat", ".npz", ".parquet"]


def hidden(is_sparse=False):
    """A small set whose labels are partly missing, one row and one label wholly."""
    data = small(is_sparse)
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.3, np.nan, data.Y)
    Y[1], Y[:, 2] = np.nan, np.nan
    return Dataset(data.X, Y, data.feature_names, data.label_names)


def test_missing_labels_are_nan_in_a_dense_matrix():
    data = hidden()
    assert data.Y.dtype == np.float32
    assert data.missing_labels == np.isnan(data.Y).sum() > 0
    assert Dataset(data.X, np.nan_to_num(data.Y)).Y.dtype == np.int8
    assert Dataset(data.X, np.nan_to_num(data.Y)).missing_labels == 0


def test_summary_and_repr_count_missing_labels():
    data = Dataset(np.eye(2), [[1, np.nan, 0], [np.nan, 1, 1]])
    summary = data.summary()
    assert (summary["missing_labels"], summary["cardinality"], summary["density"]) == (2, 1.5, 0.75)
    assert "labels per sample 1.500, 2 entries missing" in repr(data)
    assert "missing_labels" not in Dataset(np.eye(2), np.eye(2)).summary()


def test_digests_tell_missing_labels_from_others():
    rows = [row_digests(np.ones((1, 1)), np.array([[1.0, value]])) for value in (0, 1, np.nan)]
    assert len({row.tobytes() for row in rows}) == 3


@pytest.mark.parametrize("labels_first", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("ending", KEEP_THEM)
def test_files_read_back_equal(tmp_path, ending, is_sparse, labels_first):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    data, path = hidden(is_sparse), tmp_path / f"data{ending}"
    save_file(data, path, labels_first=labels_first)
    read = load_file(path)
    assert read.Y.dtype == np.float32
    np.testing.assert_array_equal(read.Y, data.Y)
    dense = (X.toarray() if sparse.issparse(X) else X for X in (read.X, data.X))
    np.testing.assert_array_equal(*dense)


def test_svmlight_refuses_missing_labels(tmp_path):
    data = hidden()
    with pytest.raises(DataFormatError, match=f"cannot be written in this format: Y has {data.missing_labels}"):
        save_file(Dataset(np.nan_to_num(data.X), data.Y), tmp_path / "data.svm")


def test_sparse_labels_refuse_missing_labels(tmp_path):
    save_file(hidden(), tmp_path / "data.npz")
    with pytest.raises(DataFormatError, match="missing cannot be read with sparse_labels=True"):
        load_file(tmp_path / "data.npz", sparse_labels=True)


@pytest.mark.parametrize("word", ["", "?", "NA", "nan"])
def test_cells_of_csv(tmp_path, word):
    path = tmp_path / "data.csv"
    path.write_text(f"a,y,z\n1,0,yes\n2,{word},{word}\n3,1,no\n")
    data = load_file(path, labels=["y", "z"])
    np.testing.assert_array_equal(data.Y, np.array([[0, 1], [np.nan, np.nan], [1, 0]]))


def test_signed_labels_of_csv(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,y,z\n1,-1,1\n2,,-1\n")
    np.testing.assert_array_equal(load_file(path, labels=["y", "z"]).Y, np.array([[0, 1], [np.nan, 0]]))


@pytest.mark.parametrize("rows", ["1,0,a\n?,1,?\n", "{0 1, 2 a}\n{0 ?, 1 1, 2 ?}\n"])
def test_question_marks_of_arff(tmp_path, rows):
    path = tmp_path / "data.arff"
    head = "@relation 'r: -C 2'\n@attribute y {0,1}\n@attribute z {0,1}\n@attribute x {a,b}\n@data\n"
    path.write_text(head + rows)
    np.testing.assert_array_equal(load_file(path).Y, np.array([[1, 0], [np.nan, 1]]))


def test_nulls_of_parquet(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"x": [1.0, 2.0, 3.0], "y": [1, None, 0], "z": [True, False, None], "w": ["yes", None, "no"]}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    data = load_file(tmp_path / "data.parquet", labels=["y", "z", "w"])
    np.testing.assert_array_equal(data.Y, np.array([[1, 1, 1], [np.nan, 0, np.nan], [0, np.nan, 0]]))


def test_parts_keep_missing_labels():
    data = hidden()
    train, test = data.split(seed=0)
    assert np.isnan(train.Y).sum() + np.isnan(test.Y).sum() == data.missing_labels
    assert data.canonical().missing_labels == data.missing_labels
    assert data.reorder(np.arange(len(data))[::-1]).missing_labels == data.missing_labels
