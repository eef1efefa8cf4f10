"""How good a prediction is label by label: a data frame, and a report to print."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rbrl._common.extras import import_extra
from rbrl._common.frames import column_names
from rbrl._common.typing import FloatArray, LabelNames, MatrixLike
from rbrl.exceptions import InvalidLabelsError
from rbrl.metrics.inputs import check_scores
from rbrl.metrics.labels import Overlap, overlap
from rbrl.metrics.ranking import label_areas

if TYPE_CHECKING:
    from pandas import DataFrame

# Columns of the frame, and what each compares with the true labels; the counts are always there.
MEASURES = {"precision": "labels", "recall": "labels", "f1": "labels", "auc": "scores"}
COUNTS = ("support", "known")
# scikit-learn's name of a column of its report.
HEADINGS = {"f1": "f1-score"}


def common_names(label_names: LabelNames, **matrices: Any) -> list[str] | None:
    """The names of the labels: those given, and those of all data frames, which must be the same.

    Parameters
    ----------
    label_names : sequence of str or None
    **matrices : data frames, or anything else

    Returns
    -------
    list of str or None

    Examples
    --------
    >>> import pandas as pd
    >>> common_names(None, Y=pd.DataFrame({"sea": [1], "sun": [0]}), labels=[[1, 0]])
    ['sea', 'sun']
    """
    named = {"label_names": None if label_names is None else [str(name) for name in label_names]}
    named |= {what: column_names(matrix) for what, matrix in matrices.items()}
    known = [(what, names) for what, names in named.items() if names is not None]
    for (first, names), (other, its) in pairwise(known):
        if names != its:
            differ = next((pair for pair in zip(names, its) if pair[0] != pair[1]), (len(names), len(its)))
            raise InvalidLabelsError(
                f"{first} and {other} must have the same labels in the same order. Got {differ[0]!r} and {differ[1]!r}; put "
                "the columns of one in the order of the other."
            )
    return known[0][1] if known else None


def evaluate_labels(
    Y: MatrixLike, labels: MatrixLike | None, scores: MatrixLike | None, measures: Iterable[str] | None, convention: str,
    missing: str, label_names: LabelNames,
) -> "DataFrame":  # fmt: skip
    """The frame of :func:`rbrl.metrics.evaluate` with ``per_label=True``.

    Parameters
    ----------
    Y, labels, scores, convention, missing, label_names
        As for `evaluate`.
    measures : iterable of str or None
        Columns among `MEASURES`; None means all that labels or scores are there for.

    Returns
    -------
    DataFrame
    """
    pandas = import_extra("pandas", "report", "A table of the labels")
    predicted: dict[str, Any] = {"labels": labels, "scores": scores}
    there = [name for name, needs in MEASURES.items() if predicted[needs] is not None]
    chosen = there if measures is None else [_measure(name, predicted) for name in measures]
    if not chosen:
        raise ValueError("Labels are judged by predicted labels or scores. Got labels=None and scores=None.")
    names = common_names(label_names, Y=Y, **predicted)
    judged: Any = labels if labels is not None else np.zeros(np.shape(predicted["scores"]), dtype=np.int8)
    counts = overlap(Y, judged, convention, missing, axis=0, keep_unknown=True)
    columns = {"precision": counts.precision(), "recall": counts.recall(), "f1": counts.f1(0.0)}
    if "auc" in chosen:
        columns["auc"] = _areas(Y, predicted["scores"], convention, missing)
    frame = pandas.DataFrame({name: np.where(counts.known > 0, columns[name], np.nan) for name in chosen}, index=names)
    return frame.assign(support=counts.true.astype(np.int64), known=counts.known.astype(np.int64))


def _measure(name: str, predicted: dict[str, Any]) -> str:
    if name not in MEASURES:
        raise ValueError(f"A measure of a label must be one of {', '.join(MEASURES)}. Got {name!r} instead.")
    if predicted[MEASURES[name]] is None:
        raise ValueError(f"{name} compares Y with {MEASURES[name]}. Got {MEASURES[name]}=None instead.")
    return name


def _areas(Y: MatrixLike, scores: MatrixLike, convention: str, missing: str) -> FloatArray:
    """The area under the curve of every label; NaN where there is none."""
    checked = check_scores(Y, scores, convention, missing)
    n_unseen = np.zeros(checked.Y.shape[1]) if checked.unseen is None else np.ravel(checked.unseen.sum(axis=0))
    areas = np.full(checked.Y.shape[1], np.nan)
    areas[n_unseen < checked.Y.shape[0]] = label_areas(checked, tie=0.5 if convention == "sklearn" else 1.0)
    return areas


def classification_report(
    Y: MatrixLike, labels: MatrixLike, scores: MatrixLike | None = None, *, label_names: LabelNames = None,
    digits: int = 2, missing: str = "raise",
) -> str:  # fmt: skip
    """Precision, recall and F1 of every label, and their averages, as a text to print.

    It is the text of scikit-learn's `classification_report`, with names from data frames, entries that nobody looked at, and
    the area under the ROC curve where there are scores. What is 0/0 counts 0.

    Parameters
    ----------
    Y : array, sparse matrix or data frame of 0/1, shape (n_samples, n_labels)
        True labels.
    labels : array, sparse matrix or data frame of 0/1, shape (n_samples, n_labels)
        Predicted labels.
    scores : array, sparse matrix or data frame, shape (n_samples, n_labels), default=None
        Predicted scores: they add a column `auc`, in which ties count one half.
    label_names : sequence of str, default=None
        None: those of a data frame among the others, or numbers.
    digits : int, default=2
    missing : {"raise", "ignore"}, default="raise"
        NaN in Y is an entry that nobody looked at: an error, or left out. Where there are such entries a column `known` has
        the number of the others. A label of which nothing is known is in no average.

    Returns
    -------
    str

    Examples
    --------
    >>> from rbrl import classification_report
    >>> print(classification_report([[1, 0], [1, 1]], [[1, 0], [0, 1]], label_names=["sea", "sun"]))
                  precision    recall  f1-score   support
    <BLANKLINE>
             sea       1.00      0.50      0.67         2
             sun       1.00      1.00      1.00         1
    <BLANKLINE>
       micro avg       1.00      0.67      0.80         3
       macro avg       1.00      0.75      0.83         3
    weighted avg       1.00      0.67      0.78         3
     samples avg       1.00      0.75      0.83         3
    <BLANKLINE>
    """
    frame = evaluate_labels(Y, labels, scores, None, "sklearn", missing, label_names)
    samples = overlap(Y, labels, "sklearn", missing, axis=1, keep_unknown=True)
    everything_known = bool((frame["known"] == len(samples.known)).all())
    frame = frame.drop(columns="known") if everything_known else frame
    measures = [name for name in MEASURES if name in frame]
    some = frame[frame[measures[0]].notna()]
    averages = {
        "micro avg": _of_sets(overlap(Y, labels, "sklearn", missing, axis=None)),
        "macro avg": {name: some[name].mean() for name in measures},
        "weighted avg": {name: _weighted(some[name], some["support"]) for name in measures},
        "samples avg": _of_sets(samples.where_known()),
    }
    totals = [str(frame[name].sum()) for name in COUNTS if name in frame]
    n_cells = 1 + len(measures)
    rows = [[str(row[0]), *_in_digits(row[1:n_cells], digits), *map(str, row[n_cells:])] for row in frame.itertuples()]
    summary = [
        [name, *_in_digits([values.get(measure) for measure in measures], digits), *totals]
        for name, values in averages.items()
    ]
    return _text([HEADINGS.get(name, name) for name in frame.columns], rows, summary, digits)


def _of_sets(counts: Overlap) -> dict[str, float]:
    """Measures of label sets, averaged over them; the area under a curve is none."""
    values = {"precision": counts.precision(), "recall": counts.recall(), "f1": counts.f1(0.0)}
    return {name: float(np.mean(value)) if value.size else float("nan") for name, value in values.items()}


def _weighted(values: Any, weights: Any) -> float:
    """The mean with the supports as weights; what has no value has no weight."""
    total = weights[values.notna()].sum()
    return float((values * weights).sum() / total) if total else 0.0


def _in_digits(values: Iterable[float | None], digits: int) -> list[str]:
    return ["" if value is None else f"{value:.{digits}f}" for value in values]


def _text(heads: list[str], rows: list[list[str]], summary: list[list[str]], digits: int) -> str:
    """Both parts of a table, with an empty line after each, in columns as wide as scikit-learn's."""
    width = max(len(row[0]) for row in [*rows, *summary])
    width = max(width, digits)
    lines = [["", *heads], [], *rows, [], *summary]
    texts = (f"{line[0]:>{width}} " + "".join(f" {cell:>9}" for cell in line[1:]) if line else "" for line in lines)
    return "".join(f"{text}\n" for text in texts)
