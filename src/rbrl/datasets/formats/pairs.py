"""Blocks of `index value` pairs, read at once."""

import re
import warnings

import numpy as np

ARFF = re.compile(
    r"(?:[^\S\n]*+(?:\d++[^\S\n]++[^\s,]++[^\S\n]*+(?:,[^\S\n]*+\d++[^\S\n]++[^\s,]++[^\S\n]*+)*+)?+\n)*+"
)
SVMLIGHT = re.compile(r"(?:[^\S\n]*+(?:\d++:[^\s:]++(?:[^\S\n]++|(?=\n)))*+\n)*+")


def read_pairs(rows, grammar, separator):
    """Return (indexes, values, counts) of `rows`, or None where they do not keep to the grammar.

    Parameters
    ----------
    rows : list of str
        One row each, without a line end.
    grammar : {ARFF, SVMLIGHT}
    separator : str
        The character of the grammar that is neither number nor white space.
    """
    text = "\n".join(rows) + "\n"
    if not text.isascii() or not grammar.fullmatch(text):
        return None
    mark = "," if separator == "," else ":"
    counts = np.fromiter((row.count(mark) for row in rows), dtype=np.int64, count=len(rows))
    if separator == ",":
        counts += np.fromiter((not row.isspace() and row != "" for row in rows), dtype=bool, count=len(rows))
    numbers = _numbers(text.replace(separator, " "))
    if len(numbers) != 2 * counts.sum():
        return None
    indexes, values = numbers[::2], numbers[1::2]
    if len(indexes) and indexes.max() >= 2**31 - 1:
        return None
    return indexes.astype(np.int64), values, counts


def repeated_row(indexes, counts):
    """Return the first row in which an index occurs twice, or None."""
    if not len(indexes):
        return None
    rows = np.repeat(np.arange(len(counts)), counts)
    keys = np.sort(rows * (int(indexes.max()) + 1) + indexes)
    twice = keys[1:][keys[1:] == keys[:-1]]
    return int(twice[0] // (int(indexes.max()) + 1)) if len(twice) else None


def _numbers(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the text ends early: seen by the count
        try:
            return np.fromstring(text, sep=" ")
        except ValueError:
            return np.empty(0)
