"""
Missing labels
==============

Often only some labels of each row are annotated. The others are missing: neither relevant nor irrelevant. Such an entry
is NaN and has no term in the loss. This example hides more and more labels, and compares missing labels with labels that
are wrongly called irrelevant.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, datasets, evaluate
from rbrl.experiments.figures import use_style

train, test = datasets.load("yeast").split(seed=0)
scaler = StandardScaler().fit(train.X)
X, X_test = scaler.transform(train.X), scaler.transform(test.X)

# %%
# Hide labels at random
# ---------------------
# All models have default parameters. "NaN" marks a hidden entry as missing. "0" treats it as irrelevant, as filling a
# table with zeros does. "Whole rows" keeps only the rows without a missing label.

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FEWEST_ROWS = 20
uniform = np.random.default_rng(0).random(train.Y.shape)
found = {"NaN: missing": [], "0: treated as irrelevant": [], "whole rows only": []}
for share in SHARES:
    Y = np.where(uniform < share, np.nan, train.Y)
    whole = ~np.isnan(Y).any(axis=1)
    ways = ((X, Y), (X, np.nan_to_num(Y)), (X[whole], Y[whole]))
    for values, (rows, labels) in zip(found.values(), ways):
        if len(rows) < FEWEST_ROWS:
            values.append((np.nan, np.nan))
            continue
        model = RBRLClassifier().fit(rows, labels)
        judged = evaluate(test.Y, model.predict(X_test).astype(int), model.decision_function(X_test))
        values.append((judged["f1_example"], judged["average_precision"]))
    print(f"{share:.0%} hidden:", ", ".join(f"{name} {values[-1][0]:.2f}" for name, values in found.items()))

# %%
# A missing label is not an irrelevant label
# ------------------------------------------
# With NaN, a model that sees a fifth of the labels comes close to one that sees all. With zeros it learns that labels are
# rare, and in the end predicts none. Average precision depends on the order of the labels and suffers less, because
# evenly spread zeros lower all scores alike. Few whole rows remain: with fourteen labels and 30 % hidden, seven rows of a
# thousand.

with use_style():
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for axes, metric, title in zip(panels, range(2), ("F1 per row", "average precision")):
        for (name, values), style in zip(found.items(), ("o-", "s--", "^:")):
            axes.plot(100 * np.array(SHARES), np.array(values)[:, metric], style, ms=4, label=name)
        axes.set(xlabel="% of the labels hidden in training", ylabel=f"{title}, new rows", title=title)
    panels[0].legend(loc="lower left")
plt.show()
