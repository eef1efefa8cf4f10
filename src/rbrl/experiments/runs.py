"""Runs of a plan, their outcomes, and the listener for the events of a comparison.

The identity of a run names everything that its result depends on, and nothing else.
"""

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
from typing import Any, NamedTuple

from rbrl._version import __version__
from rbrl.exceptions import PlanError, in_words
from rbrl.experiments.plan import Plan
from rbrl.experiments.specs import DatasetLoader, DataSpec, MethodSpec
from rbrl.metrics import ReliabilityBins

# Data set, method and split of a run.
Place = tuple[str, str, int]


@dataclass(frozen=True)
class Run:
    """One method on one split of one data set: everything that a worker needs except the data.

    Two runs with the same `key` have the same result. Two runs with the same `tune_key` may share
    their tuning.

    Parameters
    ----------
    dataset, method : str
        Names in the plan.
    split : int
        Number of the split.
    key : str
        Hash of the identity.
    plan : Plan
        Plan of the run.
    data : DataSpec
        Data set in the plan.
    spec : MethodSpec
        Method in the plan.
    params : dict
        Parameters of the method on this data set.
    points : tuple of str
        Points of the grid, as JSON; empty if nothing is tuned.
    convention : str
        Rule of the metrics for ties.
    seed : int
        Seed of the folds and of a random method.
    identity : dict
        Everything that the result depends on.
    tune_key : str or None
        Hash of everything that the tuning depends on; None if nothing is tuned.
    first : str
        Key of the run that tunes for this one: its own, unless the method is tuned on the first
        split only.
    others : tuple of Run
        The same run under the other decision rules with which its fits are evaluated.
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
        """Data set, method and split."""
        return self.dataset, self.method, self.split

    @property
    def title(self) -> str:
        """Data set, method and split as text."""
        return f"{self.dataset} · {self.method} · split {self.split}"

    @property
    def tunes(self) -> bool:
        """True if this run does its own tuning."""
        return self.tune_key is not None and self.first == self.key


class FoldResult(NamedTuple):
    """Result of one grid point on one fold.

    `point` is JSON. `processor_seconds` is the share of the processor time of the whole search,
    including evaluation; NaN if it was not recorded.
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
    """Result of a run, complete or failed.

    Attributes
    ----------
    status : {"ok", "failed"}
        Status of the run.
    error, trace : str
        Error of a failed run: its message in one line, and its traceback.
    values : dict of str to float
        Values of the metrics by name.
    again : bool
        True if the next start tries a failed run again.
    version : str
        Version of rbrl.
    params : dict
        Parameters: those of the plan and those that were chosen.
    tune_seconds, train_seconds, test_seconds, processor_seconds : float
        Times of the run.
    gap, evaluations : float
        Certified gap and number of evaluations of the last fit.
    tuning : list of FoldResult
        Results of the tuning.
    others : list of Outcome
        Outcomes of the run's `others`. One that failed, because it would choose other parameters or
        because its evaluation raised an error, still holds its tuning.
    machine : str
        Description of the machine.
    reliability : ReliabilityBins or None
        Bins of the probabilities of all labels, if a metric needs probabilities.
    warnings : list of (class, str)
        Different warnings of the run. The process that called `execute` gives them.
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
    tuning: list[FoldResult] = field(default_factory=list)
    others: list[Outcome] = field(default_factory=list)
    machine: str = ""
    reliability: ReliabilityBins | None = None
    warnings: list[tuple[type[Warning], str]] = field(default_factory=list)

    def fail(self, error: BaseException, again: bool = False) -> Outcome:
        """Turn this outcome into that of an error, and return it."""
        self.status = "failed"
        self.error = in_words(error)
        self.again = again
        self.trace = "".join(traceback.format_exception(error))
        return self

    def lacks(self, run: Run) -> list[str]:
        """Return the metrics of the run's plan that were not measured."""
        return sorted(set(run.plan.metrics) - set(self.values)) if self.status == "ok" else []

    def is_open(self, run: Run, retry_failed: bool) -> bool:
        """Return True if the run is to be done again."""
        return bool(self.again) or retry_failed if self.status == "failed" else bool(self.lacks(run))


class Progress:
    """Listener for the events of a comparison.

    Each method is called when its event happens, in the thread that called `execute`. Write a
    subclass with the methods that you need; the others do nothing.

    Examples
    --------
    >>> from rbrl.experiments import Progress
    >>> class Failures(Progress):
    ...     def failed(self, run, outcome):
    ...         print(run.title, outcome.error)
    """

    def planned(self, plan: Plan, n_runs: int, n_reused: int) -> None:
        """Handle the start of a plan with `n_runs` runs, of which `n_reused` are done already."""

    def noted(self, text: str) -> None:
        """Handle a note for the user."""

    def started(self, run: Run) -> None:
        """Handle the start of a run on a worker."""

    def finished(self, run: Run, outcome: Outcome) -> None:
        """Handle the end of a run whose result is in the store."""

    def failed(self, run: Run, outcome: Outcome) -> None:
        """Handle the failure of a run whose error is in the store."""

    def closed(self) -> None:
        """Handle the end of the comparison, complete or not."""


def group_by_point(run: Run, folds: Iterable[FoldResult]) -> dict[str, dict[str, list[float]]]:
    """Return the values of each complete grid point of the run: by metric, a list over the folds."""
    by_fold: dict[str, dict[int, dict[str, float]]] = {point: {} for point in run.points}
    metrics = run.plan.metrics
    for one in folds:
        if one.point in by_fold and set(metrics) <= set(one.values):
            by_fold[one.point][one.fold] = one.values
    return {
        point: {metric: [rows[fold][metric] for fold in sorted(rows)] for metric in metrics}
        for point, rows in by_fold.items()
        if len(rows) == run.plan.tuning.folds
    }


def find_missing_points(run: Run, known: Iterable[FoldResult]) -> list[str]:
    """Return the grid points of which some fold or metric is not known."""
    complete = group_by_point(run, known)
    return [point for point in run.points if point not in complete]


@cache
def machine() -> str:
    """Return the kind of machine and the versions of packages, but not the name of the machine."""
    kind = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    packages = {"NumPy": "numpy", "SciPy": "scipy", "scikit-learn": "scikit-learn"}
    return ", ".join([kind, *(f"{title} {version_of(name)}" for title, name in packages.items())])


def expand(plan: Plan, loader: DatasetLoader) -> list[Run]:
    """Return the runs of a plan, one data set after the other.

    A method that is tuned on the first split only gets a run there, even if the plan asks for other
    splits only. PlanError means that a method or a parameter does not exist, that a data set cannot
    be read, or that a method cannot learn with missing labels.

    Examples
    --------
    >>> from rbrl.experiments import Plan, DatasetLoader, expand
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": ["br"], "splits": {"number": 2}})
    >>> [run.title for run in expand(plan, DatasetLoader(plan.folder))]
    ['yeast · br · split 0', 'yeast · br · split 1']
    """
    # Imported here, because a program that only reads a store needs no methods.
    from rbrl.experiments.methods import check_method, check_missing_labels

    for method in plan.methods:
        check_method(plan, method)
    runs = []
    for data in plan.datasets:
        try:
            content = loader.fingerprint(data)
        except (OSError, ValueError) as error:
            raise PlanError(f"the data set {data.name!r} cannot be read: {error}") from error
        if data.file is not None:  # the data sets of the catalogue have no missing labels
            check_missing_labels(plan, data, loader.get(data)[1])
        once = [method for method in plan.methods if method.tuned_on(data, plan.tuning.on) == "first"]
        firsts = {method.name: _make_run(plan, data, method, 0, content) for method in once}
        for split, method in itertools.product(range(plan.splits.number), plan.methods):
            first = firsts.get(method.name)
            if split in plan.splits.chosen or (split == 0 and first and first.tune_key):
                runs.append(_make_run(plan, data, method, split, content, first.key if first else None))
    return runs


def _make_run(
    plan: Plan, data: DataSpec, method: MethodSpec, split: int, content: str, first: str | None = None
) -> Run:
    """Return a run; `content` is the fingerprint of the data.

    `first` is the key of the run that tunes for it; None means that it tunes for itself. Its
    identity decides which results of a store can be reused: change it only if results change.
    """
    from rbrl.experiments.methods import hash_code, resolve_params

    params, grids = method.on(data)
    grid = [dict(zip(one, values)) for one in grids for values in itertools.product(*one.values())]
    points = tuple(dict.fromkeys(json.dumps(point, sort_keys=True) for point in grid))
    # Every fit sets the seed, the decision rule and the parameters that all grid points have, so their defaults
    # do not count.
    always_set = set.intersection(*map(set, grid)) if grid else set()
    always_set |= {"random_state"} if method.non_empty is None else {"random_state", "non_empty"}
    convention = method.convention or plan.convention
    seed = plan.seed + split
    identity: dict[str, Any] = {
        "data": content,
        "class": method.use,
        "code": hash_code(method.use, params, plan.folder),
        "params": resolve_params(method.use, params, plan.folder, but=always_set),
        "non_empty": method.non_empty,
        "standardise": plan.standardise,
        "splits": [plan.splits.train_fraction, plan.splits.stratified],
        "convention": convention,
    }
    seeds = {"split": plan.splits.seed + split, "seed": seed}
    tune_key = None
    if points:
        # A run that leaves its tuning to the first split shares the seeds of that split.
        tuning_seeds = seeds if first is None else {"split": plan.splits.seed, "seed": plan.seed}
        tuned = {**tuning_seeds, "folds": plan.tuning.folds}
        tune_key = _hash(identity | tuned)
        identity |= {"grid": sorted(points), "tuned": tuned, "criterion": _criterion(plan)}
    identity |= seeds
    key = _hash(identity)
    others = (_make_run(plan, data, other, split, content, first) for other in method.under_other_rules())
    return Run(
        data.name, method.name, split, key, plan, data, method, params, points, convention, seed, identity, tune_key,
        first or key, tuple(other for other in others if other.key != key),
    )  # fmt: skip


def _hash(identity: dict[str, Any]) -> str:
    """Return a short hash of a dict of plain values; the order of its keys does not matter.

    Stores contain these hashes, so that a change would make their runs useless.
    """
    # 96 bits: two runs of any store have different hashes.
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


def _criterion(plan: Plan) -> list[str]:
    """Return the criterion of the tuning as a list: a metric, or "mean_rank" and its metrics."""
    criterion = plan.tuning.criterion
    if isinstance(criterion, str) and criterion != "mean_rank":
        return [criterion]
    return ["mean_rank", *sorted(plan.metrics if criterion == "mean_rank" else criterion)]


# Description of each part of an identity, for messages.
IDENTITY_WORDS = {
    "data": "the data", "class": "the class", "code": "the code of the class", "params": "the parameters",
    "non_empty": "the decision rule", "standardise": "the preprocessing", "splits": "how splits are drawn",
    "convention": "the convention", "split": "the seed of the splits", "seed": "the seed", "grid": "the grid",
    "tuned": "the folds, or the split that is tuned on", "criterion": "the criterion",
}  # fmt: skip


def describe_changes(
    before: dict[Place, dict[str, Any]], runs: list[Run], todo: list[Run], finished: dict[str, Outcome]
) -> list[str]:
    """Return sentences about runs that cannot be reused.

    `before` has the identities of the last plan, `runs` all runs of this plan, `todo` the runs that
    will be done, and `finished` the outcomes in the store by key.
    """
    reasons: dict[tuple[str, str], int] = defaultdict(int)
    for run in todo:
        old = before.get(run.place)
        if old is not None and old != run.identity:
            changed = (name for name in sorted({*old, *run.identity}) if old.get(name) != run.identity.get(name))
            reasons[run.method, f"changed: {', '.join(IDENTITY_WORDS[name] for name in changed)}"] += 1
        elif run.key in finished:
            lacking = ", ".join(finished[run.key].lacks(run))
            reason = f"changed: the metrics, now with {lacking}" if lacking else "failed before"
            reasons[run.method, reason] += 1
    notes = [
        f"{n} run{'s' if n > 1 else ''} of {method} will be repeated; {reason}."
        for (method, reason), n in reasons.items()
    ]
    n_gone = len(set(before) - {run.place for run in runs})
    if n_gone:
        notes.append(f"{n_gone} runs of the last plan are not in this one; the store keeps them.")
    repeated = {run.key for run in todo}
    reused = [finished[run.key].version for run in runs if run.key not in repeated]
    for other in sorted(set(reused) - {__version__}):
        note = f"{reused.count(other)} runs were done by rbrl {other} and are reused; this is rbrl {__version__}"
        notes.append(f"{note}. Use a new folder to have all results from one version.")
    return notes
