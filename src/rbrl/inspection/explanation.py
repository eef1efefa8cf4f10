"""Explanation of a score: the terms that add up to it, as text, data frame and figure."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl._common.checks import check_number, hint
from rbrl._common.environment import import_extra
from rbrl._common.frames import as_dense, check_no_mask
from rbrl._common.typing import Array, FloatArray, IntArray, issparse
from rbrl.decision import Chain, DecisionRule, RowThreshold
from rbrl.inspection.terms import (
    NamedTerms,
    RowTerms,
    UnwrappedModel,
    format_label,
    reject_model,
    shorten_name,
)
from rbrl.metrics import scores_of
from rbrl.ranking_svm import RankSVM

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# Default number of terms in a text or figure; the others are summed up.
SHOWN_TERMS = 10
# Largest distance of the sum of the terms from the score, as a share of the sum of their sizes, for
# scores in double and in single precision.
SUM_TOLERANCE = 1e-9
SUM_TOLERANCE_SINGLE = 1e-3


@dataclass(frozen=True, repr=False)
class Explanation:
    """The score of a label, or the difference between the scores of two labels, as a sum of terms.

    The sum of `contributions` and `constants` is the score, except for rounding. Print an
    explanation to see a short text.

    Attributes
    ----------
    label : str, int or class
        Name of the label, or its column if labels have no names.
    against : str, int, class or None
        Label whose score is subtracted; None if one label is explained.
    score : float
        Score of the label in `decision_function`, less the score of `against` if there is one.
    predicted : bool
        True if `predict` gives the row the label.
    kind : {"feature", "training row"}
        Kind of the terms.
    terms : list
        Names of the features, or indices of the training rows; the largest contribution first.
    values : array (n_terms,)
        Values of the features, or kernel values of the row and the training rows.
    references : array (n_terms,)
        Values at which features contribute 0: 0, or the mean that a scaler subtracts; NaN if there is
        no such value.
    contributions : array (n_terms,)
        Values of the terms. Terms that are exactly 0 are left out.
    constants : dict of str to float
        Intercept, and shift of the score by each learned threshold or rule.
    notes : tuple of str
        Other reasons for the prediction, such as `non_empty`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbrl import RBRLClassifier, explain
    >>> X = pd.DataFrame([[1.0, 0.5], [0.0, 1.0], [1.0, 0.0], [0.0, 0.5]], columns=["salt", "snow"])
    >>> Y = pd.DataFrame({"sea": [1, 0, 1, 0], "hill": [0, 1, 0, 1]})
    >>> found = explain(RBRLClassifier(ridge=0.1).fit(X, Y), X.iloc[0], "sea")
    >>> found.label, found.terms, bool(found.score > 0)
    ('sea', ['salt', 'snow'], True)
    >>> bool(abs(found.contributions.sum() + sum(found.constants.values()) - found.score) < 1e-9)
    True
    >>> [line.split()[1] for line in found.text(n_terms=2).splitlines()[1:]]
    ['salt', 'snow', 'intercept']
    >>> found.to_frame().columns.tolist()
    ['term', 'kind', 'value', 'reference', 'contribution']
    >>> [text.get_text() for text in found.plot().axes[0].get_yticklabels()]
    ['salt = 1', 'snow = 0.5', 'intercept', 'score']
    """

    label: Any
    against: Any
    score: float
    predicted: bool
    kind: str
    terms: list[Any]
    values: Array
    references: FloatArray
    contributions: FloatArray
    constants: dict[str, float]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the text with the default number of terms."""
        return self.text()

    __repr__ = __str__

    def text(self, n_terms: int = SHOWN_TERMS) -> str:
        """Return a text with the largest terms, the sums of the others, and the constants.

        Parameters
        ----------
        n_terms : int, default=10

        Returns
        -------
        str
        """
        lines = list(self._lines(n_terms, by_side=True))
        numbers = [f"{value:+.3f}" for _, value in lines]
        width = max(map(len, numbers), default=0)
        rows = [f"  {number:>{width}}  {name}" for number, (name, _) in zip(numbers, lines)]
        return "\n".join([self.headline, *rows, *self.notes])

    @property
    def headline(self) -> str:
        """First line of the text: label, score and prediction."""
        label = format_label(self.label)
        if self.against is None:
            return f"{label}: score {self.score:.3f}, {'' if self.predicted else 'not '}predicted"
        return f"{label} {'above' if self.score > 0 else 'below'} {format_label(self.against)}: {self.score:+.3f}"

    def to_frame(self) -> "DataFrame":
        """Return all terms, the largest first, and the constants.

        Returns
        -------
        DataFrame
            Columns `term`, `kind` ("feature", "training row" or "constant"), `value`, `reference`
            and `contribution`. The contributions add up to the score.
        """
        pd = import_extra("pandas", "report", "A table of the terms")
        n_constants = len(self.constants)
        unknown = [np.nan] * n_constants
        return pd.DataFrame(
            {
                "term": [*self.terms, *self.constants],
                "kind": [self.kind] * len(self.terms) + ["constant"] * n_constants,
                "value": [*self.values, *unknown],
                "reference": [*self.references, *unknown],
                "contribution": [*self.contributions, *self.constants.values()],
            }
        )

    def plot(self, n_terms: int = SHOWN_TERMS) -> "Figure":
        """Draw the largest terms as bars, those for the label to the right.

        Parameters
        ----------
        n_terms : int, default=10

        Returns
        -------
        matplotlib Figure
        """
        style = import_extra("rbrl.experiments.figures", "report", "Drawing figures")
        terms = list(self._lines(n_terms))
        n_constants = len(self._nonzero_constants())
        names = [shorten_name(name) for name, _ in terms] + ["score"]
        values = [value for _, value in terms] + [self.score]
        colours = [style.ACCENT if value > 0 else style.CONTRAST for value in values]
        colours[len(terms) - n_constants :] = [style.MUTED] * n_constants + [style.INK]
        # The score has a distance from the terms.
        positions = [*range(len(terms)), len(terms) + 0.35]
        is_single = self.against is None
        left, right = ("against", "for") if is_single else map(format_label, (self.against, self.label))
        with style.new_figure(5.6, 0.75 + 0.24 * len(names), self.headline) as (figure, axes):
            bars = axes.barh(positions, values, color=colours, height=0.66)
            axes.bar_label(bars, labels=[f"{value:+.2f}" for value in values], padding=3, fontsize=8)
            axes.axvline(0, color=style.INK, lw=0.8)
            axes.axhline(len(terms) - 0.32, color=style.RULE, lw=0.8)
            axes.set_yticks(positions, names, color=style.INK, fontsize=8.5)
            axes.invert_yaxis()
            axes.margins(x=0.16, y=0.02)
            axes.grid(visible=False)
            axes.tick_params(axis="y", length=0)
            for text, side, offset in ((f"← {left}", "right", -4), (f"{right} →", "left", 4)):
                axes.annotate(
                    text, (0, 0), xycoords=("data", "axes fraction"), xytext=(offset, -4), textcoords="offset points",
                    ha=side, va="top", fontsize=8, color=style.MUTED,
                )  # fmt: skip
            axes.spines[["left", "bottom"]].set_visible(False)
            axes.xaxis.set_ticks([])
        return figure

    def _lines(self, n_terms: int, by_side: bool = False) -> Iterator[tuple[str, float]]:
        """Yield name and contribution of the largest terms, of sums of the others, and of constants.

        The order is that of the text. The other terms have one sum, or a sum for each sign if
        `by_side`.
        """
        check_number("Explanation", "n_terms", n_terms, low=1, integer=True)
        for term, value, contribution in zip(self.terms[:n_terms], self.values, self.contributions):
            number = f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)
            name = f"{term} = {number}" if self.kind == "feature" else f"row {term}, kernel {number}"
            yield name, float(contribution)
        others = self.contributions[n_terms:]
        parts = {" for it": others[others > 0], " against it": others[others < 0]} if by_side else {"": others}
        for side, part in parts.items():
            if len(part):
                yield f"{len(part)} other {self.kind}{'s' if len(part) > 1 else ''}{side}", float(part.sum())
        yield from self._nonzero_constants()

    def _nonzero_constants(self) -> list[tuple[str, float]]:
        """Return name and value of the constants that are not 0."""
        # A kernel model has the intercept 0, and constants that two labels share cancel.
        return [(name, value) for name, value in self.constants.items() if value]


def explain(model: Any, x: Any, label: Any = None, against: Any = None) -> Explanation:
    r"""Explain why a row has a label, or one label rather than another, by the terms of the score.

    The score of a linear model is :math:`\sum_j w_j x_j + b`, with a term for each feature. The score
    of a kernel model is :math:`\sum_i a_i k(x_i, x) + b`, with a term for each training row. A
    positive term speaks for the label, and a negative one against it.

    The transformers of a pipeline are inverted: the terms belong to the columns of its input, or to
    the words of a vectoriser. If a scaler subtracts a mean, a term measures the distance from the
    mean. A transformer that is not linear and does not keep column names, such as polynomial
    features, ends the inversion: the terms then belong to its output columns.

    Parameters
    ----------
    model : fitted classifier
        Linear or kernel model of rbrl, or linear model of scikit-learn, also inside a pipeline, a
        search or :class:`rbrl.TunedThresholdClassifier`, or as base learner of
        :class:`rbrl.BinaryRelevance`. Other models are rejected.
    x : array (n_features,), or one row in any form that `model` accepts
        Row, such as a row of a frame or of a sparse matrix, a text for a pipeline with a vectoriser,
        or kernel values with the training rows for ``kernel="precomputed"``.
    label : str, int or class, default=None
        Name or column of a label, or a class of a 1-D target. None means the label with the highest
        score.
    against : str, int or class, default=None
        Another label. If given, explain the difference between the two scores.

    Returns
    -------
    Explanation
        Explanation to print, with the methods `to_frame` and `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import BinaryRelevance, explain
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> model = BinaryRelevance().fit(X, [[0, 1], [1, 0], [1, 1], [0, 0]])
    >>> print(explain(model, [1.0, 0.5], label=0))
    label 0: score 0.688, predicted
      +1.247  x0 = 1
      -0.043  x1 = 0.5
      -0.516  intercept
    """
    check_is_fitted(model)
    unwrapped = UnwrappedModel.unwrap(model)
    columns = unwrapped.name_columns(_as_one_row(x))
    with warnings.catch_warnings():
        # The row may be an array without names, in the order of the columns.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if not hasattr(model, "decision_function"):
            reject_model(model, "has no decision_function")
        scores = scores_of(model, columns.data)
        prediction = model.predict(columns.data)
        row = RowTerms(unwrapped, columns, scores.shape[1])
        names = unwrapped.score_names(scores.shape[1])
        index = int(scores[0].argmax()) if label is None else _label_index("label", label, names)
        other = None if against is None else _label_index("against", against, names)
        if index == other:
            raise ValueError(f"against must be another label than the one explained, {names[index]!r}.")
        terms, constants = _terms_and_constants(row, index)
        score = float(scores[0, index])
        if other is not None:
            other_terms, other_constants = _terms_and_constants(row, other)
            terms = _subtract(terms, other_terms)
            constants = {name: value - other_constants[name] for name, value in constants.items()}
            score = float(scores[0, index] - scores[0, other])
    parts = np.append(terms.contributions, list(constants.values()))
    tolerance = SUM_TOLERANCE_SINGLE if scores.dtype == np.float32 else SUM_TOLERANCE
    if abs(parts.sum() - score) > tolerance * (np.abs(parts).sum() + abs(score)):
        reject_model(model, f"has a score of {score:.6g}, but terms that add up to {parts.sum():.6g}")
    predicted, notes = _explain_prediction(unwrapped, prediction, scores[0, index], index, names)
    order = _largest_first(terms.contributions)
    return Explanation(
        names[index], None if other is None else names[other], score, predicted, row.kind,
        [terms.names[i] for i in order], terms.values[order], terms.references[order], terms.contributions[order],
        constants, notes,
    )  # fmt: skip


def _as_one_row(x: Any) -> Any:
    """Return a row as a matrix, a frame or a list of one row; raise ValueError for several rows."""
    check_no_mask(x=x)
    if isinstance(x, str | dict):
        return [x]
    if isinstance(x, list | tuple) and len(x) == 1 and isinstance(x[0], str | dict):
        return x
    if hasattr(x, "to_frame") and hasattr(x, "index"):  # a row of a pandas data frame
        x = x.to_frame().T.infer_objects()
    if not (issparse(x) or hasattr(x, "columns")):
        x = np.asarray(x)
    if len(x.shape) == 1:
        x = x.reshape(1, -1)
    if len(x.shape) != 2 or x.shape[0] != 1:
        raise ValueError(f"x must be one row. Got shape {tuple(x.shape)}; explain rows one at a time.")
    return x.tocsr() if issparse(x) else x


def _label_index(parameter: str, label: Any, names: list[Any]) -> int:
    """Return the column of a label: a name, or a number if names are text; else raise an error."""
    if label in names:
        return names.index(label)
    if isinstance(label, int | np.integer) and isinstance(names[0], str) and 0 <= label < len(names):
        return int(label)
    by_number = f", or a column from 0 to {len(names) - 1}" if isinstance(names[0], str) else ""
    raise ValueError(f"{parameter} must be one of the labels{by_number}. Got {label!r}.{hint(label, names[:50])}")


def _terms_and_constants(row: RowTerms, label: int) -> tuple[NamedTerms, dict[str, float]]:
    """Return the terms of the score of a column, and constants by name, which add up to the score."""
    terms, intercept = row.label_terms(label)
    constants = {"intercept": intercept}
    for rule, shift in _shifts(row):
        name = rule if rule == "NonEmpty" else f"threshold ({rule})"
        constants[name] = constants.get(name, 0.0) + float(shift[label])
    return terms, constants


def _shifts(row: RowTerms) -> Iterator[tuple[str, FloatArray]]:
    """Yield the name of each learned rule and its shift (n_labels,), the innermost rule first."""
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
    """Yield the name of each part of a rule, and its shift (n_labels,) of the scores (1, n_labels)."""
    for part in rule.rules if isinstance(rule, Chain) else [rule]:
        shifted = part.shift(scores)
        yield type(part).__name__, (shifted - scores)[0]
        scores = shifted


def _subtract(terms: NamedTerms, others: NamedTerms) -> NamedTerms:
    """Subtract the terms of another label with perhaps other columns; other references become NaN."""
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


def _largest_first(contributions: FloatArray) -> IntArray:
    """Return the indices of terms other than 0, largest first; equal sizes keep their order."""
    sizes = np.abs(contributions)
    order = np.argsort(-(sizes / max(sizes.max(initial=0.0), np.finfo(np.float64).tiny)).round(9), kind="stable")
    return order[sizes[order] > 0]


def _explain_prediction(
    model: UnwrappedModel, prediction: Any, score: float, index: int, names: list[Any]
) -> tuple[bool, tuple[str, ...]]:
    """Return whether the label is predicted, and reasons for it other than the score.

    `prediction` is the result of `predict` for one row, and `score` that of the label `index`.
    """
    labels = as_dense(prediction)
    if labels.ndim == 1:
        return bool(labels[0] == names[index]), ()
    predicted = bool(labels[0, index] > 0)
    if predicted and score <= 0 and not model.tuned and getattr(model.classifier, "non_empty_", False):
        return predicted, ("No label has a positive score: non_empty gives the row its best one.",)
    return predicted, ()
