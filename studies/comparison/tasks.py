"""A task: the training and test rows of one split of one data set, the same for every method."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler, normalize

from rbrl import datasets
from rbrl.datasets import CARDS
from rbrl.splits import random_split
from studies.comparison import rules


@dataclass(frozen=True)
class Task:
    """Training rows and test rows.

    Parameters
    ----------
    dataset : str
    split : int
    X, Y, X_test, Y_test : arrays
        Labels are 0/1; labels that all training rows have or that none has are left out.
    folds : tuple of arrays
        Indices of the training rows that are held out in turn.
    """

    dataset: str
    split: int
    X: Any
    Y: Any
    X_test: Any
    Y_test: Any
    folds: tuple[Any, ...]

    @property
    def never_empty(self) -> bool:
        """True if a row without a positive score gets its best label, because few training rows have no label."""
        return bool(np.mean(~self.Y.any(axis=1)) <= rules.LARGEST_EMPTY_SHARE)


def make_task(dataset: str, split: int, loaded: datasets.Dataset | None = None) -> Task:
    """Return the task of a split; `loaded` saves loading the data set."""
    data = loaded or datasets.load(dataset)
    labels: Any = data.Y
    Y = np.asarray(labels.toarray() if sparse.issparse(labels) else labels).astype(np.int64)
    train, test = random_split(len(Y), split, rules.TRAIN_FRACTION)
    random = np.random.default_rng(split)
    train, test = (
        random.permutation(rows)[:most] for rows, most in ((train, rules.TRAIN_ROWS), (test, rules.TEST_ROWS))
    )
    kept = Y[train].any(axis=0) & ~Y[train].all(axis=0)
    X, X_test = _prepared(data.X[train], data.X[test])
    folds = tuple(np.array_split(random.permutation(len(train)), rules.FOLDS))
    return Task(dataset, split, X, Y[train][:, kept], X_test, Y[test][:, kept], folds)


def _prepared(X: Any, X_test: Any) -> tuple[Any, Any]:
    """Scale sparse rows to unit length, and dense columns to mean 0 and variance 1."""
    if sparse.issparse(X):
        return sparse.csr_matrix(normalize(X)), sparse.csr_matrix(normalize(X_test))
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test)


def kind(dataset: str) -> str:
    """Return the kind of a data set: dense, sparse or many labels."""
    card = CARDS[dataset]
    if card.n_labels > rules.MANY_LABELS:
        return "many labels"
    return "sparse" if card.sparse else "dense"
