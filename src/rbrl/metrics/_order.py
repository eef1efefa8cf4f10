"""Ranks of the relevant labels of each sample, by one sort and an explicit rule for ties."""

from typing import NamedTuple

import numpy as np


class RelevantEntries(NamedTuple):
    """One entry per relevant label, best first within a row; ranks count from 1."""

    row: np.ndarray
    rank: np.ndarray
    rank_among_relevant: np.ndarray


def relevant_in_order(T: np.ndarray, F: np.ndarray, ties: str) -> RelevantEntries:
    """Rank the relevant labels of each row by falling score.

    Parameters
    ----------
    T : array of bool, shape (n_rows, n_labels)
        Relevant labels.
    F : array, shape (n_rows, n_labels)
        Scores.
    ties : {"together", "higher_index_first", "lower_index_first"}
        "together" gives all members of a tie the last of their ranks.
    """
    order = falling_order(F, ties)
    T = np.take_along_axis(T, order, axis=1)
    row, position = np.nonzero(T)
    first = np.searchsorted(row, np.arange(len(T)))
    among = np.arange(1, len(row) + 1) - first[row]
    if ties != "together":
        return RelevantEntries(row, position + 1, among)
    sorted_F = np.take_along_axis(F, order, axis=1)
    if not (sorted_F[:, 1:] == sorted_F[:, :-1]).any():
        return RelevantEntries(row, position + 1, among)
    position = last_of_tie(sorted_F)[row, position]
    return RelevantEntries(row, position + 1, np.cumsum(T, axis=1)[row, position])


def falling_order(F: np.ndarray, ties: str) -> np.ndarray:
    """Indices that sort each row from the largest score down.

    The quick sort leaves ties in any order; they are then put right by sorting integers, which is several times
    faster than a stable sort of the scores.
    """
    order = np.argsort(-F, axis=1)
    if ties == "together":
        return order
    sorted_F = np.take_along_axis(F, order, axis=1)
    tied = (sorted_F[:, 1:] == sorted_F[:, :-1]).any(axis=1)
    if tied.any():
        order[tied] = _settle_ties(order[tied], sorted_F[tied], ties == "higher_index_first")
    return order


def _settle_ties(order, sorted_F, higher_first):
    """Sort the members of each tie by index: keys (number of the tie, index) as one integer."""
    n_labels = order.shape[1]
    dtype = np.int32 if n_labels**2 < 2**31 else np.int64
    tie = np.zeros(order.shape, dtype=dtype)
    np.cumsum(sorted_F[:, 1:] != sorted_F[:, :-1], axis=1, out=tie[:, 1:])
    tie *= n_labels
    keys = tie + (n_labels - 1 - order if higher_first else order).astype(dtype)
    keys.sort(axis=1)
    keys -= tie
    return n_labels - 1 - keys if higher_first else keys


def last_of_tie(sorted_F: np.ndarray) -> np.ndarray:
    """Position of the last member of each entry's tie, in rows that are sorted."""
    n_labels = sorted_F.shape[1]
    position = np.broadcast_to(np.arange(n_labels), sorted_F.shape).copy()
    position[:, :-1][sorted_F[:, 1:] == sorted_F[:, :-1]] = n_labels
    return np.minimum.accumulate(position[:, ::-1], axis=1)[:, ::-1]


def first_of_tie(sorted_F: np.ndarray) -> np.ndarray:
    """Position of the first member of each entry's tie, in rows that are sorted."""
    return sorted_F.shape[1] - 1 - last_of_tie(sorted_F[:, ::-1])[:, ::-1]
