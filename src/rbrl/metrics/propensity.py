"""Metrics for data with very many labels, in which most labels are rare.

A rare label is often missing where it is relevant. The propensity of a label is the probability
that it is present if it is relevant. Propensity-scored metrics weight a label by the inverse of its
propensity, so that rare labels count more.

References
----------
H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for recommendation, tagging,
ranking & other missing label applications", KDD 2016.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rbrl._common.typing import ArrayLike, FloatArray, IntArray, MatrixLike, issparse
from rbrl.exceptions import InvalidLabelsError
from rbrl.metrics.inputs import (
    best_labels,
    check_k,
    check_labels,
    check_scores,
    count_relevant,
    relevance_of,
    warn_undefined,
)
from rbrl.metrics.ranking import NO_RELEVANT_LABEL, discounts, ideal_dcg

if TYPE_CHECKING:
    from pandas import DataFrame

PARTS = ("head", "torso", "tail")


def propensities(Y_train: MatrixLike, a: float = 0.55, b: float = 1.5) -> FloatArray:
    r"""Return the propensity of each label, from its frequency in the training rows.

    .. math:: p_l = \frac{1}{1 + C e^{-a \log(N_l + b)}}, \qquad C = (\log N - 1) (b + 1)^a

    with :math:`N` rows, of which :math:`N_l` have the label.

    Parameters
    ----------
    Y_train : array or sparse matrix of 0/1, shape (n_samples, n_labels)
        Labels of the training rows, at least three.
    a, b : float, default=0.55 and 1.5
        Constants of the model. The extreme classification repository uses a=0.5 and b=0.4 for
        Wikipedia, and a=0.6 and b=2.6 for Amazon.

    Returns
    -------
    array, shape (n_labels,)
        Between 0 and 1; smaller for rare labels.

    Examples
    --------
    >>> from rbrl.metrics import propensities
    >>> propensities([[1, 0], [1, 0], [1, 1], [1, 0]]).round(3)
    array([0.8  , 0.721])
    """
    for name, value in (("a", a), ("b", b)):
        if not (np.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite number of at least 0. Got {value!r} instead.")
    frequencies, n_rows = _label_frequencies(Y_train)
    if n_rows < 3:
        raise ValueError(
            f"Propensities need log(n_rows) > 1, at least 3 training rows. Got {n_rows} instead; "
            "pass the labels of all training rows as Y_train."
        )
    C = (np.log(n_rows) - 1) * (b + 1) ** a
    return 1 / (1 + C * (frequencies + b) ** -a)


def psp_at_k(
    Y: MatrixLike,
    scores: MatrixLike,
    k: int = 5,
    *,
    propensities: ArrayLike,
    convention: str = "paper",
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Propensity-scored precision of the k best-scored labels, divided by its largest value.

    .. math:: \frac{\sum_i \sum_{j \in T_k(x_i) \cap Y_i^+} 1 / p_j}
        {\sum_i \max_{|T| \le k} \sum_{j \in T \cap Y_i^+} 1 / p_j}

    where :math:`T_k` holds the k best-scored labels; the earlier of two tied labels comes first.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores. Sparse scores may hold the best labels of each row
        only. A label that is not stored has the score 0, so stored scores must not be negative.
    k : int, default=5
        Number of best-scored labels.
    propensities : array, shape (n_labels,)
        Result of :func:`propensities` for the training labels.
    convention : str
        Option of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better; NaN, with a warning, if no label is relevant.

    Examples
    --------
    >>> from rbrl.metrics import psp_at_k
    >>> psp_at_k([[1, 0, 1]], [[0.9, 0.5, 0.1]], k=2, propensities=[0.5, 0.5, 0.25])
    0.3333333333333333
    """
    return _inverse_propensity_share(Y, scores, k, propensities, convention, sample_weight, discounted=False)


def psndcg_at_k(
    Y: MatrixLike,
    scores: MatrixLike,
    k: int = 5,
    *,
    propensities: ArrayLike,
    convention: str = "paper",
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Propensity-scored nDCG of the k best-scored labels, divided by its largest value.

    The metric is :math:`\sum_i g_i / \sum_i g_i^*`. A row has the gain

    .. math:: g_i = \frac{\sum_{r=1}^k [l_r \in Y_i^+] / (p_{l_r} \log_2(r + 1))}
        {\sum_{r=1}^{\min(k, |Y_i^+|)} 1 / \log_2(r + 1)}

    where :math:`l_r` is its label of rank r. :math:`g_i^*` is the largest gain of any ranking.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores, as for :func:`psp_at_k`.
    k : int, default=5
        Number of best-scored labels.
    propensities : array, shape (n_labels,)
        Result of :func:`propensities` for the training labels.
    convention : str
        Option of :func:`evaluate`. All conventions agree.
    sample_weight : array of shape (n_samples,), default=None
        Weights of the samples; see :func:`evaluate`.

    Returns
    -------
    float
        Between 0 and 1; larger is better; NaN, with a warning, if no label is relevant.

    Examples
    --------
    >>> from rbrl.metrics import psndcg_at_k
    >>> psndcg_at_k([[0, 1, 0]], [[0.9, 0.5, 0.1]], k=3, propensities=[0.5, 0.5, 0.25]).__round__(4)
    0.6309
    """
    return _inverse_propensity_share(Y, scores, k, propensities, convention, sample_weight, discounted=True)


def _inverse_propensity_share(
    Y: MatrixLike,
    scores: MatrixLike,
    k: int,
    propensities: ArrayLike,
    convention: str,
    sample_weight: ArrayLike | None,
    discounted: bool,
) -> float:
    """Return the gain of the predicted ranking, divided by the gain of the best ranking."""
    T, best, row_weights = _check_best_labels(Y, scores, k, convention, sample_weight)
    weights = 1 / _check_propensities(propensities, T.shape[1])
    rank_weights = discounts(best.shape[1]) if discounted else np.ones(best.shape[1])
    n_relevant = count_relevant(T)
    scale = row_weights / ideal_dcg(np.maximum(n_relevant, 1), k) if discounted else row_weights
    gains = (relevance_of(T, best) * weights[best]) @ rank_weights
    row, column = T.nonzero()
    order = np.lexsort((-weights[column], row))
    starts = np.cumsum(n_relevant) - n_relevant
    rank = np.arange(len(row)) - np.repeat(starts, n_relevant)
    is_best = rank < best.shape[1]
    rank = rank[is_best]
    row = row[is_best]
    largest = weights[column[order[is_best]]] * rank_weights[rank] * scale[row]
    if not len(largest):
        return warn_undefined(NO_RELEVANT_LABEL)
    return float(gains @ scale / largest.sum())


def frequency_report(Y: MatrixLike, scores: MatrixLike, Y_train: MatrixLike, k: int = 5) -> "DataFrame":
    """Return how well frequent and rare labels are predicted.

    The labels are sorted by their frequency in the training rows, and cut into head, torso and
    tail. Each part has about a third of all relevant entries of the training rows: a label belongs
    to the head if the labels before it have less than a third, and to the tail if they have two
    thirds or more. Of labels with equal frequencies, the earlier one comes first.

    Parameters
    ----------
    Y, scores : array or sparse matrix, shape (n_samples, n_labels)
        True labels, 0/1, and predicted scores, as for :func:`psp_at_k`.
    Y_train : array or sparse matrix of 0/1, shape (n_train, n_labels)
        Labels of the training rows.
    k : int, default=5
        Number of best-scored labels.

    Returns
    -------
    pandas.DataFrame
        A row for each part, and a row "all". `labels` is the number of labels, `lowest` and
        `highest` are their frequencies in the training rows, and `relevant` is the number of their
        relevant entries in Y. `precision_at_k` is their share of P@k: the values of the parts add
        up to P@k. `found_at_k` is the fraction of the relevant entries that are among the k best
        labels of their row; NaN without a relevant entry.

    Examples
    --------
    >>> from rbrl.metrics import frequency_report
    >>> Y = [[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    >>> frequency_report(Y, [[0.9, 0.5, 0.1, 0.2]] * 3, Y_train=Y, k=2).round(2)
           labels  lowest  highest  relevant  precision_at_k  found_at_k
    head        1       3        3         3            0.50        1.00
    torso       1       1        1         1            0.17        1.00
    tail        2       1        1         2            0.00        0.00
    all         4       1        3         6            0.67        0.67
    """
    from pandas import DataFrame  # slow to import

    T, best, _ = _check_best_labels(Y, scores, k, "paper")
    frequencies, _ = _label_frequencies(Y_train)
    if len(frequencies) != T.shape[1]:
        raise InvalidLabelsError(
            f"Y and Y_train must have the same labels. Got {T.shape[1]} and {len(frequencies)} "
            "columns instead; encode both with the labels of the training rows."
        )
    parts = _cut_by_frequency(frequencies)
    hits = np.bincount(best[relevance_of(T, best)], minlength=T.shape[1])
    relevant = np.asarray(T.sum(axis=0, dtype=np.int64)).ravel()
    rows = []
    for part in (*range(len(PARTS)), None):
        chosen = np.full(len(parts), True) if part is None else parts == part
        n_relevant = int(relevant[chosen].sum())
        n_hits = int(hits[chosen].sum())
        rows.append({
            "labels": int(chosen.sum()),
            "lowest": int(frequencies[chosen].min(initial=frequencies.max())),
            "highest": int(frequencies[chosen].max(initial=0)),
            "relevant": n_relevant,
            "precision_at_k": n_hits / (k * T.shape[0]),
            "found_at_k": n_hits / n_relevant if n_relevant else np.nan,
        })  # fmt: skip
    return DataFrame(rows, index=[*PARTS, "all"])


def _cut_by_frequency(frequencies: IntArray) -> IntArray:
    """Return 0, 1 or 2 for each label of the head, the torso and the tail: (n_labels,)."""
    total = int(frequencies.sum())
    if not total:
        raise InvalidLabelsError(
            f"Y_train must have relevant labels. Got {total}; pass the labels of the training rows."
        )
    order = np.argsort(-frequencies, kind="stable")
    before = np.cumsum(frequencies[order]) - frequencies[order]
    parts = np.empty(len(order), dtype=np.int64)
    parts[order] = 3 * before // total
    return np.minimum(parts, 2)


def _label_frequencies(Y_train: MatrixLike) -> tuple[IntArray, int]:
    """Return the number of training rows with each label, and the number of training rows."""
    T, _ = check_labels(Y_train, "Y_train", "raise")
    return np.asarray(T.sum(axis=0, dtype=np.int64)).ravel(), T.shape[0]


def _check_best_labels(
    Y: MatrixLike, scores: MatrixLike, k: int, convention: str, sample_weight: ArrayLike | None = None
) -> tuple[Any, IntArray, FloatArray]:
    """Return the true labels as a CSR matrix without zeros, the k best labels of each row, and its weight."""
    check_k(k)
    T, F, _, weights = check_scores(Y, scores, convention, "raise", sample_weight)
    lowest = F.data.min(initial=0) if issparse(F) and F.nnz < F.shape[0] * F.shape[1] else 0
    if lowest < 0:
        raise ValueError(
            "Sparse scores must not be negative: a label that is not stored has the score 0 and "
            f"would rank higher. Got {lowest:.3g} instead; `scores.data += 1 - "
            "scores.data.min()` makes all stored scores positive and keeps their order."
        )
    T = sparse.csr_array(T, dtype=bool)
    T.eliminate_zeros()
    return T, best_labels(F, k), weights


def _check_propensities(propensities: ArrayLike, n_labels: int) -> FloatArray:
    """Return propensities (n_labels,) as floats; raise ValueError unless they are in (0, 1]."""
    p = np.asarray(propensities, dtype=np.float64)
    if p.shape != (n_labels,):
        raise ValueError(
            f"propensities must have one value for each of the {n_labels} labels. Got shape "
            f"{p.shape} instead; pass propensities(Y_train) with the same columns as Y."
        )
    if not ((p > 0) & (p <= 1)).all():
        wrong = p[~((p > 0) & (p <= 1))][0]
        raise ValueError(f"propensities must lie in (0, 1]. Got {wrong:g} instead; pass p, not 1 / p.")
    return p
