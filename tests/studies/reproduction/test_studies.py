"""The studies behind the figures, on small problems."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from rbrl import RBRLClassifier
from rbrl.datasets import Dataset
from rbrl.solvers import APG
from studies.reproduction.studies import (
    SOLVERS,
    against_authors,
    authors_stop,
    convergence,
    convergence_claims,
    gamma_sensitivity,
    pair_sensitivity,
    solver_table,
    thinned,
)


@pytest.fixture(scope="module")
def dataset():
    X, Y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=4, random_state=0)
    return Dataset(X, Y)


def test_gaps_are_rigorous_and_fall(dataset):
    curves = convergence({"p": (RBRLClassifier(ridge=10), dataset.X, dataset.Y)}, max_iter=300, tol=1e-7)
    assert set(curves.solver) == set(SOLVERS)
    assert (curves.gap > -1e-12).all()
    ends = curves.groupby("solver").tail(1)
    assert ends.gap.min() <= 1e-7
    assert (np.diff(curves[curves.solver == "quasi-Newton (default)"].evaluations) > 0).all()
    assert (curves.seconds >= 0).all()
    assert curves.groupby("solver").seconds.is_monotonic_increasing.all()


def test_claims_are_read_off_the_curves(dataset):
    model = RBRLClassifier(ridge=10)
    curves = convergence({"p": (model, dataset.X, dataset.Y)}, max_iter=1000, tol=1e-7)
    claims = convergence_claims(curves, {"p": 20}).iloc[0]
    theirs = curves[curves.solver == "APG (paper)"].set_index("iteration")
    replay = RBRLClassifier(ridge=10, solver=APG("paper", "paper")).fit(dataset.X, dataset.Y)
    assert claims.stop == replay.n_iter_, "the stop on the curve is where the replay of the authors' program stops"
    assert (claims.gap_claimed, claims.gap_stop) == (theirs.gap[20], theirs.gap[replay.n_iter_])
    at = int(claims["iterations_1e-03"])
    assert theirs.gap[at] <= 1e-3 < theirs.gap[at - 1]
    short = thinned(curves, 10)
    assert short.groupby("solver").iteration.agg(["min", "size"]).max().tolist() == [1, 10]
    assert set(short.groupby("solver").iteration.max()) <= set(curves.groupby("solver").iteration.max())


def test_authors_stop():
    assert authors_stop([4.0, 2.0, 1.0]) is None
    assert authors_stop([4.0, 4.0, 1.0]) == 2


def test_both_solvers_are_measured_on_the_same_problem(dataset):
    frame = against_authors({"small": dataset}, {"small": {"ridge": 10.0, "ranking": 0.1, "nuclear": 0.5}})
    row = frame.iloc[0]
    assert (row.ridge, row.ranking, row.nuclear) == (10.0, 0.1, 0.5)
    assert row.objective_ours <= row.objective_theirs * (1 + 1e-4)
    assert row.gap_ours <= 1e-4
    assert (1 + row.gap_theirs) / (1 + row.gap_ours) == pytest.approx(row.objective_theirs / row.objective_ours)
    assert 0 < row.iterations_theirs <= 1999
    assert len(solver_table(frame).rows) == 1


def test_gamma_study_has_every_metric_and_width(dataset):
    study = gamma_sensitivity({"RBRL": RBRLClassifier(kernel="rbf", tol=1e-2)}, dataset, factors=(0.1, 1.0))
    assert len(study) == 2 * 6
    assert study.value.between(0, 1).all()


def test_pair_study_holds_one_penalty(dataset):
    told = []
    model = RBRLClassifier(ridge=1.0, ranking=0.5, nuclear=0.2, tol=1e-2)
    study = pair_sensitivity(model, dataset, values=(0.1, 1.0), progress=lambda *at: told.append(at))
    assert told[-1] == (12, 12)
    assert len(study) == 3 * 4 * 6
    held = study[study.fixed == "nuclear"]
    assert set(held.nuclear) == {0.2} == set(held["at"])
