"""What a worker does: split, standardise, tune, fit, test. It touches no store."""

import json
import math
import numbers
import os
import platform
import time
import traceback
import warnings
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import version

from rbrl._common.threads import one_thread
from rbrl.exceptions import ConvergenceWarning, in_words
from rbrl.experiments.data import Fold, by_point, missing_points, prepare, processor_seconds, split_rows
from rbrl.experiments.methods import build, inner_names, with_params
from rbrl.metrics import evaluate, get_metric
from rbrl.search import tune
from rbrl.search.choose import choose
from rbrl.search.grid import predictions


@cache
def machine():
    """Kind of machine and versions of what the figures depend on; not its name, since reports are passed on.

    Examples
    --------
    >>> machine().split(", ")[3].split()[0]
    'NumPy'
    """
    packages = [("NumPy", "numpy"), ("SciPy", "scipy"), ("scikit-learn", "scikit-learn")]
    versions = [f"{title} {version(name)}" for title, name in packages]
    cores = f"{os.cpu_count()} cores"
    return ", ".join(
        [f"{platform.system()} {platform.machine()}", cores, f"Python {platform.python_version()}", *versions]
    )


def judge(Y, labels, scores, metrics, convention):
    """Return {metric name: value}; refuse predictions of another shape than Y."""
    for what, predicted in (("labels", labels), ("scores", scores)):
        if predicted is not None and predicted.shape != Y.shape:
            raise ValueError(f"the method's {what} must have the shape of Y, {Y.shape}. Got {predicted.shape} instead.")
    return evaluate(Y, labels, scores, metrics, convention)


def tune_missing(task, estimator, X, Y, known, others=()):
    """Tune the grid points that are not known; return (folds, seconds), the seconds those of the known ones too.

    The same fits are judged by the `others`, a sequence of OtherRule, whose `tuning` grows, or whose `error` says why it
    does not.
    """
    missing = missing_points(task, known)
    seconds = sum(fold.fit_seconds for fold in known if fold.point in set(task.points) - set(missing))
    if not missing:
        return [], seconds
    started = time.perf_counter()
    metrics = [get_metric(metric) for metric in task.metrics]
    options = {"folds": task.folds, "seed": task.seed, "metrics": metrics, "convention": task.convention}
    followed = [other for other in others if _can_follow(other)]
    if followed:
        options["others"] = [(other.parameters, other.task.convention) for other in followed]
    folds = []
    for grid in _as_grids(missing):
        used = time.process_time()
        table = tune(estimator, inner_names(estimator, grid), X, Y, **options)
        table["processor_seconds"] = _shared_out(time.process_time() - used, table, 1 + len(followed))
        own = table[table.rule == 0] if followed else table
        folds += _folds(own, estimator, missing, task.metrics)
        for i, other in enumerate(followed, 1):
            part = table[table.rule == i]
            other.error = other.error or next(filter(None, part.error), "")
            other.tuning += _folds(part[part.error == ""], estimator, missing, task.metrics)
    return folds, seconds + time.perf_counter() - started


def _can_follow(other):
    """Whether a fitted model can be given the parameters of another rule."""
    try:
        other.parameters  # noqa: B018  # built when asked for, by the method's own code
    except (Exception, SystemExit) as error:  # noqa: BLE001  # as of any method of a plan
        other.error = in_words(error)
    return not other.error


def _shared_out(seconds, table, n_rules):
    """What a search took, shared out to its rows by the time of their fits; under each rule the rows add up to it."""
    weights = table.fit_seconds.to_numpy() + 1e-9
    return seconds * n_rules * weights / weights.sum()


def _as_grids(points):
    """Points as full grids, of which a search can make one path; point by point where they fill none."""
    by_names: dict[tuple, list] = {}
    for point in map(json.loads, points):
        by_names.setdefault(tuple(point), []).append(point)
    grids = []
    for names, group in by_names.items():
        full = {name: _distinct(point[name] for point in group) for name in names}
        is_full = math.prod(len(values) for values in full.values()) == len(group)
        grids += [full] if is_full else [{name: [point[name]] for name in names} for point in group]
    return grids


def _distinct(values):
    return list({json.dumps(value): value for value in values}.values())


def _folds(table, estimator, points, metrics):
    """The rows of a search as records, each with the grid point that it belongs to."""
    named = {_signature(inner_names(estimator, json.loads(point))): point for point in points}
    columns = [name for name in table.columns if name.startswith("param_")]
    folds = []
    for row in table.to_dict("records"):
        params = {name.removeprefix("param_"): row[name] for name in columns if not _absent(row[name])}
        values = {metric: float(row[metric]) for metric in metrics}
        point = named[_signature(params)]
        measured = (float(row[name]) for name in ("fit_seconds", "gap", "evaluations", "processor_seconds"))
        folds.append(Fold(point, int(row["fold"]), values, *measured))
    return folds


def _signature(params):
    """Text that does not depend on what a table makes of numbers, such as 10.0 of 10 in a column with gaps."""
    return json.dumps({name: _plain(value) for name, value in params.items()}, sort_keys=True)


def _plain(value):
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return bool(value)
    return float(value) if isinstance(value, numbers.Real) else value


def _absent(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


@dataclass
class OtherRule:
    """A run that differs in its decision rule alone.

    Parameters
    ----------
    task : Task
    known : list of Fold
        What is already tuned of it; `tuning` adds what the fits of the run itself have shown.

    Attributes
    ----------
    error : str
        What judging by this rule raised. It is no error of the run itself; this one then needs a run of its own.
    """

    task: object
    known: list = field(default_factory=list)
    tuning: list = field(default_factory=list)
    error: str = ""

    @cached_property
    def parameters(self):
        """Parameters that make a fitted model follow this rule."""
        task = self.task
        estimator = build(task.use, task.params, task.folder, non_empty=task.non_empty)
        return {name: getattr(estimator, name) for name in estimator.decision_parameters}

    def outcome(self, chosen, done, estimator, X_test, Y_test):
        """What this run gives, from the `done` one and its fitted estimator.

        None if it would choose other parameters, or if it cannot be judged; `error` then says why.

        Parameters
        ----------
        chosen : dict
            Grid point of the run that was done.
        done : Outcome
        """
        task = self.task
        if self.error:
            return None
        if task.points:
            points = by_point(task, [*self.known, *self.tuning])
            if len(points) < len(task.points) or choose(points, task.criterion, task.metrics) != chosen:
                return None
        try:
            predicted = predictions(estimator.set_params(**self.parameters), X_test, task.metrics)
            values = judge(Y_test, *predicted, task.metrics, task.convention)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # as of any method of a plan
            self.error = in_words(error)
            return None
        return replace(done, values=values, params={**task.params, **chosen}, tuning=[], others=[])


@dataclass
class Outcome:
    """The result of a run, complete or failed; `again` says that a new start may try it once more.

    `others` has, for each other rule that the run was to be judged by, what the fits have shown of its tuning, its own
    Outcome or None, and the error that judging by it raised, if any.
    """

    status: str = "failed"
    error: str = ""
    trace: str = ""
    values: dict = field(default_factory=dict)
    params: dict = field(default_factory=dict)
    tune_seconds: float = 0.0
    train_seconds: float = 0.0
    test_seconds: float = 0.0
    processor_seconds: float = 0.0
    gap: float = float("nan")
    evaluations: float = float("nan")
    tuning: list = field(default_factory=list)
    others: list = field(default_factory=list)
    machine: str = ""
    again: bool = False

    def fail(self, error, again=False):
        """Make this the outcome of an error."""
        self.status, self.error, self.again = "failed", in_words(error), again
        self.trace = "".join(traceback.format_exception(error))
        return self


def work(task, X, Y, known=(), owns_tuning=True, others=()):
    """Do one run.

    Parameters
    ----------
    task : Task
    X, Y
        The whole data set.
    known : sequence of Fold
        What is already tuned.
    owns_tuning : bool, default=True
        Whether grid points that are not known are tuned here; False where another run tunes for this one.
    others : sequence of OtherRule
        Rules by which the fits are judged too.

    Returns
    -------
    Outcome
        Also of a method that raises: whatever it raises is its result, `sys.exit` included. Only KeyboardInterrupt
        goes on: here it cannot be told from the user who stops the comparison.
    """
    outcome = Outcome(machine=machine())
    try:
        estimator = build(task.use, task.params, task.folder, non_empty=task.non_empty, seed=task.seed)
        with one_thread(), warnings.catch_warnings():
            # How far a fit is from its optimum is a column of its own; a line per fit would drown the progress.
            warnings.simplefilter("ignore", ConvergenceWarning)
            _work(outcome, task, estimator, X, Y, list(known), owns_tuning, others)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a method of a plan may raise anything, and the other runs go on
        outcome.fail(error)
    return outcome


def work_apart(*what):
    """`work` in a process of its own, where an interrupt ends the run alone; a new start tries it again.

    Who stops the comparison interrupts the process that called `execute`, too, and that one ends it.
    """
    try:
        return work(*what)
    except KeyboardInterrupt as error:
        return Outcome(machine=machine()).fail(error, again=True)


def _work(outcome, task, estimator, X, Y, known, owns_tuning, others):
    used, earlier = time.process_time(), 0.0
    train, test = split_rows(Y, task.split_seed, task.train_fraction, task.stratified)
    X_train, X_test = prepare(X, train, test, task.standardise)
    if task.points and owns_tuning:
        earlier = processor_seconds(task, known)
        outcome.tuning, outcome.tune_seconds = tune_missing(task, estimator, X_train, Y[train], known, others)
    chosen = {}
    if task.points:
        chosen = choose(by_point(task, [*known, *outcome.tuning]), task.criterion, task.metrics)
        estimator = with_params(estimator, chosen, task.folder)
    started = time.perf_counter()
    estimator.fit(X_train, Y[train])
    fitted = time.perf_counter()
    predicted = predictions(estimator, X_test, task.metrics)
    outcome.train_seconds, outcome.test_seconds = fitted - started, time.perf_counter() - fitted
    outcome.values = judge(Y[test], *predicted, task.metrics, task.convention)
    outcome.processor_seconds = earlier + time.process_time() - used
    outcome.gap = float(getattr(estimator, "gap_", float("nan")))
    outcome.evaluations = float(getattr(estimator, "n_evaluations_", float("nan")))
    outcome.params = {**task.params, **chosen}
    outcome.status = "ok"
    for other in others:
        result = other.outcome(chosen, outcome, estimator, X_test, Y[test])
        outcome.others.append((other.tuning, result, other.error))
