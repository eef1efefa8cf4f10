"""Calibrated label ranking against its definition, written out."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from rbrl.estimators import CalibratedLabelRanking


@pytest.fixture
def problem():
    random = np.random.default_rng(1)
    X = random.standard_normal((90, 8))
    return X, (X[:, :5] + random.standard_normal((90, 5)) > 0.3).astype(int)


def tournament(single, X, Y, query):
    """Votes for every label and for the virtual one."""
    votes, virtual = np.zeros((len(query), Y.shape[1])), np.zeros(len(query))
    for j in range(Y.shape[1]):
        won = single.fit(X, Y[:, j]).predict(query)
        votes[:, j] += won
        virtual += 1 - won
    for j, k in combinations(range(Y.shape[1]), 2):
        rows = Y[:, j] != Y[:, k]
        won = single.fit(X[rows], Y[rows, j]).predict(query)
        votes[:, j] += won
        votes[:, k] += 1 - won
    return votes, virtual[:, None]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("model", "single"),
    [
        (CalibratedLabelRanking(), LinearSVC(dual=False)),
        (CalibratedLabelRanking(kernel="rbf", gamma=0.2), SVC(gamma=0.2)),
        (CalibratedLabelRanking(LogisticRegression()), LogisticRegression()),
    ],
    ids=repr,
)
def test_equals_the_tournament(problem, model, single, n_jobs):
    X, Y = problem
    model.set_params(n_jobs=n_jobs).fit(X[:60], Y[:60])
    votes, virtual = tournament(single, X[:60], Y[:60], X[60:])
    np.testing.assert_allclose(model.decision_function(X[60:]), (votes - virtual + 0.5) / 5)
    # The rule of the original: a tie with the virtual label is relevant. There are some here.
    assert (votes == virtual).any()
    np.testing.assert_array_equal(model.predict(X[60:]), votes >= virtual)


def test_soft_votes_are_probabilities(problem):
    X, Y = problem
    model = CalibratedLabelRanking(LogisticRegression(), votes="soft").fit(X, Y)
    single = LogisticRegression()
    P = np.column_stack([single.fit(X, y).predict_proba(X)[:, 1] for y in Y.T])
    votes = P.copy()
    for j, k in combinations(range(5), 2):
        rows = Y[:, j] != Y[:, k]
        p = single.fit(X[rows], Y[rows, j]).predict_proba(X)[:, 1]
        votes[:, j] += p
        votes[:, k] += 1 - p
    np.testing.assert_allclose(model.decision_function(X), (votes - (1 - P).sum(axis=1, keepdims=True)) / 5)


@pytest.mark.parametrize("votes", ["hard", "soft"])
def test_a_tie_with_the_virtual_label_is_relevant(votes):
    X, Y = np.array([[-1.0], [1.0], [0.0]]), np.array([[1, 0], [0, 1], [1, 1]])
    model = CalibratedLabelRanking(votes=votes).fit(X, Y)
    # Label 0 loses to the virtual label and beats label 1: one vote each for label 0 and the virtual label.
    model.coef_[:], model.intercept_[:] = 0, [-1e3, 1e3, 1e3]
    assert model.decision_function(X)[0, 0] > 0
    assert model.predict(X)[:, 0].all()


def test_labels_that_no_row_tells_apart_do_not_compare(problem):
    X, Y = problem
    Y[:, 3] = Y[:, 1]
    model = CalibratedLabelRanking().fit(X, Y)
    assert [tuple(pair) for pair in model.pairs_[~model.played_]] == [(1, 3)]
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores[:, 1], scores[:, 3])


def test_a_pair_with_one_winner_needs_no_learner(problem):
    X, Y = problem
    Y[:, 2] = Y[:, 1] | (X[:, 0] > 0)
    model = CalibratedLabelRanking().fit(X, Y)
    pair = 5 + np.flatnonzero((model.pairs_ == [1, 2]).all(axis=1))[0]
    assert model.constant_[pair] == -1
    assert not model.coef_[pair].any()
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
