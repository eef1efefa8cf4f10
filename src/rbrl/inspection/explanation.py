"""Why a row has a label: the terms that add up to its score, as text, frame and figure."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rbrl._common.checks import check_number, hint
from rbrl._common.extras import import_extra
from rbrl._common.frames import check_no_mask
from rbrl._common.typing import Array, FloatArray, IntArray, issparse
from rbrl.inspection.opened import Opened, Row, refuse
from rbrl.inspection.undo import NamedTerms
from rbrl.metrics import scores_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# Terms that a text shows, before the others are summed up.
SHOWN = 10
# How far the sum of the terms may be from the score, as a share of the sum of their sizes.
ROUNDING = {"d": 1e-9, "f": 1e-3}


@dataclass(frozen=True, repr=False)
class Explanation:
    """The score of a label, or the distance between the scores of two, as a sum of terms.

    ``contributions.sum() + constants.sum()`` is the score, but for rounding. Printed, it is a short text.

    Attributes
    ----------
    label : str or class
        Its name, or its column where labels have no names.
    against : str, class or None
        The label that it is compared with.
    score : float
        What `decision_function` says: of the label, or of the label less the other.
    predicted : bool
        Whether `predict` gives the row the label.
    kind : {"feature", "training row"}
        What the terms belong to.
    terms : list
        Names of the features, or indices of the training rows; the largest contribution first.
    values : array (n_terms,)
        What the features hold, or the kernel values of the row and the training rows.
    references : array (n_terms,)
        The value at which a feature contributes nothing: 0, or what a scaler subtracts; NaN where there is no such thing.
    contributions : array (n_terms,)
        Terms of exactly 0 are left out.
    constants : dict of str to float
        The intercept, and what each learned threshold or rule adds.
    notes : tuple of str
        What else decided, such as `non_empty`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbrl import RBRLClassifier, explain
    >>> X = pd.DataFrame(np.eye(4), columns=["salt", "wind", "sand", "snow"])
    >>> Y = pd.DataFrame({"sea": [1, 1, 1, 0], "hill": [0, 1, 0, 1]})
    >>> why = explain(RBRLClassifier().fit(X, Y), X.iloc[0], "sea")
    >>> why.label, why.terms, bool(why.score > 0)
    ('sea', ['salt'], True)
    >>> bool(abs(why.contributions.sum() + sum(why.constants.values()) - why.score) < 1e-9)
    True
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
        return self.text()

    __repr__ = __str__

    def text(self, n_terms: int = SHOWN) -> str:
        """The largest terms in lines; they, the sums of the others and the constants add up to the score.

        Parameters
        ----------
        n_terms : int, default=10

        Returns
        -------
        str

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl import RBRLClassifier, explain
        >>> X = pd.DataFrame([[1.0, 0.5], [0.0, 1.0], [1.0, 0.0], [0.0, 0.5]], columns=["salt", "snow"])
        >>> why = explain(RBRLClassifier(ridge=0.1).fit(X, [[1, 0], [0, 1], [1, 0], [0, 1]]), X.iloc[0], 0)
        >>> [line.split()[1] for line in why.text().splitlines()[1:]]
        ['salt', 'snow', 'intercept']
        """
        shown = list(self._shown(n_terms, sides=True))
        numbers = [f"{value:+.3f}" for _, value in shown]
        width = max(map(len, numbers), default=0)
        lines = [f"  {number:>{width}}  {name}" for number, (name, _) in zip(numbers, shown)]
        return "\n".join([self.headline, *lines, *self.notes])

    @property
    def headline(self) -> str:
        """What is explained, in a line."""
        if self.against is None:
            return f"{called(self.label)}: score {self.score:.3f}, {'' if self.predicted else 'not '}predicted"
        place = "above" if self.score > 0 else "below"
        return f"{called(self.label)} {place} {called(self.against)}: {self.score:+.3f}"

    def to_frame(self) -> "DataFrame":
        """All terms in a frame, the largest first, then the constants: the column `contribution` adds up to the score.

        Returns
        -------
        DataFrame
            Columns `term`, `kind` ("feature", "training row" or "constant"), `value`, `reference` and `contribution`.

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl import RBRLClassifier, explain
        >>> X = pd.DataFrame([[1.0, 0.5], [0.0, 1.0], [1.0, 0.0], [0.0, 0.5]], columns=["salt", "snow"])
        >>> why = explain(RBRLClassifier(ridge=0.1).fit(X, [[1, 0], [0, 1], [1, 0], [0, 1]]), X.iloc[0], 0)
        >>> why.to_frame().columns.tolist()
        ['term', 'kind', 'value', 'reference', 'contribution']
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

    def plot(self, n_terms: int = SHOWN) -> "Figure":
        """Draw the largest terms as bars, what speaks for the label to the right and what speaks against it to the left.

        Parameters
        ----------
        n_terms : int, default=10

        Returns
        -------
        matplotlib Figure

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl import RBRLClassifier, explain
        >>> X = pd.DataFrame([[1.0, 0.5], [0.0, 1.0], [1.0, 0.0], [0.0, 0.5]], columns=["salt", "snow"])
        >>> why = explain(RBRLClassifier(ridge=0.1).fit(X, [[1, 0], [0, 1], [1, 0], [0, 1]]), X.iloc[0], 0)
        >>> [text.get_text() for text in why.plot().axes[0].get_yticklabels()]
        ['salt = 1', 'snow = 0.5', 'intercept', 'score']
        """
        from rbrl.inspection.figures import draw_terms

        sides = ("against", "for") if self.against is None else (called(self.against), called(self.label))
        return draw_terms(self.headline, list(self._shown(n_terms)), self.score, len(self._constants()), sides)

    def _shown(self, n_terms: int, sides: bool = False) -> Iterator[tuple[str, float]]:
        """Terms in words, each with its contribution: the largest, the sum of the others or of both sides, the constants."""
        check_number("Explanation", "n_terms", n_terms, low=1, integer=True)
        for term, value, contribution in zip(self.terms[:n_terms], self.values, self.contributions):
            yield self._in_words(term, value), float(contribution)
        others = self.contributions[n_terms:]
        parts = {" for it": others[others > 0], " against it": others[others < 0]} if sides else {"": others}
        for side, part in parts.items():
            if len(part):
                yield f"{len(part)} other {self.kind}{'s' if len(part) > 1 else ''}{side}", float(part.sum())
        yield from self._constants()

    def _constants(self) -> list[tuple[str, float]]:
        """Those that are there: a kernel model has no intercept, and what two labels share is no reason."""
        return [(name, value) for name, value in self.constants.items() if value]

    def _in_words(self, term: Any, value: Any) -> str:
        number = f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)
        return f"{term} = {number}" if self.kind == "feature" else f"row {term}, kernel {number}"


def explain(model: Any, x: Any, label: Any = None, against: Any = None) -> Explanation:
    r"""Why a row has a label, or one label rather than another: the exact terms of its score.

    The score of a linear model is :math:`\sum_j w_j x_j + b`: a term for each feature. That of a kernel model is
    :math:`\sum_i a_i k(x_i, x) + b`: a term for each training row, for the label where it is positive and against it where
    it is negative. The steps of a pipeline are undone: the terms belong to the columns that it is given, or to the words of
    a vectoriser; where a scaler subtracts a mean, to the distance from it. A step that is not linear in its columns and
    does not keep their names (such as polynomial features) is where the way back ends: the terms have the names of its
    output.

    Parameters
    ----------
    model : fitted classifier
        A linear or kernel model of ours, or a linear one of scikit-learn's; also within a pipeline, a search,
        :class:`rbrl.TunedThresholdClassifier`, or as the base learner of :class:`rbrl.BinaryRelevance`. Others are refused.
    x : array (n_features,), or anything of one row that `model` takes
        A row of a frame or a sparse matrix, a text for a pipeline with a vectoriser; kernel values with the training rows
        for ``kernel="precomputed"``.
    label : str, int or class, default=None
        Name or column of a label; of a 1-D target, a class. None means the label with the highest score.
    against : str, int or class, default=None
        Another label: explain by how much the score of `label` is above that of this one.

    Returns
    -------
    Explanation
        Print it, or see its `to_frame` and `plot`.

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
    opened = Opened.of(model)
    columns = opened.first_columns(_one_row(x))
    with warnings.catch_warnings():
        # A bare row in the order of the columns is what was asked for.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if not hasattr(model, "decision_function"):
            refuse(model, "has no decision_function")
        scores, prediction = scores_of(model, columns.data), model.predict(columns.data)
        row = Row(opened, columns, scores.shape[1])
        names = score_names(opened, scores.shape[1])
        place = int(scores[0].argmax()) if label is None else _place_of("label", label, names)
        other = None if against is None else _place_of("against", against, names)
        if place == other:
            raise ValueError(f"against must be another label than the one explained, {names[place]!r}.")
        terms, constants = _sum_of_terms(row, place)
        if other is not None:
            less, less_constants = _sum_of_terms(row, other)
            terms = _difference(terms, less)
            constants = {name: value - less_constants[name] for name, value in constants.items()}
    score = float(scores[0, place] - (0.0 if other is None else scores[0, other]))
    _check_sum(model, terms, constants, score, scores.dtype.char)
    predicted, notes = _decided(opened, prediction, scores[0, place], place, names)
    order = _largest_first(terms.contributions)
    return Explanation(
        names[place], None if other is None else names[other], score, predicted, row.kind,
        [terms.names[i] for i in order], terms.values[order], terms.references[order], terms.contributions[order],
        constants, notes,
    )  # fmt: skip


def called(label: Any) -> str:
    """A label in a text: its name, or its number as such.

    Parameters
    ----------
    label : str or int

    Returns
    -------
    str

    Examples
    --------
    >>> called("sea"), called(3)
    ('sea', 'label 3')
    """
    return label if isinstance(label, str) else f"label {label}"


def _one_row(x: Any) -> Any:
    """A row as a model takes it: in a matrix, a frame or a list."""
    check_no_mask(x=x)
    if isinstance(x, str | dict):
        return [x]
    if isinstance(x, list | tuple) and len(x) == 1 and isinstance(x[0], str | dict):
        return x
    if hasattr(x, "to_frame") and hasattr(x, "index"):  # a row of a frame of pandas
        x = x.to_frame().T.infer_objects()
    if not (issparse(x) or hasattr(x, "columns")):
        x = np.asarray(x)
    if len(x.shape) == 1:
        x = x.reshape(1, -1)
    if len(x.shape) != 2 or x.shape[0] != 1:
        raise ValueError(f"x must be one row. Got shape {tuple(x.shape)}; explain rows one at a time.")
    return x.tocsr() if issparse(x) else x


def score_names(opened: Opened, n_labels: int) -> list[Any]:
    """What the columns of scores are called: names of labels, classes of a 1-D target, or else their numbers.

    Parameters
    ----------
    opened : Opened
    n_labels : int

    Returns
    -------
    list
    """
    names = opened.names.get("label_names_")
    if names is not None and len(names) == n_labels:
        return [str(name) for name in names]
    classes = getattr(opened.classifier, "classes_", None)
    if isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= n_labels:
        return list(classes[-n_labels:].tolist())  # of two classes the second alone has a score
    return list(range(n_labels))


def _place_of(what: str, label: Any, names: list[Any]) -> int:
    if label in names:
        return names.index(label)
    if isinstance(label, int | np.integer) and isinstance(names[0], str) and 0 <= label < len(names):
        return int(label)
    by_number = f", or a column from 0 to {len(names) - 1}" if isinstance(names[0], str) else ""
    raise ValueError(f"{what} must be one of the labels{by_number}. Got {label!r}.{hint(label, names[:50])}")


def _sum_of_terms(row: Row, label: int) -> tuple[NamedTerms, dict[str, float]]:
    terms, intercept = row.terms_of(label)
    constants = {"intercept": intercept}
    for rule, move in row.moves():
        name = rule if rule == "NonEmpty" else f"threshold ({rule})"
        constants[name] = constants.get(name, 0.0) + float(move[label])
    return terms, constants


def _difference(terms: NamedTerms, less: NamedTerms) -> NamedTerms:
    """The terms of one label less those of another, of which some may have other columns."""
    if terms.names == less.names:
        contributions = terms.contributions - less.contributions
        return NamedTerms(terms.names, terms.values, _agreed(terms.references, less.references), contributions)
    joined = NamedTerms.joined([terms, NamedTerms(less.names, less.values, less.references, -less.contributions)])
    place: dict[Any, int] = {}
    which = np.array([place.setdefault(name, len(place)) for name in joined.names])
    first = np.unique(which, return_index=True)[1]
    unknown, sums = np.full(len(place), np.nan), np.zeros(len(place))
    np.add.at(sums, which, joined.contributions)
    return NamedTerms(list(place), joined.values[first], unknown, sums)


def _largest_first(contributions: FloatArray) -> IntArray:
    """The order of terms that are not 0; what is equal on paper, but for the last digits, keeps its order."""
    sizes = np.abs(contributions)
    order = np.argsort(-(sizes / max(sizes.max(initial=0.0), np.finfo(np.float64).tiny)).round(9), kind="stable")
    return order[sizes[order] > 0]


def _agreed(references: FloatArray, others: FloatArray) -> FloatArray:
    return np.where(references == others, references, np.nan)


def _check_sum(model: Any, terms: NamedTerms, constants: dict[str, float], score: float, precision: str) -> None:
    """An explanation adds up, or is none."""
    parts = np.append(terms.contributions, list(constants.values()))
    if abs(parts.sum() - score) > ROUNDING.get(precision, ROUNDING["d"]) * (np.abs(parts).sum() + abs(score)):
        refuse(model, f"has a score of {score:.6g}, but terms that add up to {parts.sum():.6g}: it is no such sum")


def _decided(
    opened: Opened, prediction: Any, score: float, place: int, names: list[Any]
) -> tuple[bool, tuple[str, ...]]:
    """Whether a row is given the label, and what else than its score decided that."""
    answer = prediction.toarray() if issparse(prediction) else np.asarray(prediction)
    if answer.ndim == 1:
        return bool(answer[0] == names[place]), ()
    predicted = bool(answer[0, place] > 0)
    if predicted and score <= 0 and not opened.tuned and getattr(opened.classifier, "non_empty_", False):
        return predicted, ("No label has a positive score: non_empty gives the row its best one.",)
    return predicted, ()
