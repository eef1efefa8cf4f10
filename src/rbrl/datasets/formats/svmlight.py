"""svmlight files with several labels per row: `1,3 5:0.25 7:1 # comment`.

What columns count from, 0 or 1, is said by the file's first line, by the reader's options, or by the model that the file
is for. Else a 0 among them shows it; where none occurs they are taken to count from 1, and a warning says that this is a
guess. A first line of three integers, as in the extreme classification repository, gives the numbers of rows, features and
labels, which then count from 0. What we write begins with a comment `# rbrl: {…}` with sizes and names, which other
programs skip.
"""

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.checks import users_level
from rbrl._common.typing import Matrix
from rbrl.datasets.columns import Columns, find_names
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import ReadOptions, bad, label_matrix, quote
from rbrl.datasets.formats.table import check_writable
from rbrl.datasets.formats.text import Pairs, in_blocks, reading_text, writing_text
from rbrl.datasets.formats.words import number, spell
from rbrl.exceptions import GuessWarning

MARK = "# rbrl: "
MAX_INDEX = 2**31 - 2
FEATURE_0 = re.compile(r"(?<!\S)0+:")
IN_COMMENT = ("n_features", "n_labels", "feature_names", "label_names")
# What a reader has to know; the file, its reader or a model says it.
FACTS = ("n_features", "n_labels", "first_feature", "first_label")


@dataclass(frozen=True)
class Head(Columns):
    """What is known of a file: sizes, what columns count from, names. `n_rows` if the first line is no row.

    Examples
    --------
    >>> Head(n_labels=2, first_label=0).settled(Path("a.svm"), features=[0, 4], labels=[]).n_features
    5
    """

    n_rows: int | None = None
    said: str = "that the first line announces"

    def settled(self, path: Path, features: list[int], labels: list[int]) -> "Head":
        """With sizes and what columns count from, as these numbers of columns show where it is not known.

        Parameters
        ----------
        path : Path
            For the warning that something was guessed.
        features, labels : list of int
            Numbers of columns that occur in the file, the least and the greatest among them.

        Returns
        -------
        Head
        """
        found: dict[str, Any] = {}
        guessed = []
        for what, numbers in (("feature", features), ("label", labels)):
            first, size = getattr(self, f"first_{what}"), getattr(self, f"n_{what}s")
            if first is None:
                first = min(1, *numbers) if numbers else 0
                guessed += [what] * first
            size = max([first - 1, *numbers]) + 1 - first if size is None else size
            found |= {f"first_{what}": first, f"n_{what}s": size}
        _say_guess(path, guessed)
        return replace(self, **found)


class _Block(NamedTuple):
    """Some rows: the columns of their labels, their features, their lines."""

    labels: Pairs
    features: Pairs
    lines: list[int]


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read a multi-label svmlight file; see the module's text.

    Parameters
    ----------
    path : Path
    options : ReadOptions

    Returns
    -------
    Dataset
    """
    with _opened(path, options) as (head, rows):
        blocks = list(_blocks(rows))
    if not blocks:
        said = quote({key: getattr(head, key, None) for key in FACTS})
        raise bad(f"there are no rows after its first line {said}" if head else "the file has no rows")
    labels, features, lines = zip(*blocks)
    whole = _Block(Pairs.joined(labels), Pairs.joined(features), list(chain(*lines)))
    head = head or _told(options)
    if head.n_rows not in (None, len(whole.lines)):
        raise bad(f"the first line announces {head.n_rows} rows; there are {len(whole.lines)}", 1)
    return _dataset(path, whole, head.settled(path, whole.features.ends, whole.labels.ends), options)


def parts(path: Path, options: ReadOptions, rows: int) -> Iterator[Dataset]:
    """Yield the rows as data sets of `rows` rows. Where the file does not say its sizes and what columns count from, a
    pass over it, with bounded memory, finds them.

    Parameters
    ----------
    path : Path
    options : ReadOptions
    rows : int

    Yields
    ------
    Dataset
    """
    features: list[int] = []
    labels: list[int] = []
    with _opened(path, options) as (head, lines):
        for block in _blocks(lines) if head is None else ():
            features, labels = features + block.features.ends, labels + block.labels.ends
    head = head or _told(replace(options, part=False)).settled(path, features, labels)
    with _opened(path, options) as (_, lines):
        for block in _blocks(lines, rows):
            yield _dataset(path, block, head, options)


def features(path: Path, options: ReadOptions, model: Columns, size: int) -> Iterator[Matrix]:
    """Yield X, at most `size` rows at a time. Where neither file nor model say what features count from, a pass over the
    file looks for a feature 0.

    Parameters
    ----------
    path : Path
    options : ReadOptions
    model : Columns
        Those of the model that the file is for.
    size : int

    Yields
    ------
    csr_array of shape (n_rows, n_features)
    """
    with _opened(path, options) as (head, rows):
        if head is None:
            first = model.first_feature if options.first_feature is None else options.first_feature
            if first is None:
                first = 0 if any(FEATURE_0.search(text) for text, _ in rows) else 1
                _say_guess(path, ["feature"] * first)
            head = Head(n_features=model.n_features, first_feature=first, said="that there should be")
    if head.n_features != model.n_features:
        raise bad(f"it has {head.n_features} features; there should be {model.n_features}")
    order = find_names("feature", head.feature_names, model.feature_names)
    with _opened(path, options) as (_, rows):
        for block in _blocks(rows, size):
            X = _matrix("feature", block.features, block.lines, head)
            yield X if order is None else X[:, order]


@contextmanager
def _opened(path: Path, options: ReadOptions) -> Iterator[tuple[Head | None, Iterator[tuple[str, int]]]]:
    """Yield what the first line says, if it does, and the rows, without comments, with their line numbers."""
    if options.labels is not None:
        raise bad(f"a svmlight file has its labels in front; got labels={options.labels!r}")
    with reading_text(path, options) as stream:
        first = stream.readline()
        head = _head(first)
        for what in ("feature", "label") if head else ():
            said, told = (getattr(known, f"first_{what}") for known in (head, options))
            if told not in (None, said):
                raise bad(f"by its first line, {what}s count from {said}; got first_{what}={told}", 1)
        lines = enumerate(chain([first] if head is None or head.n_rows is None else [""], stream), 1)
        yield head, ((text, i) for i, line in lines if (text := line.partition("#")[0].strip()))


def _head(line: str) -> Head | None:
    """Return what the first line says about sizes and names, if it does."""
    sizes = line.split()
    if len(sizes) == 3 and all(size.isdecimal() and len(size) < 10 for size in sizes):
        n_rows, n_features, n_labels = map(int, sizes)
        return Head(n_features, n_labels, first_feature=0, first_label=0, n_rows=n_rows)
    if not line.startswith(MARK):
        return None
    try:
        head = json.loads(line[len(MARK) :])
    except (ValueError, RecursionError) as error:
        raise bad(f"the comment {quote(line.strip())} is not JSON: {error}", 1) from error
    *counts, features, labels = (head.get(key) if type(head) is dict else None for key in IN_COMMENT)
    whole = all(type(count) is int and 0 < count <= MAX_INDEX for count in counts)
    if not whole or not all(names is None or type(names) is list for names in (features, labels)):
        raise bad(f"the comment {quote(line.strip())} must give n_features and n_labels", 1)
    return Head(**{key: head.get(key) for key in IN_COMMENT}, first_feature=1, first_label=0)


def _told(options: ReadOptions) -> Head:
    """What the reader was told about a file without a head, or the model knows that the file is for."""
    told = {key: getattr(options, key) for key in FACTS}
    if options.columns is not None:
        told = {key: getattr(options.columns, key) if told[key] is None else told[key] for key in FACTS}
        told["said"] = "that there should be"
    if options.part and None in told.values():
        raise bad(
            "its first line does not say how many features and labels there are and what they count from, and one part "
            "of a data set does not show it: pass n_features=, n_labels=, first_feature= and first_label=, or cut one file "
            "into parts that say it with `rbrl data convert FILE FOLDER --rows-per-shard N`"
        )
    return Head(**told)


def _say_guess(path: Path, guessed: list[str]) -> None:
    names, options = (" and ".join(form.format(what) for what in guessed) for form in ("{}s", "first_{}=0"))
    text = f"its {names} are taken to count from 1, because none is 0; if they count from 0, pass {options}."
    if guessed:
        warnings.warn(f"{path}: {text}", GuessWarning, stacklevel=users_level())


def _blocks(rows: Iterator[tuple[str, int]], size: int | None = None) -> Iterator[_Block]:
    for texts, lines in in_blocks(rows, size):
        labels, rests = zip(*map(_labels, texts, lines))
        tags = np.array(list(chain(*labels)), dtype=np.int64)
        counts = np.array([len(own) for own in labels], dtype=np.int64)
        features = Pairs.read(rests, ":") or Pairs.of_rows([*map(_row, rests, lines)])
        yield _Block(Pairs(tags, np.ones(len(tags), dtype=np.int8), counts), features, lines)


def _labels(text: str, line: int) -> tuple[list[int], str]:
    """Return (labels, the rest of the row)."""
    first, *rest = text.split(maxsplit=1)
    if ":" in first:
        return [], text
    labels = first.split(",")
    if not all(_is_index(label) for label in labels):
        raise bad(f"labels must be numbers from 0, with commas; got {quote(first)}", line)
    found = {int(label) for label in labels}
    if len(found) < len(labels):
        raise bad(f"a label occurs twice: {quote(first)}", line)
    return sorted(found), rest[0] if rest else ""


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 12 and int(text) <= MAX_INDEX


def _row(text: str, line: int) -> dict[int, float]:
    row: dict[int, float] = {}
    for word in text.split():
        index, colon, value = word.partition(":")
        if not colon or not _is_index(index):
            raise bad(f"expected index:value; got {quote(word)}", line)
        if int(index) in row:
            raise bad(f"feature {index} occurs twice in a row", line)
        found = number(value)
        if found is None or found != found:
            raise bad(f"feature {index} must be a finite number; got {quote(value)}", line)
        row[int(index)] = found
    return row


def _dataset(path: Path, block: _Block, head: Head, options: ReadOptions) -> Dataset:
    X = _matrix("feature", block.features, block.lines, head)
    Y = label_matrix(_matrix("label", block.labels, block.lines, head), options.sparse_labels)
    known = {key: getattr(head, key) for key in ("feature_names", "label_names", "first_feature", "first_label")}
    return Dataset(X, Y, name=path.name.split(".")[0], **known)


def _matrix(what: str, pairs: Pairs, lines: list[int], head: Head) -> Matrix:
    size, first = getattr(head, f"n_{what}s"), getattr(head, f"first_{what}")
    if size == 0:
        raise bad(f"none of its {len(pairs.counts)} rows has a {what}")
    indexes = pairs.indexes - first
    outside = (indexes < 0) | (indexes >= size)
    if outside.any():
        place = int(np.argmax(outside))
        line = lines[int(np.searchsorted(pairs.starts, place, side="right")) - 1]
        named = f"{what} {pairs.indexes[place]}"
        raise bad(f"{named} is not among the {size} {head.said}, which count from {first}", line)
    return sparse.csr_array((pairs.values, indexes, pairs.starts), shape=(len(pairs.counts), size))


def write(dataset: Dataset, path: Path) -> None:
    """Write a svmlight file; names go into a comment. Missing values cannot be written.

    Parameters
    ----------
    dataset : Dataset
    path : Path
    """
    check_writable(dataset, missing=False)
    if not dataset.n_features:
        raise bad(f"a svmlight file needs features; got {dataset.n_features}")
    X, Y = sparse.csr_array(dataset.X, copy=True), sparse.csr_array(dataset.Y)
    X.eliminate_zeros()
    head = {key: getattr(dataset.columns, key) for key in IN_COMMENT}
    with writing_text(path) as stream:
        stream.write(f"{MARK}{json.dumps(head)}\n")
        for i in range(dataset.n_samples):
            labels, row = Y.indices[Y.indptr[i] : Y.indptr[i + 1]], slice(X.indptr[i], X.indptr[i + 1])
            pairs = [f" {j + 1}:{spell(v)}" for j, v in zip(X.indices[row].tolist(), X.data[row].tolist())]
            if not len(labels) and not pairs:
                pairs = [" 1:0"]  # a blank line would not be a row
            stream.write(",".join(map(str, labels.tolist())) + "".join(pairs) + "\n")
