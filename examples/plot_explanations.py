"""
Why a gene has a function
=========================

A score is a sum over the features. Its terms show which features speak for a label, which against it, and which for one
label rather than another. :func:`rbrl.explain` returns them for a whole pipeline, in the units of the data.
"""

import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, datasets, explain, label_map

yeast = datasets.load("yeast")
train, test = yeast.split(seed=0)
X, Y = pd.DataFrame(train.X, columns=yeast.feature_names), pd.DataFrame(train.Y, columns=yeast.label_names)
model = make_pipeline(StandardScaler(), RBRLClassifier(nuclear=100)).fit(X, Y)
gene = pd.DataFrame(test.X, columns=yeast.feature_names).iloc[126]

# %%
# The best label of a gene
# ------------------------
# Without the name of a label, ``explain`` takes the one with the highest score. The terms add up to the score.

why = explain(model, gene)
print(why)
figure_why = why.plot()

# %%
# One label rather than another
# -----------------------------
# The difference of two scores is a sum, too. Terms that both labels share cancel out.

rather = explain(model, gene, "Class1", against="Class4")
print(rather)
figure_rather = rather.plot()

# %%
# Labels with similar weights
# ---------------------------
# Two labels with similar weights have similar scores in every row.

together = label_map(model)
print(together)
figure_together = together.plot()
