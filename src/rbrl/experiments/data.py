"""What goes into a run and what comes out of it: the rows of a data set, the folds of a tuning, the outcome."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl.datasets import CARDS, Dataset, load, load_file
from rbrl.exceptions import in_words

if TYPE_CHECKING:
    from rbrl._common.typing import IntArray, Matrix
    from rbrl.experiments.runs import Task
    from rbrl.experiments.specs import DataSpec


class Fold(NamedTuple):
    """What one grid point gave on one fold; `point` is JSON.

    `processor_seconds` is its part of the search's processor time, judging and preparing included; NaN where it was not
    recorded.
    """

    point: str
    fold: int
    values: dict[str, float]
    fit_seconds: float
    gap: float
    evaluations: float
    processor_seconds: float = nan


@dataclass
class Outcome:
    """The result of a run, complete or failed; `again` says that a new start may try it once more.

    `others` has, for each other rule that the run was to be judged by, what the fits have shown of its tuning, its own
    Outcome or None, and the error that judging by it raised, if any.
    """

    status: str = "failed"
    error: str = ""
    trace: str = ""
    values: dict[str, float] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    tune_seconds: float = 0.0
    train_seconds: float = 0.0
    test_seconds: float = 0.0
    processor_seconds: float = 0.0
    gap: float = nan
    evaluations: float = nan
    tuning: list[Fold] = field(default_factory=list)
    others: list[tuple[list[Fold], Outcome | None, str]] = field(default_factory=list)
    machine: str = ""
    again: bool = False

    def fail(self, error: BaseException, again: bool = False) -> Outcome:
        """Make this the outcome of an error."""
        self.status, self.error, self.again = "failed", in_words(error), again
        self.trace = "".join(traceback.format_exception(error))
        return self


def by_point(task: Task, folds: Iterable[Fold]) -> dict[str, dict[str, list[float]]]:
    """Values of the plan's metrics on the folds, by grid point: only points of the grid, and only complete ones."""
    found: dict[str, dict[int, dict[str, float]]] = {point: {} for point in task.points}
    for one in folds:
        if one.point in found and set(task.metrics) <= set(one.values):
            found[one.point][one.fold] = one.values
    return {
        point: {metric: [rows[fold][metric] for fold in sorted(rows)] for metric in task.metrics}
        for point, rows in found.items()
        if len(rows) == task.plan.tuning.folds
    }


def missing_points(task: Task, known: Iterable[Fold]) -> list[str]:
    """Grid points of which not every fold and metric is known."""
    complete = by_point(task, known)
    return [point for point in task.points if point not in complete]


def processor_seconds(task: Task, known: Sequence[Fold]) -> float:
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

    def __init__(self, folder: Path, data_home: str | PathLike[str] | None = None) -> None:
        self.folder, self.data_home = folder, data_home
        self._loaded: dict[str, tuple[Matrix, IntArray]] = {}

    def get(self, spec: DataSpec) -> tuple[Matrix, IntArray]:
        """Return (X, Y): Y as int64, since scikit-learn goes wrong on int8 with more than 128 columns."""
        if spec.name not in self._loaded:
            data = self._load(spec)
            Y = data.Y.toarray() if sparse.issparse(data.Y) else data.Y
            self._loaded[spec.name] = data.X, Y.astype(np.int64)
        return self._loaded[spec.name]

    def fingerprint(self, spec: DataSpec) -> str:
        """Content hash: the card's, which loading checks, or that of what a file holds."""
        if spec.file is None:
            return CARDS[spec.name].sha256[:20]
        X: Any
        X, Y = self.get(spec)
        digest = hashlib.sha256(json.dumps([X.shape, Y.shape]).encode())
        for array in (*((X.indptr, X.indices, X.data) if sparse.issparse(X) else (X,)), Y):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:20]

    def sizes(self, spec: DataSpec) -> tuple[int, int, int, float, float]:
        """Return (samples, features, labels, labels per sample, density) of a file; a card says so of the others."""
        X, Y = self.get(spec)
        return X.shape[0], X.shape[1], Y.shape[1], float(Y.sum() / Y.shape[0]), float(Y.mean())

    def drop(self, names: set[str]) -> None:
        """Forget all sets but these, which some run still needs."""
        for name in set(self._loaded) - names:
            del self._loaded[name]

    def _load(self, spec: DataSpec) -> Dataset:
        if spec.file is None:
            return load(spec.name, self.data_home)
        labels = str(Path(self.folder, spec.labels)) if isinstance(spec.labels, str) else spec.labels
        return load_file(Path(self.folder, spec.file), **{**spec.options, "labels": labels})


def split_rows(Y: IntArray, seed: int, train_fraction: float, stratified: bool) -> tuple[IntArray, IntArray]:
    """Return (train, test) row numbers of one split."""
    # Here, and not above: who reads a store should not wait for scikit-learn.
    from rbrl.splits import IterativeStratifiedShuffleSplit, random_split

    if stratified:
        return next(IterativeStratifiedShuffleSplit(1, train_fraction, random_state=seed).split(Y, Y))
    return random_split(len(Y), seed, train_fraction)


def prepare(X: Any, train: IntArray, test: IntArray, standardise: str) -> tuple[Matrix, Matrix]:
    """Return the training and test rows of X, standardised by the training part where it is asked for."""
    from sklearn.preprocessing import StandardScaler

    if standardise == "none" or (standardise == "dense" and sparse.issparse(X)):
        return X[train], X[test]
    X = X.toarray() if sparse.issparse(X) else X
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), scaler.transform(X[test])
