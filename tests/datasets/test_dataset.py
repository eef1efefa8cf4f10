"""`Dataset`: storage, errors and summary."""

import numpy as np
import pytest
from scipy import sparse

from rbrl.datasets import CARDS, Dataset, catalogue
from rbrl.datasets.columns import NumberedNames
from rbrl.datasets.dataset import canonical_order, content_hash, row_digests
from rbrl.exceptions import DataFormatError

from .examples import dense, small


def test_types_suit_estimators():
    data = Dataset(sparse.coo_matrix(np.eye(3, dtype=np.uint8)), sparse.csc_array(np.eye(3, dtype=bool)))
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.dtype == np.float64
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    assert data.Y.dtype == np.int8
    assert Dataset([[1, 2]], [[True, False]]).Y.dtype == np.int8


def test_names_have_a_default():
    data = Dataset(np.zeros((1, 2)), np.zeros((1, 3)))
    assert list(data.feature_names) == ["x1", "x2"]
    assert data.label_names == ["label1", "label2", "label3"]


def test_numbered_names_behave_like_a_list():
    names = NumberedNames("x", 10**9)
    assert names[-1] == "x1000000000"
    assert names[1:3] == ["x2", "x3"]
    assert names == NumberedNames("x", 10**9) != NumberedNames("y", 10**9)
    assert repr(names) == "NumberedNames('x', 1000000000)"
    with pytest.raises(IndexError):
        names[10**9]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [[2]]), "labels must be 0 or 1; got"),
        (([[1.0]], [[-1]]), "labels must be 0 or 1; got"),
        (([[1.0]], [[np.inf, np.nan]]), r"labels must be 0 or 1; got .*inf"),
        (([[1.0]], sparse.csr_array([[np.nan, 1]])), r"missing \(NaN\) must be dense; got a sparse"),
        (([[1.0]], [[1], [0]]), "as many rows; got 1 and 2"),
        (([1.0], [[1]]), r"X must be a matrix of numbers; got shape \(1,\)"),
        (([["a"]], [[1]]), "X must be a matrix of numbers; got shape"),
        (([[1.0]], [1]), r"Y must be a matrix of 0 and 1; got shape \(1,\)"),
        (([[1.0]], [[1]], ["a", "b"]), "one feature name per column: 1; got 2"),
        (([[1.0]], [[1]], None, []), "one label name per column: 1; got 0"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(DataFormatError, match=message):
        Dataset(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"splits": {"s": ([0], [0])}}, "split 's' has rows in both parts, for example 0"),
        ({"splits": {"s": ([0], [2])}}, r"split 's' must lie in 0..1; got 2..2"),
        ({"categorical_index": [0.5]}, "categorical_index must hold row or column numbers; got"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(DataFormatError, match=message):
        Dataset(np.zeros((2, 1)), np.zeros((2, 1)), **options)


def test_split_is_sixty_forty_and_seeded():
    data = small(n_samples=50)
    train, test = data.split(seed=3)
    X, Y = train
    assert (X.shape[0], test.Y.shape[0]) == (30, 20)
    np.testing.assert_array_equal(X, data.split(3)[0].X)
    assert not np.array_equal(X, data.split(4)[0].X)
    assert Y.shape == (30, data.n_labels)
    assert data.split(0, train_fraction=0.5)[0].X.shape[0] == 25


def test_unknown_split_is_named():
    with pytest.raises(KeyError, match="small has no split 'rbrl'"):
        small().split("rbrl")


@pytest.mark.parametrize("is_sparse", [False, True])
def test_canonical_order_does_not_depend_on_order_and_storage(is_sparse):
    data = small()
    shuffled = data.reorder(np.random.default_rng(1).permutation(len(data)))
    X = sparse.csr_array(shuffled.X) if is_sparse else shuffled.X
    again = Dataset(X, sparse.csr_array(shuffled.Y) if is_sparse else shuffled.Y).canonical()
    np.testing.assert_array_equal(dense(again.X), data.canonical().X)
    np.testing.assert_array_equal(dense(again.Y), data.canonical().Y)


def test_content_hash_depends_on_every_value():
    data = small()
    hashes = {content_hash(row_digests(data.X, data.Y), 13, 5)}
    for matrix in (data.X, data.Y):
        changed = matrix.copy()
        changed[0, 0] = 1 - changed[0, 0]
        pair = (changed, data.Y) if matrix is data.X else (data.X, changed)
        hashes.add(content_hash(row_digests(*pair), 13, 5))
    hashes.add(content_hash(row_digests(data.X[1:], data.Y[1:]), 13, 5))
    hashes.add(content_hash(row_digests(data.X, data.Y), 14, 5))
    assert len(hashes) == 5


def test_signs_of_zero_and_kinds_of_nan_do_not_matter():
    other_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    np.testing.assert_array_equal(row_digests(np.array([[0.0, np.nan]])), row_digests(np.array([[-0.0, other_nan]])))


def test_equal_rows_keep_their_order():
    digests = row_digests(np.array([[1.0], [2.0], [1.0], [2.0], [1.0]]))
    order = canonical_order(digests).tolist()
    assert [i for i in order if i % 2] == [1, 3]
    assert [i for i in order if i % 2 == 0] == [0, 2, 4]


def test_summary_by_hand():
    X = np.array([[1.0, 0], [1, 0], [1, 0], [0, 0]])
    Y = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0]])
    summary = Dataset(X, Y, name="hand").summary()
    assert summary == {
        "name": "hand",
        "n_samples": 4,
        "n_features": 2,
        "n_labels": 3,
        "feature_density": 3 / 8,
        "cardinality": 1.0,
        "density": 1 / 3,
        "distinct_label_sets": 3,
        "imbalance_mean": 2.0,
        "imbalance_max": 3.0,
        "rarest_label": 0,
        "rows_without_labels": 1,
        "labels_without_rows": 1,
        "rows_without_features": 1,
        "missing_values": 0,
        "duplicate_rows": 2,
        "conflicting_duplicates": 1,
    }
    assert Dataset(sparse.csr_array(X), sparse.csr_array(Y), name="hand").summary() == summary


def test_summary_of_an_empty_data_set():
    assert Dataset(np.zeros((0, 0)), np.zeros((0, 0))).summary()["cardinality"] == 0


def test_repr():
    data = Dataset(np.eye(3), np.eye(3), name="eye", splits={"source": ([0], [1, 2])})
    assert repr(data).splitlines() == [
        "Dataset 'eye': 3 samples, 3 features (dense), 3 labels",
        "  labels per sample 1.000",
        "  features  x1, x2, x3",
        "  labels    label1, label2, label3",
        "  split 'source': 1 / 2",
    ]
    assert len(data) == 3


def test_catalogue_lists_every_card():
    table = catalogue()
    assert set(table.index) == set(CARDS)
    assert table.loc["delicious", "n_labels"] == 983
    for card in CARDS.values():
        assert card.density == pytest.approx(card.cardinality / card.n_labels, abs=1e-4)
        assert card.source in card.description
        assert len(card.sha256) == 64


def test_the_yahoo_sets_say_that_they_have_no_address():
    for name in ("arts", "business", "education", "recreation", "science"):
        assert CARDS[name].address is None
        assert "no stable public address" in CARDS[name].note
