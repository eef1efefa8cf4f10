"""
Rank along the path of the nuclear norm
=======================================

RBRL can add the nuclear norm, the sum of the singular values of its weights, to its objective. The larger ``nuclear``, the
more singular values are exactly 0, and the fewer directions of the features the labels share. This example computes the
whole path, from full rank to rank 0.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, datasets
from rbrl.experiments.figures import plain_powers, use_style
from rbrl.metrics import average_precision

train, test = datasets.load("yeast").split(seed=0)
scaler = StandardScaler().fit(train.X)
X, X_test = scaler.transform(train.X), scaler.transform(test.X)

# %%
# A model for each weight of the norm
# -----------------------------------
# With ``warm_start``, a fit starts from the weights of the last one, so a path costs little more than its hardest model.
# Every model has the same certificate as one that is fitted alone.

weights = np.geomspace(3, 3000, 31)
model = RBRLClassifier(ridge=10, tol=1e-6, warm_start=True)
ranks, singular_values, quality = [], [], []
for weight in weights:
    model.set_params(nuclear=weight).fit(X, train.Y)
    ranks.append(model.rank_)
    singular_values.append(np.linalg.svd(model.coef_, compute_uv=False))
    quality.append(average_precision(test.Y, model.decision_function(X_test)))
best = int(np.argmax(quality))
for i in (0, best, -1):
    print(f"nuclear {weights[i]:6.0f}: rank {ranks[i]:2}, average precision {quality[i]:.3f} on new rows")

# %%
# Singular values reach 0 one after the other
# -------------------------------------------
# The small singular values reach 0 first: their directions help least. On new rows this is a gain, until the large ones
# shrink, too. The best weight differs between data sets; :class:`rbrl.RBRLClassifierCV` finds it by cross-validation.

with use_style() as palette:
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(6.4, 5), sharex=True, height_ratios=(3, 2), layout="constrained"
    )
    colours = plt.get_cmap("viridis")(np.linspace(0.05, 0.9, len(singular_values[0])))
    for values, colour in zip(np.array(singular_values).T, colours):
        upper.plot(weights, values, color=colour)
    upper.set(ylabel="singular values of the weights", ylim=(0, None), title="Singular values along the path")
    for wanted in (13, 8, 4):
        i = next(i for i, rank in enumerate(ranks) if rank <= wanted)
        upper.axvline(weights[i], color=palette.muted, lw=0.8, ls=":")
        upper.annotate(f"rank {ranks[i]}", (weights[i], 0.97), xycoords=("data", "axes fraction"), xytext=(3, 0),
                       textcoords="offset points", va="top", fontsize=8, color=palette.muted)  # fmt: skip
    lower.plot(weights, quality, color=palette.accent)
    lower.plot(weights[best], quality[best], "o", color=palette.contrast)
    lower.set(xscale="log", xlabel="nuclear, the weight of the norm", ylabel="average precision\non new rows")
    plain_powers(lower.xaxis)
plt.show()
