"""
What the certificate promises
=============================

A solver has to stop somewhere. "The objective hardly moves any more" says nothing of how far there is to go; ``gap_``
does: no weights whatever have an objective that is lower by more than this share of it. Here we watch it shrink, step
by step, beside the distance that it bounds, which one knows only afterwards.
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
# The optimum, as nearly as numbers can tell
# ------------------------------------------
# A tight ``tol`` gives a value of the objective that the others can be measured by.

best = RBRLClassifier(ridge=10, nuclear=10, tol=1e-10, max_iter=5000).fit(X, train.Y)
print(f"objective {best.objective_:.4f}, proved to within {best.gap_:.0e} of its optimum")

# %%
# Stopped early, on purpose
# -------------------------
# A fit that may take so many steps and no more, with the default solver and with the paper's accelerated proximal
# gradient. Each one warns that it did not arrive, and says how far it may be from the optimum. We know that here.


def stopped_after(n_steps, solver):
    """Return the certified gap of a fit after some steps, and its true distance from the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RBRLClassifier(ridge=10, nuclear=10, tol=1e-9, max_iter=n_steps, solver=solver).fit(X, train.Y)
    return model.gap_, model.objective_ / best.objective_ - 1


steps = {"auto": [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20], "apg": [1, 10, 20, 40, 60, 80, 120, 160, 200, 240]}
found = {solver: np.array([stopped_after(n, solver) for n in numbers]) for solver, numbers in steps.items()}
for solver, values in found.items():
    print(f"{solver}: the proved distance was never below the true one: {bool((values[:, 0] >= values[:, 1]).all())}")

# %%
# A line that is always above
# ---------------------------
# The certified gap lies above the true distance at every step, for either solver, however it came to its weights: both
# numbers are computed from the data and the coefficients alone. Where the distance is small the bound is, too, so that
# one can stop by it: ``tol=1e-4``, the default, is a promise about the model, and not a wish about the solver.

with use_style():
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
    titles = {"auto": "solver='auto': quasi-Newton", "apg": "solver='apg': proximal gradient"}
    for axes, (solver, values) in zip(panels, found.items()):
        axes.plot(steps[solver], values[:, 0], "o-", ms=4, label="certified: gap_")
        axes.plot(steps[solver], values[:, 1], "s--", ms=4, label="true distance")
        axes.axhline(1e-4, color="0.4", lw=0.8, ls=":")
        axes.set(yscale="log", ylim=(1e-10, 100), xlim=(0, None), xlabel="steps", title=titles[solver])
        plain_powers(axes.yaxis)
    panels[0].set_ylabel("share of the optimum")
    panels[0].annotate("the default tol", (panels[0].get_xlim()[1], 1e-4), xytext=(0, 3),
                       textcoords="offset points", ha="right", fontsize=8, color="0.4")  # fmt: skip
    panels[1].legend(loc="upper right")
plt.show()
