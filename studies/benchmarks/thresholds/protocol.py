"""The data sets, the models and the rules of decision of this study, fixed before its table `report` was first run.

The tables `filling` and `scores` choose, on the choosing sets of `studies.benchmarks.defaults`. The table `report` decides,
on other data sets, by the two rules below.

The default of `threshold` changes from 0 to "f1_micro" if both conditions hold on the reporting sets, each figure being
the mean over the splits:

1. micro-F1, macro-F1 and example-F1 are each higher with "f1_micro" on at least `SHARE` of the sets;
2. the mean over the sets of the subset accuracy falls by at most `SUBSET`, and that of the Hamming loss rises by at most
   the share `HAMMING` of its value.

The second condition is there because a default must not harm a user who is judged by another metric: a trade of one
metric against another is the user's choice.

The default rule of `TunedThresholdClassifier` changes from `LabelThresholds("f1_macro")` to `GlobalThreshold("f1_micro")`
if micro-F1 and example-F1 are each higher with the latter on at least `SHARE` of the sets.
"""

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from studies.benchmarks.defaults.protocol import Rows
from studies.benchmarks.problems import dataset, folder

REPORTING = (
    "20ng", "bibtex", "cal500", "corel5k", "debdepends", "delicious", "education", "health", "human3106", "imdb",
    "langlog", "rcv1subset1", "recreation", "slashdot", "stackex_chess", "yahoo_arts_full",
)  # fmt: skip
SEEDS = (0, 1, 2)
# The most rows to train and to test on; of sets with more labels, the most frequent ones are learned.
TRAIN_ROWS, TEST_ROWS = 2000, 2000
LABELS = {"debdepends": 100, "rcv1subset1": 50}
METRICS = ("hamming_loss", "subset_accuracy", "f1_micro", "f1_macro", "f1_example")
SHARE, SUBSET, HAMMING = 0.75, 0.01, 0.05

# Table `filling`: shares of the labels that are kept, so that some rows have none.
KEPT = (1.0, 0.9, 0.7, 0.5, 0.3)
# Table `scores`: multiples of the ridge "auto" or ridges of the linear model, and ridges of the RBF kernel.
RIDGES = (("linear", 0.01), ("linear", 0.1), ("linear", 1.0), ("linear", "auto"), ("linear", "100 auto"),
          ("rbf", 0.01), ("rbf", 0.1), ("rbf", 1.0), ("rbf", 10.0))  # fmt: skip


def rows_of(name, seed, train_rows=TRAIN_ROWS, test_rows=TEST_ROWS):
    """The first rows of both parts of a 60/40 split (canonical order is random); dense ones standardised."""
    (X, Y), (X_test, Y_test) = debian_packages(seed) if name == "debdepends" else dataset(name).split(seed)
    X, X_test = X[:train_rows], X_test[:test_rows]
    Y, Y_test = (_dense(each) for each in (Y[:train_rows], Y_test[:test_rows]))
    if name in LABELS:
        frequent = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[: LABELS[name]])
        Y, Y_test = Y[:, frequent], Y_test[:, frequent]
    if not sparse.issparse(X):
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return Rows(X, Y, X_test, Y_test)


def debian_packages(seed):
    """Two random parts of `TRAIN_ROWS` and `TEST_ROWS` packages; the file has no values of its sparse labels, all 1."""
    with np.load(folder("RBRL_DATA") / "debdepends.npz") as file:
        X = sparse.csr_array(tuple(file[f"X_{part}"] for part in ("data", "indices", "indptr")), file["X_shape"])
        ones = np.ones(len(file["Y_indices"]), dtype=np.int8)
        Y = sparse.csr_array((ones, file["Y_indices"], file["Y_indptr"]), file["Y_shape"])
    rows = np.random.default_rng(seed).permutation(X.shape[0])
    train, test = np.split(rows[: TRAIN_ROWS + TEST_ROWS], [TRAIN_ROWS])
    return (X[train], Y[train]), (X[test], Y[test])


def _dense(Y):
    return np.asarray(Y.toarray() if sparse.issparse(Y) else Y)
