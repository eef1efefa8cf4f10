"""Models and rows that are compared; fixed before the first run."""

import itertools
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from studies.benchmarks.problems import dataset

# The rules of the defaults were chosen on the first ones; a figure that speaks for them is one of the second ones.
CHOOSING = (
    "emotions", "yeast", "scene", "image", "enron", "arts", "science", "business", "flags", "tmc2007_500",
)  # fmt: skip
REPORTING = (
    "20ng", "bibtex", "cal500", "corel5k", "education", "health", "human3106", "imdb", "langlog", "recreation",
    "slashdot", "stackex_chess",
)  # fmt: skip
SEEDS = (0, 1, 2)
METRICS = ("average_precision", "ranking_loss", "f1_micro", "hamming_loss")
# The bars: share of the reporting sets with a higher average precision; mean regret of average precision.
SHARE, REGRET = 0.75, 0.004

# One-vs-rest logistic regression: values of C, folds; with more labels than MANY, C is tuned on so many rows at most.
CS, FOLDS, MANY, TUNING_ROWS = (0.01, 0.1, 1, 10, 100), 3, 100, 2000

# The grid of regrets: multiples of the default ridge; weights of the ranking term; fractions of a reference for the nuclear
# norm, the spectral norm of the gradient at constant scores, and its default.
RIDGES, RANKINGS, NUCLEARS = (10, 3, 1, 0.3, 0.1, 0.03), (1, 0.1, 10), ("0.1 ref", "0.03 ref", "0.1")
GRID_TOL = 1e-3


class Table(NamedTuple):
    """A table: its letter, its data sets, and the most rows to train and to test on."""

    letter: str
    data: tuple[str, ...]
    train_rows: int
    test_rows: int


TABLES = {
    "A": Table("A", REPORTING, 5000, 5000),
    "B": Table("B", REPORTING, 1000, 1000),
    "C": Table("C", CHOOSING + REPORTING, 2000, 5000),
    # Added after C was seen: does its limit of rows matter?
    "D": Table("D", REPORTING, 5000, 5000),
}


class Rows(NamedTuple):
    """Rows to train and to test on, and their labels in {0, 1}."""

    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray


def rows_of(table, name, seed):
    """The first rows of both parts of a 60/40 split (canonical order is random); dense ones standardised."""
    (X, Y), (X_test, Y_test) = dataset(name).split(seed)
    X, Y = X[: table.train_rows], np.asarray(Y[: table.train_rows])
    X_test, Y_test = X_test[: table.test_rows], np.asarray(Y_test[: table.test_rows])
    if not sparse.issparse(X):
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return Rows(X, Y, X_test, Y_test)


def grid():
    """(multiple of the default ridge, weight of the ranking term, nuclear norm), in the order of a search."""
    return list(itertools.product(RIDGES, RANKINGS, NUCLEARS))
