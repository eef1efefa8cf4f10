"""Words of ARFF: quotes and backslashes, lists of them."""

import re

WORD = re.compile(r"""\s*+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^,{}%]*))\s*+""", re.DOTALL)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
BACK = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
PLAIN = re.compile(r"[^\s,{}%'\"\\?@]+\Z")


def unquote(text):
    """Return the text that stands between quotes with its backslashes resolved."""
    return ESCAPE.sub(_letter, text) if "\\" in text else text


def enquote(text):
    """Return `text` as an ARFF word, in quotes where needed."""
    if PLAIN.match(text):
        return text
    return "'" + "".join(BACK.get(letter, letter) for letter in text) + "'"


def words(text, start=0, close=""):
    """Split `text` at commas outside quotes, up to `close` or, where that is empty, the end or a comment.

    Returns
    -------
    found : list of (str, bool)
        The words, and whether each was quoted.
    end : int or None
        Where the list ended; None if it is malformed.
    """
    found = []
    while True:
        match = WORD.match(text, start)
        quoted = match[3] is None
        found.append(
            (unquote(match[1] if match[1] is not None else match[2]), True) if quoted else (match[3].rstrip(), False)
        )
        start = match.end()
        after = text[start : start + 1]
        if after == close or (not close and after == "%"):
            return found, start + len(close)
        if after != ",":
            return found, None
        start += 1


def _letter(match):
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return LETTERS.get(code, code)
