"""What all classifiers share: inputs are checked, labels encoded and decoded here; a subclass holds the method only."""

from abc import abstractmethod
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from rbrl._common.checks import check_number, check_row_weights
from rbrl.datasets import Columns, Dataset, Shards
from rbrl.decision import non_empty, top_labels
from rbrl.targets import SignedTargets, check_not_label_sets

FLOATS = [np.float64, np.float32]
# Scores at a time, where not all of them are asked for: 32 MB.
BLOCK_ENTRIES = 2**22


class MultiLabelClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier of label matrices.

    A subclass writes ``_check_parameters()``, ``_fit(X, Y, weights)`` with Y in {-1, +1}, and ``_scores(X)``.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array (n_features_in_,), if X was a data frame or a :class:`rbrl.datasets.Dataset` with names
        Columns of other names are refused by the predictions; those of a `Dataset` or a file are put in this order.
    label_names_ : array (n_labels,), if the labels came with names
    first_feature_, first_label_ : {0, 1}, if the rows came from a svmlight file
        What it counted its columns from, for other such files.
    """

    non_empty = False
    # Parameters that only predictions depend on: a fitted model may be given others.
    decision_parameters: tuple[str, ...] = ("non_empty",)

    def fit(self, X, y=None):
        """Learn from rows X (n_samples, n_features) and their labels y (n_samples, n_labels), 0/1 or -1/+1.

        A :class:`rbrl.datasets.Dataset` has both, and the names of their columns: ``fit(dataset)``.
        """
        return self._learn(X, y)

    def fit_many(self, X, y, points):
        """Yield a fitted copy for each dict of parameters in `points`.

        A method whose models have work in common does it once; here they have none.
        """
        for params in points:
            yield clone(self).set_params(**params).fit(X, y)

    def decision_function(self, X):
        """Scores of every label, (n_samples, n_labels); positive means relevant. 1-D for a binary 1-D target.

        Rows in blocks, such as :class:`rbrl.datasets.Shards`, are read one block at a time, here and for `predict`.
        """
        blocks = _rows_in_blocks(X)
        if blocks is not None:
            return np.concatenate([self.decision_function(rows) for rows in blocks])
        scores = self._checked_scores(X)
        return scores.ravel() if self.targets_.kind == "binary" else scores

    def predict(self, X):
        """Labels in the coding that `fit` received: ``decision_function(X) > 0``.

        With `non_empty`, a row without a positive score gets its best label. Where `fit` received a sparse matrix the
        answer is sparse too, made block by block: the scores are never held all at once.
        """
        blocks = _rows_in_blocks(X)
        if blocks is not None:
            return self._stacked([self.predict(rows) for rows in blocks])
        X = self._checked_rows(X)
        if not self.targets_.sparse_container:
            return self._decided(self._scores(X))
        return self._stacked([self._decided(scores) for scores in self._score_blocks(X)])

    def _stacked(self, answers):
        container = self.targets_.sparse_container
        return container(sparse.vstack(answers)) if container else np.concatenate(answers)

    def predict_top(self, X, k):
        """The k best labels of every row, best first, of equal ones the first.

        Made block by block: the matrix of all scores, which is large where labels are many, is never held.

        Returns
        -------
        labels : array (n_samples, k)
            Columns of the labels: indices into `classes_`.
        scores : array (n_samples, k)
        """
        blocks = _rows_in_blocks(X)
        if blocks is not None:
            labels, scores = zip(*(self.predict_top(rows, k) for rows in blocks))
            return np.vstack(labels), np.vstack(scores)
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
        X, y, columns = _unpacked(self, X, y)
        check_not_label_sets(y)
        X, y = validate_data(self, X, y, multi_output=True, accept_sparse="csr", dtype=FLOATS)
        self.targets_ = SignedTargets().fit(y)
        self.classes_ = self.targets_.classes_
        weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
        self._fit(X, self.targets_.encode(y), weights)
        remember_columns(self, columns)
        return self

    def _checked_rows(self, X):
        check_is_fitted(self)
        if isinstance(X, Dataset):
            features_alone = replace(columns_of(self), n_labels=None, label_names=None)
            return check_array(X.matching(features_alone).X, accept_sparse="csr", dtype=FLOATS, estimator=self)
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)

    def _checked_scores(self, X):
        return self._scores(self._checked_rows(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def columns_of(model):
    """What a fitted model, or a pipeline with one at its end, knows of the columns it was fitted on: a `Columns`."""
    targets = getattr(model[-1] if hasattr(model, "steps") else model, "targets_", None)
    features, labels = (getattr(model, name, None) for name in ("feature_names_in_", "label_names_"))
    return Columns(
        n_features=model.n_features_in_,
        n_labels=targets.n_columns if targets is not None and targets.is_matrix else None,
        feature_names=None if features is None else tuple(map(str, features)),
        label_names=None if labels is None else tuple(map(str, labels)),
        first_feature=getattr(model, "first_feature_", None),
        first_label=getattr(model, "first_label_", None),
    )


def remember_columns(model, columns):
    """Let a fitted model, or a pipeline, know the columns it was fitted on; what scikit-learn has seen for itself stays.

    Names are kept as text of one width: a file with an object for each of 50,000 names takes seconds to load.
    """
    labels = None if columns.label_names is None else _text(columns.label_names)
    bases = {"first_feature_": columns.first_feature, "first_label_": columns.first_label}
    for name, value in {"label_names_": labels, **bases}.items():
        vars(model).pop(name, None)
        if value is not None:
            setattr(model, name, value)
    if columns.feature_names is not None:
        first = model[0] if hasattr(model, "steps") else model
        first.feature_names_in_ = _text(columns.feature_names)


def column_names(frame):
    """The names of the columns of a data frame, if they are text; None for anything else."""
    names = getattr(frame, "columns", None)
    names = None if names is None else list(names)
    return names if names and all(isinstance(name, str) for name in names) else None


def is_part(part):
    """Whether this is rows with their labels, (X, Y)."""
    return isinstance(part, tuple) and len(part) == 2 and all(len(getattr(side, "shape", ())) == 2 for side in part)


def _text(names):
    return np.array([str(name) for name in names], dtype=np.str_)


def _unpacked(model, X, y):
    """X, y and their columns: of a `Dataset`, or what the given ones tell."""
    if isinstance(X, Shards):
        raise ValueError(
            f"{type(model).__name__} learns from rows in memory. Got {X!r}; load the rows as one file, or use a classifier "
            "that learns from files, such as RBRLClassifier."
        )
    if not isinstance(X, Dataset):
        return X, y, Columns(label_names=column_names(y))
    if y is not None:
        raise ValueError(f"A Dataset has its labels with it: pass no y. Got y of type {type(y).__name__}.")
    return X.X, X.Y, X.columns


def _rows_in_blocks(X):
    """The features of shards, or of a list of parts (X, Y), block by block; None for anything else."""
    if isinstance(X, Shards):
        return (X.read(i) for i in range(len(X)))
    if isinstance(X, list) and X and all(is_part(part) for part in X):
        return (part[0] for part in X)
    return None
