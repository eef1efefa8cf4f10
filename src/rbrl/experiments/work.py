"""What a worker does: split, standardise, tune, fit, test. It touches no store."""

import time
import traceback
import warnings
from dataclasses import dataclass, field

from rbrl.exceptions import ConvergenceWarning, in_words
from rbrl.experiments.data import prepare, split_rows
from rbrl.experiments.folds import by_point, processor_seconds
from rbrl.experiments.judge import judge
from rbrl.experiments.machine import machine
from rbrl.experiments.methods import build, with_params
from rbrl.experiments.pinning import one_thread
from rbrl.experiments.tuned import tune_missing
from rbrl.search.choose import choose
from rbrl.search.predictions import predictions


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
