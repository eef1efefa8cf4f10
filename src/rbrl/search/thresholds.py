"""A decision rule learned on cross-validated scores, around any classifier."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils.validation import check_is_fitted

from rbrl.decision import LabelThresholds
from rbrl.metrics import scores_of


class TunedThresholdClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A multi-label classifier whose scores are cut where cross-validation says.

    The rule is fitted to scores of rows that their model has not seen; the classifier itself is then fitted to all rows.

    Parameters
    ----------
    estimator : classifier with decision_function
    rule : DecisionRule, default=None
        None means a threshold per label, :class:`rbrl.decision.LabelThresholds`.
    cv : int or splitter, default=5
    random_state : int, default=0
    n_jobs : int, default=None

    Attributes
    ----------
    estimator_, rule_
        Both fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier, TunedThresholdClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> TunedThresholdClassifier(RBRLClassifier()).fit(X, Y).predict(X[:2]).shape
    (2, 4)
    """

    def __init__(self, estimator, rule=None, cv=5, random_state=0, n_jobs=None):
        self.estimator = estimator
        self.rule = rule
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y):
        """Learn the rule on held-out scores, then the classifier on all rows; y is a 0/1 matrix."""
        cv = KFold(self.cv, shuffle=True, random_state=self.random_state) if isinstance(self.cv, int) else self.cv
        scores = cross_val_predict(self.estimator, X, y, cv=cv, method="decision_function", n_jobs=self.n_jobs)
        self.rule_ = clone(LabelThresholds() if self.rule is None else self.rule).fit(np.asarray(scores), y)
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def decision_function(self, X):
        """Scores with the learned threshold subtracted."""
        check_is_fitted(self)
        return self.rule_.shift(scores_of(self.estimator_, X))

    def predict(self, X):
        """0/1 labels."""
        check_is_fitted(self)
        return self.rule_.labels(scores_of(self.estimator_, X))
