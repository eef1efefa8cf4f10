"""The same run under other decision rules: one fit, judged by each."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from rbrl.exceptions import in_words
from rbrl.experiments.folds import by_point
from rbrl.experiments.judge import judge
from rbrl.experiments.methods import build
from rbrl.search.choose import choose
from rbrl.search.predictions import predictions


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
