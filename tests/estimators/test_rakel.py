"""RAkEL: its subsets and its votes."""

from math import comb

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from rbrl.estimators import LabelPowerset, RAkEL
from rbrl.estimators.ensembles import LISTED_SUBSETS, draw_distinct_subsets


@pytest.fixture
def problem():
    random = np.random.default_rng(1)
    X = random.standard_normal((90, 8))
    return X, (X[:, :6] + random.standard_normal((90, 6)) > 0.3).astype(int)


@pytest.mark.parametrize(("n", "k", "m"), [(6, 3, 12), (6, 3, 19), (40, 20, 50), (300, 3, 600), (7, 7, 1), (5, 1, 3)])
def test_subsets_are_distinct_and_seeded(n, k, m):
    draw = lambda seed: [tuple(s) for s in draw_distinct_subsets(n, k, m, np.random.RandomState(seed))]  # noqa: E731
    subsets = draw(0)
    assert len(subsets) == len(set(subsets)) == m
    assert all(len(set(s)) == k and list(s) == sorted(s) and s[-1] < n for s in subsets)
    assert subsets == draw(0)
    assert comb(n, k) == m or subsets != draw(1)


@pytest.mark.parametrize(("n", "k", "m"), [(5, 2, 10), (5, 2, 1000), (6, 6, 12), (25, 5, 10 * LISTED_SUBSETS)])
def test_all_subsets_where_no_more_exist(n, k, m):
    subsets = {tuple(s) for s in draw_distinct_subsets(n, k, m, np.random.RandomState(0))}
    assert len(subsets) == comb(n, k)


def test_disjoint_subsets_are_a_partition(problem):
    X, Y = problem
    model = RAkEL(overlapping=False, subset_size=4, random_state=0).fit(X, Y)
    assert sorted(np.concatenate(model.subsets_)) == list(range(6))
    assert [len(s) for s in model.subsets_] == [4, 2]


@pytest.mark.parametrize(("size", "expected"), [(0.5, 3), (2, 2), (50, 6), (0.01, 1), (1.0, 6)])
def test_size_is_a_number_or_a_share(problem, size, expected):
    model = RAkEL(subset_size=size, n_subsets=2, random_state=0).fit(*problem)
    assert {len(s) for s in model.subsets_} == {expected}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_votes_are_those_of_label_powersets(problem, kernel, n_jobs):
    X, Y = problem
    model = RAkEL(kernel=kernel, n_subsets=7, random_state=3, n_jobs=n_jobs).fit(X[:60], Y[:60])
    votes, counts = np.zeros((30, 6)), np.zeros(6)
    for s in model.subsets_:
        votes[:, s] += LabelPowerset(kernel=kernel).fit(X[:60], Y[:60][:, s]).predict(X[60:])
        counts[s] += 1
    shares = votes / np.maximum(counts, 1)
    np.testing.assert_allclose(model.decision_function(X[60:]), shares - 0.5 + 0.25 / counts.max())
    # The rule of the original: one half is relevant. There are some here.
    assert (shares == 0.5).any()
    np.testing.assert_array_equal(model.predict(X[60:]), shares >= 0.5)


def test_soft_votes(problem):
    X, Y = problem
    model = RAkEL(LogisticRegression(), votes="soft", n_subsets=20, random_state=0).fit(X, Y)
    scores = model.decision_function(X)
    assert np.abs(scores).max() <= 0.5
    assert len(np.unique(scores)) > 100
    assert np.mean(model.predict(X) == Y) > 0.75


def test_a_soft_vote_of_one_half_is_relevant(problem):
    X, Y = problem
    model = RAkEL(LogisticRegression(), votes="soft", subset_size=1, random_state=0).fit(X, Y)
    for learner in model.estimators_:
        learner.coef_[:], learner.intercept_[:] = 0, 0
    assert model.predict(X).all()


def test_a_subset_with_a_single_combination(problem):
    X, Y = problem
    Y[:, :3] = [1, 0, 1]
    model = RAkEL(n_subsets=100, random_state=0).fit(X, Y)
    alone = [s.tolist() for s in model.subsets_].index([0, 1, 2])
    assert model.estimators_[alone] is None
    np.testing.assert_array_equal(model.predict(X)[:, :3], Y[:, :3])


def test_a_label_in_no_subset_is_irrelevant(problem):
    X, Y = problem
    model = RAkEL(n_subsets=1, random_state=0).fit(X, np.ones_like(Y))
    np.testing.assert_array_equal(model.predict(X)[0], np.isin(np.arange(6), model.subsets_[0]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"subset_size": 0}, "Got 0"),
        ({"subset_size": 1.5}, "Got 1.5"),
        ({"n_subsets": 0}, "Got 0"),
        ({"votes": "none"}, "Got 'none'"),
    ],
)
def test_parameters_are_checked(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        RAkEL(**parameters).fit(*problem)
