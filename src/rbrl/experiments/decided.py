"""A decision rule around a classifier that has none of its own."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone

from rbrl.metrics import scores_of


class NonEmptyClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Give a row for which the classifier predicts no label the label that it scores best, the first on ties.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With `decision_function` or `predict_proba`.
    """

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        """Fit a copy of the classifier."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def decision_function(self, X):
        """The classifier's scores."""
        return scores_of(self.estimator_, X)

    def predict(self, X):
        """Labels, 0/1, none of the rows empty."""
        labels = self.estimator_.predict(X)
        labels = labels.toarray() if sparse.issparse(labels) else np.array(labels)
        empty = np.flatnonzero(~(labels > 0).any(axis=1))
        if len(empty):
            labels[empty, self.decision_function(X[empty]).argmax(axis=1)] = 1
        return labels
