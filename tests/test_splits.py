"""Splits: seeded, complete, and stratified."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier

from rbrl.exceptions import InvalidLabelsError
from rbrl.splits import IterativeStratifiedKFold, IterativeStratifiedShuffleSplit, RandomSplits, random_split


def labels(n_samples, n_labels, density=0.2, seed=0):
    return (np.random.default_rng(seed).random((n_samples, n_labels)) < density).astype(int)


def deviation(Y, parts):
    return np.mean([np.abs(Y[part].mean(axis=0) - Y.mean(axis=0)).mean() for part in parts])


def test_a_random_split_is_a_sorted_prefix_of_the_permutation():
    train, test = random_split(10, seed=7)
    order = np.random.default_rng(7).permutation(10)
    assert train.tolist() == sorted(order[:6])
    assert test.tolist() == sorted(order[6:])
    assert train.dtype == test.dtype == np.int64


@pytest.mark.parametrize(("n_samples", "fraction", "n_train"), [(593, 0.6, 356), (2417, 0.6, 1450), (5, 0.5, 2)])
def test_train_size_is_rounded(n_samples, fraction, n_train):
    assert len(random_split(n_samples, 0, fraction)[0]) == n_train


@pytest.mark.parametrize(("n_samples", "fraction", "message"), [(10, 1.0, "Got 1.0"), (1, 0.6, "n_samples=1")])
def test_a_part_without_samples_is_refused(n_samples, fraction, message):
    with pytest.raises(ValueError, match=message):
        random_split(n_samples, 0, fraction)


def test_random_splits_are_single_splits_in_sequence():
    splits = list(RandomSplits(3, random_state=5).split(np.zeros((20, 2))))
    for i, (train, test) in enumerate(splits):
        expected = random_split(20, 5 + i)
        np.testing.assert_array_equal(train, expected[0])
        np.testing.assert_array_equal(test, expected[1])


@settings(max_examples=50, deadline=None)
@given(n=st.integers(2, 40), l=st.integers(1, 6), k=st.integers(2, 6), density=st.floats(0, 1), seed=st.integers(0, 99))
def test_folds_partition_the_samples_in_equal_sizes(n, l, k, density, seed):
    k = min(k, n)
    Y = labels(n, l, density, seed)
    folds = list(IterativeStratifiedKFold(k, random_state=seed).split(Y, Y))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(n))
    assert {len(test) for _, test in folds} <= {n // k, -(-n // k)}
    assert all(sorted([*train, *test]) == list(range(n)) for train, test in folds)


@pytest.mark.parametrize("splitter", [IterativeStratifiedKFold, IterativeStratifiedShuffleSplit])
def test_the_seed_works(splitter):
    Y = labels(100, 5)

    def tests(seed):
        return [test.tolist() for _, test in splitter(3, random_state=seed).split(Y, Y)]

    assert tests(0) == tests(0)
    assert tests(0) != tests(1)
    assert tests(None) != tests(None)
    assert tests(np.random.RandomState(3)) == tests(np.random.RandomState(3))


def test_shuffle_splits_have_exact_sizes_and_differ():
    Y = labels(101, 5)
    splits = list(IterativeStratifiedShuffleSplit(4, random_state=0).split(Y, Y))
    assert all(len(train) == 61 and len(test) == 40 for train, test in splits)
    assert all(sorted([*train, *test]) == list(range(101)) for train, test in splits)
    assert len({tuple(train) for train, _ in splits}) == 4


def test_one_label_alone_is_split_evenly():
    Y = np.zeros((30, 2), dtype=int)
    Y[:9, 0], Y[20:26, 1] = 1, 1
    for _, test in IterativeStratifiedKFold(3, random_state=0).split(Y, Y):
        assert Y[test].sum(axis=0).tolist() == [3, 2]


@pytest.mark.parametrize("seed", range(3))
def test_arts_is_stratified_better_than_at_random(data_home, seed):
    Y = (np.load(data_home / "arts.npz")["Y"] > 0).astype(int)
    ours = deviation(Y, [test for _, test in IterativeStratifiedKFold(5, random_state=seed).split(Y, Y)])
    random = deviation(Y, [test for _, test in KFold(5, shuffle=True, random_state=seed).split(Y)])
    assert ours < 4e-4 < random / 5
    train, test = next(IterativeStratifiedShuffleSplit(1, random_state=seed).split(Y, Y))
    assert deviation(Y, [train, test]) < 4e-4


def test_not_worse_than_the_package_named_for_it(data_home):
    ml_stratifiers = pytest.importorskip("iterstrat.ml_stratifiers")
    Y = (np.load(data_home / "arts.npz")["Y"] > 0).astype(int)
    for seed in range(3):
        package = ml_stratifiers.MultilabelStratifiedKFold(5, shuffle=True, random_state=seed).split(Y, Y)
        ours = IterativeStratifiedKFold(5, random_state=seed).split(Y, Y)
        assert deviation(Y, [test for _, test in ours]) <= deviation(Y, [test for _, test in package])


def test_codings_and_containers_give_the_same_folds():
    Y = labels(60, 4)
    expected = [test.tolist() for _, test in IterativeStratifiedKFold(3, random_state=0).split(Y, Y)]
    for y in (2 * Y - 1, sparse.csr_matrix(Y), sparse.coo_array(Y), Y.astype(bool)):
        folds = IterativeStratifiedKFold(3, random_state=0).split(sparse.csr_array((60, 2)), y)
        assert [test.tolist() for _, test in folds] == expected


def test_many_folds():
    Y = labels(120, 4)
    assert len(list(IterativeStratifiedKFold(60, random_state=0).split(Y, Y))) == 60


def test_scikit_learn_takes_the_splitters():
    X, Y = np.random.default_rng(0).standard_normal((60, 4)), labels(60, 3, 0.5)
    model = OneVsRestClassifier(LogisticRegression())
    for splitter in (
        IterativeStratifiedKFold(3, 0),
        IterativeStratifiedShuffleSplit(3, random_state=0),
        RandomSplits(3),
    ):
        assert splitter.get_n_splits(X, Y) == 3
        assert len(cross_val_score(model, X, Y, cv=splitter)) == 3
    assert repr(RandomSplits(3)) == "RandomSplits(n_splits=3, random_state=0, train_fraction=0.6)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: IterativeStratifiedKFold(1), "at least 2. Got 1"),
        (lambda: RandomSplits(0), "at least 1. Got 0"),
        (lambda: next(IterativeStratifiedKFold(9).split(np.zeros((5, 1)), labels(5, 2))), "n_splits=9"),
        (lambda: next(IterativeStratifiedKFold(2).split(np.zeros((5, 1)), labels(6, 2))), "Got 5 and 6"),
    ],
)
def test_impossible_splits_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_one_label_per_sample_is_refused():
    with pytest.raises(InvalidLabelsError, match=r"shape \(4,\).*StratifiedKFold"):
        next(IterativeStratifiedKFold(2).split(np.zeros((4, 1)), [0, 1, 0, 1]))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_missing_label_is_neither_relevant_nor_irrelevant(make):
    """Only relevant labels that somebody saw are shared out, and they are as if the others were absent."""
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 6)) < 0.2).astype(float)
    hidden = np.where(rng.random(Y.shape) < 0.4, np.nan, Y)
    hidden[3], hidden[:, 5] = np.nan, np.nan
    seen = np.nan_to_num(hidden)
    for splitter in (IterativeStratifiedKFold(5, random_state=0), IterativeStratifiedShuffleSplit(3, random_state=0)):
        for part, expected in zip(splitter.split(Y, make(hidden)), splitter.split(Y, seen), strict=True):
            np.testing.assert_array_equal(part[0], expected[0])
            share = len(part[1]) / len(Y)
            assert np.abs(seen[part[1]].sum(axis=0) - share * seen.sum(axis=0)).max() <= 1
