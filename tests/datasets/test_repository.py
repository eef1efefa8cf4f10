"""Files of the extreme classification repository, and pairs of NPZ files."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from typer.testing import CliRunner

from rbrl.cli.app import app
from rbrl.cli.sources import Source
from rbrl.datasets import Dataset, convert, load_file, load_parts, open_shards, read_blocks, save_file, write_shards
from rbrl.exceptions import DataFormatError

from .examples import datasets, dense, small

ENDINGS = [".xmc", ".xmc.gz", ".X.npz"]
TEXT = "4 3 5\n0,4 0:0.5 2:1\n 1:2.25\n \n3\n"
X = np.array([[0.5, 0, 1], [0, 2.25, 0], [0, 0, 0], [0, 0, 0]])
Y = np.array([[1, 0, 0, 0, 1], [0] * 5, [0] * 5, [0, 0, 0, 1, 0]])


@pytest.mark.parametrize("name", ["data.xmc", "train.txt", "data.svm"])
def test_a_file_of_the_repository(tmp_path, name):
    """Rows without labels begin with a space; the line of sizes shows the format in every text file."""
    path = tmp_path / name
    path.write_text(TEXT)
    data = load_file(path)
    assert sparse.issparse(data.Y)
    np.testing.assert_array_equal(dense(data.X), X)
    np.testing.assert_array_equal(dense(data.Y), Y)
    blocks = list(read_blocks(path, 3, block_size=3))
    np.testing.assert_array_equal(np.vstack([dense(block) for block in blocks]), X)
    parts = list(load_parts(path, rows=3))
    assert all(sparse.issparse(part.Y) for part in parts)
    np.testing.assert_array_equal(np.vstack([dense(part.Y) for part in parts]), Y)


def test_the_text_that_is_written(tmp_path):
    save_file(Dataset(sparse.csr_array(X), Y), tmp_path / "data.xmc")
    assert (tmp_path / "data.xmc").read_text() == TEXT
    save_file(Dataset(X, sparse.csr_array(Y)), tmp_path / "data.xmc.gz")
    assert gzip.decompress((tmp_path / "data.xmc.gz").read_bytes()).decode() == TEXT


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_data(tmp_path, ending, data):
    example = data.draw(datasets())
    path = tmp_path / f"data{ending}"
    save_file(example, path)
    read = load_file(path)
    assert sparse.issparse(read.X)
    assert sparse.issparse(read.Y)
    np.testing.assert_array_equal(dense(read.X), dense(example.X))
    np.testing.assert_array_equal(dense(read.Y), dense(example.Y))


@pytest.mark.parametrize("name", ["train.X.npz", "X.trn.npz"])
def test_a_pair_of_scipy(tmp_path, name):
    sparse.save_npz(tmp_path / name, sparse.csr_matrix(X.astype(np.float32)))
    sparse.save_npz(tmp_path / name.replace("X", "Y"), sparse.csr_array(Y.astype(bool)))
    data = load_file(tmp_path / name)
    assert data.name == name.split(".")[0 if name.startswith("train") else 1]
    assert sparse.issparse(data.Y)
    np.testing.assert_array_equal(dense(data.X), X)
    np.testing.assert_array_equal(dense(data.Y), Y)


def test_scipy_reads_our_pairs(tmp_path):
    save_file(Dataset(X, Y), tmp_path / "new.X.npz")
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "new.X.npz").toarray(), X)
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "new.Y.npz").toarray(), Y)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.X.npz", "new.Y.npz"]


def test_features_of_a_pair_need_no_labels(tmp_path):
    sparse.save_npz(tmp_path / "new.X.npz", sparse.csr_matrix(X))
    (block,) = read_blocks(tmp_path / "new.X.npz", 3)
    np.testing.assert_array_equal(dense(block), X)
    with pytest.raises(DataFormatError, match=r"labels of the pair are in new\.Y\.npz, which is missing"):
        load_file(tmp_path / "new.X.npz")


def test_convert_goes_through_both_formats(tmp_path):
    data = small(is_sparse=True)
    save_file(data, tmp_path / "0.npz")
    for source, target in [("0.npz", "1.xmc"), ("1.xmc", "2.X.npz"), ("2.X.npz", "3.xmc.gz"), ("3.xmc.gz", "4.npz")]:
        convert(tmp_path / source, tmp_path / target)
    read = load_file(tmp_path / "4.npz", sparse_labels=True)
    np.testing.assert_array_equal(dense(read.X), dense(data.X))
    np.testing.assert_array_equal(dense(read.Y), data.Y)


def test_shards(tmp_path):
    save_file(small(is_sparse=True), tmp_path / "all.xmc")
    write_shards(tmp_path / "all.xmc", tmp_path / "shards", 5)
    assert len(open_shards(tmp_path / "shards")) == 3
    (tmp_path / "pairs").mkdir()
    for i in range(2):
        save_file(small(is_sparse=True), tmp_path / "pairs" / f"{i}.X.npz")
    shards = open_shards(tmp_path / "pairs")
    assert [path.name for path in shards.paths] == ["0.X.npz", "1.X.npz"]
    assert sparse.issparse(shards[0].Y)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: a file of the extreme .* rows, features and labels; got ''; name a file without them \.svm"),
        ("0 1:2\n", "line 1: a file of the extreme .* got '0 1:2'"),
        ("2 3 5\n1 0:1\n", "line 1: the first line announces 2 rows; there are 1"),
        ("1 3 5\n1 3:1\n", "line 2: feature 3 is not among the 3 features that the first line announces, .* from 0"),
        ("2 3 5\n1 0:1\n1,5 0:1\n", "line 3: label 5 is not among the 5 labels that the first line announces"),
        ("1 3 5\n1,1 0:1\n", "line 2: a label occurs twice: '1,1'"),
        ("1 3 5\n1, 0:1\n", "line 2: labels must be numbers from 0, with commas; got '1,'"),
        ("1 3 5\n1 0:one\n", "line 2: feature 0 must be a finite number; got 'one'"),
        ("1 3 5\n1 0:1 0:2\n", "line 2: feature 0 occurs twice in a row"),
    ],
)
def test_wrong_files_of_the_repository(tmp_path, text, message):
    path = tmp_path / "bad.xmc"
    path.write_text(text)
    with pytest.raises(DataFormatError, match=message) as caught:
        load_file(path)
    assert str(caught.value).startswith(str(path))


def test_wrong_pairs(tmp_path):
    path = tmp_path / "bad.X.npz"
    sparse.save_npz(tmp_path / "bad.Y.npz", sparse.csr_matrix(Y[:3]))
    np.savez(path, X=X, Y=Y)
    with pytest.raises(DataFormatError, match=r"must be a CSR matrix; got .*'X', 'Y'.*tocsr.*rename it"):
        load_file(path)
    assert load_file(path, format="npz").n_labels == 5
    sparse.save_npz(path, sparse.csc_matrix(X))
    with pytest.raises(DataFormatError, match=r"must be a CSR matrix; got the format 'csc'"):
        load_file(path)
    sparse.save_npz(path, sparse.csr_matrix(X))
    with pytest.raises(DataFormatError, match=r"as many rows; bad\.X\.npz has 4, bad\.Y\.npz 3"):
        load_file(path)
    sparse.save_npz(tmp_path / "bad.Y.npz", sparse.csr_matrix(2 * Y))
    with pytest.raises(DataFormatError, match=r"bad\.X\.npz: labels must be 0 or 1; got .*2"):
        load_file(path)
    with pytest.raises(DataFormatError, match=r"'\.Y\.npz' belongs to no format"):
        load_file(tmp_path / "bad.Y.npz")


@pytest.mark.parametrize("ending", [".xmc", ".X.npz"])
def test_missing_labels_are_not_written(tmp_path, ending):
    with pytest.raises(DataFormatError, match=r"missing (values|labels) cannot be written in this format"):
        save_file(Dataset([[1.0]], [[np.nan]]), tmp_path / f"data{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".xmc", ".X.npz"])
def test_commands_know_the_formats(tmp_path, ending):
    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result

    data, path, model = small(is_sparse=True), tmp_path / f"data{ending}", tmp_path / "m.rbrl"
    save_file(data, tmp_path / "data.npz")
    run("data", "convert", tmp_path / "data.npz", path)
    run("fit", path, "-o", model)
    run("evaluate", model, path)
    run("predict", model, path, "-o", tmp_path / "labels.csv")
    assert len((tmp_path / "labels.csv").read_text().splitlines()) in (12, 13)


def test_both_files_of_a_pair_are_inputs(tmp_path):
    save_file(Dataset(X, Y), tmp_path / "a.X.npz")
    inputs = Source(str(tmp_path / "a.X.npz")).find_input_files()
    assert {tmp_path / "a.X.npz", tmp_path / "a.Y.npz"} <= set(inputs)
