"""
Correlations between labels
===========================

Weights of low rank mean that labels share few directions of the features. :func:`rbrl.label_map` shows which labels share
them. Here the answer is known, because the data are synthetic: twelve labels of photographs from three kinds of places.
"""

import matplotlib.pyplot as plt
import numpy as np

from rbrl import RBRLClassifier, label_map
from rbrl.experiments.figures import use_style

PLACES = {
    "coast": ["sea", "beach", "boat", "sand"],
    "mountains": ["rock", "snow", "ski", "forest"],
    "town": ["street", "car", "night", "neon"],
}
LABELS = [label for labels in PLACES.values() for label in labels]

# %%
# Photographs of three places
# ---------------------------
# A photograph has a hidden share of each place. Its 40 features are a noisy mixture of the three, and a label is
# relevant where its place has a large share; each label also has a probability of its own.

random = np.random.default_rng(0)
shares = random.normal(size=(1500, len(PLACES)))
X = shares @ random.normal(size=(len(PLACES), 40)) + 2.0 * random.normal(size=(1500, 40))
place_of = np.repeat(np.arange(len(PLACES)), 4)
Y = (shares[:, place_of] + 0.8 * random.normal(size=(1500, len(LABELS))) > 0.6).astype(int)

# %%
# The nuclear norm finds three directions
# ---------------------------------------
# The model does not know the places. With the penalty ``nuclear`` it learns weights of low rank: three factors are
# enough, and a fourth has no weight.

model = RBRLClassifier(nuclear=700, label_names=LABELS).fit(X, Y)
found = label_map(model)
print(found)

# %%
# Labels as points
# ----------------
# ``factors`` has a row for each label, with its coordinate on each factor. In the plane of the first two, the labels of a
# place lie on one ray from the origin. The bars show the share of the weights in each factor.

with use_style({"axes.grid": False}) as palette:
    figure, (plane, bars) = plt.subplots(1, 2, figsize=(8, 3.8), width_ratios=(5, 2), layout="constrained")
    for k, (place, colour) in enumerate(zip(PLACES, (palette.accent, palette.contrast, palette.ink))):
        ends = found.factors[place_of == k, :2]
        for end in ends:
            plane.plot([0, end[0]], [0, end[1]], "o-", color=colour, lw=1, ms=4, markevery=[1], alpha=0.7)
        plane.annotate(f"{place}:\n{', '.join(PLACES[place])}", (ends[:, 0].max(), ends[:, 1].mean()), xytext=(9, 0),
                       color=colour, textcoords="offset points", va="center")  # fmt: skip
    plane.set(xlabel="first factor", ylabel="second factor", title="Twelve labels, three rays", xticks=[], yticks=[])
    plane.margins(0.12)
    plane.set_xlim(right=1.8 * found.factors[:, 0].max())
    bars.bar(np.arange(1, len(found.shares) + 1), 100 * found.shares, color=palette.muted, width=0.6)
    bars.set(xlabel="factor", ylabel="% of the squared weights", title="Weight of each factor")
    bars.set_xticks(np.arange(1, len(found.shares) + 1))
plt.show()

# %%
# All pairs
# ---------
# ``plot`` draws the cosines between the weights of all labels, with similar labels next to each other.

figure = found.plot()
