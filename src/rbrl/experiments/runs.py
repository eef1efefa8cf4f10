"""From a plan to its runs, each with an identity that says on what its result depends, and on nothing else."""

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace

from sklearn.model_selection import ParameterGrid

from rbrl.exceptions import PlanError, in_words
from rbrl.experiments.methods import build, check_decision_parameters, check_parameters, code_of, find_class
from rbrl.search.choose import considered


@dataclass(frozen=True)
class Task:
    """All that a worker must know besides the data; see `Plan` for the words."""

    use: str
    params: dict
    non_empty: bool | None
    folder: str
    points: tuple[str, ...]
    folds: int
    criterion: str | list[str]
    metrics: tuple[str, ...]
    convention: str
    standardise: str
    train_fraction: float
    stratified: bool
    split_seed: int
    seed: int


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
    identity: dict = field(repr=False)
    key: str
    tune_key: str | None = field(repr=False)
    first: str = field(repr=False)
    others: tuple["Run", ...] = field(default=(), repr=False)

    @property
    def title(self):
        """For people."""
        return f"{self.dataset} · {self.method} · split {self.split}"

    @property
    def tunes(self):
        """Whether this run does its own tuning."""
        return self.tune_key is not None and self.first == self.key


def expand(plan, shelf):
    """Return the runs of a plan, one data set after the other; refuse methods and parameters that do not exist.

    A method that is tuned on the first split needs it, also where only other splits are asked for.
    """
    for method in plan.methods:
        _check_method(plan, method)
    runs = []
    for data in plan.datasets:
        content = _fingerprint(shelf, data)
        firsts = {method.name: _run(plan, data, method, 0, content) for method in plan.methods}
        for split in range(plan.splits.number):
            for method in plan.methods:
                first = firsts[method.name] if method.tuned_on(data, plan.tuning.on) == "first" else None
                if split in plan.splits.chosen or (split == 0 and first and first.tune_key):
                    runs.append(_with_others(plan, data, method, split, content, first and first.key))
    return runs


def _with_others(plan, data, method, split, content, first):
    run = _run(plan, data, method, split, content, first)
    others = [_run(plan, data, other, split, content, first) for other in method.under_other_rules()]
    return replace(run, others=tuple(other for other in others if other.key != run.key))


def key_of(identity):
    """A short name for a dict of plain values."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


def _fingerprint(shelf, data):
    try:
        return shelf.fingerprint(data)
    except (OSError, ValueError) as error:
        raise PlanError(f"the data set {data.name!r} cannot be read: {error}") from error


def _check_method(plan, method):
    cls = find_class(method.use, plan.folder)
    for rule in method.also_judged:
        check_decision_parameters(f"methods.{method.name}.also_judged", cls, rule["params"])
    for data in plan.datasets:
        params, grids = method.on(data)
        names = [*params, *(name for grid in grids for name in grid)]
        check_parameters(f"methods.{method.name} (on {data.name})", cls, names)
        for value in params.values():
            if isinstance(value, dict):
                _check_built(f"methods.{method.name}", value, plan.folder)


def _check_built(where, value, folder):
    """Refuse an estimator in a parameter that its class cannot make."""
    try:
        build(value["use"], value.get("params", {}), folder)
    except PlanError:
        raise
    except (Exception, SystemExit) as error:  # a class of a plan may raise anything
        raise PlanError(f"{where}: {value['use']!r} cannot be made with these params: {in_words(error)}.") from error


def _run(plan, data, method, split, content, first=None):
    task = _task(plan, data, method, split)
    tuned_on = split if first is None else 0
    base = {
        "data": content,
        "class": task.use,
        "code": code_of(task.use, plan.folder),
        "params": task.params,
        "non_empty": task.non_empty,
        "standardise": task.standardise,
        "splits": [task.train_fraction, task.stratified],
        "convention": task.convention,
    }
    identity = {**base, "split": task.split_seed, "seed": task.seed}
    tune_key = None
    if task.points:
        tuned = {"split": plan.splits.seed + tuned_on, "seed": plan.seed + tuned_on, "folds": task.folds}
        tune_key = key_of({**base, **tuned})
        identity |= {"grid": sorted(task.points), "tuned": tuned, "criterion": _criterion(task)}
    key = key_of(identity)
    return Run(data.name, method.name, split, task, identity, key, tune_key, first or key)


def _criterion(task):
    """Of what the choice depends on: a metric alone, or the mean rank over some."""
    names = sorted(considered(task.criterion, task.metrics))
    return names if isinstance(task.criterion, str) and task.criterion != "mean_rank" else ["mean_rank", *names]


def _task(plan, data, method, split):
    params, grids = method.on(data)
    points = dict.fromkeys(json.dumps(point, sort_keys=True) for point in ParameterGrid(grids)) if grids else {}
    return Task(
        use=method.use,
        params=params,
        non_empty=method.non_empty,
        folder=str(plan.folder),
        points=tuple(points),
        folds=plan.tuning.folds,
        criterion=plan.tuning.criterion,
        metrics=plan.metrics,
        convention=method.convention or plan.convention,
        standardise=plan.standardise,
        train_fraction=plan.splits.train_fraction,
        stratified=plan.splits.stratified,
        split_seed=plan.splits.seed + split,
        seed=plan.seed + split,
    )


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


def changes(before, runs, todo, finished, version):
    """Return sentences about runs that cannot be reused.

    Parameters
    ----------
    before : dict of (dataset, method, split) to dict
        Identities under the last plan.
    runs, todo : list of Run
        Those of this plan, and those of them that will be done.
    finished : dict
        As `Store.finished` gives it.
    version : str
        Of rbrl.
    """
    reasons: dict[tuple, list] = defaultdict(list)
    for run in todo:
        old = before.get((run.dataset, run.method, run.split))
        if old is not None and old != run.identity:
            names = sorted(set(old) | set(run.identity))
            changed = [WORDS[name] for name in names if old.get(name) != run.identity.get(name)]
            reasons[run.method, ", ".join(changed)].append(run)
        elif run.key in finished:
            reasons[run.method, _incomplete(run, finished[run.key])].append(run)
    notes = [f"{_count(found)} of {method} done anew; changed: {why}." for (method, why), found in reasons.items()]
    gone = len(set(before) - {(run.dataset, run.method, run.split) for run in runs})
    if gone:
        notes.append(f"{gone} runs of the last plan are not in this one; the store keeps them.")
    return notes + _versions(runs, todo, finished, version)


def _incomplete(run, result):
    status, metrics, _, _ = result
    if status == "failed":
        return "nothing, they had failed"
    return f"the metrics, now with {', '.join(sorted(set(run.task.metrics) - metrics))}"


def _versions(runs, todo, finished, version):
    redone = {run.key for run in todo}
    reused = [finished[run.key][3] for run in runs if run.key not in redone]
    others = sorted(set(reused) - {version})
    return [
        f"{sum(one == other for one in reused)} runs are reused from rbrl {other}; this is {version}. "
        "Use a new folder to have all from one version."
        for other in others
    ]


def _count(found):
    return "1 run" if len(found) == 1 else f"{len(found)} runs"
