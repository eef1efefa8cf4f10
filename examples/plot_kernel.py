"""
Labels that need a kernel
=========================

A linear model separates the points of each label by a straight line. Labels in the shape of islands, rings or corners
need a kernel. With ``kernel="rbf"``, loss, penalties and certificate stay the same.
"""

import matplotlib.pyplot as plt
import numpy as np

from rbrl import RBRLClassifier, evaluate
from rbrl.experiments.figures import use_style

# %%
# Three labels of points in a square
# ----------------------------------
# One is a half-plane, which a straight line finds. One is a ring, and one the two corners where both coordinates have
# the same sign: no line finds these.

LABELS = ("right half", "ring", "same sign")


def draw_points(n, random):
    X = random.uniform(-2, 2, (n, 2))
    radius = np.hypot(*X.T)
    return X, np.column_stack([X[:, 0] > 0, (radius > 0.8) & (radius < 1.6), X[:, 0] * X[:, 1] > 0]).astype(int)


random = np.random.default_rng(0)
X, Y = draw_points(400, random)
X_test, Y_test = draw_points(1000, random)

# %%
# Two models
# ----------
# The default, ``gamma="median"``, takes the width of the kernel from the distances of all points. A ring needs a
# narrower kernel.

models = {
    "linear": RBRLClassifier().fit(X, Y),
    "rbf": RBRLClassifier(kernel="rbf", gamma=2.0, ridge=0.1).fit(X, Y),
}
for name, model in models.items():
    values = evaluate(Y_test, model.predict(X_test), model.decision_function(X_test))
    print(f"{name:6}  {values['hamming_loss']:5.1%} of the labels of new points wrong, gap {model.gap_:.0e}")

# %%
# Scores of both models
# ---------------------
# The score of a label is positive in the blue area and 0 on the line. Dark dots are training points with the label, grey
# dots those without.

axis = np.linspace(-2, 2, 160)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
with use_style({"axes.grid": False}) as palette:
    figure, panels = plt.subplots(2, 3, figsize=(7.6, 5.2), sharex=True, sharey=True, layout="constrained")
    for line, (name, model) in zip(panels, models.items()):
        scores = model.decision_function(plane).reshape(len(axis), len(axis), -1)
        for k, axes in enumerate(line):
            axes.contourf(axis, axis, scores[..., k], levels=[0, scores.max() + 1], colors=[palette.accent], alpha=0.3)
            axes.contour(axis, axis, scores[..., k], levels=[0], colors=[palette.accent], linewidths=1.5)
            relevant = Y[:, k] == 1
            axes.scatter(*X[~relevant].T, s=4, color=palette.muted, alpha=0.35, lw=0)
            axes.scatter(*X[relevant].T, s=6, color=palette.ink, lw=0)
            axes.set(aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
        line[0].set_ylabel(f"kernel={name!r}")
    for axes, label in zip(panels[0], LABELS):
        axes.set_title(label)
plt.show()
