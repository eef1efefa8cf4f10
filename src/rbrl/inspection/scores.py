"""The explained scores of a row: terms and constants, with learned rules and calibrated probabilities."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.decision import Chain, DecisionRule, RowThreshold
from rbrl.inspection.terms import Columns, NamedTerms, RowTerms, UnwrappedModel, reject_model
from rbrl.metrics import scores_of
from rbrl.ranking_svm import RankSVM

# Largest distance of a threshold of probabilities from 1/2 that a note leaves out.
ROUNDING = 1e-9


class RowScores:
    """Scores of one row as sums of terms and constants.

    Parameters
    ----------
    model : UnwrappedModel
    columns : Columns
        The row.
    decisions : array (1, n_labels)
        Result of `decision_function` of the whole model.

    Attributes
    ----------
    kind : str
        Kind of the terms, as in :class:`rbrl.inspection.Explanation`.
    dtype : dtype
        Type of the scores, which determines their precision.
    """

    def __init__(self, model: UnwrappedModel, columns: Columns, decisions: FloatArray) -> None:
        self.decisions = decisions[0]
        self.row = RowTerms(model, columns, len(self.decisions))
        self.kind = self.row.kind
        self.scores = self.decisions
        self.dtype = self.scores.dtype

    def score(self, label: int) -> float:
        """Return the score of a label."""
        return float(self.scores[label])

    def terms_and_constants(self, label: int) -> tuple[NamedTerms, dict[str, float]]:
        """Return the terms of the score of a label, and the constants by name; they add up to it."""
        terms, intercept = self.row.label_terms(label)
        constants = {"intercept": intercept}
        for rule, shift in _shifts(self.row):
            name = rule if rule == "NonEmpty" else f"threshold ({rule})"
            constants[name] = constants.get(name, 0.0) + float(shift[label])
        return terms, constants

    def notes(self, label: int, against: int | None) -> tuple[str, ...]:
        """Return what a reader must know besides the score."""
        return ()


class CalibratedScores(RowScores):
    """Log-odds of calibrated probabilities; the scores themselves if the maps are isotonic.

    The log-odds of a sigmoid are ``slope * score + intercept``. A constant label that was left out of
    the fit of the classifier has no terms.
    """

    def __init__(self, model: UnwrappedModel, columns: Columns, decisions: FloatArray) -> None:
        super().__init__(model, columns, decisions)
        assert model.calibrated is not None
        calibrated, n_steps = model.calibrated
        rows = self.row.stages[n_steps].data
        inside = calibrated.estimator_
        if not hasattr(inside, "decision_function"):
            reject_model(inside, "has no decision_function")
        self.scores = scores_of(inside, rows)[0]
        self.row.n_labels = len(self.scores)
        self.dtype = self.scores.dtype
        n_columns = len(self.decisions)
        # The last columns are those of the scores: a binary 1-D target has one score and two classes.
        self.probabilities = np.asarray(calibrated.predict_proba(rows))[0, -n_columns:]
        self.is_isotonic = calibrated.knots_ is not None
        self.slopes = np.ones(n_columns) if self.is_isotonic else calibrated.slopes_
        self.intercepts = np.zeros(n_columns) if self.is_isotonic else calibrated.intercepts_
        self.places = np.full(n_columns, -1)
        fitted = np.arange(n_columns) if calibrated.columns_ is None else calibrated.columns_
        self.places[fitted] = np.arange(len(fitted))

    def score(self, label: int) -> float:
        """Return the explained score of a label."""
        place = self.places[label]
        score = self.scores[place] if place >= 0 else 0.0
        return float(self.slopes[label] * score + self.intercepts[label])

    def terms_and_constants(self, label: int) -> tuple[NamedTerms, dict[str, float]]:
        """Return the terms of the score of a label, and the constants by name; they add up to it."""
        place = self.places[label]
        slope = self.slopes[label]
        if place < 0:
            none = np.empty(0)
            return NamedTerms([], none, none, none), {"calibration": float(self.intercepts[label])}
        terms, constants = super().terms_and_constants(place)
        scaled = {name: float(slope * value) for name, value in constants.items()}
        if not self.is_isotonic:
            scaled["calibration"] = float(self.intercepts[label])
        return replace(terms, contributions=slope * terms.contributions), scaled

    def notes(self, label: int, against: int | None) -> tuple[str, ...]:
        """Return the probabilities, and the threshold if it is not 1/2."""
        texts = [f"Probability: {self.probabilities[label]:.3f}."]
        if against is not None:
            texts = [f"Probabilities: {self.probabilities[label]:.3f} and {self.probabilities[against]:.3f}."]
        if self.is_isotonic:
            texts.append("The score is that of the classifier inside; the probability increases with it.")
        threshold = self.probabilities[label] - self.decisions[label]
        if against is None and abs(threshold - 0.5) > ROUNDING:
            texts.append(f"The label is relevant above a probability of {threshold:.3f}.")
        return tuple(texts)


def _shifts(row: RowTerms) -> Iterator[tuple[str, FloatArray]]:
    """Yield the name of each learned rule and its shift of all scores, the innermost rule first."""
    classifier = row.model.classifier
    if isinstance(classifier, RankSVM) and row.n_labels > 1:
        rule = RowThreshold(ties_relevant=True)
        rule.coef_ = classifier.threshold_coef_
        rule.intercept_ = classifier.threshold_intercept_
        scores = row.model.weights @ row.inputs + classifier.intercept_
        yield from _rule_shifts(rule, scores[None])
    threshold = np.asarray(getattr(classifier, "threshold_", 0.0), dtype=np.float64)
    if threshold.any():
        yield str(classifier.threshold), np.broadcast_to(-threshold, (row.n_labels,))
    for tuned, n_steps in reversed(row.model.tuned):
        yield from _rule_shifts(tuned.rule_, scores_of(tuned.estimator_, row.stages[n_steps].data))


def _rule_shifts(rule: DecisionRule, scores: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield the name of each part of a rule, and how far it shifts the scores of the single row."""
    for part in rule.rules if isinstance(rule, Chain) else [rule]:
        shifted = part.shift(scores)
        yield type(part).__name__, (shifted - scores)[0]
        scores = shifted


def subtract_terms(terms: NamedTerms, others: NamedTerms) -> NamedTerms:
    """Subtract the terms of another label, which may have other columns."""
    if terms.names == others.names:
        references = np.where(terms.references == others.references, terms.references, np.nan)
        return NamedTerms(terms.names, terms.values, references, terms.contributions - others.contributions)
    values: dict[Any, Any] = {}
    sums: dict[Any, float] = {}
    for part, sign in ((terms, 1), (others, -1)):
        for name, value, contribution in zip(part.names, part.values, part.contributions):
            values.setdefault(name, value)
            sums[name] = sums.get(name, 0.0) + sign * contribution
    unknown = np.full(len(sums), np.nan)
    objects = np.array(list(values.values()), dtype=object)
    return NamedTerms(list(sums), objects, unknown, np.array(list(sums.values())))
