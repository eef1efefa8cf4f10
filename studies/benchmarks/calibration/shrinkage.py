"""Do maps that labels learn together beat those of each label alone? ``python -m studies.benchmarks.calibration.shrinkage``.

On the sets on which this was chosen, with RBRL_DATA; writes ``shrinkage.md``.
"""

import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier
from rbrl.metrics import expected_calibration_error, log_loss
from rbrl.selection.probabilities import Scores, fit_sigmoids
from rbrl.selection.thresholds import held_out_scores
from rbrl.targets import SignedTargets
from studies.benchmarks.defaults.protocol import CHOOSING, Table, rows_of
from studies.benchmarks.problems import markdown

DATA = Table("shrinkage", CHOOSING, 1000, 2000)
TEXT = """# Maps learned together, and each by itself

Command: `python -m studies.benchmarks.calibration.shrinkage`. The first split, 1,000 training rows at most, 2,000 test
rows at most. "together": the sigmoids of `CalibratedMultiLabelClassifier(RBRLClassifier())`; "alone": Platt's map of
each label; "pooled": one map for all labels. These ten sets are those on which the prior was chosen."""


def maps_of(rows):
    """Probabilities of the test rows by name."""
    targets = SignedTargets().fit(rows.Y)
    model = RBRLClassifier().fit(rows.X, rows.Y)
    F = held_out_scores(RBRLClassifier(), rows.X, rows.Y, targets, 5, fitted=model)
    Y, G = targets.encode(rows.Y), model.decision_function(rows.X_test)
    together = fit_sigmoids(Scores.from_labels(F, Y))
    columns = [[j] for j in range(Y.shape[1])]
    alone = np.hstack([fit_sigmoids(Scores.from_labels(F[:, j], Y[:, j]))(G[:, j]) for j in columns])
    slope, intercept = together.pooled
    return {"together": together(G), "alone": alone, "pooled": 1 / (1 + np.exp(-slope * G - intercept))}


def main():
    table = []
    for name in DATA.data:
        rows = rows_of(DATA, name, 0)
        found = maps_of(rows)
        losses = {f"log loss: {kind}": f"{log_loss(rows.Y_test, P):.4f}" for kind, P in found.items()}
        errors = {f"ECE: {kind}": f"{expected_calibration_error(rows.Y_test, P):.4f}" for kind, P in found.items()}
        table.append({"data": name} | losses | errors)
        print(table[-1], flush=True)
    gains = [float(row["log loss: alone"]) - float(row["log loss: together"]) for row in table]
    better = sum(gain > 0 for gain in gains)
    text = (
        f"Together beats alone in the log loss on {better} of {len(gains)}, by {max(gains):.4f} at most, and loses by "
    )
    page = f"{TEXT}\n\n{markdown(table)}\n\n{text}{-min(gains):.4f} at most.\n"
    Path(__file__).with_name("shrinkage.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
