"""Any target is encoded to signed labels, and predictions come back in the same coding."""

import numpy as np
import pytest
from scipy import sparse

from rbrl.exceptions import InvalidLabelsError
from rbrl.targets import SignedTargets, check_not_label_sets

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


@pytest.mark.parametrize("y", [[["a", "b"], ["c"]], [{"a"}, {"b", "c"}], [(1, 2), (3,)], [frozenset("ab")]])
def test_label_sets_point_to_the_binarizer(y):
    with pytest.raises(InvalidLabelsError, match=r"Got a list of label sets.*MultiLabelBinarizer"):
        check_not_label_sets(y)


def test_lists_that_are_matrices_are_not_label_sets():
    check_not_label_sets([[0, 1], [1, 0]])
    check_not_label_sets([0, 1, 1])
