"""What a search measures at every grid point: our metrics by value, any other scorer through a stand-in."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from rbrl.metrics import METRICS, PAPER_METRICS, Metric, get_metric


class Prediction(ClassifierMixin, BaseEstimator):
    """A fitted classifier that has already answered: what a scikit-learn scorer asks of held-out rows."""

    def __init__(self, scores, relevant, targets):
        self.scores, self.relevant, self.targets = scores, relevant, targets
        self.classes_ = targets.classes_

    def decision_function(self, X):
        """The known scores."""
        return self.scores.ravel() if self.targets.kind == "binary" else self.scores

    def predict(self, X):
        """The known labels."""
        return self.targets.decode(self.relevant, self.scores)


class Scoring:
    """A named set of metrics and scorers.

    Parameters
    ----------
    scoring : None, str, Metric, callable, or a list or dict of these
        None means the paper's six metrics. A name is one of ours, or else of scikit-learn's scorers.
    convention : {"paper", "sklearn"}
    """

    def __init__(self, scoring=None, convention="paper"):
        self.convention = convention
        self.scorers = dict(_named(scoring))

    def greater_is_better(self, name):
        """Direction of a metric; a scorer is always better when larger."""
        scorer = self.scorers[name]
        return scorer.greater_is_better if isinstance(scorer, Metric) else True

    def __call__(self, X, y, Y, scores, relevant, targets):
        """Values by name, of held-out rows X with targets y (as given) and Y (0/1)."""
        prediction = Prediction(scores, relevant, targets)
        return {name: self._value(scorer, prediction, X, y, Y) for name, scorer in self.scorers.items()}

    def _value(self, scorer, prediction, X, y, Y):
        if isinstance(scorer, Metric):
            return scorer.value(Y, prediction.relevant.astype(np.int8), prediction.scores, self.convention)
        return float(scorer(prediction, X, y))


def _named(scoring):
    if scoring is None:
        scoring = PAPER_METRICS
    if isinstance(scoring, dict):
        yield from ((name, _resolve(scorer)) for name, scorer in scoring.items())
        return
    for scorer in [scoring] if isinstance(scoring, str | Metric) or callable(scoring) else scoring:
        resolved = _resolve(scorer)
        yield (resolved.name if isinstance(resolved, Metric) else _name(scorer)), resolved


def _resolve(scorer):
    if not isinstance(scorer, str):
        return scorer
    return get_metric(scorer) if scorer in METRICS else get_scorer(scorer)


def _name(scorer):
    return scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "score")
