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
from math import isnan, nan
from typing import Any, NamedTuple

from rbrl.exceptions import PlanError, in_words
from rbrl.experiments.data import Shelf
from rbrl.experiments.plan import Plan
from rbrl.experiments.specs import DataSpec, MethodSpec

# A run among those of a plan: data set, method, split.
Place = tuple[str, str, int]


@dataclass(frozen=True)
class Task:
    """All that a worker must know besides the data.

    Parameters
    ----------
    plan : Plan
    method : MethodSpec
    params : dict
        Those of the method on this data set.
    points : tuple of str
        The points of its grid, as JSON; none where nothing is tuned.
    split : int
    """

    plan: Plan
    method: MethodSpec
    params: dict[str, Any]
    points: tuple[str, ...]
    split: int

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of what is measured."""
        return self.plan.metrics

    @property
    def convention(self) -> str:
        """Of the metrics."""
        return self.method.convention or self.plan.convention

    @property
    def seed(self) -> int:
        """Of the folds, and of a random method."""
        return self.plan.seed + self.split


@dataclass(frozen=True)
class Run:
    """One method on one split of one data set.

    Two runs of the same `key` have the same result; two of the same `tune_key` may share what was tuned. `first` is
    the key of the run that tunes for this one, its own unless the plan tunes on the first split only. `others` are the
    same run under the other decision rules that its fits are judged by.
    """

    dataset: str
    method: str
    split: int
    task: Task = field(repr=False)
    identity: dict[str, Any] = field(repr=False)
    key: str
    tune_key: str | None = field(repr=False)
    first: str = field(repr=False)
    others: tuple[Run, ...] = field(default=(), repr=False)

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


def processor_seconds(task: Task, known: list[Fold]) -> float:
    """Processor time of the searches that gave what is known of a run's grid, as far as it was recorded."""
    complete = by_point(task, known)
    recorded = (one.processor_seconds for one in known if one.point in complete)
    return sum(seconds for seconds in recorded if not isnan(seconds))


class Result(NamedTuple):
    """What a store says of a run that was done."""

    status: str
    error: str
    metrics: set[str]
    again: bool
    version: str

    def lacks(self, run: Run) -> list[str]:
        """Metrics that the run now asks for, and that were not measured."""
        return sorted(set(run.task.metrics) - self.metrics) if self.status == "ok" else []


@cache
def machine() -> str:
    """Kind of machine and versions of what the figures depend on; not its name, since reports are passed on.

    Examples
    --------
    >>> machine().split(", ")[3].split()[0]
    'NumPy'
    """
    kind = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    packages = {"NumPy": "numpy", "SciPy": "scipy", "scikit-learn": "scikit-learn"}
    return ", ".join([kind, *(f"{title} {version_of(name)}" for title, name in packages.items())])


def expand(plan: Plan, shelf: Shelf) -> list[Run]:
    """Return the runs of a plan, one data set after the other; refuse methods and parameters that do not exist.

    A method that is tuned on the first split needs it, also where only other splits are asked for.

    Examples
    --------
    >>> from rbrl.experiments import Plan
    >>> from rbrl.experiments.data import Shelf
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": ["br"], "splits": {"number": 2}})
    >>> [run.title for run in expand(plan, Shelf(plan.folder))]
    ['yeast · br · split 0', 'yeast · br · split 1']
    """
    # Here, and not above: who reads a store should not wait for every method.
    from rbrl.experiments.methods import check_method

    for method in plan.methods:
        check_method(plan, method)
    runs = []
    for data in plan.datasets:
        try:
            content = shelf.fingerprint(data)
        except (OSError, ValueError) as error:
            raise PlanError(f"the data set {data.name!r} cannot be read: {error}") from error
        firsts = {
            method.name: _run(plan, data, method, 0, content)
            for method in plan.methods
            if method.tuned_on(data, plan.tuning.on) == "first"
        }
        for split, method in itertools.product(range(plan.splits.number), plan.methods):
            first = firsts.get(method.name)
            if split in plan.splits.chosen or (split == 0 and first and first.tune_key):
                runs.append(_run(plan, data, method, split, content, first.key if first else None))
    return runs


def _run(plan: Plan, data: DataSpec, method: MethodSpec, split: int, content: str, first: str | None = None) -> Run:
    from rbrl.experiments.methods import code_of, resolved

    params, grids = method.on(data)
    points = (dict(zip(grid, values)) for grid in grids for values in itertools.product(*grid.values()))
    distinct = dict.fromkeys(json.dumps(point, sort_keys=True) for point in points)
    task = Task(plan, method, params, tuple(distinct), split)
    # The seed, the decision rule and what every grid point has are set for each fit, whatever their defaults are.
    always = set.intersection(*(set(json.loads(point)) for point in distinct)) if distinct else set()
    always |= {"random_state"} if method.non_empty is None else {"random_state", "non_empty"}
    base: dict[str, Any] = {
        "data": content,
        "class": method.use,
        "code": code_of(method.use, plan.folder),
        "params": resolved(method.use, params, plan.folder, but=always),
        "non_empty": method.non_empty,
        "standardise": plan.standardise,
        "splits": [plan.splits.train_fraction, plan.splits.stratified],
        "convention": task.convention,
    }
    seeds = {"split": plan.splits.seed + split, "seed": task.seed}
    identity, tune_key = {**base, **seeds}, None
    if task.points:
        # On the first split, where this run leaves the tuning to the run of that split.
        seeds = seeds if first is None else {"split": plan.splits.seed, "seed": plan.seed}
        tuned = {**seeds, "folds": plan.tuning.folds}
        tune_key = key_of({**base, **tuned})
        identity |= {"grid": sorted(task.points), "tuned": tuned, "criterion": _criterion(plan)}
    key = key_of(identity)
    others = (_run(plan, data, other, split, content, first) for other in method.under_other_rules())
    different = tuple(other for other in others if other.key != key)
    return Run(data.name, method.name, split, task, identity, key, tune_key, first or key, different)


def key_of(identity: dict[str, Any]) -> str:
    """A short name for a dict of plain values."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


def _criterion(plan: Plan) -> list[str]:
    """On what the choice depends: a metric alone, or the mean rank over some."""
    criterion = plan.tuning.criterion
    if isinstance(criterion, str) and criterion != "mean_rank":
        return [criterion]
    return ["mean_rank", *sorted(plan.metrics if criterion == "mean_rank" else criterion)]


WORDS = {
    "data": "the data",
    "class": "the class",
    "code": "the code of the class",
    "params": "the parameters",
    "non_empty": "the decision rule",
    "standardise": "the preprocessing",
    "splits": "how splits are drawn",
    "convention": "the convention",
    "split": "the seed of the splits",
    "seed": "the seed",
    "grid": "the grid",
    "tuned": "the folds, or the split that is tuned on",
    "criterion": "the criterion",
}


def changes(
    before: dict[Place, dict[str, Any]], runs: list[Run], todo: list[Run], finished: dict[str, Result], version: str
) -> list[str]:
    """Return sentences about runs that cannot be reused.

    Parameters
    ----------
    before : dict of (dataset, method, split) to dict
        Identities under the last plan.
    runs, todo : list of Run
        Those of this plan, and those of them that will be done.
    finished : dict of str to Result
        As `Store.finished` gives it.
    version : str
        Of rbrl.
    """
    reasons: dict[tuple[str, str], int] = defaultdict(int)
    for run in todo:
        old = before.get(run.place)
        if old is not None and old != run.identity:
            names = sorted(set(old) | set(run.identity))
            changed = [WORDS[name] for name in names if old.get(name) != run.identity.get(name)]
            reasons[run.method, ", ".join(changed)] += 1
        elif run.key in finished:
            lacking = ", ".join(finished[run.key].lacks(run))
            why = f"the metrics, now with {lacking}" if lacking else "nothing, they had failed"
            reasons[run.method, why] += 1
    notes = [
        f"{number} run{'s' if number > 1 else ''} of {method} done anew; changed: {why}."
        for (method, why), number in reasons.items()
    ]
    gone = len(set(before) - {run.place for run in runs})
    if gone:
        notes.append(f"{gone} runs of the last plan are not in this one; the store keeps them.")
    redone = {run.key for run in todo}
    reused = [finished[run.key].version for run in runs if run.key not in redone]
    return notes + [
        f"{reused.count(other)} runs are reused from rbrl {other}; this is {version}. "
        "Use a new folder to have all from one version."
        for other in sorted(set(reused) - {version})
    ]
