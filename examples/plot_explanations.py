"""
Why a gene has a function
=========================

A score is a sum, and the terms of a sum can be told: which features speak for a label, which against it, and which for
one label rather than another. :func:`rbrl.explain` tells them through a pipeline, in the units of the data.
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
# Its best label
# --------------
# Without the name of a label, the one with the highest score is explained. The terms add up to the score.

why = explain(model, gene)
print(why)
figure_why = why.plot()

# %%
# Why this one, and not that one?
# -------------------------------
# The difference of two scores is a sum, too. What speaks for both labels alike is no reason for either, and is gone.

rather = explain(model, gene, "Class1", against="Class4")
print(rather)
figure_rather = rather.plot()

# %%
# Labels that the model ties together
# -----------------------------------
# Two labels whose weights point the same way are scored alike in every row.

together = label_map(model)
print(together)
figure_together = together.plot()
