"""The base classes of all classifiers: they check inputs, encode labels and decode predictions."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, MatrixLike
from rbrl.datasets import Dataset, Shards
from rbrl.decision import relevant_labels
from rbrl.decision.rules import LARGEST_EMPTY_SHARE
from rbrl.estimators.named_answers import NamedAnswers
from rbrl.estimators.validation import (
    FLOATS,
    can_skip_checks,
    check_training_data,
    get_columns,
    validate_rows,
)
from rbrl.out_of_core.sources import feature_blocks
from rbrl.targets import SignedTargets

# Number of scores in a block, if the scores are not needed all at once: 32 MB.
BLOCK_ENTRIES = 2**22
# Rows to predict labels for. Data frames and lists of parts (X, Y) are array-like.
Rows: TypeAlias = MatrixLike | Dataset | Shards
# Values of the parameter `non_empty`. "auto" means True if few training rows have no label.
Filling: TypeAlias = bool | Literal["auto"]


def should_fill_empty_rows(model: Any) -> bool:
    """Return whether a row without a positive score gets its best label.

    Parameters
    ----------
    model : fitted classifier with the parameter `non_empty`
        It has `empty_share_` if the parameter is "auto"; a model file of an earlier version has
        `all_labelled_` instead.
    """
    if model.non_empty != "auto":
        return bool(model.non_empty)
    return model.empty_share_ <= LARGEST_EMPTY_SHARE if hasattr(model, "empty_share_") else model.all_labelled_


class MultiLabelClassifier(NamedAnswers):
    """A scikit-learn classifier of label matrices.

    A subclass defines ``_check_parameters()``, ``_fit(X, Y, weights)`` with Y in {-1, +1}, and
    ``_scores(X)``. A subclass that can learn from missing labels sets ``takes_missing = True``; Y is
    then 0 for a missing label.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array (n_features_in_,), if X was a data frame or a :class:`rbrl.datasets.Dataset` with names
        Names of the features. Predictions reject columns with other names. The columns of a `Dataset`
        or a file are put in this order.
    label_names_ : array (n_labels,), if the labels came with names
        Names of the labels.
    first_feature_, first_label_ : {0, 1}, if the rows came from a svmlight file
        Index of the first column in the file; other files of this format are read in the same way.
    ignored_columns_ : list of str, if columns of the file were ignored
        Names of these columns. Other files may have them, too.
    categories_ : dict of str to list of str, if X was a data frame or a file with columns of few words
        Words of each such column. It has a feature "column=word" for each word, with the values 0 and 1.
    label_words_ : dict of str to int, if words were declared to mean that a label is relevant
        Words in label columns, and whether they mean 1 or 0.
    targets_ : SignedTargets
        Coding of the labels.
    classes_ : array (n_classes,), (n_labels,) or (n_labels, 2)
        Classes of a 1-D target, or column numbers of the labels. For one or two labels, each label has
        a row (irrelevant, relevant): scikit-learn's scorers would mistake one or two column numbers
        for the classes of a binary target.
    empty_share_ : float
        Share of the training rows that have no relevant label. With ``non_empty="auto"``, empty
        predictions are filled if this share is at most 2 %.

    Examples
    --------
    >>> import numpy as np
    >>> class Nearest(MultiLabelClassifier):
    ...     def _check_parameters(self):
    ...         pass
    ...
    ...     def _fit(self, X, Y, weights):
    ...         self.X_, self.Y_ = X, Y
    ...
    ...     def _scores(self, X):
    ...         return self.Y_[[np.abs(self.X_ - x).sum(axis=1).argmin() for x in X]].astype(float)
    >>> Nearest().fit([[0.0], [5.0]], [[0, 1], [1, 1]]).predict([[4.0]])
    array([[1, 1]])
    """

    n_features_in_: int
    feature_names_in_: Array
    first_feature_: int
    first_label_: int
    ignored_columns_: list[str]
    label_words_: dict[str, int]
    categories_: dict[str, list[str]]
    empty_share_: float
    non_empty: Filling = False
    # Names of the parameters that a fitted model may change, because only predictions depend on them.
    decision_parameters: tuple[str, ...] = ("non_empty",)
    # True if the method accepts missing labels: entries of Y that are NaN for users and 0 inside.
    takes_missing: bool = False
    takes_sparse_labels: bool = False

    @property
    def non_empty_(self) -> bool:
        """True if a row without a positive score gets its best label."""
        return should_fill_empty_rows(self)

    def fit(self, X: MatrixLike | Dataset, y: MatrixLike | None = None) -> Self:
        """Learn from rows X (n_samples, n_features) and their labels y (n_samples, n_labels), 0/1 or -1/+1.

        A :class:`rbrl.datasets.Dataset` has both, and the names of their columns: ``fit(dataset)``.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or Dataset
            Training rows.
        y : array, sparse matrix or data frame (n_samples, n_labels); or label sets; or (n_samples,), classes
            Labels; None with a `Dataset`. NaN, None, NA and a masked entry of a matrix are missing
            labels. A method with `takes_missing` learns from the other labels, and a method without it
            rejects them. An index of pandas must be the index of X.
        """
        self._check_parameters()
        self._fit(*check_training_data(self, X, y))
        return self

    def fit_many(self, X: MatrixLike, y: MatrixLike, points: Iterable[Mapping[str, Any]]) -> Iterator[Self]:
        """Yield a fitted copy for each dict of parameters in `points`.

        A subclass whose models have work in common may do this work once.

        Parameters
        ----------
        X, y
            Rows and labels, in the forms that `fit` accepts.
        points : iterable of dict

        Yields
        ------
        fitted classifiers, in the order of `points`
        """
        for params in points:
            yield clone(self).set_params(**params).fit(X, y)

    def decision_function(self, X: Rows) -> FloatArray:
        """Return the score of every label; a positive score means relevant.

        Rows in blocks, such as :class:`rbrl.datasets.Shards`, are read one block at a time, here and in
        `predict`.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or Dataset, Shards, or a list of parts (X, Y)

        Returns
        -------
        array (n_samples, n_labels); (n_samples,) for a binary 1-D target
        """
        scores = _concatenate_blocks(self._score_blocks(X, whole=True))
        return scores.ravel() if self.targets_.kind == "binary" else scores

    def predict(self, X: Rows) -> Array | sparse.sparray:
        """Return labels in the coding that `fit` received: ``decision_function(X) > 0``.

        With `non_empty_`, a row without a positive score gets its best label.

        Predictions have the type of the labels that `fit` received. If these were a sparse matrix of any
        format, predictions are a CSR matrix, which scikit-learn's metrics accept. It is made block by
        block, so that the scores are never in memory all at once. If the labels were objects, a data
        frame or a masked array, predictions are an array of numbers; see `set_output` for data frames.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or Dataset, Shards, or a list of parts (X, Y)

        Returns
        -------
        array or sparse matrix (n_samples, n_labels); array (n_samples,) for a 1-D target
        """
        if not hasattr(self, "targets_"):
            # The check takes longer than the scores of one row. Here, it writes the message.
            check_is_fitted(self)
        targets = self.targets_
        container = targets.sparse_container
        never_empty = targets.is_matrix and self.non_empty_
        blocks = self._score_blocks(X, whole=container is None)
        return _concatenate_blocks(
            (targets.decode(relevant_labels(scores, never_empty), scores) for scores in blocks), container
        )

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError for an invalid parameter.

        It runs before the data are checked, and sets no attribute.
        """

    @abstractmethod
    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        """Learn from checked rows, labels and weights; set the fitted attributes.

        X (n_samples, n_features) is an array or a CSR matrix of floats, and may be the user's
        array: it must not be changed. Y (n_samples, n_columns) is int8 in {-1, 0, +1}, with 0 for a
        missing label. The weights (n_samples,) are None for ones.
        """

    @abstractmethod
    def _scores(self, X: Matrix) -> FloatArray:
        """Return the scores of checked rows: (n_samples, n_columns), positive for a relevant label.

        There may be no rows. X must not be changed; the caller owns the result.
        """

    def _learn(self, X: MatrixLike | Dataset, y: MatrixLike | None, sample_weight: ArrayLike | None = None) -> Self:
        """Check the parameters and the data, and fit; return the classifier.

        A subclass whose `fit` takes weights of rows calls it. The arguments are those of `fit`.
        """
        self._check_parameters()
        self._fit(*check_training_data(self, X, y, sample_weight))
        return self

    def _check_rows(self, X: Rows) -> Matrix:
        """Return rows to predict labels for, after the checks: an array or a CSR matrix of floats.

        It may be X itself, or share its memory.
        """
        if can_skip_checks(self, X):
            return cast(Matrix, X)
        check_is_fitted(self)
        if isinstance(X, Dataset):
            features_only = replace(get_columns(self), n_labels=None, label_names=None)
            rows = X.matching(features_only).X
            return check_array(rows, accept_sparse="csr", dtype=FLOATS, estimator=self)
        return validate_rows(self, X, reset=False)

    def _score_blocks(self, X: Rows, whole: bool = False) -> Iterator[FloatArray]:
        """Yield the scores of one block of rows after the other: (n_rows, n_columns).

        With `whole`, rows in memory are one block.
        """
        for rows in map(self._check_rows, feature_blocks(X)):
            step = rows.shape[0] if whole else max(1, BLOCK_ENTRIES // self.targets_.n_columns)
            yield from (self._scores(rows[start : start + step]) for start in range(0, rows.shape[0], step))


def _concatenate_blocks(blocks: Iterable[Any], container: Any = None) -> Any:
    """Return blocks of rows as one array, or as one sparse matrix of the type `container`.

    There is at least one block. A single block is returned itself, without a copy.
    """
    first, *others = blocks
    if not others:
        return first
    return container(sparse.vstack([first, *others])) if container else np.concatenate([first, *others])


def to_class_probabilities(P: FloatArray, targets: SignedTargets) -> FloatArray:
    """Return probabilities in the form of scikit-learn's `predict_proba`.

    Probabilities of labels stay as they are. For a 1-D target, every class has a column, and the rows
    sum to 1.

    Parameters
    ----------
    P : array (n_samples, n_columns)
        Probability of each label or class; for two classes, probability of the second class.
    targets : SignedTargets

    Returns
    -------
    array (n_samples, n_labels or n_classes)

    Examples
    --------
    >>> to_class_probabilities(np.array([[0.2], [0.5]]), SignedTargets().fit(np.array(["no", "yes"])))
    array([[0.8, 0.2],
           [0.5, 0.5]])
    """
    if targets.is_matrix:
        return P
    if targets.kind == "multiclass":
        total = P.sum(axis=1, keepdims=True)
        # If every class has the probability 0, all classes are equally likely.
        return np.divide(P, total, out=np.full(P.shape, 1 / P.shape[1]), where=total > 0)
    return np.hstack([1 - P, P]) if len(targets.classes_) == 2 else np.ones_like(P)


class ProbabilityClassifier(MultiLabelClassifier):
    """A classifier with probabilities of its own, or with those of its base learner `estimator`.

    A subclass defines ``_probabilities(X)``.
    """

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Rows) -> FloatArray:
        """Return the probability that each label is relevant; for a 1-D target, the probability of each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or Dataset

        Returns
        -------
        array (n_samples, n_labels); (n_samples, n_classes) for a 1-D target
        """
        return to_class_probabilities(self._probabilities(self._check_rows(X)), self.targets_)

    def _has_probabilities(self) -> bool:
        """Return whether `predict_proba` exists: whether the base learner has it, if there is one."""
        return hasattr(self.estimator, "predict_proba") if hasattr(self, "estimator") else True

    @abstractmethod
    def _probabilities(self, X: Matrix) -> FloatArray:
        """Return the probabilities of checked rows in the form of `_scores`: (n_samples, n_columns)."""
