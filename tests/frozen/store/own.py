"""A method of a plan's own: labels by how common they are."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Constant(ClassifierMixin, BaseEstimator):
    """Give every row the labels that at least a share of the training rows have."""

    def __init__(self, share=0.5):
        self.share = share

    def fit(self, X, y):
        """Count."""
        self.shares_ = np.asarray(y).mean(axis=0)
        return self

    def decision_function(self, X):
        """Shares above the one asked for."""
        return np.tile(self.shares_ - self.share, (X.shape[0], 1))

    def predict(self, X):
        """Labels."""
        return (self.decision_function(X) >= 0).astype(np.int64)
