"""Ensembles of chains against scikit-learn's chain."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.svm import SVC, LinearSVC

from rbrl.estimators import EnsembleOfChains


@pytest.fixture
def problem():
    random = np.random.default_rng(1)
    X = random.standard_normal((90, 8))
    return X, (X[:, :5] + random.standard_normal((90, 5)) > 0.3).astype(int)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("model", "single"),
    [
        (EnsembleOfChains(), LinearSVC(dual=False)),
        (EnsembleOfChains(kernel="rbf"), SVC(gamma=1 / 8)),
        (EnsembleOfChains(LogisticRegression()), LogisticRegression()),
    ],
    ids=repr,
)
def test_votes_are_those_of_chains(problem, model, single, container, n_jobs):
    X, Y = container(problem[0]), problem[1]
    model.set_params(n_chains=4, random_state=0, n_jobs=n_jobs).fit(X[:60], Y[:60])
    chains = [ClassifierChain(single, order=c.order_).fit(X[:60], Y[:60]) for c in model.chains_]
    shares = np.mean([chain.predict(X[60:]) for chain in chains], axis=0)
    np.testing.assert_allclose(model.decision_function(X[60:]), shares - 0.5 + 1 / 16)
    np.testing.assert_array_equal(model.predict(X[60:]), shares >= 0.5)
    assert len({tuple(c.order_) for c in model.chains_}) == 4


@pytest.mark.parametrize("votes", ["hard", "soft"])
def test_half_of_the_chains_are_enough(problem, votes):
    X, Y = problem
    model = EnsembleOfChains(n_chains=4, votes=votes, random_state=0).fit(X, np.ones_like(Y))
    for constants in model.chain_constants_[:2]:
        constants[:] = 0
    assert (model.decision_function(X) > 0).all()
    model.chain_constants_[2][:] = 0
    assert not model.predict(X).any()


@pytest.mark.parametrize("learner", [None, LogisticRegression()])
def test_soft_votes(problem, learner):
    X, Y = problem
    model = EnsembleOfChains(learner, n_chains=1, votes="soft", random_state=0).fit(X, Y)
    chain = model.chains_[0]
    if learner is None:
        expected = 1 / (1 + np.exp(-chain.decision_function(X)))
    else:
        expected = chain.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X) + 0.5, expected, atol=1e-12)


def test_each_chain_may_see_some_rows_only(problem):
    X, Y = problem
    model = EnsembleOfChains(n_chains=3, max_samples=0.6, random_state=0).fit(X, Y)
    coefficients = [np.abs(c.estimators_[0].coef_).sum() for c in model.chains_]
    assert len(set(coefficients)) == 3
    same = EnsembleOfChains(n_chains=3, max_samples=0.6, random_state=0, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), same.decision_function(X))


def test_constant_labels_stay_outside(problem):
    X, Y = problem
    Y[:, 1], Y[:, 3] = 1, 0
    model = EnsembleOfChains(n_chains=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.chain_labels_[0], [0, 2, 4])
    labels = model.predict(X)
    assert labels[:, 1].all()
    assert not labels[:, 3].any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"n_chains": 0}, "Got 0"), ({"max_samples": 1.5}, "Got 1.5"), ({"votes": "x"}, "Got 'x'")],
)
def test_parameters_are_checked(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        EnsembleOfChains(**parameters).fit(*problem)
