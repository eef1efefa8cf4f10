"""Dense rows of ARFF. `numpy.loadtxt` reads a block of plain lines; whatever it cannot is read word by word."""

import io

import numpy as np

from rbrl.datasets.formats.arff_words import words
from rbrl.datasets.formats.errors import bad, quote

SPECIAL = "'\"%{}\\"


def dense_block(path, columns, lines, numbers):
    """Return the rows in `lines`, which are not blank, as an array.

    Parameters
    ----------
    path : Path
    columns : Columns
    lines : list of str
    numbers : sequence of int
        The number of each line, for error messages.
    """
    block = _fast(columns, lines)
    if block is None:
        block = np.array([_row(path, columns, line, number) for line, number in zip(lines, numbers)])
    return block


def _fast(columns, lines):
    text = "".join(lines)
    if any(letter in text for letter in SPECIAL):
        return None
    if "?" in text:
        if columns.wordy:
            return None
        lines = io.StringIO(text.replace("?", "nan"))
    try:
        block = np.loadtxt(lines, delimiter=",", comments=None, ndmin=2, converters=columns.converters() or None)
    except (ValueError, KeyError, OverflowError):
        return None
    return block if block.shape[1] == len(columns) and columns.block_is_valid(block) else None


def _row(path, columns, line, number):
    found, end = words(line.strip())
    if end is None:
        raise bad(path, f"badly quoted, or a brace in a dense row: {quote(line.strip())}", number)
    if len(found) == 1 and len(columns) > 1 and not found[0][1]:
        found = [(word, False) for word in found[0][0].split()]  # Weka takes white space for commas
    if len(found) != len(columns):
        raise bad(path, f"a row has {len(found)} values, the header {len(columns)} attributes", number)
    try:
        return [columns.value(j, word, quoted) for j, (word, quoted) in enumerate(found)]
    except ValueError as error:
        raise bad(path, str(error), number) from error
