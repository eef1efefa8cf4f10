"""What all classifiers share: inputs are checked, labels encoded and decoded here; a subclass holds the method only."""

from abc import abstractmethod

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from rbrl._validation import check_number, check_row_weights
from rbrl.decision import non_empty, top_labels
from rbrl.targets import SignedTargets, check_not_label_sets

FLOATS = [np.float64, np.float32]
# Scores at a time, where not all of them are asked for: 32 MB.
BLOCK_ENTRIES = 2**22


class MultiLabelClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier of label matrices.

    A subclass writes ``_check_parameters()``, ``_fit(X, Y, weights)`` with Y in {-1, +1}, and ``_scores(X)``.
    """

    non_empty = False
    # Parameters that only predictions depend on: a fitted model may be given others.
    decision_parameters: tuple[str, ...] = ("non_empty",)

    def fit(self, X, y):
        """Learn from rows X (n_samples, n_features) and their labels y (n_samples, n_labels), 0/1 or -1/+1."""
        return self._learn(X, y)

    def fit_many(self, X, y, points):
        """Yield a fitted copy for each dict of parameters in `points`.

        A method whose models have work in common does it once; here they have none.
        """
        for params in points:
            yield clone(self).set_params(**params).fit(X, y)

    def decision_function(self, X):
        """Scores of every label, (n_samples, n_labels); positive means relevant. 1-D for a binary 1-D target."""
        scores = self._checked_scores(X)
        return scores.ravel() if self.targets_.kind == "binary" else scores

    def predict(self, X):
        """Labels in the coding that `fit` received: ``decision_function(X) > 0``.

        With `non_empty`, a row without a positive score gets its best label. Where `fit` received a sparse matrix the
        answer is sparse too, made block by block: the scores are never held all at once.
        """
        X = self._checked_rows(X)
        if not self.targets_.sparse_container:
            return self._decided(self._scores(X))
        return self.targets_.sparse_container(
            sparse.vstack([self._decided(scores) for scores in self._score_blocks(X)])
        )

    def predict_top(self, X, k):
        """The k best labels of every row, best first, of equal ones the first.

        Made block by block: the matrix of all scores, which is large where labels are many, is never held.

        Returns
        -------
        labels : array (n_samples, k)
            Columns of the labels: indices into `classes_`.
        scores : array (n_samples, k)
        """
        X = self._checked_rows(X)
        check_number(type(self).__name__ + ".predict_top", "k", k, low=1, integer=True)
        if self.targets_.kind == "binary":
            raise ValueError("predict_top needs a score for each label or class. Got a binary 1-D target; use predict.")
        labels, scores = zip(*(top_labels(block, k) for block in self._score_blocks(X)))
        return np.vstack(labels), np.vstack(scores)

    def _score_blocks(self, X):
        step = max(1, BLOCK_ENTRIES // self.targets_.n_columns)
        return (self._scores(X[start : start + step]) for start in range(0, X.shape[0], step))

    def _decided(self, scores):
        relevant = scores > 0
        if self.non_empty and self.targets_.is_matrix:
            relevant = non_empty(relevant, scores)
        return self.targets_.decode(relevant, scores)

    @abstractmethod
    def _check_parameters(self):
        """Raise ValueError for a parameter that makes no sense."""

    @abstractmethod
    def _fit(self, X, Y, weights):
        """Learn from checked rows, labels in {-1, +1} and row weights (None for ones)."""

    @abstractmethod
    def _scores(self, X):
        """Scores of checked rows, (n_samples, n_columns)."""

    def _learn(self, X, y, sample_weight=None):
        self._check_parameters()
        check_not_label_sets(y)
        X, y = validate_data(self, X, y, multi_output=True, accept_sparse="csr", dtype=FLOATS)
        self.targets_ = SignedTargets().fit(y)
        self.classes_ = self.targets_.classes_
        weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
        self._fit(X, self.targets_.encode(y), weights)
        return self

    def _checked_rows(self, X):
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)

    def _checked_scores(self, X):
        return self._scores(self._checked_rows(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
