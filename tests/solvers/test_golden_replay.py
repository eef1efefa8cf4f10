"""APG with the paper's constant and stop is the authors' program, iteration by iteration."""

import csv
import json

import numpy as np
import pytest

from golden.make_yeast_trajectory import CASES, PATH, replay
from rbrl import RBRLClassifier, evaluate
from rbrl.solvers import APG

PAPER = {"intercept_ridge": None, "gamma": "paper"}
RUNS = {"kernel_1_0.01_0.1": ("rbf", 1648), "linear_1_0.01_0.1": ("linear", 702)}
AUTHORS_NAMES = {
    "hamming_loss": "HammingLoss",
    "subset_accuracy": "SubsetAccuracy",
    "f1_example": "F1_Example",
    "ranking_loss": "Ranking_Loss",
    "coverage": "Coverage",
    "average_precision": "Average_Precision",
}


def table(path):
    return np.loadtxt(path, delimiter=",")


@pytest.fixture(scope="module")
def split(golden):
    return np.load(golden / "emotions-split.npz")


@pytest.fixture(scope="module", params=RUNS)
def run(request, golden, split):
    """Folder of the authors' run, and our replay of it."""
    kernel, n_iter = RUNS[request.param]
    solver = APG(lipschitz="paper", stop="paper")
    model = RBRLClassifier(1, 0.01, 0.1, kernel=kernel, solver=solver, non_empty=True, **PAPER)
    return golden / request.param, n_iter, model.fit(split["X_train"], split["Y_train"])


def test_iterations_and_objectives(run):
    folder, n_iter, model = run
    assert model.n_iter_ == n_iter
    np.testing.assert_allclose(model.history_, table(folder / "objective.csv")[:, 1], rtol=1e-9)


@pytest.mark.parametrize("part", ["train", "test"])
def test_scores_labels_and_metrics(run, split, part):
    folder, _, model = run
    X, Y = split[f"X_{part}"], split[f"Y_{part}"]
    scores, labels = model.decision_function(X), model.predict(X)
    np.testing.assert_allclose(scores, table(folder / f"scores_{part}.csv"), atol=1e-6)
    np.testing.assert_array_equal(labels, table(folder / f"labels_{part}.csv"))
    figures = json.loads((folder / "summary.json").read_text())[part]
    for name, value in evaluate(Y > 0, labels > 0, scores).items():
        assert value == pytest.approx(figures[AUTHORS_NAMES[name]], abs=5e-7), name


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("tol", "solver"), [(1e-3, "auto"), (1e-4, APG())])
def test_certified_optima_are_reached_within_the_reported_gap(golden, split, name, tol, solver):
    optimum = json.loads((golden / "optima.json").read_text())[name]["optimum"]
    model = RBRLClassifier(1, 0.01, 0.1, kernel=RUNS[name][0], tol=tol, max_iter=20_000, solver=solver, **PAPER)
    model.fit(split["X_train"], split["Y_train"])
    assert model.gap_ <= tol
    assert -1e-12 <= model.objective_ / optimum - 1 <= model.gap_


def test_the_reported_gap_of_a_replay_covers_its_true_gap(golden, run):
    folder, _, model = run
    optimum = json.loads((golden / "optima.json").read_text())[folder.name]["optimum"]
    assert 1e-4 < model.objective_ / optimum - 1 <= model.gap_


@pytest.mark.parametrize("case", CASES, ids=str)
def test_yeast_trajectory(case):
    with PATH.open() as file:
        rows = [row for row in csv.reader(file) if row[0] == case[0] and row[1:4] == [str(v) for v in case[1:]]]
    history = replay(*case)
    expected = {int(row[4]): float(row[5]) for row in rows}
    assert len(history) == max(expected)
    np.testing.assert_allclose([history[t - 1] for t in expected], list(expected.values()), rtol=1e-9)
