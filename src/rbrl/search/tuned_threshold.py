"""A decision rule learned on cross-validated scores, around any classifier."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rbrl._common.bases import BaseEstimator
from rbrl._common.typing import FloatArray, LabelNames, MatrixLike
from rbrl.datasets import Columns
from rbrl.decision import DecisionRule, LabelThresholds, relevant_labels
from rbrl.estimators.base import remember_columns
from rbrl.estimators.named_answers import NamedAnswers, given_names, hand_on_names
from rbrl.metrics import scores_of
from rbrl.targets import SignedTargets, label_matrix, missing_entries


class _ScoresAsAnswer(BaseEstimator):
    """A classifier whose `predict` gives its scores: of these alone cross-validation leaves NaN in the labels alone."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: MatrixLike, y: MatrixLike) -> Self:
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def predict(self, X: MatrixLike) -> FloatArray:
        return self.estimator_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


class TunedThresholdClassifier(NamedAnswers, BaseEstimator):
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
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own, and so does the classifier.

    Attributes
    ----------
    estimator_, rule_
        Both fitted.
    label_names_ : array (n_labels,), if the labels came with names

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier, TunedThresholdClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> TunedThresholdClassifier(RBRLClassifier()).fit(X, Y).predict(X[:2]).shape
    (2, 4)
    """

    estimator_: Any
    rule_: DecisionRule

    def __init__(
        self, estimator: Any, rule: DecisionRule | None = None, cv: Any = 5, random_state: int = 0,
        n_jobs: int | None = None, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.estimator, self.rule, self.label_names = estimator, rule, label_names
        self.cv, self.random_state, self.n_jobs = cv, random_state, n_jobs

    def fit(self, X: MatrixLike, y: MatrixLike) -> Self:
        """Learn the rule on held-out scores, then the classifier on all rows.

        Parameters
        ----------
        X : as the classifier takes it
        y : array, sparse matrix or data frame (n_samples, n_labels), 0/1 or -1/+1; or label sets; or (n_samples,), classes
            `predict` answers in the same coding. Where the classifier takes missing labels, NaN in a matrix is one, and
            the rule is learned from the others.

        Returns
        -------
        self
        """
        y, names = label_matrix(y, given_names(self))
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if not sparse.issparse(y):
            finite = missing_entries(y) is None or "allow-nan"
            y = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_all_finite=finite)
        validate_data(self, X, y, skip_check_array=True)
        self.targets_ = SignedTargets().fit(y)
        y = y if self.targets_.is_matrix else column_or_1d(y, warn=True)
        rule = clone(LabelThresholds() if self.rule is None else self.rule)
        Y = self.targets_.encode(y)
        estimator = hand_on_names(clone(self.estimator), names)
        self.rule_ = rule.fit(self._held_out_scores(estimator, X, y), Y if Y.all() else np.where(Y == 0, np.nan, Y))
        self.estimator_ = estimator.fit(X, y)
        self.classes_ = self.targets_.classes_
        remember_columns(self, Columns(label_names=names))
        return self

    @property
    def takes_missing(self) -> bool:
        """Whether labels may be missing: as the classifier says."""
        return bool(getattr(self.estimator, "takes_missing", False))

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Scores with the learned threshold subtracted, (n_samples, n_labels); 1-D for a binary 1-D target.

        Parameters
        ----------
        X : as the classifier takes it

        Returns
        -------
        array (n_samples, n_labels); (n_samples,) for a binary 1-D target
        """
        scores = self._moved_scores(X)
        return scores.ravel() if self._encoder().kind == "binary" else scores

    def predict(self, X: MatrixLike) -> Any:
        """Labels in the coding that `fit` received: those whose moved score is positive, or the class of the largest.

        Parameters
        ----------
        X : as the classifier takes it

        Returns
        -------
        array or sparse matrix, in the coding that `fit` received
        """
        scores = self._moved_scores(X)
        return self._encoder().decode(relevant_labels(scores), scores)

    def _encoder(self) -> SignedTargets:
        """The coding of the answers; model files written before it was kept answer in 0/1."""
        return getattr(self, "targets_", None) or SignedTargets.of_matrix(len(self.classes_), 0, np.int64)

    def _moved_scores(self, X: MatrixLike) -> FloatArray:
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 2:  # of anything else the classifier says what is wrong with it
            validate_data(self, X, skip_check_array=True, reset=False)
        return self.rule_.shift(scores_of(self.estimator_, X))

    def _held_out_scores(self, estimator: Any, X: MatrixLike, y: Any) -> FloatArray:
        y = y.toarray() if sparse.issparse(y) else y  # as the scores are; folds of a sparse y cannot be drawn
        # Each class in every fold, so that no model misses one.
        folds, count = KFold if self.targets_.is_matrix else StratifiedKFold, isinstance(self.cv, int | np.integer)
        cv = folds(int(self.cv), shuffle=True, random_state=self.random_state) if count else self.cv
        if missing_entries(y) is None:
            scores = cross_val_predict(estimator, X, y, cv=cv, method="decision_function", n_jobs=self.n_jobs)
        else:
            scores = cross_val_predict(_ScoresAsAnswer(estimator), X, y, cv=cv, n_jobs=self.n_jobs)
        return scores if scores.ndim == 2 else scores[:, None]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.classifier_tags.multi_label = inner.input_tags, inner.classifier_tags.multi_label
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags
