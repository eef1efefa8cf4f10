"""Metrics of the order in which scores put the labels of a sample."""

import warnings
from typing import Any

import numpy as np

from rbrl.metrics._inputs import check_convention, check_scores, row_blocks
from rbrl.metrics._order import relevant_in_order


def ranking_loss(Y: Any, scores: Any, *, convention: str = "paper") -> float:
    r"""Fraction of (relevant, irrelevant) label pairs in the wrong order, averaged over samples.

    .. math:: \frac{1}{n} \sum_{i=1}^n
        \frac{|\{(p, q) \in Y_i^+ \times Y_i^- : f_p(x_i) \le f_q(x_i)\}|}{|Y_i^+| |Y_i^-|}

    A tie is an error, except in Mulan's convention.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        Samples without a pair (no or all labels relevant) are left out in "paper" and "mulan", and count 0 in
        "sklearn". In "mulan" of tied labels the one with the higher index ranks first.
    """
    return _mean_over_rows(_ranking_loss_rows, Y, scores, convention, without_pair=0.0)


def _ranking_loss_rows(T, F, convention):
    entries = relevant_in_order(T, F, ties="higher_index_first" if convention == "mulan" else "together")
    wrong = np.bincount(entries.row, weights=entries.rank - entries.rank_among_relevant, minlength=len(T))
    n_relevant = T.sum(axis=1)
    return wrong / (n_relevant * (T.shape[1] - n_relevant))


def average_precision(Y: Any, scores: Any, *, convention: str = "paper") -> float:
    r"""Fraction of relevant labels among those ranked no lower than a relevant one, averaged.

    .. math:: \frac{1}{n} \sum_{i=1}^n \frac{1}{|Y_i^+|} \sum_{j \in Y_i^+}
        \frac{|\{k \in Y_i^+ : rank(x_i, k) \le rank(x_i, j)\}|}{rank(x_i, j)}

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        "paper", "mulan": of tied labels the one with the higher index ranks first; samples without a pair (no or all
        labels relevant) are left out. "sklearn": tied labels share the last of their ranks; samples without a pair
        count 1.
    """
    return _mean_over_rows(_average_precision_rows, Y, scores, convention, without_pair=1.0)


def _average_precision_rows(T, F, convention):
    ties = "together" if convention == "sklearn" else "higher_index_first"
    entries = relevant_in_order(T, F, ties=ties)
    precision = np.bincount(entries.row, weights=entries.rank_among_relevant / entries.rank, minlength=len(T))
    return precision / T.sum(axis=1)


def one_error(Y: Any, scores: Any, *, convention: str = "paper") -> float:
    r"""Fraction of samples whose best-scored label is irrelevant.

    .. math:: \frac{1}{n} \sum_{i=1}^n [\arg\max_j f_j(x_i) \notin Y_i^+]

    A sample counts as right when one of several tied best labels is relevant. Samples without a pair (no or all labels
    relevant) are left out.

    Parameters
    ----------
    Y : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        True labels.
    scores : array or sparse matrix, shape (n_samples, n_labels)
        The larger, the more relevant.
    convention : {"paper", "mulan", "sklearn"}
        They agree: scikit-learn has no such metric.
    """
    check_convention(convention)
    return _mean_over_rows(_one_error_rows, Y, scores, "paper", without_pair=0.0)


def _one_error_rows(T, F, convention):
    best = F.max(axis=1, keepdims=True) == F
    return ~np.logical_and(best, T).any(axis=1)


def _mean_over_rows(function, Y, scores, convention, without_pair):
    """Average `function` over the rows with a pair; others are left out, or count `without_pair` in "sklearn"."""
    check_convention(convention)
    Y, scores = check_scores(Y, scores)
    total, n_rows = 0.0, 0
    for T, F in row_blocks(Y, scores):
        has_pair = T.any(axis=1) & ~T.all(axis=1)
        if not has_pair.all():
            T, F = T[has_pair], F[has_pair]
        total += float(function(T, F, convention).sum())
        n_rows += len(T)
    if convention == "sklearn":
        return (total + without_pair * (Y.shape[0] - n_rows)) / Y.shape[0]
    if n_rows == 0:
        return undefined(f"None of the {Y.shape[0]} samples has a relevant and an irrelevant label")
    return total / n_rows


def undefined(reason: str) -> float:
    """Warn that a metric has nothing to measure, and answer NaN: a made-up value would look like a result."""
    from sklearn.exceptions import UndefinedMetricWarning

    warnings.warn(f"{reason}: the metric is undefined (NaN).", UndefinedMetricWarning, stacklevel=4)
    return float("nan")
