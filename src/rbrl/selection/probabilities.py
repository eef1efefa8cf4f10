"""Calibrated probabilities: increasing maps from scores, learned for all labels together."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import has_fit_parameter

from rbrl._common.checks import check_choice, check_row_weights, users_level
from rbrl._common.frames import check_no_mask, check_same_rows
from rbrl._common.typing import FloatArray, IntArray, LabelNames, MatrixLike
from rbrl.datasets import Columns
from rbrl.decision import DecisionRule, ZeroThreshold, empty_share
from rbrl.estimators.base import Filling, should_fill_empty_rows, to_class_probabilities
from rbrl.estimators.named_answers import set_label_names
from rbrl.estimators.validation import store_columns
from rbrl.selection.thresholds import (
    FittedClassifier,
    ScoreClassifier,
    Scores,
    check_targets,
    fit_varying_labels,
    held_out_scores,
)

CALIBRATION_METHODS = ("sigmoid", "isotonic")
# Number of rounds of expectation maximisation.
EM_ROUNDS = 8
# Maximal number of Newton steps of a label. It needs a few from the map of the previous round.
MAX_NEWTON_STEPS = 50
# Expected gain of a step, as a share of the weight of a row, below which Newton's method stops.
SMALLEST_GAIN = 1e-12
# Precision of the prior that keeps the equations regular if all scores of a label are equal.
WEAKEST_PRIOR = 1e-8
# Number of entries of a block: 8 MB for each of its arrays.
MAP_BLOCK_ENTRIES = 2**20
# Number of relevant rows (or irrelevant, if these are fewer) with which an isotonic map has the
# same weight as its sigmoid.
SIGMOID_ROWS = 50.0


class Sigmoids(NamedTuple):
    """Slope (0 or more) and intercept of the sigmoid of each label, and those of the pooled map.

    A label with only relevant or only irrelevant rows has the slope 0.
    """

    slopes: FloatArray
    intercepts: FloatArray
    pooled: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities of scores (n_samples, n_labels)."""
        # With a slope of 0, a score may be missing.
        products = np.where(self.slopes > 0, scores, 0.0) * self.slopes
        return expit(products + self.intercepts)


def fit_sigmoids(scores: Scores) -> Sigmoids:
    r"""Fit the sigmoids of all labels together, in one hierarchical model.

    .. math:: P(y_{ij} = 1) = \sigma(a_j f_{ij} + b_j), \qquad (a_j, b_j) \sim N(\mu, \Sigma)

    The pooled map :math:`\mu`, and the covariance :math:`\Sigma` of the labels, are learned from
    the labels: empirical Bayes by expectation maximisation, with Laplace's approximation of the
    posterior of each label. The map of a label with few relevant rows stays near the pooled map,
    and nearer if the labels are alike. A single label has Platt's map.
    """
    learned = (scores.n_relevant > 0) & (scores.n_irrelevant > 0)
    # The probability of a constant label is its share, with an additional row of the mean share of
    # all labels. The mean share has an additional relevant row and an additional irrelevant row.
    n_relevant = scores.totals[0]
    n_rows = scores.totals.sum(axis=0)
    share = (n_relevant.sum() + 1) / (n_rows.sum() + 2)
    constant = (n_relevant + share) / (n_rows + 1)
    slopes = np.zeros(len(constant))
    intercepts = np.log(constant / (1 - constant))
    pooled = np.array([0.0, np.log(share / (1 - share))])
    if learned.any():
        # All scores are standardised with one mean and one deviation.
        centre = np.average(scores.values, weights=scores.weights)
        scale = np.sqrt(np.average((scores.values - centre) ** 2, weights=scores.weights)) or 1.0
        standard = scores._replace(values=(scores.values - centre) / scale).columns(learned)
        mean, maps = _fit_hierarchical(standard)
        slopes[learned] = maps[:, 0] / scale
        intercepts[learned] = maps[:, 1] - maps[:, 0] * centre / scale
        pooled = np.array([mean[0] / scale, mean[1] - mean[0] * centre / scale])
    return Sigmoids(slopes, intercepts, pooled)


def _fit_hierarchical(scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return slope and intercept (2,) of the pooled map, and those of every label (n_labels, 2).

    No map decreases. Every label must have relevant and irrelevant rows. The scores should be
    standardised, because the first prior has the precision 1.
    """
    n_labels = scores.values.shape[1]
    weak = WEAKEST_PRIOR * np.eye(2)
    pooled = _use_platt_targets(scores.pool())
    mean = _maximise_posterior(pooled, np.array([[1.0, 0.0]]), np.zeros(2), weak)[0][0]
    if n_labels == 1:
        return mean, _flatten_decreasing(pooled, mean[None], np.zeros(2), weak)
    maps = np.tile(mean, (n_labels, 1))
    precision = np.eye(2)
    for _ in range(EM_ROUNDS):
        maps, covariances = _maximise_posterior(scores, maps, mean, precision)
        mean = maps.mean(axis=0)
        deviations = maps - mean
        scatter = deviations[:, :, None] * deviations[:, None, :]
        precision = np.linalg.inv((scatter + covariances).mean(axis=0)) + weak
    maps, _ = _maximise_posterior(scores, maps, mean, precision)
    return mean, _flatten_decreasing(scores, maps, mean, precision)


def _use_platt_targets(scores: Scores) -> Scores:
    """Replace labels by Platt's targets, which keep maps finite without a prior.

    They are the shares after adding a relevant and an irrelevant row. The given scores do not
    change.
    """
    n_relevant = scores.n_relevant
    high = (n_relevant + 1) / (n_relevant + 2)
    low = 1 / (scores.n_irrelevant + 2)
    return scores._replace(relevant=np.where(scores.relevant > 0, high, low))


def _flatten_decreasing(scores: Scores, maps: FloatArray, mean: FloatArray, precision: FloatArray) -> FloatArray:
    """Replace decreasing maps (n_labels, 2) by the best constant maps, in a copy.

    The last two arguments are those of :func:`_maximise_posterior`. If no map decreases, `maps` is
    returned itself.
    """
    decreasing = maps[:, 0] < 0
    if decreasing.any():
        flat = scores.columns(decreasing)
        flat = flat._replace(values=np.zeros_like(flat.values))
        # With all scores 0, the slope has no effect, and the intercept is that of a constant map.
        maps = maps.copy()
        start = maps[decreasing] * [0, 1]
        maps[decreasing], _ = _maximise_posterior(flat, start, mean * [0, 1], precision * np.eye(2))
        maps[decreasing, 0] = 0.0
    return maps


def _maximise_posterior(
    scores: Scores, start: FloatArray, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the most probable maps (n_labels, 2), slope and intercept, and Laplace's covariances.

    The covariances are (n_labels, 2, 2). `start` has first maps; `mean` (2,) and `precision` (2, 2)
    are those of the normal prior of all labels.
    """
    maps = np.empty_like(start)
    covariances = np.empty((len(start), 2, 2))
    step = max(1, MAP_BLOCK_ENTRIES // len(scores.values))
    for first in range(0, len(start), step):
        part = slice(first, first + step)
        maps[part], covariances[part] = _newton(scores.columns(part), start[part], mean, precision)
    return maps, covariances


def _newton(
    scores: Scores, start: FloatArray, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Run Newton's method for all labels at once, as :func:`_maximise_posterior` for one block."""
    z, t, w, _ = scores
    smallest_gain = SMALLEST_GAIN * max(float(w.sum(axis=0).max(initial=0.0)), 1.0)
    base = start
    step = np.zeros_like(start)
    value = np.full(len(start), np.inf)
    hessian = np.empty((len(start), 2, 2))
    for _ in range(MAX_NEWTON_STEPS):
        trial = base + step
        margins = z * trial[:, 0] + trial[:, 1]
        deviation = trial - mean
        prior_gradient = deviation @ precision
        loss = (w * (np.logaddexp(0, margins) - t * margins)).sum(axis=0)
        trial_value = loss + 0.5 * (deviation * prior_gradient).sum(axis=1)
        better = trial_value <= value + smallest_gain
        P = expit(margins)
        residual = w * (P - t)
        curvature = w * P * (1 - P)
        gradient = np.stack([(residual * z).sum(axis=0), residual.sum(axis=0)], axis=1) + prior_gradient
        mixed = (curvature * z).sum(axis=0)
        square = np.stack([(curvature * z * z).sum(axis=0), mixed, mixed, curvature.sum(axis=0)], axis=1)
        hessian = np.where(better[:, None, None], square.reshape(-1, 2, 2) + precision, hessian)
        newton = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        gain = np.where(better, -0.5 * (gradient * newton).sum(axis=1), np.inf)
        base = np.where(better[:, None], trial, base)
        value = np.where(better, trial_value, value)
        step = np.where(better[:, None], newton, 0.5 * step)
        if (gain <= smallest_gain).all():
            break
    return base, np.linalg.inv(hessian)


def fit_isotonic(scores: Scores, sigmoids: Sigmoids) -> list[FloatArray]:
    """Fit a map of any increasing form for every label, shrunk towards its sigmoid.

    The labels are mixed with the probabilities of the sigmoid, which have the weight
    :math:`50 / (50 + r)` for r relevant rows (or irrelevant rows, if these are fewer). Therefore no
    probability is 0 or 1.

    Returns
    -------
    list of arrays (2, n_knots)
        Scores of each label and their probabilities; the map is linear between them. A label without
        known scores has no knots.
    """
    P = sigmoids(scores.values)
    rarer = np.minimum(scores.n_relevant, scores.n_irrelevant)
    mixed = (rarer * scores.relevant + SIGMOID_ROWS * P) / (rarer + SIGMOID_ROWS)
    return [_increasing_knots(scores.values[:, j], mixed[:, j], scores.weights[:, j]) for j in range(P.shape[1])]


def _increasing_knots(values: FloatArray, targets: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the ascending knots (2, n_knots) of the map of one label; none if all weights are 0."""
    if not weights.any():
        return np.empty((2, 0))
    fitted = IsotonicRegression().fit(values, targets, sample_weight=weights)
    return np.stack([fitted.X_thresholds_, fitted.y_thresholds_])


class CalibratedMultiLabelClassifier(ScoreClassifier):
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
        accepted = weights if has_fit_parameter(self.estimator, "sample_weight") else None
        if weights is not None and accepted is None:
            name = type(self.estimator).__name__
            text = f"{name}.fit takes no sample_weight: only the maps to probabilities are weighted."
            warnings.warn(text, UserWarning, stacklevel=users_level())
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
        held_out = Scores.from_labels(scores, Y, weights)
        maps = fit_sigmoids(held_out)
        self.slopes_, self.intercepts_, self.pooled_ = maps
        self.knots_ = fit_isotonic(held_out, maps) if self.method == "isotonic" else None
        rule = clone(ZeroThreshold() if self.rule is None else self.rule)
        known = np.where(held_out.weights > 0, Y, np.nan)
        self.rule_ = rule.fit(self._apply_maps(held_out.values) - 0.5, known)
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
        """Return whether empty predictions are filled; classes of a 1-D target are not."""
        return self.targets_.is_matrix and self.non_empty_

    def _score_blocks(self, X: MatrixLike) -> Iterator[FloatArray]:
        """Yield the probabilities of all rows, by which `predict_top` ranks the labels."""
        yield np.asarray(self.predict_proba(X))

    def _unshifted_scores(self, X: MatrixLike) -> FloatArray:
        """Return the probabilities less 1/2."""
        return self._probabilities(X) - 0.5

    def _probabilities(self, X: MatrixLike) -> FloatArray:
        """Return the probabilities of checked rows: (n_samples, n_columns)."""
        return self._apply_maps(FittedClassifier(self.estimator_, self.columns_).scores(X, self.targets_))

    def _apply_maps(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities of scores, a new array; a column of slope 0 may be NaN."""
        P = Sigmoids(self.slopes_, self.intercepts_, self.pooled_)(scores)
        for j, knots in enumerate(self.knots_ or ()):
            if self.slopes_[j] > 0:
                P[:, j] = np.interp(scores[:, j], *knots)
        return P
