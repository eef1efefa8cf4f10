"""The studies behind the figures, on small problems."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from rbrl import RBRLClassifier
from rbrl.datasets import Dataset
from rbrl.report.studies import SOLVERS, convergence, gamma_sensitivity, pair_sensitivity


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
