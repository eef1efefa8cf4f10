"""
A comparison in ten lines
=========================

Which method is better on your data? A plan names data sets, methods and splits. The runs are stored and can be
continued, and a statistical test compares the methods. ``rbrl compare`` does the same on the command line, and writes a
page.
"""

import tempfile
from pathlib import Path

from sklearn.datasets import make_multilabel_classification

from rbrl.datasets import Dataset, save_file
from rbrl.experiments import Plan, Results, Store, compare, execute, verdict
from rbrl.experiments.figures import draw_average_ranks, draw_critical_difference

folder = Path(tempfile.mkdtemp())

# %%
# Data
# ----
# Files of any format that rbrl reads, or names of its catalogue. Here, eight synthetic data sets that differ in the
# number of labels per row.

files = []
for seed in range(8):
    X, Y = make_multilabel_classification(n_samples=300, n_classes=8, n_labels=1 + seed % 4, random_state=seed)
    files.append(str(folder / f"made{seed}.npz"))
    save_file(Dataset(X, Y), files[-1])

# %%
# The ten lines
# -------------
# Every method is fitted and tested on the same two splits of every data set. A second call finds all runs in the store.
# A method of your own is named by its file, ``"use": "mine.py:MyClassifier"``.

plan = Plan.from_dict(
    {
        "datasets": files,
        "splits": {"number": 2},
        "methods": {"rbrl": {}, "br": {}, "ml-knn": {}, "cpnl": {}},
    }
)
summary = execute(plan, folder / "store", jobs=1)
results = Results.from_rows(Store(folder / "store").rows())
comparison = compare(results, "ranking_loss")
print(summary.n_done, "runs;", verdict(comparison, results).sentence)

# %%
# Ranks
# -----
# The methods are ranked on each data set, and the ranks averaged: a method that is best everywhere has rank 1.

figure_ranks = draw_average_ranks(comparison.ranks, "Average rank by ranking loss")

# %%
# Significance
# ------------
# A bar joins methods that do not differ significantly: their ranks differ by less than the critical distance of
# Nemenyi's test.

figure_distance = draw_critical_difference(comparison)
