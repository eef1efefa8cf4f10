"""Words in files, and the numbers that they stand for: in features, and in labels."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from rbrl.datasets.formats import MAX_WORDS, bad, quote
from rbrl.exceptions import DataFormatError

MISSING = frozenset((
    "", "?", "-", "--", ".", "na", "n/a", "n.a.", "#n/a", "#n/a n/a", "#na", "<na>", "null", "none", "nan", "+nan", "-nan",
    "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
))  # fmt: skip
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
FIGURE = re.compile(  # what a person reads as a number and `number` does not: 1,234.5 or 12 % or $5 or 1_000
    r"[-+]?[$€£¥]?\s?[-+]?(?:(?:\d{1,3}(?:[,'’_\s]\d{3})+|\d+)(?:[.,]\d*)?|[.,]\d+)(?:[ed][-+]?\d+)?\s?[%$€£¥]?",
    re.IGNORECASE,
)
TRUTH = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"t": 1.0, "f": 0.0}, {"y": 1.0, "n": 0.0})


def number(text: str) -> float | None:
    """Return the float that `text` spells, or None; stricter than `float`, which takes 1_0, inf and ٣.

    Parameters
    ----------
    text : str

    Returns
    -------
    float or None
    """
    value = _float(text)
    return None if value is None or math.isinf(value) else value


def _float(text: str) -> float | None:
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def truth_codes(words: Collection[str]) -> dict[str, float] | None:
    """Return {word: 1 or 0} for words of one of the pairs true/false, yes/no, t/f and y/n, in any case; else None.

    Parameters
    ----------
    words : collection of str

    Returns
    -------
    dict of str to float, or None

    Examples
    --------
    >>> truth_codes(["Yes", "no"]), truth_codes(["yes", "false"])
    ({'Yes': 1.0, 'no': 0.0}, None)
    """
    for pair in TRUTH:
        if all(word.lower() in pair for word in words):
            return {word: pair[word.lower()] for word in words}
    return None


def word_codes(values: Sequence[str]) -> dict[str, float]:
    """Return {word: code} for the values of a nominal attribute, in the order declared.

    Numbers stand for themselves; true/false, yes/no, t/f, y/n in any case are 1/0; other words are numbered from 0.

    Parameters
    ----------
    values : sequence of str

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> word_codes(["TRUE", "FALSE"]), word_codes(["red", "green", "blue"])
    ({'TRUE': 1.0, 'FALSE': 0.0}, {'red': 0.0, 'green': 1.0, 'blue': 2.0})
    """
    truth = truth_codes(values)
    if truth is not None:
        return truth
    numbers = {word: value for word in values if (value := number(word)) is not None and value == value}
    if len(numbers) == len(set(values)):
        return numbers
    return {value: float(code) for code, value in enumerate(dict.fromkeys(values))}


def is_missing(word: str) -> bool:
    """Whether `word`, without white space around it, is one of the usual spellings of a missing value, in any case.

    Parameters
    ----------
    word : str

    Returns
    -------
    bool
    """
    return word.lower() in MISSING


def column_codes(name: str, counts: Mapping[str, int], lines: Mapping[str, int] | None = None) -> dict[str, float]:
    """Return {word: code} for a column of a file that does not declare its words.

    The words, in alphabetical order, are coded as by `word_codes`. A column with more numbers than words, by cells or by
    different values, is one of numbers with a stray word: coding it would replace each number by its place in the alphabet.

    Parameters
    ----------
    name : str
        Of the column, for messages.
    counts : mapping of str to int
        How often each word occurs, missing values left out; more than `MAX_WORDS` of them are refused.
    lines : mapping of str to int, optional
        Where each word occurs first, for messages.

    Returns
    -------
    dict of str to float

    Raises
    ------
    DataFormatError
        A word makes the column neither one of numbers nor one of words.

    Examples
    --------
    >>> column_codes("colour", {"red": 3, "blue": 2})
    {'blue': 0.0, 'red': 1.0}
    """

    def odd(word: str, reason: str) -> DataFormatError:
        return bad(f"column {quote(name)} has {quote(word)}, {reason}", lines[word] if lines else None)

    leave_out = f"a column of ids, dates or texts is left out with ignore={quote(name)}"
    words = [word for word in counts if number(word) is None]
    for word in words:
        if _float(word) is not None or word.lower().endswith("1.#inf"):
            raise odd(word, "an infinite value: give a finite number, or leave the cell empty")
        if DECIMAL_COMMA.fullmatch(word):
            raise odd(word, "a decimal comma: write a point")
    plain = [word for word in words if not FIGURE.fullmatch(word)]
    n_cells, n_plain = sum(counts.values()), sum(counts[word] for word in plain)
    if words and (2 * n_plain < n_cells or 2 * len(plain) < len(counts)):
        raise odd(
            words[0],
            f"no number, where {n_cells - n_plain} of {n_cells} cells are numbers: leave the cell empty, or write ? or NA, "
            f"if the value is missing, and write all of it as numbers otherwise; {leave_out}",
        )
    if len(counts) > MAX_WORDS:
        raise odd(words[0] if words else next(iter(counts)), f"one of over {MAX_WORDS} words; {leave_out}")
    return word_codes(sorted(counts))


def are_plain(words: Collection[str]) -> bool:
    """Tell whether the words of a column have a meaning of their own: numbers, or a pair such as yes/no.

    Parameters
    ----------
    words : collection of str

    Returns
    -------
    bool

    Examples
    --------
    >>> are_plain(["1", "0"]), are_plain(["no", "YES"]), are_plain(["active", "inactive"])
    (True, True, False)
    """
    return truth_codes(words) is not None or all(number(word) is not None for word in words)


def label_meanings(
    columns: Iterable[tuple[str, Collection[str]]],
    positive: Collection[str] = (),
    known: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return {word: 1 or 0} for the words of label columns that do not say by themselves what they mean.

    Words that are declared positive mean 1. The one other word of a column with positive words means 0, in all columns.

    Parameters
    ----------
    columns : iterable of (str, collection of str)
        The name of each label, and its words.
    positive : collection of str
        Words that are declared to mean that a label is relevant.
    known : mapping of str to int, optional
        Meanings of words that are known already.

    Returns
    -------
    dict of str to int

    Raises
    ------
    DataFormatError
        The meaning of a word is not known.

    Examples
    --------
    >>> label_meanings([("calm", ["ja", "nein"]), ("sad", ["nein"])], positive=["ja"])
    {'ja': 1, 'nein': 0}
    """
    meanings = {**(known or {}), **dict.fromkeys(positive, 1)}
    unclear = [
        (name, list(words)) for name, words in columns if not are_plain(words) or not meanings.keys().isdisjoint(words)
    ]
    for _, words in unclear:
        others = [word for word in words if meanings.get(word) != 1]
        if len(others) == 1 and len(words) > 1:
            meanings.setdefault(others[0], 0)
    for name, words in unclear:
        if any(word not in meanings for word in words):
            raise _unclear_label(name, words)
    return meanings


def _unclear_label(name: str, words: Sequence[str]) -> DataFormatError:
    some = " and ".join(map(quote, words)) if len(words) == 2 else ", ".join(map(quote, words[:4]))
    some += ", …" if len(words) > 4 else ""
    what = "the word" if len(words) == 1 else "the words"
    if len(words) > 2:
        rule = "a label has two values: write 0 and 1, or declare all words but one with positive="
    else:
        options = " or ".join(f"positive={quote(word)}" for word in words)
        rule = f"declare the word that means that a label is relevant with {options}, or write 0 and 1"
    return bad(f"the label {quote(name)} has {what} {some}, which may mean 1 or 0: {rule}")


def spell(value: float) -> str:
    """Return the shortest text that reads back as the float `value`, integers without a point; `?` if it is missing.

    Parameters
    ----------
    value : float

    Returns
    -------
    str
    """
    return repr(value).removesuffix(".0") if value == value else "?"
