"""What a word in a data file means as a number."""

import math

TRUTH = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"t": 1.0, "f": 0.0}, {"y": 1.0, "n": 0.0})


def number(text):
    """Return the float that `text` spells, or None; stricter than `float`, which takes 1_0, inf and ٣."""
    if "_" in text or not text.isascii():
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isinf(value) else value


def nominal_codes(values):
    """Return {word: code} for the values of a nominal attribute, in the order declared.

    Numbers stand for themselves; true/false, yes/no, t/f, y/n in any case are 1/0; other words are numbered from 0.

    Examples
    --------
    >>> nominal_codes(["TRUE", "FALSE"]), nominal_codes(["red", "green", "blue"])
    ({'TRUE': 1.0, 'FALSE': 0.0}, {'red': 0.0, 'green': 1.0, 'blue': 2.0})
    """
    for words in TRUTH:
        if all(value.lower() in words for value in values):
            return {value: words[value.lower()] for value in values}
    numbers = [number(value) for value in values]
    if all(value is not None and value == value for value in numbers):
        return dict(zip(values, numbers))
    return {value: float(code) for code, value in enumerate(dict.fromkeys(values))}


def is_plain(word):
    """Whether `word` alone says what it means: a number, or true, no, …"""
    return number(word) is not None or any(word.lower() in words for words in TRUTH)


def spell(value):
    """Return the shortest text that reads back as the float `value`, integers without a point."""
    return repr(value).removesuffix(".0")
