"""Probabilities that can be trusted, from the scores of any classifier."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from rbrl._common.bases import Estimator
from rbrl._common.checks import check_choice, check_row_weights, users_level
from rbrl._common.frames import check_no_mask, check_same_rows
from rbrl._common.typing import FloatArray, IntArray, LabelNames, MatrixLike
from rbrl.datasets import Columns
from rbrl.decision import DecisionRule, ZeroThreshold, empty_share, relevant_labels
from rbrl.estimators.base import Filling, FillsEmptyRows, remember_columns
from rbrl.estimators.named_answers import NamedAnswers, hand_on_names
from rbrl.estimators.probabilities import by_class
from rbrl.selection.held_out import Fitted, checked_targets, fit_known, held_out_scores
from rbrl.selection.probability_maps import Scores, Sigmoids, fit_isotonic, fit_sigmoids

METHODS = ("sigmoid", "isotonic")


class CalibratedMultiLabelClassifier(FillsEmptyRows, NamedAnswers, Estimator):
    r"""A multi-label classifier with probabilities: its scores, each mapped by what came of such scores in held-out rows.

    The classifier is fitted to all rows, and its copies to the rows outside each fold. What these score the fold's rows
    is what a map for every label is learned from. The maps rise, so that a higher score never has a lower probability.

    A label with a handful of relevant rows cannot have a map of its own. The sigmoids :math:`\sigma(a_j f + b_j)` are
    therefore fitted together, with a normal prior for :math:`(a_j, b_j)` whose mean, the pooled map, and whose covariance
    are learned from all labels: a frequent label keeps what its own rows say (Platt's map), a rare one is drawn to the
    pooled map as far as labels are alike. "isotonic" lets the form of each map free where rows are many: labels are mixed
    with what the sigmoid says, which counts :math:`50 / (50 + r)` with r relevant rows.

    Parameters
    ----------
    estimator : classifier
        With `decision_function`, or with `predict_proba`, whose log-odds are then mapped. Of rbrl, of scikit-learn, or a
        pipeline.
    method : {"sigmoid", "isotonic"}, default="sigmoid"
        "isotonic" may be better from some thousand rows on; it makes ties of different scores.
    cv : int or splitter, default=5
        Every row must be in one test part.
    rule : DecisionRule, default=None
        Of :mod:`rbrl.decision`, learned on held-out probabilities less 1/2. None: a label is relevant if its probability
        is above 1/2.
    non_empty : bool or "auto", default="auto"
        Whether a row without a relevant label gets its most probable one; "auto": if every training row has a label.
    random_state : int, default=0
        Of the folds.
    n_jobs : int, default=None
        Folds in parallel.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own, and so does the classifier.

    Attributes
    ----------
    estimator_ : fitted classifier
    slopes_, intercepts_ : arrays (n_labels,)
        Of the sigmoids. A label of which the training rows are all relevant, or all irrelevant, has the slope 0, and so
        one probability: its share, with one row more that is like all labels together.
    pooled_ : array (2,)
        Slope and intercept of the pooled map.
    knots_ : list of arrays (2, n_knots), or None
        Scores and probabilities between which the isotonic maps are straight.
    rule_ : DecisionRule
    targets_, classes_, label_names_, n_features_in_, feature_names_in_
        As for our classifiers.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import CalibratedMultiLabelClassifier, RBRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, n_features=8, n_classes=4, random_state=0)
    >>> model = CalibratedMultiLabelClassifier(RBRLClassifier()).fit(X[:150], Y[:150])
    >>> P = model.predict_proba(X[150:])
    >>> P.shape, bool((P > 0).all() and (P < 1).all())
    ((50, 4), True)
    >>> from rbrl.metrics import expected_calibration_error
    >>> expected_calibration_error(Y[150:], P) < 0.1
    True
    """

    estimator_: Any
    columns_: IntArray | None
    slopes_: FloatArray
    intercepts_: FloatArray
    pooled_: FloatArray
    knots_: list[FloatArray] | None
    rule_: DecisionRule

    def __init__(
        self, estimator: Any, method: str = "sigmoid", cv: Any = 5, rule: DecisionRule | None = None,
        non_empty: Filling = "auto", random_state: int = 0, n_jobs: int | None = None,
        label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.estimator, self.method, self.cv = estimator, method, cv
        self.rule, self.non_empty = rule, non_empty
        self.random_state, self.n_jobs, self.label_names = random_state, n_jobs, label_names

    @property
    def takes_missing(self) -> bool:
        """Whether labels may be missing: as the classifier says."""
        return bool(getattr(self.estimator, "takes_missing", False))

    def fit(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier to all rows, and the maps to scores of held-out rows.

        Parameters
        ----------
        X : as the classifier takes it
        y : array, sparse matrix or data frame (n_samples, n_labels), 0/1 or -1/+1; or label sets; or (n_samples,), classes
            `predict` answers in the same coding. Where the classifier takes missing labels, NaN in a matrix is one, and
            the maps are learned from the others.
        sample_weight : array (n_samples,), default=None
            Given to the classifier, if its `fit` takes it, and to the maps.

        Returns
        -------
        self
        """
        check_choice(type(self).__name__, "method", self.method, METHODS)
        check_choice(type(self).__name__, "non_empty", self.non_empty, (True, False, "auto"))
        check_same_rows(X=X, sample_weight=sample_weight)
        check_no_mask(sample_weight=sample_weight)
        y, self.targets_, names = checked_targets(self, X, y)
        estimator = hand_on_names(clone(self.estimator), names)
        remember_columns(self, Columns(label_names=names))
        Y = self.targets_.encode(y)
        weights = None if sample_weight is None else check_row_weights(sample_weight, len(Y))
        self.empty_share_ = empty_share(np.where(Y == 0, np.nan, Y), weights)
        given = self._weights_given(weights)
        self.estimator_, self.columns_ = self._fitted(estimator, X, y, given)
        scores = held_out_scores(
            estimator, X, y, self.targets_, self.cv, random_state=self.random_state, n_jobs=self.n_jobs,
            weights=given, fitted=self.estimator_,
        )  # fmt: skip
        self._learn_maps(scores, Y, weights)
        return self

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Probability that each label is relevant; of a 1-D target, that of each class.

        Parameters
        ----------
        X : as the classifier takes it

        Returns
        -------
        array (n_samples, n_labels); (n_samples, n_classes) for a 1-D target, with rows that sum to 1

        Examples
        --------
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from rbrl import CalibratedMultiLabelClassifier, RBRLClassifier
        >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
        >>> P = CalibratedMultiLabelClassifier(RBRLClassifier()).fit(X, Y).predict_proba(X)
        >>> P.shape, bool(((P >= 0) & (P <= 1)).all())
        ((60, 4), True)
        """
        return by_class(self._probabilities(X), self.targets_)

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Probabilities less 1/2, moved by the rule: the relevant labels are the positive ones.

        Parameters
        ----------
        X : as the classifier takes it

        Returns
        -------
        array (n_samples, n_labels); (n_samples,) for a binary 1-D target
        """
        scores = self._moved(X)
        return scores.ravel() if self.targets_.kind == "binary" else scores

    def predict(self, X: MatrixLike) -> Any:
        """Labels in the coding that `fit` received: those that the rule calls relevant, or the class of the largest score.

        Parameters
        ----------
        X : as the classifier takes it

        Returns
        -------
        array or sparse matrix, in the coding that `fit` received
        """
        scores = self._moved(X)
        never_empty = self.targets_.is_matrix and self.non_empty_
        return self.targets_.decode(relevant_labels(scores, never_empty), scores)

    def _weights_given(self, weights: FloatArray | None) -> FloatArray | None:
        """What the classifier gets; one that takes no weights is told of."""
        if weights is None or has_fit_parameter(self.estimator, "sample_weight"):
            return weights
        text = (
            f"{type(self.estimator).__name__}.fit takes no sample_weight: only the maps to probabilities are weighted."
        )
        warnings.warn(text, UserWarning, stacklevel=users_level())
        return None

    def _fitted(self, estimator: Any, X: MatrixLike, y: Any, weights: FloatArray | None) -> Fitted:
        fitted = fit_known(clone(estimator), X, y, self.targets_, weights)
        if fitted is None:
            raise ValueError(
                f"{type(self.estimator).__name__} needs a label with relevant and irrelevant rows. Got y of shape "
                f"{y.shape} in which every label is constant."
            )
        return fitted

    def _learn_maps(self, scores: FloatArray, Y: IntArray, weights: FloatArray | None) -> None:
        held_out = Scores.known(scores, Y, weights)
        maps = fit_sigmoids(held_out)
        self.slopes_, self.intercepts_, self.pooled_ = maps
        self.knots_ = fit_isotonic(held_out, maps) if self.method == "isotonic" else None
        rule = clone(ZeroThreshold() if self.rule is None else self.rule)
        known = np.where(held_out.weights > 0, Y, np.nan)
        self.rule_ = rule.fit(self._mapped(held_out.values) - 0.5, known)

    def _mapped(self, scores: FloatArray) -> FloatArray:
        P = Sigmoids(self.slopes_, self.intercepts_, self.pooled_)(scores)
        for j, knots in enumerate(self.knots_ or ()):
            if self.slopes_[j] > 0:
                P[:, j] = np.interp(scores[:, j], *knots)
        return P

    def _probabilities(self, X: MatrixLike) -> FloatArray:
        check_is_fitted(self)
        check_no_mask(X=X)
        if getattr(X, "ndim", 2) == 2:  # of anything else the classifier says what is wrong with it
            validate_data(self, X, skip_check_array=True, reset=False)
        return self._mapped(Fitted(self.estimator_, self.columns_).scores(X, self.targets_))

    def _moved(self, X: MatrixLike) -> FloatArray:
        centred = self._probabilities(X) - 0.5
        return self.rule_.shift(centred)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.classifier_tags.multi_label = inner.input_tags, inner.classifier_tags.multi_label
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags
