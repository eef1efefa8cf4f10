"""Metrics of each label by itself: area under the ROC curve, a data frame, and a text report."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rbrl._common.environment import import_extra
from rbrl._common.frames import column_names
from rbrl._common.typing import FloatArray, LabelNames, MatrixLike
from rbrl.exceptions import InvalidLabelsError
from rbrl.metrics.inputs import Comparison, check_scores, row_blocks, warn_undefined
from rbrl.metrics.labels import Overlap, overlap

if TYPE_CHECKING:
    from pandas import DataFrame

# Columns of the data frame, and the kind of prediction that each column needs.
MEASURES = {"precision": "labels", "recall": "labels", "f1": "labels", "auc": "scores"}
# Columns of the data frame that need no prediction.
COUNTS = ("support", "known")
# Headings of the text report that differ from the column names, as in scikit-learn.
HEADINGS = {"f1": "f1-score"}


def common_names(label_names: LabelNames, **matrices: Any) -> list[str] | None:
    """Return the names of the labels; given names and those of all data frames must agree.

    Examples
    --------
    >>> import pandas as pd
    >>> common_names(None, Y=pd.DataFrame({"sea": [1], "sun": [0]}), labels=[[1, 0]])
    ['sea', 'sun']
    """
    sources = {"label_names": None if label_names is None else [str(name) for name in label_names]}
    sources |= {source: column_names(matrix) for source, matrix in matrices.items()}
    named = [(source, names) for source, names in sources.items() if names is not None]
    for (first, names), (second, others) in pairwise(named):
        if names != others:
            lengths = (len(names), len(others))
            one, other = next((pair for pair in zip(names, others) if pair[0] != pair[1]), lengths)
            raise InvalidLabelsError(
                f"{first} and {second} must have the same labels in the same order. Got {one!r} and {other!r}; "
                "put the columns of one in the order of the other."
            )
    return named[0][1] if named else None


def evaluate_labels(
    Y: MatrixLike, labels: MatrixLike | None, scores: MatrixLike | None, measures: Iterable[str] | None, convention: str,
    missing: str, label_names: LabelNames,
) -> "DataFrame":  # fmt: skip
    """Return the data frame of :func:`rbrl.metrics.evaluate` with ``per_label=True``.

    The `measures` are columns among `MEASURES`; None means all columns whose predictions are given.
    """
    pandas = import_extra("pandas", "report", "A table of the labels")
    predicted: dict[str, Any] = {"labels": labels, "scores": scores}
    available = [name for name, needs in MEASURES.items() if predicted[needs] is not None]
    chosen = available if measures is None else [_check_measure(name, predicted) for name in measures]
    if not chosen:
        raise ValueError("per_label=True needs predicted labels or scores. Got labels=None and scores=None.")
    names = common_names(label_names, Y=Y, **predicted)
    # Without predicted labels only the counts of true labels are used.
    compared: Any = labels if labels is not None else np.zeros(np.shape(predicted["scores"]), dtype=np.int8)
    counts = overlap(Y, compared, convention, missing, axis=0, keep_unknown=True)
    columns = {"precision": counts.precision(), "recall": counts.recall(), "f1": counts.f1(0.0)}
    if "auc" in chosen:
        columns["auc"] = _all_label_areas(check_scores(Y, scores, convention, missing), _tie_value(convention))
    frame = pandas.DataFrame({name: np.where(counts.known > 0, columns[name], np.nan) for name in chosen}, index=names)
    return frame.assign(support=counts.true.astype(np.int64), known=counts.known.astype(np.int64))


def _check_measure(name: str, predicted: dict[str, Any]) -> str:
    if name not in MEASURES:
        raise ValueError(f"A measure of a label must be one of {', '.join(MEASURES)}. Got {name!r} instead.")
    if predicted[MEASURES[name]] is None:
        raise ValueError(f"{name} compares Y with {MEASURES[name]}. Got {MEASURES[name]}=None instead.")
    return name


def _all_label_areas(checked: Comparison, tie: float) -> FloatArray:
    """Return the area under the ROC curve of every label; NaN for a label without a pair."""
    n_samples, n_labels = checked.Y.shape
    n_missing = np.zeros(n_labels) if checked.missing is None else np.ravel(checked.missing.sum(axis=0))
    areas = np.full(n_labels, np.nan)
    areas[n_missing < n_samples] = _label_areas(checked, tie)
    return areas


def classification_report(
    Y: MatrixLike, labels: MatrixLike, scores: MatrixLike | None = None, *, label_names: LabelNames = None,
    digits: int = 2, missing: str = "raise",
) -> str:  # fmt: skip
    """Return a text with precision, recall and F1 of every label, and their averages.

    The text is that of scikit-learn's `classification_report`, with three additions: names from
    data frames, missing labels, and the area under the ROC curve if scores are given. A ratio 0/0
    counts 0.

    Parameters
    ----------
    Y : array, sparse matrix or data frame of 0/1, shape (n_samples, n_labels)
        True labels.
    labels : array, sparse matrix or data frame of 0/1, shape (n_samples, n_labels)
        Predicted labels.
    scores : array, sparse matrix or data frame, shape (n_samples, n_labels), default=None
        Predicted scores. They add a column `auc`, in which ties count one half.
    label_names : sequence of str, default=None
        Names of the labels. None means the names of a data frame, or else numbers.
    digits : int, default=2
        Number of decimals.
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y: an error, or left out. If labels are missing, a
        column `known` has the number of samples whose label is known. A label that is missing in
        every sample is left out of all averages.

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
    if (frame["known"] == len(samples.known)).all():
        frame = frame.drop(columns="known")
    measures = [name for name in MEASURES if name in frame]
    known = frame[frame[measures[0]].notna()]
    averages = {
        "micro avg": _average_sets(overlap(Y, labels, "sklearn", missing, axis=None)),
        "macro avg": {name: known[name].mean() for name in measures},
        "weighted avg": {name: _weighted_mean(known[name], known["support"]) for name in measures},
        "samples avg": _average_sets(samples.where_known()),
    }
    totals = [str(frame[name].sum()) for name in COUNTS if name in frame]
    n_cells = 1 + len(measures)
    rows = [[str(row[0]), *_format(row[1:n_cells], digits), *map(str, row[n_cells:])] for row in frame.itertuples()]
    summary = [
        [name, *_format([values.get(measure) for measure in measures], digits), *totals]
        for name, values in averages.items()
    ]
    return _format_table([HEADINGS.get(name, name) for name in frame.columns], rows, summary, digits)


def _average_sets(counts: Overlap) -> dict[str, float]:
    """Average precision, recall and F1 over label sets."""
    values = {"precision": counts.precision(), "recall": counts.recall(), "f1": counts.f1(0.0)}
    return {name: float(np.mean(value)) if value.size else float("nan") for name, value in values.items()}


def _weighted_mean(values: Any, weights: Any) -> float:
    """Return the weighted mean of the values that are not NaN."""
    total = weights[values.notna()].sum()
    return float((values * weights).sum() / total) if total else 0.0


def _format(values: Iterable[float | None], digits: int) -> list[str]:
    return ["" if value is None else f"{value:.{digits}f}" for value in values]


def _format_table(heads: list[str], rows: list[list[str]], summary: list[list[str]], digits: int) -> str:
    """Format a table of two parts with the column widths and empty lines of scikit-learn."""
    width = max(digits, *(len(row[0]) for row in [*rows, *summary]))
    lines = [["", *heads], [], *rows, [], *summary]
    texts = (f"{line[0]:>{width}} " + "".join(f" {cell:>9}" for cell in line[1:]) if line else "" for line in lines)
    return "".join(f"{text}\n" for text in texts)


def auc_macro(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    r"""Area under each label's ROC curve, averaged over labels.

    .. math:: \frac{1}{l} \sum_{j=1}^l
        \frac{|\{(i, k) \in Y_j \times \bar Y_j : f_j(x_i) \ge f_j(x_k)\}|}{|Y_j| |\bar Y_j|}

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    convention : {"paper", "mulan", "sklearn"}
        "paper": as in the authors' program, ties count as right, and labels that all samples have
        or lack count 0. "sklearn": ties count one half, and such labels are left out
        (scikit-learn itself returns NaN).
    missing : {"raise", "ignore"}, default="raise"
        Treatment of missing labels, NaN in Y; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from rbrl.metrics import auc_macro
    >>> auc_macro([[1, 0], [0, 1], [0, 1]], [[0.9, 0.1], [0.2, 0.0], [0.1, 0.7]])
    0.75
    """
    areas = _label_areas(check_scores(Y, scores, convention, missing), _tie_value(convention))
    defined = areas[~np.isnan(areas)] if convention == "sklearn" else np.nan_to_num(areas)
    return (
        float(defined.mean()) if len(defined) else warn_undefined("None of the labels has samples with and without it")
    )


def _tie_value(convention: str) -> float:
    return 0.5 if convention == "sklearn" else 1.0


def _label_areas(checked: Comparison, tie: float) -> FloatArray:
    """Return the area under the ROC curve of each label that is known in some sample.

    The area is NaN if the label is relevant, or irrelevant, in all samples.
    """
    by_label = (M if M is None else M.T if isinstance(M, np.ndarray) else M.tocsc().T for M in checked)
    blocks = ((rows.scores, rows.relevant, rows.irrelevant) for rows in row_blocks(*by_label))
    return np.array([_area(f[t], f[n], tie) for block in blocks for f, t, n in zip(*block)])


def auc_micro(Y: MatrixLike, scores: MatrixLike, *, convention: str = "paper", missing: str = "raise") -> float:
    """Area under the ROC curve of all sample-label pairs taken together; ties count one half.

    Unlike the other metrics, this one needs a copy of all scores, because it sorts them at once.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores.
    convention, missing : str
        Options of :func:`evaluate`. All conventions agree.

    Returns
    -------
    float
        Between 0 and 1; larger is better; NaN, with a warning, if Y holds one value only.

    Examples
    --------
    >>> from rbrl.metrics import auc_micro
    >>> auc_micro([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.1]])
    0.625
    """
    blocks = row_blocks(*check_scores(Y, scores, convention, missing))
    parts = [(rows.scores[rows.relevant], rows.scores[rows.irrelevant]) for rows in blocks]
    positive, negative = (np.concatenate(part) for part in zip(*parts))
    if not len(positive) or not len(negative):
        return warn_undefined("Y holds only one value")
    return _area(positive, negative, tie=0.5)


def _area(positive: FloatArray, negative: FloatArray, tie: float) -> float:
    """Return the share of (positive, negative) pairs in the right order; NaN without a pair."""
    if not len(positive) or not len(negative):
        return float("nan")
    positive = np.sort(positive)
    negative = np.sort(negative)
    below = np.searchsorted(negative, positive, side="left").sum()
    not_above = np.searchsorted(negative, positive, side="right").sum()
    return float((below + tie * (not_above - below)) / (len(positive) * len(negative)))
