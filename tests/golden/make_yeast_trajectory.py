"""Write yeast_trajectory.csv: objective values of the paper's algorithm on 80 standardised rows of yeast.

The algorithm that writes them replays the authors' own runs to 1e-9 (tests/solvers/test_golden_replay.py); the file
lets that be tested where their figures are not at hand. Run `PYTHONPATH=src python tests/golden/make_yeast_trajectory.py`
only when a run of that test with the authors' figures has passed.
"""

import csv
from pathlib import Path

from rbrl import RBRLClassifier, datasets
from rbrl.solvers import APG

PATH = Path(__file__).with_name("yeast_trajectory.csv")
CASES = [("linear", 1.0, 0.01, 0.1), ("rbf", 1.0, 0.01, 0.1), ("linear", 0.1, 1.0, 10.0), ("rbf", 0.1, 1.0, 0.1)]


def replay(kernel, ridge, ranking, nuclear):
    """Objective values of the authors' iteration, with their constant and their stop."""
    yeast = datasets.load("yeast")
    X, Y = yeast.X[:80], yeast.Y[:80]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    solver = APG(lipschitz="paper", stop="paper")
    model = RBRLClassifier(ridge, ranking, nuclear, kernel=kernel, gamma="paper", intercept_ridge=None, solver=solver)
    return model.fit(X, Y).history_


def kept(n_iter):
    """The first ten iterations, every hundredth, and the last."""
    return sorted({*range(1, min(10, n_iter) + 1), *range(100, n_iter, 100), n_iter})


if __name__ == "__main__":
    with PATH.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "ridge", "ranking", "nuclear", "iteration", "objective"])
        for case in CASES:
            history = replay(*case)
            writer.writerows([*case, t, f"{history[t - 1]:.15g}"] for t in kept(len(history)))
