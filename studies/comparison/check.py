"""Recompute random rows and compare them with the recorded ones."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from studies.comparison.cell import evaluate_rules, fit_and_predict, try_point
from studies.comparison.methods import BY_NAME
from studies.comparison.tasks import make_task

# Rows have six digits.
DIGITS = 1e-5
# For a method without a certificate: another machine sums in another order, which can change a tie.
UNCERTIFIED = 0.005
ALWAYS = ("ml-knn",)


@dataclass(frozen=True)
class Checked:
    """A recomputed row: the metric that differs most, and the allowed difference."""

    dataset: str
    split: int
    method: str
    variant: str
    metric: str
    difference: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """True if the difference is allowed."""
        return self.difference <= self.allowed


def sample(rows: pd.DataFrame, n: int = 10, seed: int = 0) -> pd.DataFrame:
    """Draw random rows of cells that did not fail, ML-kNN's among them."""
    ok = rows[rows.status == "ok"]
    some = pd.concat([ok[ok.method == name].sample(1, random_state=seed) for name in ALWAYS])
    return pd.concat([some, ok.drop(some.index).sample(n - len(some), random_state=seed)])


def check_row(row: pd.Series) -> Checked:
    """Recompute a row: the fit of its point, the thresholds from the folds, all metrics."""
    method, task, point = BY_NAME[row.method], make_task(row.dataset, int(row.split)), json.loads(row.params)
    found = fit_and_predict(method, point, task.split, task.X, task.Y, task.X_test)
    values = evaluate_rules(task, found, try_point(method, point, task))
    # Numbers of labels, coverage's, are divided by the number of labels to be on the scale of the others.
    scale = {name: task.Y.shape[1] if name == "coverage" else 1 for name in values}
    differences = {
        name: abs(value - row[name]) / scale[name] for name, value in values.items() if not math.isnan(row[name])
    }
    worst = max(differences, key=lambda name: differences[name])
    return Checked(row.dataset, task.split, row.method, row.variant, worst, differences[worst], allowed(row.gap))


def allowed(gap: float) -> float:
    """Return the allowed difference of a metric from the recorded one.

    A certified model's objective is within `gap` of its optimum, so two solutions' scores differ by the order of its
    root, and no larger a share of pairs and labels may fall the other way.

    Examples
    --------
    >>> allowed(1e-4), allowed(float("nan"))
    (0.01, 0.005)
    """
    return UNCERTIFIED if np.isnan(gap) else max(DIGITS, math.sqrt(gap))


def lines(checked: list[Checked]) -> list[str]:
    """Return a line of text for each row, and a summary."""
    found = [
        f"{'agrees ' if one.agrees else 'DIFFERS'}  {one.dataset} · split {one.split} · {one.method}, {one.variant}: "
        f"{one.metric} by {one.difference:.1e}, allowed {one.allowed:.1e}"
        for one in checked
    ]
    n_exact = sum(one.difference <= DIGITS for one in checked)
    agree = sum(one.agrees for one in checked)
    return [*found, f"{agree} of {len(checked)} rows agree, {n_exact} of them to all digits that were recorded"]
