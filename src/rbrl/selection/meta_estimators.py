"""Classifiers around any classifier: probabilities, and a decision rule, learned from held-out scores."""

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from rbrl._common.checks import check_choice, check_row_weights, users_level
from rbrl._common.frames import check_no_mask, check_same_rows
from rbrl._common.typing import FloatArray, IntArray, LabelNames, MatrixLike
from rbrl.datasets import Columns
from rbrl.decision import DecisionRule, GlobalThreshold, ZeroThreshold, empty_share, relevant_labels
from rbrl.estimators.base import Filling, should_fill_empty_rows, to_class_probabilities
from rbrl.estimators.named_answers import NamedAnswers, set_label_names
from rbrl.estimators.validation import store_columns
from rbrl.metrics import scores_of
from rbrl.selection.held_out import FittedClassifier, check_targets, fit_for_scores, fit_varying_labels, held_out_scores
from rbrl.selection.probability_maps import Scores, Sigmoids, fit_isotonic, fit_sigmoids
from rbrl.targets import SignedTargets

CALIBRATION_METHODS = ("sigmoid", "isotonic")


class _MetaClassifier(NamedAnswers, ABC):
    """Base class of classifiers whose scores are those of another classifier, shifted by a rule."""

    estimator: Any
    estimator_: Any
    rule_: DecisionRule
    targets_: SignedTargets

    @property
    def takes_missing(self) -> bool:
        """True if the classifier accepts missing labels."""
        return bool(getattr(self.estimator, "takes_missing", False))

    @property
    def _never_empty(self) -> bool:
        return False

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return scores shifted by the rule: the relevant labels have the positive scores.

        Parameters
        ----------
        X : rows in a form that the classifier accepts

        Returns
        -------
        array (n_samples, n_labels); (n_samples,) for a binary 1-D target
        """
        scores = self._shifted_scores(X)
        return scores.ravel() if self.targets_.kind == "binary" else scores

    def _shifted_scores(self, X: MatrixLike) -> FloatArray:
        """Return the scores of checked rows, shifted by the rule."""
        rows = self._check_rows(X)
        return self.rule_.shift(self._unshifted_scores(rows))

    def predict(self, X: MatrixLike) -> Any:
        """Return the relevant labels, or the class with the largest score.

        Parameters
        ----------
        X : rows in a form that the classifier accepts

        Returns
        -------
        array or sparse matrix, in the coding that `fit` received
        """
        scores = self._shifted_scores(X)
        return self.targets_.decode(relevant_labels(scores, self._never_empty), scores)

    @abstractmethod
    def _unshifted_scores(self, X: MatrixLike) -> FloatArray:
        """Return the scores before the rule shifts them."""

    def _check_rows(self, X: MatrixLike) -> MatrixLike:
        check_is_fitted(self)
        check_no_mask(X=X)
        if getattr(X, "ndim", 2) == 2:  # the classifier itself rejects other shapes
            validate_data(self, X, skip_check_array=True, reset=False)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags.multi_label = inner.classifier_tags.multi_label
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags


class TunedThresholdClassifier(_MetaClassifier):
    """A multi-label classifier with a decision rule that is learned by cross-validation.

    The rule is fitted to scores of rows that their model has not seen. The classifier itself is
    fitted to all rows.

    The default rule is one threshold for all labels that is best for micro-F1. It has one number to
    learn, so that rare labels cannot mislead it. A threshold for each label,
    ``LabelThresholds("f1_macro")``, suits data in which each label has dozens of rows, if only
    macro-F1 matters: on sixteen data sets it raises the mean macro-F1 from .237 to .279, and lowers
    micro-F1 from .463 to .287 (``python -m studies.benchmarks.thresholds``). Classifiers of this package
    with a parameter `threshold` learn the same thresholds without cross-validation.

    Parameters
    ----------
    estimator : classifier with decision_function
        Classifier to wrap.
    rule : DecisionRule, default=None
        Decision rule. None means one threshold for all labels,
        ``rbrl.decision.GlobalThreshold("f1_micro")``. It does not change the predictions for a 1-D y
        of three or more classes.
    cv : int or splitter, default=5
        Number of shuffled folds, or a splitter.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Number of folds in parallel.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame or of
        the classifier.

    Attributes
    ----------
    estimator_, rule_
        Fitted classifier and fitted rule.
    label_names_ : array (n_labels,)
        Names of the labels, if the labels have names.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier, TunedThresholdClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> TunedThresholdClassifier(RBRLClassifier()).fit(X, Y).predict(X[:2]).shape
    (2, 4)
    """

    def __init__(
        self, estimator: Any, rule: DecisionRule | None = None, cv: Any = 5, random_state: int = 0,
        n_jobs: int | None = None, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.rule = rule
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.label_names = label_names

    def fit(self, X: MatrixLike, y: MatrixLike) -> Self:
        """Learn the rule from held-out scores, and fit the classifier to all rows.

        Parameters
        ----------
        X : rows in a form that the classifier accepts
        y : array, sparse matrix or data frame (n_samples, n_labels), 0/1 or -1/+1; or label sets; or (n_samples,), classes
            Labels; `predict` returns the same coding. NaN is a missing label, if the classifier
            accepts missing labels; the rule is learned from the known labels.

        Returns
        -------
        self
        """
        y, self.targets_, names = check_targets(self, X, y)
        estimator = set_label_names(clone(self.estimator), names)
        rule = clone(GlobalThreshold() if self.rule is None else self.rule)
        F = held_out_scores(estimator, X, y, self.targets_, self.cv, random_state=self.random_state, n_jobs=self.n_jobs)
        Y = self.targets_.encode(y)
        unscored = np.isnan(F)
        known = (Y != 0) & ~unscored
        self.rule_ = rule.fit(np.where(unscored, 0.0, F), Y if known.all() else np.where(known, Y, np.nan))
        self.estimator_ = fit_for_scores(estimator, X, y)
        store_columns(self, Columns(label_names=names))
        return self

    def _unshifted_scores(self, X: MatrixLike) -> FloatArray:
        return scores_of(self.estimator_, X)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a model. A file of an earlier version has no `targets_`, but labels of 0/1."""
        if "rule_" in state and "targets_" not in state:
            state = state | {"targets_": SignedTargets.of_matrix(len(state["classes_"]), 0, np.int64)}
        super().__setstate__(state)


class CalibratedMultiLabelClassifier(_MetaClassifier):
    r"""A multi-label classifier with calibrated probabilities.

    The classifier is fitted to all rows, and its copies to the rows outside each fold. The scores of
    the rows in the folds, and their labels, determine a map from scores to probabilities for every
    label. The maps are increasing, so that a higher score never has a lower probability.

    A label with few relevant rows cannot have a map of its own. Therefore the sigmoids
    :math:`\sigma(a_j f + b_j)` of all labels are fitted together, with a normal prior of
    :math:`(a_j, b_j)`. The mean of the prior, the pooled map, and its covariance are learned from all
    labels. A frequent label keeps its own map (Platt's map), and the map of a rare label is shrunk
    towards the pooled map, as far as the labels are alike. With "isotonic", the maps have any
    increasing form: labels are mixed with the probability of the sigmoid, which has the weight
    :math:`50 / (50 + r)` for r relevant rows.

    Parameters
    ----------
    estimator : classifier
        Classifier or pipeline with `decision_function`, or with `predict_proba`, whose log-odds are
        then the scores.
    method : {"sigmoid", "isotonic"}, default="sigmoid"
        Form of the maps. "isotonic" may be better from some thousand rows on. It makes ties of
        different scores.
    cv : int or splitter, default=5
        Number of shuffled folds, or a splitter that puts every row into one test part.
    rule : DecisionRule, default=None
        Decision rule of :mod:`rbrl.decision`, learned from held-out probabilities less 1/2. None
        means that a label is relevant if its probability is above 1/2.
    non_empty : bool or "auto", default="auto"
        If True, a row without a relevant label gets its most probable label. "auto" means True if
        every or nearly every training row has a label.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Number of folds in parallel.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame or of
        the classifier.

    Attributes
    ----------
    estimator_ : fitted classifier
    slopes_, intercepts_ : arrays (n_labels,)
        Parameters of the sigmoids. A label that is relevant, or irrelevant, in all training rows has
        the slope 0, and so a constant probability: its share, with one additional row that has the
        mean share of all labels.
    pooled_ : array (2,)
        Slope and intercept of the pooled map.
    knots_ : list of arrays (2, n_knots), or None
        Scores and probabilities between which the isotonic maps are linear.
    rule_ : DecisionRule
        Fitted rule.
    empty_share_ : float
        Share of the training rows that have no relevant label.
    targets_, classes_, label_names_, n_features_in_, feature_names_in_
        Attributes of all classifiers of rbrl.

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

    # Names of the parameters that a fitted model may change, because only predictions depend on them.
    decision_parameters = ("non_empty",)
    empty_share_: float
    columns_: IntArray | None
    slopes_: FloatArray
    intercepts_: FloatArray
    pooled_: FloatArray
    knots_: list[FloatArray] | None

    def __init__(
        self, estimator: Any, method: str = "sigmoid", cv: Any = 5, rule: DecisionRule | None = None,
        non_empty: Filling = "auto", random_state: int = 0, n_jobs: int | None = None,
        label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.rule = rule
        self.non_empty = non_empty
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.label_names = label_names

    def fit(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier to all rows, and the maps to scores of held-out rows.

        Parameters
        ----------
        X : rows in a form that the classifier accepts
        y : array, sparse matrix or data frame (n_samples, n_labels), 0/1 or -1/+1; or label sets; or (n_samples,), classes
            Labels; `predict` returns the same coding. NaN is a missing label, if the classifier
            accepts missing labels; the maps are learned from the known labels.
        sample_weight : array (n_samples,), default=None
            Weights of the rows for the maps, and for the classifier if its `fit` accepts them.

        Returns
        -------
        self
        """
        check_choice(type(self).__name__, "method", self.method, CALIBRATION_METHODS)
        check_choice(type(self).__name__, "non_empty", self.non_empty, (True, False, "auto"))
        check_same_rows(X=X, sample_weight=sample_weight)
        check_no_mask(sample_weight=sample_weight)
        y, self.targets_, names = check_targets(self, X, y)
        estimator = set_label_names(clone(self.estimator), names)
        store_columns(self, Columns(label_names=names))
        Y = self.targets_.encode(y)
        weights = None if sample_weight is None else check_row_weights(sample_weight, len(Y))
        self.empty_share_ = empty_share(np.where(Y == 0, np.nan, Y), weights)
        accepted = self._accepted_weights(weights)
        fitted = fit_varying_labels(clone(estimator), X, y, self.targets_, accepted)
        if fitted is None:
            raise ValueError(
                f"{type(self.estimator).__name__} needs a label with relevant and irrelevant rows. Got y of shape "
                f"{y.shape} in which every label is constant."
            )
        self.estimator_, self.columns_ = fitted
        scores = held_out_scores(
            estimator, X, y, self.targets_, self.cv, random_state=self.random_state, n_jobs=self.n_jobs,
            weights=accepted, fitted=self.estimator_,
        )  # fmt: skip
        self._learn_maps(scores, Y, weights)
        return self

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the probabilities that labels are relevant, or those of the classes of a 1-D target.

        Parameters
        ----------
        X : rows in a form that the classifier accepts

        Returns
        -------
        array (n_samples, n_labels); (n_samples, n_classes) for a 1-D target, with rows that sum to 1
        """
        return to_class_probabilities(self._probabilities(self._check_rows(X)), self.targets_)

    @property
    def non_empty_(self) -> bool:
        """True if a row without a relevant label gets its most probable label."""
        return should_fill_empty_rows(self)

    @property
    def _never_empty(self) -> bool:
        return self.targets_.is_matrix and self.non_empty_

    def _unshifted_scores(self, X: MatrixLike) -> FloatArray:
        return self._probabilities(X) - 0.5

    def _probabilities(self, X: MatrixLike) -> FloatArray:
        return self._apply_maps(FittedClassifier(self.estimator_, self.columns_).scores(X, self.targets_))

    def _accepted_weights(self, weights: FloatArray | None) -> FloatArray | None:
        """Return the weights if the classifier accepts them; otherwise warn and return None."""
        if weights is None or has_fit_parameter(self.estimator, "sample_weight"):
            return weights
        name = type(self.estimator).__name__
        text = f"{name}.fit takes no sample_weight: only the maps to probabilities are weighted."
        warnings.warn(text, UserWarning, stacklevel=users_level())
        return None

    def _learn_maps(self, scores: FloatArray, Y: IntArray, weights: FloatArray | None) -> None:
        held_out = Scores.from_labels(scores, Y, weights)
        maps = fit_sigmoids(held_out)
        self.slopes_, self.intercepts_, self.pooled_ = maps
        self.knots_ = fit_isotonic(held_out, maps) if self.method == "isotonic" else None
        rule = clone(ZeroThreshold() if self.rule is None else self.rule)
        known = np.where(held_out.weights > 0, Y, np.nan)
        self.rule_ = rule.fit(self._apply_maps(held_out.values) - 0.5, known)

    def _apply_maps(self, scores: FloatArray) -> FloatArray:
        P = Sigmoids(self.slopes_, self.intercepts_, self.pooled_)(scores)
        for j, knots in enumerate(self.knots_ or ()):
            if self.slopes_[j] > 0:
                P[:, j] = np.interp(scores[:, j], *knots)
        return P
