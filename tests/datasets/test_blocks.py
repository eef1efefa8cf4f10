"""Files in blocks: the same rows as in the whole file, for every format, and errors for bad files."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

from rbrl.datasets import Columns, Dataset, load_file, load_parts, read_blocks, save_file
from rbrl.exceptions import DataFormatError, GuessWarning

from .examples import dense, small
from .test_dialects import MEKA, MULAN, NOMINAL, XML

ENDINGS = ["csv", "csv.gz", "tsv", "arff", "arff.gz", "svm", "npz", "mat", "parquet"]


def join(*arguments, **options):
    """All blocks, one below the other."""
    return np.vstack([dense(X) for X in read_blocks(*arguments, **options)])


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("size", [1, 5, 4096, 0])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_blocks_are_the_rows_of_the_file(tmp_path, ending, size, is_sparse):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"small.{ending}"
    save_file(small(is_sparse), path)
    whole = load_file(path).X
    blocks = list(read_blocks(path, whole.shape[1], block_size=size))
    assert max(X.shape[0] for X in blocks) <= (size or len(dense(whole)))
    assert {sparse.issparse(X) for X in blocks} == {sparse.issparse(whole)}
    np.testing.assert_array_equal(np.vstack([dense(X) for X in blocks]), dense(whole))


@pytest.mark.parametrize("text", [MULAN, MEKA, NOMINAL], ids=["Mulan", "MEKA", "nominal"])
def test_dialects_of_arff(tmp_path, text):
    """Comments, missing values, sparse rows with defaults, nominal words: a block knows what the header declared."""
    path = tmp_path / "example.arff"
    path.write_text(text, encoding="utf-8")
    if text is MULAN:
        (tmp_path / "example.xml").write_text(XML, encoding="utf-8")
    whole = dense(load_file(path).X)
    np.testing.assert_array_equal(join(path, whole.shape[1], block_size=1), whole)


@pytest.mark.parametrize("ending", ["csv", "arff", "parquet"])
def test_rows_without_labels(tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    data = small()
    path = tmp_path / f"new.{ending}"
    save_file(Dataset(data.X[:, :-1], data.X[:, -1:] > 0, data.feature_names[:-1], ["y"]), path)
    if ending != "parquet":
        (tmp_path / "new.xml").unlink()
    whole = join(path, data.n_features, block_size=5)
    np.testing.assert_array_equal(whole[:, :-1], data.X[:, :-1])
    np.testing.assert_array_equal(whole[:, -1], data.X[:, -1] > 0)


def test_labels_are_not_read(tmp_path):
    """New rows often have a question mark, or anything, where their labels would be."""
    path = tmp_path / "new.csv"
    path.write_text("x,y,sea\n1,2,?\n3,4,maybe\n", encoding="utf-8")
    np.testing.assert_array_equal(join(path, 2, ["sea"]), [[1, 2], [3, 4]])
    path = tmp_path / "new.arff"
    path.write_text("@relation r\n@attribute x numeric\n@attribute sea {0,1}\n@data\n1,?\n2,?\n", encoding="utf-8")
    np.testing.assert_array_equal(join(path, 1, -1, block_size=1), [[1], [2]])


@pytest.mark.parametrize("base", [0, 1])
def test_svmlight_base_is_found_in_the_whole_file(tmp_path, base):
    """The feature 0 that tells where counting starts may stand in the last block only."""
    X = small().X
    X[:10, 0], X[10:, 0] = 0, 3
    lines = [" ".join(["0", *(f"{j + base}:{v!r}" for j, v in enumerate(row) if v)]) for row in X.tolist()]
    path = tmp_path / "new.svm"
    path.write_text("# a comment: 0:1\n" + "\n".join(lines) + "\n", encoding="utf-8")
    np.testing.assert_array_equal(join(path, X.shape[1], block_size=4), X)


def test_header_of_the_extreme_classification_repository(tmp_path):
    path = tmp_path / "xc.txt"
    path.write_text("3 4 2\n0 1:0.5\n1 3:2\n\n0,1 0:1 # end\n", encoding="utf-8")
    np.testing.assert_array_equal(join(path, 4, block_size=2), load_file(path).X.toarray())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_byte_order_marks_and_latin_1(tmp_path, encoding):
    """Without a mark, a file that is not UTF-8 is Latin-1, as for `load_file`."""
    path = tmp_path / "new.csv"
    path.write_text("Größe,Straße\n1,2\n", encoding=encoding)
    np.testing.assert_array_equal(join(path, 2), [[1, 2]])


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", b"f0,f1\n1,2\n", {}, "does not say which of its 2 columns are labels"),
        ("a.csv", b"a,b,c\n1,2\n", {}, "line 2: a row has 2 cells, the header 3 columns"),
        ("a.csv", b"a,b,c\n1,2,3\n\n1,?,red\n", {}, "line 4: column 'c' has 'red': the code of a word depends on"),
        ("a.csv", b"a,b,c,d\n1,2,3,4\n", {"labels": -2}, "it has 2 features; there should be 3"),
        ("a.csv", b"a,b,c\n", {}, "it has no rows"),
        ("a.csv", b"", {}, "there is no header of column names"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00", {}, "damaged gzip file"),
        ("a.svm", b"1 1:2 2:x\n", {}, "line 1: feature 2 must be a finite number; got 'x'"),
        ("a.svm", b"1 1:2\n1 4:1\n", {}, "line 2: feature 4 is not among the 3 features that the model needs"),
        (
            "a.svm",
            b"1 1:2\n",
            {"labels": 1},
            "labels= goes with ARFF, CSV and Parquet files; this is a svmlight file; got labels=1",
        ),
        ("a.svm", b'# rbrl: {"n_features": 5, "n_labels": 1}\n0 1:2\n', {}, "it has 5 features; there should be 3"),
        ("a.arff", b"@relation r\n@attribute a numeric\n@data\n1\nx\n", {"n_features": 1}, "line 5: 'a' is numeric"),
        ("a.arff", b"@relation r\n@attribute a numeric\n", {"n_features": 1}, "ends after 2 lines without @data"),
        ("a.parquet", b"nonsense", {}, "not a readable Parquet file"),
        ("a.doc", b"nonsense", {}, "the ending '.doc' belongs to no format"),
    ],
)
def test_errors_name_the_reason(tmp_path, name, content, options, message):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataFormatError) as caught:
        list(read_blocks(path, **{"n_features": 3, "block_size": 1, **options}))
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_words_in_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1.0, 2.0], "b": ["red", "red"]}), tmp_path / "a.parquet")
    with pytest.raises(DataFormatError, match="column 'b' has 'red': the code of a word depends on the whole file"):
        list(read_blocks(tmp_path / "a.parquet", 2))


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        next(read_blocks(tmp_path / "absent.csv", 2))


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "long.csv"
    peaks = []
    for n_rows in (2_000, 20_000):
        path.write_text("a,b,c\n" + "1.25,2.5,3\n" * n_rows, encoding="utf-8")
        tracemalloc.start()
        assert sum(len(X) for X in read_blocks(path, 3, block_size=500)) == n_rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_the_model_determines_the_base_of_features(tmp_path):
    path = tmp_path / "new.svm"
    path.write_text("0 1:5 2:6\n", encoding="utf-8")
    for base, row in ((0, [0, 5, 6]), (1, [5, 6, 0])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(join(path, Columns(3, first_feature=base)), [row])
            np.testing.assert_array_equal(join(path, Columns(3, first_feature=1 - base), first_feature=base), [row])
            given = load_file(path, first_feature=base, n_features=3)
            assert (given.first_feature, given.first_label) == (base, 0)
    with pytest.raises(ValueError, match="first_feature must be 0, 1 or None; got 2"):
        load_file(path, first_feature=2)


def test_a_guess_is_a_warning(tmp_path):
    path = tmp_path / "new.svm"
    path.write_text("1 1:5 2:6\n2 1:1\n", encoding="utf-8")
    message = "features and labels are assumed to start at 1, .* pass first_feature=0 and first_label=0"
    with pytest.warns(GuessWarning, match=message) as caught:
        dataset = load_file(path)
    assert [warning.filename for warning in caught] == [__file__]
    assert (dataset.first_feature, dataset.first_label, dataset.X.shape, dataset.Y.shape) == (1, 1, (2, 2), (2, 2))
    with pytest.warns(GuessWarning, match=message) as caught:
        list(load_parts(path, rows=1))
    assert len(caught) == 1
    with pytest.warns(GuessWarning, match="its features are assumed"):
        join(path, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_file(path, first_feature=0, first_label=0).X.shape == (2, 3)
        assert [part.X.shape[1] for part in load_parts(path, rows=1, first_feature=0, first_label=0)] == [3, 3]
