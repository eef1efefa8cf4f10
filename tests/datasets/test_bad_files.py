"""A bad file raises a DataFormatError with the file, the line and the reason."""

import gzip
import zipfile

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from rbrl.datasets import Dataset, load_file, load_parts, save_file
from rbrl.exceptions import DataFormatError

HEAD = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x numeric\n@attribute n {a,b}\n"
ARFF = [
    ("", r"line 0|without @data"),
    ("@relation r\n@data\n1\n", "line 2: there is no @attribute"),
    ("@relation r\nhello\n", "line 2: expected @relation.*'hello'"),
    ("@relation r\n@attribute x string\n@data\n", "line 2: attribute 'x' has type 'string'"),
    ("@relation r\n@attribute x\n@data\n", "line 2: attribute 'x' has type ''"),
    ("@relation r\n@attribute 'x numeric\n", "line 2: an attribute needs a name"),
    ("@relation r\n@attribute x {a,b\n", "line 2: the list of values is not closed"),
    ("@relation r\n@attribute x {}\n", "line 2: a nominal attribute needs values"),
    (HEAD, "line 4"),
    (HEAD + "@data\n", "line 5: there are no rows"),
    (HEAD + "@data\n1,2,a\n1,2\n", "line 7: a row has 2 values, the header 3"),
    (HEAD + "@data\n1,2,a,4\n", "line 6: a row has 4 values"),
    (HEAD + "@data\n1,2,a\n\n1,two,a\n", "line 8: 'x' is numeric; got 'two'"),
    (HEAD + "@data\n1,inf,a\n", "line 6: 'x' is numeric; got 'inf'"),
    (HEAD + "@data\n1,2,c\n", "line 6: 'n' must be one of 'a', 'b'; got 'c'"),
    (HEAD + "@data\n2,2,a\n", "line 6: 'y' must be one of"),
    (HEAD + "@data\n1,2,'a\n", "line 6"),
    (HEAD + "@data\n1,2,a\n{0 1}\n", "line 7"),
    (HEAD + "@data\n{0 1}\n1,2,a\n", "line 7: a dense row among sparse ones"),
    (HEAD + "@data\n{0 1}\n{3 1}\n", "line 7: index 3 is beyond the 3 attributes"),
    (HEAD + "@data\n{1 1,1 2}\n", "line 6: index 1 occurs twice"),
    (HEAD + "@data\n{1 2 3}\n", "line 6: expected 'index value'"),
    (HEAD + "@data\n{1 2} x\n", "line 6: unexpected 'x'"),
    (HEAD + "@data\n{1 1_0}\n", "line 6: 'x' is numeric; got '1_0'"),
    (HEAD + "@data\n{0 1", "line 6: expected 'index value'"),
    (HEAD.replace("-C 1", "-C 9") + "@data\n1,2,a\n", "9 labels cannot be taken from 3 columns"),
    (HEAD.replace("-C 1", "") + "@data\n1,2,a\n", "does not say which of its 3 columns are labels"),
    (HEAD + "@data\n?,2,a\n'?',2,a\n", "line 7: 'y' must be one of"),
    (HEAD.replace("{0,1}", "{0,1,2}") + "@data\n1,2,a\n2,2,a\n", "line 7: the label 'y' must be 0 or 1; got '2'"),
]
SVMLIGHT = [
    ("", "no rows"),
    ("1,x 2:3\n", "line 1: labels must be numbers"),
    ("0 2:3\n1,1 2:3\n", "line 2: a label occurs twice"),
    ("0 2:3 2:4\n", "line 1: feature 2 occurs twice"),
    ("0 2:x\n", "line 1: feature 2 must be a finite number; got 'x'"),
    ("0 2:nan\n", "line 1: feature 2 must be a finite number"),
    ("0 2:1_0\n", "line 1: feature 2 must be a finite number; got '1_0'"),
    ("0 1:1\n0 2 3\n", "line 2: expected index:value; got '2'"),
    ("3 3 1\n0 1:1\n", "announces 3 rows; there are 1"),
    ("0 99999999999999:1\n", "line 1: expected index:value"),
    ("1 3 1\n0 5:1\n", "line 2: feature 5 is not among the 3"),
    ("# rbrl: {\n0 1:1\n", "line 1: the comment .* is not JSON"),
    ("# rbrl: []\n0 1:1\n", "line 1: the comment .* must give n_features"),
    (" 1:1\n", "none of its 1 rows has a label"),
    ("0 1:1\n536870000 1:1\n", "too large for a dense array"),
]
CSV = [
    ("", "line 1: there is no header"),
    ("a,y\n", "line 1: there are no rows"),
    ("a,y\n1,0\n1\n", "line 3: a row has 1 cells, the header 2 columns"),
    ("a,y\n1,0\n1,2\n", "line 3: the label 'y' must be 0 or 1"),
    ('a,y\n1,"0\n', "unexpected end of data"),
    ("a;y\n1,5;0\n", "line 2: column 'a' has '1,5', a decimal comma"),
    ("a,y\n1,maybe\n", "the label 'y' has the word 'maybe', which may mean 1 or 0.*positive='maybe'"),
]


def check(path, text, message, **options):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataFormatError, match=message) as caught:
        load_file(path, **options)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("text", "message"), ARFF)
def test_bad_arff(tmp_path, text, message):
    check(tmp_path / "bad.arff", text, message)


@pytest.mark.parametrize(("text", "message"), SVMLIGHT)
def test_bad_svmlight(tmp_path, text, message):
    check(tmp_path / "bad.svm", text, message)


@pytest.mark.parametrize(("text", "message"), CSV)
def test_bad_csv(tmp_path, text, message):
    check(tmp_path / "bad.csv", text, message, labels=["y"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<!DOCTYPE l [<!ENTITY a "b">]><labels><label name="&a;"/></labels>',
            "line 1: a DOCTYPE .'l'. is not allowed",
        ),
        ("<labels><label/></labels>", "a <label> has no name"),
        ("<labels></labels>", "it names no labels"),
        ("<labels>\n<label name='y'>", "line 2: not XML"),
        ('<?xml version="1.0" encoding="nonsense"?><labels/>', "not XML"),
        ("<labels><label name='z'/></labels>", "no column 'z'"),
        ("<labels><label name='y'/><label name='y'/></labels>", "'y' is named 2 times"),
    ],
)
def test_bad_xml(tmp_path, text, message):
    (tmp_path / "data.arff").write_text(HEAD + "@data\n1,2,a\n")
    (tmp_path / "data.xml").write_text(text)
    with pytest.raises(DataFormatError, match=message):
        load_file(tmp_path / "data.arff")


@pytest.mark.parametrize("ending", [".arff.gz", ".csv.gz", ".svm.gz"])
def test_decompression_stops_at_the_limit(tmp_path, ending):
    check(
        tmp_path / f"bomb{ending}", gzip.compress(b"%" * 50_000_000), "longer than 1000000 bytes", max_bytes=1_000_000
    )


@pytest.mark.parametrize("ending", [".npz", ".mat"])
def test_compressed_matrices_stop_at_the_limit(tmp_path, ending):
    save_file(Dataset(np.zeros((1000, 1000)), np.zeros((1000, 1))), tmp_path / f"zeros{ending}")
    with pytest.raises(DataFormatError, match="1000000 bytes"):
        load_file(tmp_path / f"zeros{ending}", max_bytes=1_000_000)


def test_an_array_cannot_claim_more_than_its_file(tmp_path):
    header = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 9), }"
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as archive:
        archive.writestr("X.npy", header.ljust(127) + b"\n")
    with pytest.raises(DataFormatError, match=r"shape \(99999999999, 9\) does not fit"):
        load_file(tmp_path / "data.npz")


def test_objects_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.array([{}], dtype=object), Y=[[1]])
    with pytest.raises(DataFormatError, match="is not numbers or text"):
        load_file(tmp_path / "data.npz")


@pytest.mark.parametrize("ending", [".npz", ".mat", ".parquet", ".arff.gz"])
@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8b", b"PK\x03\x04 nothing", b"MATLAB 5.0" * 20, b"PAR1 PAR1", b"\x00" * 500]
)
def test_nonsense(tmp_path, ending, content):
    check(tmp_path / f"bad{ending}", content, "bad")


def test_unknown_ending(tmp_path):
    check(tmp_path / "data.xls", b"", "the ending '.xls' belongs to no format")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.arff"):
        load_file(tmp_path / "none.arff")


def test_numeric_labels_must_be_zero_or_one(tmp_path):
    text = "@relation r\n@attribute x numeric\n@attribute y numeric\n@data\n1,0\n2,0.5\n"
    check(tmp_path / "data.arff", text, "line 6: the label 'y' must be 0 or 1; got '0.5'", labels=-1)


@pytest.mark.parametrize("ending", ["npz", "mat", "parquet", "csv", "arff", "svm"])
def test_too_little_memory_is_a_memory_error(tmp_path, ending, monkeypatch):
    """Nothing is wrong with the file."""
    path = tmp_path / f"data.{ending}"
    save_file(Dataset(np.eye(3), np.eye(3)), path)

    def exhausted(*arguments, **options):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("rbrl.datasets.dataset.Dataset.__init__", exhausted)
    monkeypatch.setattr("numpy.frombuffer", exhausted)
    with pytest.raises(
        MemoryError, match=rf"data\.{ending}: there is not enough memory to read it \(Unable.*load_parts"
    ):
        load_file(path)
    with pytest.raises(MemoryError, match=rf"^\S*data\.{ending}: there is not enough memory to read it \(Unable"):
        list(load_parts(path))


@pytest.mark.parametrize("encoding", ["gbk", "shift_jis", "big5", "euc-kr", "utf-16", "windows-1251"])
def test_xml_in_any_encoding(tmp_path, encoding):
    name = "вес" if encoding == "windows-1251" else "重"
    head = HEAD.replace("y {0,1}", f"{name} {{0,1}}")
    (tmp_path / "data.arff").write_text(head + "@data\n1,2,a\n", encoding="utf-8")
    xml = f'<?xml version="1.0" encoding="{encoding}"?>\n<labels><label name="{name}"/></labels>'
    (tmp_path / "data.xml").write_bytes(xml.encode(encoding))
    assert load_file(tmp_path / "data.arff").label_names == (name,)


@pytest.mark.parametrize(("declared", "content"), [("gbk", b"\xff\xff"), ("shift_jis", b"<\x80"), ("punycode", b"x")])
def test_xml_in_another_encoding_than_declared(tmp_path, declared, content):
    (tmp_path / "data.arff").write_text(HEAD + "@data\n1,2,a\n")
    (tmp_path / "data.xml").write_bytes(b'<?xml version="1.0" encoding="%s"?>' % declared.encode() + content)
    with pytest.raises(DataFormatError, match=r"data\.xml.*not XML"):
        load_file(tmp_path / "data.arff")


@pytest.mark.parametrize("ending", ["npz", "mat"])
def test_decreasing_starts_of_a_sparse_matrix_are_refused(tmp_path, ending):
    """SciPy's check passes over them where the last is 0; its conversion then writes where it must not."""
    path = tmp_path / f"data.{ending}"
    if ending == "npz":
        arrays = {"X_data": [1.0, 1.0], "X_indices": [2, 2], "X_indptr": [0, 1, 0], "X_shape": [2, 3]}
        np.savez(path, Y=np.eye(2), **arrays)
    else:
        X = sparse.csc_array(np.ones((3, 2)))
        savemat(path, {"X": X, "Y": np.eye(3)})
        content = path.read_bytes()
        starts, broken = (np.array(numbers, dtype="<i4").tobytes() for numbers in ([0, 3, 6], [0, 3, 0]))
        assert content.count(starts) == 1
        path.write_bytes(content.replace(starts, broken))
    with pytest.raises(DataFormatError, match=r"data\.\w+: .*(starts must rise|the sparse matrix 'X')"):
        load_file(path)


def test_sparse_arrays_in_any_order_and_type_are_read(tmp_path):
    arrays = {"X_data": np.array([1, 2, 3], ">f4"), "X_indices": [2, 0, 0], "X_indptr": [0, 2, 3], "X_shape": [2, 3]}
    np.savez(tmp_path / "data.npz", Y=np.eye(2), **arrays)
    np.testing.assert_array_equal(load_file(tmp_path / "data.npz").X.toarray(), [[2, 0, 1], [3, 0, 0]])


def test_damaged_compression_is_an_error(tmp_path):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", bytes(1000))
    content = bytearray(path.read_bytes())
    content[45:60] = b"\xff" * 15
    check(path, bytes(content), "not a readable NPZ file")
