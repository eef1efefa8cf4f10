"""The MATLAB reader, with files that SciPy writes and with damaged files."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from rbrl.datasets import load_file
from rbrl.exceptions import DataFormatError

EYE = np.eye(3)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_types(tmp_path, kind, packed):
    X = np.arange(6).reshape(3, 2).astype(kind)
    savemat(tmp_path / "d.mat", {"X": X, "Y": EYE.astype(kind)}, do_compression=packed)
    data = load_file(tmp_path / "d.mat")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y, EYE)


def test_other_variables_are_skipped(tmp_path):
    others = {"bags": np.array([[EYE, "text"]], dtype=object), "options": {"a": 1}, "z": np.array([1 + 2j])}
    savemat(tmp_path / "d.mat", {**others, "X": EYE, "Y": EYE})
    assert load_file(tmp_path / "d.mat").X.shape == (3, 3)


def test_names_as_a_matrix_of_letters(tmp_path):
    savemat(tmp_path / "d.mat", {"X": EYE, "Y": EYE, "label_names": np.array(["a", "bcd", "ef"])})
    assert load_file(tmp_path / "d.mat").label_names == ("a", "bcd", "ef")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": EYE}, r"it needs variables X and Y.*it has \['X'\]"),
        ({"X": EYE, "Y": "text"}, "Y must be a matrix of numbers; got"),
        ({"X": EYE * 1j, "Y": EYE}, "'X' is complex"),
        ({"X": EYE, "Y": EYE * 2}, "labels must be 0 and 1, or -1 and 1; got 2.0"),
        ({"X": EYE, "Y": np.eye(4)}, "3 rows do not go with labels of shape"),
        ({"X": {"a": 1}, "Y": EYE}, "'X' is of class 2"),
        ({"X": EYE, "Y": EYE, "label_names": EYE}, "label_names must be a cell array of texts"),
        ({"X": EYE, "Y": EYE, "label_names": np.array([EYE, "b", "c"], dtype=object)}, "a cell must hold text"),
        ({"X": EYE, "Y": EYE, "train_index": [1.5], "test_index": [2]}, "train_index must be whole numbers"),
    ],
)
def test_wrong_variables(tmp_path, variables, message):
    savemat(tmp_path / "d.mat", variables)
    with pytest.raises(DataFormatError, match=message):
        load_file(tmp_path / "d.mat")


def test_truncated_and_changed_files_cause_no_crash(tmp_path):
    path = tmp_path / "d.mat"
    savemat(path, {"X": sparse.csc_array(EYE), "Y": EYE})
    whole = path.read_bytes()
    damaged = [whole[:size] for size in range(0, len(whole), 7)]
    damaged += [whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1 :] for i in range(len(whole))]
    n_read = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            n_read += load_file(path).n_samples == 3
        except DataFormatError:
            continue
    assert 0 < n_read < len(damaged)
