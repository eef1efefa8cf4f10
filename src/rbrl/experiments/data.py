"""Data sets of a plan: loading, content hash, splits, standardisation; and results of tuning as plain records."""

import hashlib
import json
from math import isnan
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from rbrl.datasets import CARDS, load, load_file
from rbrl.splits import IterativeStratifiedShuffleSplit, random_split


class Fold(NamedTuple):
    """What one grid point gave on one fold; `point` is JSON.

    `processor_seconds` is its part of the search's processor time, judging and preparing included; NaN where it was not
    recorded.
    """

    point: str
    fold: int
    values: dict
    fit_seconds: float
    gap: float
    evaluations: float
    processor_seconds: float = float("nan")


def missing_points(task, known):
    """Grid points of which not every fold and metric is known."""
    complete = by_point(task, known)
    return [point for point in task.points if point not in complete]


def by_point(task, folds):
    """Values of the plan's metrics on the folds, by grid point: only points of the grid, and only complete ones."""
    found: dict[str, dict[int, dict]] = {point: {} for point in task.points}
    for one in folds:
        if one.point in found and set(task.metrics) <= set(one.values):
            found[one.point][one.fold] = one.values
    return {
        point: {metric: [rows[fold][metric] for fold in sorted(rows)] for metric in task.metrics}
        for point, rows in found.items()
        if len(rows) == task.folds
    }


def processor_seconds(task, known):
    """Processor time of the searches that gave what is known of a run's grid, as far as it was recorded."""
    complete = by_point(task, known)
    recorded = (one.processor_seconds for one in known if one.point in complete)
    return sum(seconds for seconds in recorded if not isnan(seconds))


class Shelf:
    """Loads each data set of a plan at most once, and only when its rows are needed.

    Parameters
    ----------
    folder : Path
        Where relative file paths start.
    data_home : path or None
        Folder of catalogue sets.
    """

    def __init__(self, folder, data_home=None):
        self.folder, self.data_home = folder, data_home
        self._loaded = {}

    def get(self, spec):
        """Return (X, Y): Y as int64, since scikit-learn goes wrong on int8 with more than 128 columns."""
        if spec.name not in self._loaded:
            data = self._load(spec)
            Y = data.Y.toarray() if sparse.issparse(data.Y) else data.Y
            self._loaded[spec.name] = data.X, Y.astype(np.int64)
        return self._loaded[spec.name]

    def fingerprint(self, spec):
        """Content hash: the card's, which loading checks, or that of what a file holds."""
        return CARDS[spec.name].sha256[:20] if spec.file is None else _content(*self.get(spec))

    def sizes(self, spec):
        """Return (samples, features, labels, labels per sample, density) of a file; a card says so of the others."""
        X, Y = self.get(spec)
        return (*X.shape, Y.shape[1], float(Y.sum() / Y.shape[0]), float(Y.mean()))

    def drop(self, names):
        """Forget the sets that no run needs any more."""
        for name in set(self._loaded) - set(names):
            del self._loaded[name]

    def _load(self, spec):
        if spec.file is None:
            return load(spec.name, self.data_home)
        labels = spec.labels
        if isinstance(labels, str):
            labels = str(Path(self.folder, labels))
        return load_file(Path(self.folder, spec.file), **{**spec.options, "labels": labels})


def split_rows(Y, seed, train_fraction, stratified):
    """Return (train, test) row numbers of one split."""
    if stratified:
        return next(IterativeStratifiedShuffleSplit(1, train_fraction, random_state=seed).split(Y, Y))
    return random_split(len(Y), seed, train_fraction)


def prepare(X, train, test, standardise):
    """Return the training and test rows of X, standardised by the training part where it is asked for."""
    if standardise == "none" or (standardise == "dense" and sparse.issparse(X)):
        return X[train], X[test]
    X = X.toarray() if sparse.issparse(X) else X
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), scaler.transform(X[test])


def _content(X, Y):
    digest = hashlib.sha256(json.dumps([X.shape, Y.shape]).encode())
    arrays = (X.indptr, X.indices, X.data) if sparse.issparse(X) else (X,)
    for array in (*arrays, Y):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:20]
