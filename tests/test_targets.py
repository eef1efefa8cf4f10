"""Any target is encoded to signed labels, and predictions come back in the same coding."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from rbrl.exceptions import InvalidLabelsError
from rbrl.targets import SignedTargets, are_label_sets, label_matrix

RELEVANT = np.random.default_rng(0).random((6, 4)) < 0.5
SIGNED = np.where(RELEVANT, 1, -1)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, "float32", "float64"])
def test_zero_one_of_any_dtype(dtype):
    Y = RELEVANT.astype(dtype)
    targets = SignedTargets().fit(Y)
    np.testing.assert_array_equal(targets.encode(Y), SIGNED)
    answer = targets.decode(RELEVANT, None)
    assert answer.dtype == Y.dtype
    np.testing.assert_array_equal(answer, Y)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
def test_signed_labels_are_answered_signed(dtype):
    targets = SignedTargets().fit(SIGNED.astype(dtype))
    np.testing.assert_array_equal(targets.encode(SIGNED), SIGNED)
    np.testing.assert_array_equal(targets.decode(RELEVANT, None), SIGNED.astype(dtype))


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("values", [RELEVANT.astype(np.int64), RELEVANT, SIGNED], ids=["int", "bool", "signed"])
def test_sparse_labels_are_answered_sparse(container, values):
    Y = container(values)
    targets = SignedTargets().fit(Y)
    np.testing.assert_array_equal(targets.encode(Y), SIGNED)
    answer = targets.decode(RELEVANT, None)
    assert isinstance(answer, container)
    np.testing.assert_array_equal(answer.toarray(), values)


def test_more_labels_than_a_byte_counts():
    Y = (np.random.default_rng(0).random((5, 300)) < 0.1).astype(np.uint8)
    targets = SignedTargets().fit(Y)
    np.testing.assert_array_equal(targets.encode(Y), np.where(Y, 1, -1))
    assert targets.n_columns == 300
    assert targets.classes_[-1] == 299


@pytest.mark.parametrize(
    ("y", "kind", "columns"),
    [
        (np.array([2, 7, 7]), "binary", 1),
        (np.array(["no", "yes", "no"]), "binary", 1),
        (np.array([5, 5, 5]), "binary", 1),
        (np.array(["a", "b", "c"]), "multiclass", 3),
        (np.array([[3], [4], [5]]), "multiclass", 3),
        (np.array([[0], [1], [1]]), "multilabel", 1),
    ],
)
def test_one_column_targets(y, kind, columns):
    targets = SignedTargets().fit(y)
    Y = targets.encode(y)
    assert (targets.kind, targets.n_columns, Y.shape) == (kind, columns, (3, columns))
    np.testing.assert_array_equal(targets.decode(Y > 0, Y.astype(float)), y if kind == "multilabel" else y.ravel())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([[0, 2], [2, 0]]), "0/1 or -1/\\+1. Got the values 0, 2 in a matrix of 2 columns"),
        (np.array([[-1, 0], [1, 1]]), "Got the values -1, 0, 1"),
        (np.arange(20).reshape(2, 10), "Got the values 0, 1, 2, 3, 4, 5, ..."),
        (sparse.csr_array(np.array([[-1, 0], [1, 1]])), "Got the values -1, 0, 1"),
        (np.array([["a", "b"], ["b", "c"]]), "Got the values 'a', 'b', 'c'"),
        (np.array([0.3, 0.7]), "Unknown label type: continuous"),
        (np.array([[0.3, 1.0], [0.7, 0.0]]), "Unknown label type: continuous-multioutput"),
    ],
)
def test_other_codings_are_refused_with_what_was_received(y, message):
    with pytest.raises(InvalidLabelsError, match=message):
        SignedTargets().fit(y)


SETS = [["sun", "sea"], [], ["wind"]]
MATRIX = [[1, 1, 0], [0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    "rows",
    [
        SETS, tuple(map(tuple, SETS)), list(map(set, SETS)), list(map(frozenset, SETS)), pd.Series(SETS), pl.Series(SETS),
        np.array(SETS, dtype=object), pd.Series([np.array(row, dtype=object) for row in SETS]),
        pd.Series(list(map(set, SETS)), index=[5, 6, 7]),
    ],
    ids=lambda rows: f"{type(rows).__module__}.{type(rows).__name__}",
)  # fmt: skip
def test_label_sets_become_a_matrix_with_names(rows):
    assert are_label_sets(rows)
    Y, names = label_matrix(rows)
    assert (Y.tolist(), names) == (MATRIX, ["sea", "sun", "wind"])
    Y, names = label_matrix(rows, ["wind", "rain", "sun", "sea"])
    assert (Y.tolist(), names) == ([[0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]], ["wind", "rain", "sun", "sea"])


def test_labels_that_are_numbers_are_in_their_order():
    assert label_matrix([{10, 3}, {3}])[1] == ["3", "10"]
    assert label_matrix([{10, "x"}])[1] == ["10", "x"]


@pytest.mark.parametrize(
    "y",
    [
        [[0, 1], [1, 0]], [0, 1, 1], ["a", "b"], np.array(["a", "b"], dtype=object), np.array([["a"], ["b"]]), None,
        pd.Series(["a", "b"]), pl.Series(["a", "b"]), pl.Series([0, 1]), sparse.eye_array(2, format="csr"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_label_set_stays_as_it_is(y):
    assert not are_label_sets(y)
    assert label_matrix(y) == (y, None) if isinstance(y, list | None) else label_matrix(y)[0] is y


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_has_names(library):
    frame = library.DataFrame({"sea": [1, 0], "sun": [0, 1]})
    assert label_matrix(frame)[1] == label_matrix(frame, ["sea", "sun"])[1] == ["sea", "sun"]
    with pytest.raises(InvalidLabelsError, match=r"names of y's columns, 'sea', 'sun'. Got 'sun', 'sea'; leave"):
        label_matrix(frame, ["sun", "sea"])
    assert label_matrix(pd.DataFrame([[1, 0]]))[1] is None


@pytest.mark.parametrize(
    ("y", "names", "message"),
    [
        ([[1, 2], [3]], None, r"Got lists of numbers, such as \[1, 2\], of different lengths; .* set\(row\) for each"),
        (pd.Series([[1, 0], [0, 1]]), None, r"Got lists of numbers, such as \[1, 0\], in one column"),
        (["sea", ["sun"]], None, "a list or a set of labels for each row.*Got 'sea' in row 0"),
        ([["sea"], None], None, "empty where there is none. Got None in row 1"),
        ([["sea", None]], None, r"Got \['sea', None\] in row 0"),
        ([[], []], None, "must have a label in some row. Got 2 empty sets; name the labels in label_names"),
        ([["fog"]], ["sea", "sun"], "only the labels 'sea', 'sun'. Unknown labels: 'fog'"),
        ([[1, 0]], ["sea"], "a name for each label. Got 1 names for 2 columns"),
        ([[1, 0]], "ab", "a sequence of names. Got the text 'ab'"),
        ([[1, 0]], ["sea", "sea"], "differ from each other. Got 'sea' more than once"),
        (
            [1, 0],
            ["sea", "sun"],
            r"label_names need a label matrix, with a column for each name. Got y of shape \(2,\)",
        ),
    ],
)
def test_names_and_sets_that_cannot_be_are_refused(y, names, message):
    with pytest.raises(InvalidLabelsError, match=message):
        label_matrix(y, names)
