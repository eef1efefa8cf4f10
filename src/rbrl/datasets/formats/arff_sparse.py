"""Sparse rows of ARFF: `{index value, …}`, plain blocks at once and others word by word."""

import re

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.arff_words import unquote
from rbrl.datasets.formats.errors import bad, quote
from rbrl.datasets.formats.limits import MAX_DENSE_CELLS
from rbrl.datasets.formats.pairs import ARFF, read_pairs, repeated_row

ENTRY = re.compile(
    r"""\s*(\d{1,10})\s+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^\s,{}%'"]+))\s*([,}])""", re.DOTALL
)


def sparse_block(path, columns, lines, numbers):
    """Return (indexes, values, counts per row) of the rows in `lines`; parameters as for `dense_block`."""
    block = _fast(columns, lines)
    if block is None:
        rows = [_row(path, columns, line.strip(), number) for line, number in zip(lines, numbers)]
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        indexes = np.array([j for row in rows for j in row], dtype=np.int64)
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        block = indexes, values, counts
    return block


def fill_defaults(path, matrix, defaults):
    """Put the columns' default values where a row has no entry.

    Parameters
    ----------
    matrix : csr_array
        Explicit zeros stand for zero.
    defaults : dict of int to float
    """
    columns = np.array(sorted(defaults))
    if not len(columns):
        return matrix
    if matrix.shape[0] * len(columns) > MAX_DENSE_CELLS:
        raise bad(path, f"{len(columns)} nominal attributes begin with a value other than 0: too many")
    place = np.full(matrix.shape[1], -1)
    place[columns] = np.arange(len(columns))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    there = place[matrix.indices] >= 0
    absent = np.ones((matrix.shape[0], len(columns)), dtype=bool)
    absent[rows[there], place[matrix.indices[there]]] = False
    more, which = np.nonzero(absent)
    values = np.array([defaults[j] for j in columns.tolist()])[which]
    return matrix + sparse.csr_array((values, (more, columns[which])), shape=matrix.shape)


def _fast(columns, lines):
    rows = [line.strip() for line in lines]
    if not all(row[0] == "{" and row[-1] == "}" for row in rows):
        return None
    pairs = read_pairs([row[1:-1] for row in rows], ARFF, ",")
    if pairs is None:
        return None
    indexes, values, counts = pairs
    if len(indexes) and indexes.max() >= len(columns):
        return None
    if repeated_row(indexes, counts) is not None or not columns.entries_are_valid(indexes, values):
        return None
    return pairs


def _row(path, columns, text, line):
    if not text.startswith("{"):
        raise bad(path, f"a dense row among sparse ones: {quote(text)}", line)
    row, start = {}, re.match(r"\{\s*", text).end()
    if text[start : start + 1] == "}":
        return _ended(path, row, text[start + 1 :], line)
    while True:
        match = ENTRY.match(text, start)
        if not match:
            raise bad(path, f"expected 'index value' and a comma or brace; got {quote(text[start:])}", line)
        column = int(match[1])
        if column >= len(columns):
            raise bad(path, f"index {column} is beyond the {len(columns)} attributes (counted from 0)", line)
        if column in row:
            raise bad(path, f"index {column} occurs twice in a row", line)
        row[column] = _value(path, columns, column, match, line)
        start = match.end()
        if match[5] == "}":
            return _ended(path, row, text[start:], line)


def _value(path, columns, column, match, line):
    quoted = match[4] is None
    word = unquote(match[2] if match[2] is not None else match[3]) if quoted else match[4]
    try:
        return columns.value(column, word, quoted)
    except ValueError as error:
        raise bad(path, str(error), line) from error


def _ended(path, row, rest, line):
    rest = rest.strip()
    if rest and not rest.startswith("%"):
        raise bad(path, f"unexpected {quote(rest)} after a row", line)
    return row
