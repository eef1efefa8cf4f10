"""From a plan to its runs, each with an identity that says on what its result depends, and on nothing else."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import traceback
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version as version_of
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.typing import Array, Matrix, issparse
from rbrl._version import __version__
from rbrl.datasets import CARDS, load, load_file
from rbrl.exceptions import PlanError, in_words
from rbrl.experiments.plan import Plan
from rbrl.experiments.specs import FILE_KEYS, DataSpec, MethodSpec
from rbrl.metrics import ReliabilityBins

# A run among those of a plan: data set, method, split.
Place = tuple[str, str, int]


class Shelf:
    """Loads each data set of a plan at most once, and only when its rows are needed.

    Parameters
    ----------
    folder : Path
        Where relative file paths start.
    data_home : path or None
        Folder of catalogue sets.

    Examples
    --------
    >>> from rbrl.experiments import Plan, Shelf
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": ["br"]})
    >>> shelf, (yeast,) = Shelf(plan.folder), plan.datasets
    >>> X, Y = shelf.get(yeast)
    >>> X.shape, Y.shape, shelf.fingerprint(yeast)[:6]
    ((2417, 103), (2417, 14), 'b3a063')
    """

    def __init__(self, folder: Path, data_home: str | PathLike[str] | None = None) -> None:
        self.folder, self.data_home = folder, None if data_home is None else os.fspath(data_home)
        self._loaded: dict[str, tuple[Matrix, Array]] = {}

    def get(self, spec: DataSpec) -> tuple[Matrix, Array]:
        """Return (X, Y): Y as int64, since scikit-learn goes wrong on int8 with more than 128 columns.

        Where labels are missing, Y is of float64, with NaN.
        """
        if spec.name not in self._loaded:
            if spec.file is None:
                data = load(spec.name, self.data_home)
            else:
                labels = str(Path(self.folder, spec.labels)) if isinstance(spec.labels, str) else spec.labels
                options = {key: getattr(spec, key) for key in FILE_KEYS if key != "labels"}
                data = load_file(Path(self.folder, spec.file), labels, **options)
            Y = data.Y.toarray() if issparse(data.Y) else data.Y
            self._loaded[spec.name] = data.X, Y.astype(np.float64 if Y.dtype.kind == "f" else np.int64)
        return self._loaded[spec.name]

    def fingerprint(self, spec: DataSpec) -> str:
        """Content hash: the card's, which loading checks, or that of what a file holds."""
        if spec.file is None:
            return CARDS[spec.name].sha256[:20]
        X, Y = self.get(spec)
        digest = hashlib.sha256(json.dumps([X.shape, Y.shape]).encode())
        for array in (*((X.indptr, X.indices, X.data) if issparse(X) else (X,)), Y):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:20]

    def sizes(self, spec: DataSpec) -> tuple[int, int, int, float, float]:
        """Return (samples, features, labels, labels per sample, density) of a file; a card says so of the others."""
        X, Y = self.get(spec)
        return X.shape[0], X.shape[1], Y.shape[1], float(np.nansum(Y) / Y.shape[0]), float(np.nanmean(Y))

    def drop(self, names: set[str]) -> None:
        """Forget all sets but these, which some run still needs."""
        for name in set(self._loaded) - names:
            del self._loaded[name]


@dataclass(frozen=True)
class Run:
    """One method on one split of one data set: all that a worker must know besides the data.

    Two runs of the same `key` have the same result; two of the same `tune_key` may share what was tuned.

    Parameters
    ----------
    dataset, method : str
        Names in the plan.
    split : int
    key : str
        Hash of the identity.
    plan : Plan
    data : DataSpec
    spec : MethodSpec
        What the plan says of the data set and of the method.
    params : dict
        Those of the method on this data set.
    points : tuple of str
        The points of its grid, as JSON; none where nothing is tuned.
    convention : str
        Of the metrics.
    seed : int
        Of the folds, and of a random method.
    identity : dict
        On what the result depends.
    tune_key : str or None
        Hash of what tuning depends on; None where nothing is tuned.
    first : str
        Key of the run that tunes for this one, its own unless the plan tunes on the first split only.
    others : tuple of Run
        The same run under the other decision rules that its fits are judged by.
    """

    dataset: str
    method: str
    split: int
    key: str
    plan: Plan = field(repr=False)
    data: DataSpec = field(repr=False)
    spec: MethodSpec = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    points: tuple[str, ...] = field(repr=False)
    convention: str = field(repr=False)
    seed: int = field(repr=False)
    identity: dict[str, Any] = field(repr=False)
    tune_key: str | None = field(repr=False)
    first: str = field(repr=False)
    others: tuple[Run, ...] = field(repr=False)

    @property
    def place(self) -> Place:
        """Where it is in the plan."""
        return self.dataset, self.method, self.split

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.dataset} · {self.method} · split {self.split}"

    @property
    def tunes(self) -> bool:
        """Whether this run does its own tuning."""
        return self.tune_key is not None and self.first == self.key


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
    """The result of a run, complete or failed.

    Attributes
    ----------
    status : {"ok", "failed"}
    error, trace : str
        What was raised, in a line and as a whole.
    values : dict of str to float
        By the name of the metric.
    again : bool
        Whether a new start may try a failed run once more.
    version : str
        Of rbrl.
    params : dict
        Those of the plan, and those that were chosen.
    tune_seconds, train_seconds, test_seconds, processor_seconds : float
    gap, evaluations : float
        Of the last fit.
    tuning : list of Fold
        What was tuned for this run.
    others : list of Outcome
        What the fits have shown of each of the run's `others`: the tuning, and the values unless it has failed, because
        it would choose other parameters or with the error that judging raised.
    machine : str
    reliability : ReliabilityBins or None
        Of the probabilities of all labels together, where the method has them and a metric needs them.
    """

    status: str = "failed"
    error: str = ""
    values: dict[str, float] = field(default_factory=dict)
    again: bool = False
    version: str = __version__
    trace: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    tune_seconds: float = 0.0
    train_seconds: float = 0.0
    test_seconds: float = 0.0
    processor_seconds: float = 0.0
    gap: float = nan
    evaluations: float = nan
    tuning: list[Fold] = field(default_factory=list)
    others: list[Outcome] = field(default_factory=list)
    machine: str = ""
    reliability: ReliabilityBins | None = None

    def fail(self, error: BaseException, again: bool = False) -> Outcome:
        """Make this the outcome of an error.

        Parameters
        ----------
        error : exception
        again : bool, default=False

        Returns
        -------
        Outcome
        """
        self.status, self.error, self.again = "failed", in_words(error), again
        self.trace = "".join(traceback.format_exception(error))
        return self

    def lacks(self, run: Run) -> list[str]:
        """Metrics that the run now asks for, and that were not measured."""
        return sorted(set(run.plan.metrics) - set(self.values)) if self.status == "ok" else []

    def is_open(self, run: Run, retry_failed: bool) -> bool:
        """Whether the run is to be done once more."""
        return bool(self.again) or retry_failed if self.status == "failed" else bool(self.lacks(run))


def by_point(run: Run, folds: Iterable[Fold]) -> dict[str, dict[str, list[float]]]:
    """Values of the plan's metrics on the folds, by grid point: only points of the grid, and only complete ones.

    Parameters
    ----------
    run : Run
    folds : iterable of Fold

    Returns
    -------
    dict of str to dict
        By the grid point and by the metric, a list with a value for each fold.
    """
    found: dict[str, dict[int, dict[str, float]]] = {point: {} for point in run.points}
    metrics = run.plan.metrics
    for one in folds:
        if one.point in found and set(metrics) <= set(one.values):
            found[one.point][one.fold] = one.values
    return {
        point: {metric: [rows[fold][metric] for fold in sorted(rows)] for metric in metrics}
        for point, rows in found.items()
        if len(rows) == run.plan.tuning.folds
    }


def missing_points(run: Run, known: Iterable[Fold]) -> list[str]:
    """Grid points of which not every fold and metric is known.

    Parameters
    ----------
    run : Run
    known : iterable of Fold

    Returns
    -------
    list of str
    """
    complete = by_point(run, known)
    return [point for point in run.points if point not in complete]


@cache
def machine() -> str:
    """Kind of machine and versions of what the figures depend on; not its name, since reports are passed on.

    Examples
    --------
    >>> from rbrl.experiments import machine
    >>> machine().split(", ")[3].split()[0]
    'NumPy'
    """
    kind = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    packages = {"NumPy": "numpy", "SciPy": "scipy", "scikit-learn": "scikit-learn"}
    return ", ".join([kind, *(f"{title} {version_of(name)}" for title, name in packages.items())])


def expand(plan: Plan, shelf: Shelf) -> list[Run]:
    """Return the runs of a plan, one data set after the other; refuse methods and parameters that do not exist.

    Methods that cannot learn from a data set because labels of it are missing are refused, too.

    A method that is tuned on the first split needs it, also where only other splits are asked for.

    Parameters
    ----------
    plan : Plan
    shelf : Shelf

    Returns
    -------
    list of Run

    Examples
    --------
    >>> from rbrl.experiments import Plan, Shelf, expand
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": ["br"], "splits": {"number": 2}})
    >>> [run.title for run in expand(plan, Shelf(plan.folder))]
    ['yeast · br · split 0', 'yeast · br · split 1']
    """
    # Here, and not above: who reads a store should not wait for every method.
    from rbrl.experiments.methods import check_method, check_missing_labels

    for method in plan.methods:
        check_method(plan, method)
    runs = []
    for data in plan.datasets:
        try:
            content = shelf.fingerprint(data)
        except (OSError, ValueError) as error:
            raise PlanError(f"the data set {data.name!r} cannot be read: {error}") from error
        if data.file is not None:  # in those of the catalogue nothing is missing
            check_missing_labels(plan, data, shelf.get(data)[1])
        once = [method for method in plan.methods if method.tuned_on(data, plan.tuning.on) == "first"]
        firsts = {method.name: _run(plan, data, method, 0, content) for method in once}
        for split, method in itertools.product(range(plan.splits.number), plan.methods):
            first = firsts.get(method.name)
            if split in plan.splits.chosen or (split == 0 and first and first.tune_key):
                runs.append(_run(plan, data, method, split, content, first.key if first else None))
    return runs


def _run(plan: Plan, data: DataSpec, method: MethodSpec, split: int, content: str, first: str | None = None) -> Run:
    from rbrl.experiments.methods import code_of, resolved

    params, grids = method.on(data)
    grid = [dict(zip(one, values)) for one in grids for values in itertools.product(*one.values())]
    points = tuple(dict.fromkeys(json.dumps(point, sort_keys=True) for point in grid))
    # The seed, the decision rule and what every grid point has are set for each fit, whatever their defaults are.
    always = set.intersection(*map(set, grid)) if grid else set()
    always |= {"random_state"} if method.non_empty is None else {"random_state", "non_empty"}
    convention, seed = method.convention or plan.convention, plan.seed + split
    base: dict[str, Any] = {
        "data": content,
        "class": method.use,
        "code": code_of(method.use, params, plan.folder),
        "params": resolved(method.use, params, plan.folder, but=always),
        "non_empty": method.non_empty,
        "standardise": plan.standardise,
        "splits": [plan.splits.train_fraction, plan.splits.stratified],
        "convention": convention,
    }
    seeds = {"split": plan.splits.seed + split, "seed": seed}
    identity, tune_key = {**base, **seeds}, None
    if points:
        # On the first split, where this run leaves the tuning to the run of that split.
        seeds = seeds if first is None else {"split": plan.splits.seed, "seed": plan.seed}
        tuned = {**seeds, "folds": plan.tuning.folds}
        tune_key = _key({**base, **tuned})
        identity |= {"grid": sorted(points), "tuned": tuned, "criterion": _criterion(plan)}
    key = _key(identity)
    others = (_run(plan, data, other, split, content, first) for other in method.under_other_rules())
    different = tuple(other for other in others if other.key != key)
    said = plan, data, method, params, points, convention, seed
    return Run(data.name, method.name, split, key, *said, identity, tune_key, first or key, different)


def _key(identity: dict[str, Any]) -> str:
    """A short name for a dict of plain values."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


def _criterion(plan: Plan) -> list[str]:
    """On what the choice depends: a metric alone, or the mean rank over some."""
    criterion = plan.tuning.criterion
    if isinstance(criterion, str) and criterion != "mean_rank":
        return [criterion]
    return ["mean_rank", *sorted(plan.metrics if criterion == "mean_rank" else criterion)]


# What a part of an identity is to people.
WORDS = {
    "data": "the data", "class": "the class", "code": "the code of the class", "params": "the parameters",
    "non_empty": "the decision rule", "standardise": "the preprocessing", "splits": "how splits are drawn",
    "convention": "the convention", "split": "the seed of the splits", "seed": "the seed", "grid": "the grid",
    "tuned": "the folds, or the split that is tuned on", "criterion": "the criterion",
}  # fmt: skip


def changes(
    before: dict[Place, dict[str, Any]], runs: list[Run], todo: list[Run], finished: dict[str, Outcome]
) -> list[str]:
    """Return sentences about runs that cannot be reused.

    Parameters
    ----------
    before : dict of (dataset, method, split) to dict
        Identities under the last plan.
    runs, todo : list of Run
        Those of this plan, and those of them that will be done.
    finished : dict of str to Outcome
        As `Store.finished` gives it.

    Returns
    -------
    list of str
    """
    reasons: dict[tuple[str, str], int] = defaultdict(int)
    for run in todo:
        old = before.get(run.place)
        if old is not None and old != run.identity:
            changed = (name for name in sorted({*old, *run.identity}) if old.get(name) != run.identity.get(name))
            reasons[run.method, ", ".join(WORDS[name] for name in changed)] += 1
        elif run.key in finished:
            lacking = ", ".join(finished[run.key].lacks(run))
            why = f"the metrics, now with {lacking}" if lacking else "nothing, they had failed"
            reasons[run.method, why] += 1
    notes = [
        f"{n} run{'s' if n > 1 else ''} of {method} done anew; changed: {why}." for (method, why), n in reasons.items()
    ]
    gone = len(set(before) - {run.place for run in runs})
    if gone:
        notes.append(f"{gone} runs of the last plan are not in this one; the store keeps them.")
    redone = {run.key for run in todo}
    reused = [finished[run.key].version for run in runs if run.key not in redone]
    for other in sorted(set(reused) - {__version__}):
        what = f"{reused.count(other)} runs are reused from rbrl {other}; this is {__version__}"
        notes.append(f"{what}. Use a new folder to have all from one version.")
    return notes
