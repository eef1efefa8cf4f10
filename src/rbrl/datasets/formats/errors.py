"""The wording of errors in data files: file, line, reason."""

from contextlib import contextmanager

from rbrl.exceptions import DataFormatError

LONGEST_QUOTE = 60


def bad(path, reason, line=None):
    """Return the error for `path`: where it is wrong, and why."""
    place = f"{path}, line {line}" if line else f"{path}"
    return DataFormatError(f"{place}: {reason}")


def bad_word(path, name, word, line=None):
    """Return the error for a word in a block of a file that does not declare its words."""
    reason = "the code of a word depends on the whole file; use numbers, or ARFF, which declares its words"
    return bad(path, f"column {quote(name)} has {quote(word)}: {reason}", line)


@contextmanager
def memory_said(path):
    """Say of which file memory ran out, and what needs less; nothing need be wrong with the file."""
    try:
        yield
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise MemoryError(
            f"{path}: there is not enough memory to read it{why}. rbrl.datasets.load_parts reads text and Parquet files "
            "some rows at a time, and rbrl.datasets.write_shards (rbrl data convert --rows-per-shard) splits them into "
            "files that are fitted one at a time."
        ) from error


def quote(value):
    """Return `value` in quotes, cut to a length that fits a message."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…")
