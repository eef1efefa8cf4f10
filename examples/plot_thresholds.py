"""
A threshold for every label
===========================

A rare label has a score above 0 in very few rows, even if the model ranks its rows well. A threshold other than 0 helps.
:class:`rbrl.TunedThresholdClassifier` finds thresholds by cross-validation for any classifier, here one for every label.
``RBRLClassifier(threshold="f1_macro")`` does so without cross-validation. A threshold of its own needs dozens of rows with
the label; one threshold for all labels, the default, is safe with fewer.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, TunedThresholdClassifier, classification_report, datasets, evaluate, predict_sets
from rbrl.decision import LabelThresholds
from rbrl.experiments.figures import use_style

yeast = datasets.load("yeast")
train, test = yeast.split(seed=0)
Y, truth = (pd.DataFrame(part.Y, columns=yeast.label_names) for part in (train, test))

# %%
# Threshold 0
# -----------
# Labels with names are predicted by name. Six of the fourteen are predicted in no row at all.

plain = make_pipeline(StandardScaler(), RBRLClassifier()).fit(train.X, Y)
print("labels of the first gene:", predict_sets(plain, test.X[:1])[0])
print(classification_report(truth, plain.predict(test.X)))

# %%
# Tuned thresholds
# ----------------
# The scores stay the same and only the thresholds change. Those of rare labels decrease.

per_label = TunedThresholdClassifier(RBRLClassifier(), LabelThresholds("f1_macro"))
tuned = make_pipeline(StandardScaler(), per_label).fit(train.X, Y)
thresholds = pd.Series(tuned[-1].rule_.thresholds_, index=yeast.label_names)
scores = pd.DataFrame(plain.decision_function(test.X), columns=yeast.label_names)


def f1_along(label, cuts):
    """Return F1 of a label on new rows for each threshold in `cuts`."""
    relevant = truth[label].to_numpy() == 1
    chosen = scores[label].to_numpy() > cuts[:, None]
    return 2 * (chosen & relevant).sum(axis=1) / (chosen.sum(axis=1) + relevant.sum())


cuts = np.linspace(-1.4, 1, 300)
with use_style() as palette:
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for label, colour in {"Class12": palette.ink, "Class4": palette.accent, "Class9": palette.contrast}.items():
        curve, cut = f1_along(label, cuts), thresholds[label]
        axes.plot(cuts, curve, color=colour, label=f"{label}, {truth[label].mean():.0%} of the rows")
        axes.plot(cut, np.interp(cut, cuts, curve), "o", color=colour)
    axes.axvline(0, color=palette.muted, lw=1, ls="--")
    axes.set(
        xlabel="threshold",
        ylabel="F1 on new rows",
        ylim=(0, 1),
        title="F1 against the threshold; dots: thresholds found by cross-validation",
    )
    axes.legend(loc="center left", bbox_to_anchor=(0.02, 0.37))
plt.show()

# %%
# The gain of tuned thresholds
# ----------------------------
# Frequent labels hardly change. Five of the six labels that were never predicted are predicted now.

judged = {
    "threshold 0": evaluate(truth, plain.predict(test.X), per_label=True),
    "tuned thresholds": evaluate(truth, tuned.predict(test.X), per_label=True),
}
supports = judged["threshold 0"]["support"].sort_values()
places = np.arange(len(supports))
with use_style({"axes.grid.axis": "x"}) as palette:
    figure, axes = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    for (name, frame), colour, up in zip(judged.items(), ("#b8c2d0", palette.accent), (0.2, -0.2)):
        axes.barh(places + up, frame.loc[supports.index, "f1"], 0.4, label=name, color=colour, ec=palette.ink, lw=0.4)
    axes.set_yticks(places, supports.index, color=palette.ink)
    for place, support in zip(places, supports):
        axes.annotate(f"{support} rows", (1.01, place), xycoords=("axes fraction", "data"), va="center",
                      fontsize=7.5, color=palette.muted)  # fmt: skip
    axes.set(title=f"F1 of every label of yeast, of {len(truth)} test rows", xlabel="F1", xlim=(0, 1))
    axes.set_ylim(-0.6, len(places) - 0.4)
    axes.legend(loc="lower right")
plt.show()
