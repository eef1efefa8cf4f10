"""Words in the cells of a table: numbers, missing values, pairs such as yes and no, and the codes of all others."""

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from rbrl.datasets.formats import format_error, parse_float, parse_number, quote
from rbrl.exceptions import DataFormatError

MAX_WORDS = 10_000  # largest number of different words in a column
MISSING_WORDS = frozenset((
    "", "?", "-", "--", ".", "na", "n/a", "n.a.", "#n/a", "#n/a n/a", "#na", "<na>", "null", "none", "nan", "+nan", "-nan",
    "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
))  # fmt: skip
TRUTH_PAIRS = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"t": 1.0, "f": 0.0}, {"y": 1.0, "n": 0.0})
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
# Numbers for people that `parse_number` refuses: 1,234.5 or 12 % or $5 or 1_000.
FORMATTED_NUMBER = re.compile(
    r"[-+]?[$€£¥]?\s?[-+]?(?:(?:\d{1,3}(?:[,'’_\s]\d{3})+|\d+)(?:[.,]\d*)?|[.,]\d+)(?:[ed][-+]?\d+)?\s?[%$€£¥]?",
    re.IGNORECASE,
)


def is_missing(word: str) -> bool:
    """Return True if a stripped word is one of the usual spellings of a missing value."""
    return word.lower() in MISSING_WORDS


def truth_codes(words: Collection[str]) -> dict[str, float] | None:
    """Return {word: 1 or 0} for the words of one of the pairs true/false, yes/no, t/f and y/n, or None."""
    for pair in TRUTH_PAIRS:
        if all(word.lower() in pair for word in words):
            return {word: pair[word.lower()] for word in words}
    return None


def known_codes(words: Collection[str]) -> dict[str, float] | None:
    """Return the values of words that need no declaration, or None for other words.

    Such words are numbers, or a pair such as yes and no.
    """
    numbers = {word: value for word in words if (value := parse_number(word)) is not None and value == value}
    truth = truth_codes(words)
    return truth if truth is not None or len(numbers) < len(set(words)) else numbers


def word_codes(values: Sequence[str]) -> dict[str, float]:
    """Return {word: code} for the values of a nominal attribute, in the order of declaration.

    Numbers are their own codes, true/false and the like are 1/0, other words are numbered from 0.

    Examples
    --------
    >>> word_codes(["TRUE", "FALSE"]), word_codes(["red", "green", "blue"])
    ({'TRUE': 1.0, 'FALSE': 0.0}, {'red': 0.0, 'green': 1.0, 'blue': 2.0})
    """
    known = known_codes(values)
    return {word: float(code) for code, word in enumerate(dict.fromkeys(values))} if known is None else known


def parse_cells(cells: Sequence[str], codes: Mapping[str, float] | None, truth: bool) -> list[float | None]:
    """Return the numbers of cells: NaN for a missing value, None for a word without a code.

    Without codes, cells are numbers; with `truth`, they may also be a pair such as yes and no.

    Examples
    --------
    >>> parse_cells(["yes", "", "no"], None, truth=True), parse_cells(["1.5", "red"], None, truth=True)
    ([1.0, nan, 0.0], [1.5, None])
    """
    numbers: list[float | None] = [None] if codes else [parse_number(cell) for cell in cells]
    if None not in numbers:
        return numbers
    words = [cell.strip() for cell in cells]
    if codes is None and truth:
        codes = truth_codes({word for word in words if not is_missing(word)})
    if codes is not None:
        return [codes.get(word, np.nan) for word in words]
    return [np.nan if value is None and is_missing(word) else value for word, value in zip(words, numbers)]


def column_codes(name: str, counts: Mapping[str, int], lines: Mapping[str, int] | None = None) -> dict[str, float]:
    """Return {word: code} for a column of a file that does not declare its words.

    The sorted words have the codes of `word_codes`. Words in a column of mostly numbers are an
    error: with codes, every number would become its place in the alphabet. `counts` has the number
    of cells with each word, without missing values, and `lines` the first line with each word.
    """

    def error(word: str, reason: str) -> DataFormatError:
        return format_error(f"column {quote(name)} has {quote(word)}, {reason}", lines[word] if lines else None)

    advice = f"a column of ids, dates or texts is left out with ignore={quote(name)}"
    words = [word for word in counts if parse_number(word) is None]
    for word in words:
        if parse_float(word) is not None or word.lower().endswith("1.#inf"):
            raise error(word, "an infinite value: give a finite number, or leave the cell empty")
        if DECIMAL_COMMA.fullmatch(word):
            raise error(word, "a decimal comma: write a point")
    plain_words = [word for word in words if not FORMATTED_NUMBER.fullmatch(word)]
    n_cells = sum(counts.values())
    n_numbers = n_cells - sum(counts[word] for word in plain_words)
    if words and (2 * n_numbers > n_cells or 2 * len(plain_words) < len(counts)):
        raise error(
            words[0],
            f"which is not a plain number, but {n_numbers} of {n_cells} cells look like numbers: if the value is "
            f"missing, leave the cell empty, or write ? or NA; otherwise, write all cells as numbers; {advice}",
        )
    if len(counts) > MAX_WORDS:
        raise error(
            words[0] if words else next(iter(counts)), f"one of more than {MAX_WORDS} different words; {advice}"
        )
    return word_codes(sorted(counts))


def unknown_word_error(name: str, word: str, words: Sequence[str], line: int | None = None) -> DataFormatError:
    """Return the error for a word that a model does not know."""
    known = ", ".join(map(quote, words[:5])) + (", ..." if len(words) > 5 else "")
    rule = f"the model knows {known}: leave the row out, or fit the model to rows with this word"
    return format_error(f"column {quote(name)} has {quote(word)}; {rule}", line)


def parse_categories(cells: Sequence[str], words: Sequence[str]) -> list[float | None]:
    """Return the place of each cell among the words of a model: NaN for a missing value, None for another word.

    Examples
    --------
    >>> parse_categories(["red", "", "pink"], ["blue", "red"])
    [1.0, nan, None]
    """
    places = {word: float(place) for place, word in enumerate(words)}
    stripped = [cell.strip() for cell in cells]
    return [places.get(word, np.nan if is_missing(word) else None) for word in stripped]


def undeclared_word_error(name: str, word: str, line: int | None = None) -> DataFormatError:
    """Return the error for a word in a block of rows, when the file does not declare its words."""
    reason = "the code of a word depends on the whole file; use numbers, or ARFF, which declares its words"
    return format_error(f"column {quote(name)} has {quote(word)}: {reason}", line)
