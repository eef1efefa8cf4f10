"""The wording of errors in data files: file, line, reason."""

from rbrl.exceptions import DataFormatError

LONGEST_QUOTE = 60


def bad(path, reason, line=None):
    """Return the error for `path`: where it is wrong, and why."""
    place = f"{path}, line {line}" if line else f"{path}"
    return DataFormatError(f"{place}: {reason}")


def quote(value):
    """Return `value` in quotes, cut to a length that fits a message."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…")
