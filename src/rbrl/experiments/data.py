"""Data sets of a plan: loading, content hash, splits, standardisation."""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rbrl.datasets import CARDS, Dataset, load, load_file
from rbrl.experiments.specs import DataSpec

if TYPE_CHECKING:
    from rbrl._common.typing import IntArray, Matrix


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
        return load_file(Path(self.folder, spec.file), labels, format=spec.format, nominal=spec.nominal)


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
