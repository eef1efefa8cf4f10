"""
The certificate of a fit
========================

A solver stops before it reaches the optimum exactly. ``gap_`` certifies how close it is: no weights have an objective
that is lower by more than this share of it. This example plots the gap after each step, beside the true distance from
the optimum, which is known only afterwards.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, datasets
from rbrl.exceptions import ConvergenceWarning
from rbrl.experiments.figures import plain_powers, use_style

train, _ = datasets.load("yeast").split(seed=0)
X = StandardScaler().fit_transform(train.X)

# %%
# The optimum
# -----------
# A fit with a tight ``tol`` gives the reference for the other fits.

best = RBRLClassifier(ridge=10, nuclear=10, tol=1e-10, max_iter=5000).fit(X, train.Y)
print(f"objective {best.objective_:.4f}, certified to within {best.gap_:.0e} of its optimum")

# %%
# Fits that stop early
# --------------------
# Each fit may take a limited number of steps, with the default solver and with the paper's accelerated proximal
# gradient. It warns that it has not converged, and states its largest possible distance from the optimum.


def stopped_after(n_steps, solver):
    """Return the certified gap of a fit after some steps, and its true distance from the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RBRLClassifier(ridge=10, nuclear=10, tol=1e-9, max_iter=n_steps, solver=solver).fit(X, train.Y)
    return model.gap_, model.objective_ / best.objective_ - 1


steps = {"auto": [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20], "apg": [1, 10, 20, 40, 60, 80, 120, 160, 200, 240]}
found = {solver: np.array([stopped_after(n, solver) for n in numbers]) for solver, numbers in steps.items()}
for solver, values in found.items():
    print(
        f"{solver}: the certified gap was never below the true distance: {bool((values[:, 0] >= values[:, 1]).all())}"
    )

# %%
# The gap is an upper bound
# -------------------------
# The certified gap is above the true distance at every step, for both solvers: it is computed from the data and the
# coefficients alone. The bound is small where the distance is small, so a solver can stop by it. ``tol=1e-4``, the
# default, is therefore a guarantee for the model. Early steps without a blue point have an infinite gap.

with use_style():
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
    titles = {"auto": "solver='auto': quasi-Newton", "apg": "solver='apg': proximal gradient"}
    for axes, (solver, values) in zip(panels, found.items()):
        axes.plot(steps[solver], values[:, 0], "o-", ms=4, label="certified: gap_")
        axes.plot(steps[solver], values[:, 1], "s--", ms=4, label="true distance")
        axes.axhline(1e-4, color="0.4", lw=0.8, ls=":")
        axes.set(yscale="log", ylim=(1e-10, 100), xlim=(0, None), xlabel="steps", title=titles[solver])
        plain_powers(axes.yaxis)
    panels[0].set_ylabel("distance, relative to the optimum")
    panels[0].annotate("the default tol", (panels[0].get_xlim()[1], 1e-4), xytext=(0, 3),
                       textcoords="offset points", ha="right", fontsize=8, color="0.4")  # fmt: skip
    panels[1].legend(loc="upper right")
plt.show()
