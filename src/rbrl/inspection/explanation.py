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
from rbrl.inspection.scores import CalibratedScores, RowScores, subtract_terms
from rbrl.inspection.terms import UnwrappedModel, format_label, reject_model, shorten_name
from rbrl.metrics import scores_of

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
        Score of the label in `decision_function`, less the score of `against` if there is one. For a
        calibrated classifier, log-odds of the probability; with isotonic maps, score of the
        classifier inside.
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
        Intercept, and shift of the score by each learned threshold or rule and by the calibration.
    notes : tuple of str
        Other reasons for the prediction, such as `non_empty`, and the calibrated probability.

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

    The log-odds of a calibrated probability are a linear function :math:`a s + b` of the score. They
    are explained in place of the score. An isotonic map is not linear: then the terms are those of
    the score of the classifier inside, and a note gives the probability.

    Parameters
    ----------
    model : fitted classifier
        Linear or kernel model of rbrl, or linear model of scikit-learn, also inside a pipeline, a
        search, :class:`rbrl.TunedThresholdClassifier` or
        :class:`rbrl.CalibratedMultiLabelClassifier`, or as base learner of
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
        names = unwrapped.score_names(scores.shape[1])
        index = int(scores[0].argmax()) if label is None else _label_index("label", label, names)
        other = None if against is None else _label_index("against", against, names)
        if index == other:
            raise ValueError(f"against must be another label than the one explained, {names[index]!r}.")
        row = (CalibratedScores if unwrapped.calibrated else RowScores)(unwrapped, columns, scores)
        terms, constants = row.terms_and_constants(index)
        score = row.score(index)
        if other is not None:
            other_terms, other_constants = row.terms_and_constants(other)
            terms = subtract_terms(terms, other_terms)
            both = dict.fromkeys([*constants, *other_constants], 0.0)
            constants = {name: constants.get(name, 0.0) - other_constants.get(name, 0.0) for name in both}
            score -= row.score(other)
    parts = np.append(terms.contributions, list(constants.values()))
    tolerance = SUM_TOLERANCE_SINGLE if row.dtype == np.float32 else SUM_TOLERANCE
    if abs(parts.sum() - score) > tolerance * (np.abs(parts).sum() + abs(score)):
        reject_model(model, f"has a score of {score:.6g}, but terms that add up to {parts.sum():.6g}")
    predicted, notes = _explain_prediction(unwrapped, prediction, scores[0, index], index, names)
    notes = (*notes, *row.notes(index, other))
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
    decider = model.calibrated[0] if model.calibrated else model.classifier
    if predicted and score <= 0 and not model.tuned and getattr(decider, "non_empty_", False):
        return predicted, ("No label has a positive score: non_empty gives the row its best one.",)
    return predicted, ()
