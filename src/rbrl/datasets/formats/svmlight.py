"""svmlight files with several labels per row: `1,3 5:0.25 7:1 # comment`.

Column numbers start at 0 or 1. The first line of the file, the options or the model say at which.
Otherwise they start at 0 if a column 0 occurs, and are assumed, with a warning, to start at 1 if not.
A first line of three integers, as in the extreme classification repository, has the numbers of rows,
features and labels; then columns start at 0, Y is sparse, and a line that begins with a space is a
row even if it is blank. Our files begin with a comment `# rbrl: {…}` with sizes
and names, which other programs skip.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.matrices import stack_rows
from rbrl._common.typing import Array, ArrayLike, IntArray, Matrix
from rbrl.datasets.columns import Columns, match_names
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import (
    Format,
    ReadOptions,
    create_text,
    format_error,
    format_number,
    group_rows,
    open_text,
    parse_number,
    quote,
    row_entries,
    warn_guess,
)
from rbrl.datasets.formats.table import check_writable, label_matrix

COMMENT_START = "# rbrl: "
MAX_COLUMN = 2**31 - 2  # indices are int32, and the number of columns is one more
FEATURE_0 = re.compile(r"(?<!\S)0+:")
COMMENT_KEYS = ("n_features", "n_labels", "feature_names", "label_names")
NEEDED_KEYS = ("n_features", "n_labels", "first_feature", "first_label")  # to build the matrices
# Rows of ARFF (",") and svmlight (":") entries. Possessive quantifiers prevent backtracking.
ROW_PATTERNS = {
    ",": re.compile(
        r"(?:[^\S\n]*+(?:\d++[^\S\n]++[^\s,]++[^\S\n]*+(?:,[^\S\n]*+\d++[^\S\n]++[^\s,]++[^\S\n]*+)*+)?+\n)*+"
    ),
    ":": re.compile(r"(?:[^\S\n]*+(?:\d++:[^\s:]++(?:[^\S\n]++|(?=\n)))*+\n)*+"),
}


def csr_from_rows(rows: Sequence[Mapping[int, float]]) -> Any:
    """Return rows that are mappings {column: value} as a CSR array with `MAX_COLUMN + 1` columns.

    Examples
    --------
    >>> csr_from_rows([{3: 0.5, 7: 1.0}, {}]).indices.tolist()
    [3, 7]
    """
    columns = np.array([j for row in rows for j in row], dtype=np.int64)
    values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
    return _build_csr(columns, values, [len(row) for row in rows])


def parse_sparse_rows(rows: Sequence[str], mark: str) -> Any:
    """Parse all rows at once, as `csr_from_rows` does; return None if a row must be parsed alone.

    The result is a CSR matrix with ``MAX_COLUMN + 1`` columns. The reader of ARFF files uses it, too.

    That is the case if a row is malformed, a value is not finite, or a column occurs twice in a
    row. The mark is "," for ARFF, ``3 0.5, 7 1``, and ":" for svmlight, ``3:0.5 7:1``.

    Examples
    --------
    >>> parse_sparse_rows(["3:0.5 7:1", ""], ":").indptr.tolist()
    [0, 2, 2]
    """
    text = "\n".join(rows) + "\n"
    # NumPy reads 1_0 as 10, as Python does; files do not mean that.
    if not text.isascii() or "_" in text or not ROW_PATTERNS[mark].fullmatch(text):
        return None
    counts = np.array([row.count(mark) for row in rows], dtype=np.int64)
    if mark == ",":  # a row has one more entry than commas, unless it is blank
        counts += np.array([bool(row.strip()) for row in rows])
    try:
        numbers = np.array(text.replace(mark, " ").split(), dtype=np.float64)
    except ValueError:
        return None
    if len(numbers) != 2 * counts.sum():
        return None
    values = numbers[1::2].copy()  # scikit-learn needs contiguous arrays
    if numbers[::2].max(initial=0) > MAX_COLUMN or not np.isfinite(values).all():
        return None
    columns = numbers[::2].astype(np.int64)
    rows_of_entries = np.repeat(np.arange(len(counts)), counts)
    places = np.sort(rows_of_entries * (columns.max(initial=0) + 1) + columns)
    return None if (places[1:] == places[:-1]).any() else _build_csr(columns, values, counts)


def _build_csr(columns: IntArray, values: Array, counts: ArrayLike) -> Any:
    """Return a CSR array with these columns and values, and a number of entries for each row.

    It has `MAX_COLUMN + 1` columns, because the number of columns is not known yet.
    """
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return sparse.csr_array((values, columns.astype(np.int32), starts), shape=(len(starts) - 1, MAX_COLUMN + 1))


def _column_range(entries: Any) -> list[int]:
    """Return the lowest and the highest column with an entry of a CSR array; [] without entries."""
    return [int(entries.indices.min()), int(entries.indices.max())] if entries.nnz else []


@dataclass(frozen=True)
class Head(Columns):
    """Columns of a file as far as they are known: sizes, lowest column numbers and names.

    `n_rows` is set if the first line is a line of sizes. `source` describes the columns in messages.

    Examples
    --------
    >>> Head(n_labels=2, first_label=0).complete(Path("a.svm"), features=[0, 4], labels=[]).n_features
    5
    """

    n_rows: int | None = None
    source: str = "that the first line announces"

    def complete(self, path: Path, features: list[int], labels: list[int]) -> "Head":
        """Return the head with unknown sizes and lowest column numbers set by the columns that occur.

        `features` and `labels` have the lowest and the highest column number of the file.
        """
        known: dict[str, Any] = {}
        guesses = []
        for what, numbers in (("feature", features), ("label", labels)):
            first = getattr(self, f"first_{what}")
            size = getattr(self, f"n_{what}s")
            if first is None:
                first = min(1, *numbers) if numbers else 0
                guesses += [what] * first
            size = max([first - 1, *numbers]) + 1 - first if size is None else size
            known |= {f"first_{what}": first, f"n_{what}s": size}
        _warn_first_columns(path, guesses)
        return replace(self, **known)


class _Block(NamedTuple):
    """Parsed rows: their labels and their features as CSR arrays, and their line numbers."""

    labels: Any
    features: Any
    lines: list[int]

    @classmethod
    def parse(cls, rows: Sequence[str], lines: list[int]) -> "_Block":
        """Return the block of rows of text; `lines` are their line numbers, for errors."""
        labels, rests = zip(*map(_split_labels, rows, lines))
        columns = np.array(list(chain(*labels)), dtype=np.int64)
        features = parse_sparse_rows(rests, ":")
        if features is None:
            features = csr_from_rows([*map(_parse_row, rests, lines)])
        return cls(_build_csr(columns, np.ones(len(columns), dtype=np.int8), [*map(len, labels)]), features, lines)

    def matrix(self, what: str, head: Head) -> Matrix:
        """Return the features or the labels, whose columns must fit the head."""
        entries = getattr(self, f"{what}s")
        size = getattr(head, f"n_{what}s")
        first = getattr(head, f"first_{what}")
        if size == 0:
            raise format_error(f"none of its {len(self.lines)} rows has a {what}")
        columns = entries.indices - first
        outside = (columns < 0) | (columns >= size)
        if outside.any():
            place = int(np.argmax(outside))
            line = self.lines[int(np.searchsorted(entries.indptr, place, side="right")) - 1]
            number = entries.indices[place]
            raise format_error(
                f"{what} {number} is not among the {size} {what}s {head.source}, which count from {first}", line
            )
        return sparse.csr_array((entries.data, columns, entries.indptr), shape=(len(self.lines), size))

    def dataset(self, path: Path, head: Head, options: ReadOptions) -> Dataset:
        """Return the rows as a data set."""
        is_sparse = options.sparse_labels or head.n_rows is not None
        return Dataset(
            self.matrix("feature", head),
            label_matrix(self.matrix("label", head), is_sparse),
            head.feature_names,
            head.label_names,
            path.name.split(".")[0],
            first_feature=head.first_feature,
            first_label=head.first_label,
        )


class Svmlight(Format):
    """Reader and writer of svmlight files."""

    name = "svmlight"
    endings: tuple[str, ...] = (".svmlight", ".svm", ".libsvm", ".txt")
    may_be_packed = True

    def read(self, path: Path, options: ReadOptions) -> Dataset:
        """Read a svmlight file with several labels per row."""
        with _open_rows(path, options) as (head, rows):
            blocks = [_Block.parse(*block) for block in group_rows(rows)]
        if not blocks:
            found = ", ".join(f"{key}={getattr(head, key, None)}" for key in NEEDED_KEYS)
            raise format_error(
                f"no rows follow the first line, which announces {found}" if head else "the file has no rows"
            )
        labels, features, lines = zip(*blocks)
        whole = _Block(stack_rows(labels), stack_rows(features), list(chain(*lines)))
        head = head or _head_from_options(options)
        if head.n_rows not in (None, len(whole.lines)):
            raise format_error(f"the first line announces {head.n_rows} rows; there are {len(whole.lines)}", 1)
        head = head.complete(path, _column_range(whole.features), _column_range(whole.labels))
        return whole.dataset(path, head, options)

    def parts(self, path: Path, options: ReadOptions, size: int) -> Iterator[Dataset]:
        """Yield the file as data sets of `size` rows.

        If the first line has no sizes, a first pass over the file finds them with bounded memory.
        """
        features: list[int] = []
        labels: list[int] = []
        with _open_rows(path, options) as (head, texts):
            for lines in group_rows(texts) if head is None else ():
                block = _Block.parse(*lines)
                features += _column_range(block.features)
                labels += _column_range(block.labels)
        head = head or _head_from_options(replace(options, part=False)).complete(path, features, labels)
        with _open_rows(path, options) as (_, texts):
            for lines in group_rows(texts, size):
                yield _Block.parse(*lines).dataset(path, head, options)

    def features(self, path: Path, options: ReadOptions, columns: Columns, size: int) -> Iterator[Matrix]:
        """Yield the features, at most `size` rows at a time, for a model with these columns.

        If neither the file nor the model says whether features start at 0 or 1, a first pass over the
        file looks for a feature 0.
        """
        with _open_rows(path, options) as (head, rows):
            if head is None:
                first = columns.first_feature if options.first_feature is None else options.first_feature
                if first is None:
                    first = 0 if any(FEATURE_0.search(text) for text, _ in rows) else 1
                    _warn_first_columns(path, ["feature"] * first)
                head = Head(n_features=columns.n_features, first_feature=first, source="that the model needs")
        if head.n_features != columns.n_features:
            raise format_error(f"it has {head.n_features} features; there should be {columns.n_features}")
        order = match_names("feature", head.feature_names, columns.feature_names)
        with _open_rows(path, options) as (_, rows):
            for block in group_rows(rows, size):
                X = _Block.parse(*block).matrix("feature", head)
                yield X if order is None else X[:, order]

    def write(self, dataset: Dataset, path: Path, labels_first: bool = False) -> None:
        """Write a svmlight file with sizes and names in a comment; missing values are refused."""
        check_writable(dataset, missing=False)
        if not dataset.n_features:
            raise format_error(f"a svmlight file needs features; got {dataset.n_features}")
        X = sparse.csr_array(dataset.X, copy=True)
        X.eliminate_zeros()
        Y = sparse.csr_array(dataset.Y)
        head = {key: getattr(dataset.columns, key) for key in COMMENT_KEYS}
        with create_text(path) as stream:
            stream.write(f"{COMMENT_START}{json.dumps(head)}\n")
            for features, labels in zip(row_entries(X), row_entries(Y)):
                text = ",".join(str(j) for j, _ in labels)
                text += "".join(f" {j + 1}:{format_number(value)}" for j, value in features)
                stream.write((text or " 1:0") + "\n")  # a blank line would not be a row


@contextmanager
def _open_rows(path: Path, options: ReadOptions) -> Iterator[tuple[Head | None, Iterator[tuple[str, int]]]]:
    """Yield the head in the first line, or None, and the rows with their line numbers.

    Rows are texts without comments, and are read on demand.
    """
    with open_text(path, options) as stream:
        first_line = stream.readline()
        head = _parse_head(first_line)
        for what in ("feature", "label") if head else ():
            first = getattr(head, f"first_{what}")
            given = getattr(options, f"first_{what}")
            if given not in (None, first):
                raise format_error(f"by its first line, {what}s count from {first}; got first_{what}={given}", 1)
        has_sizes = head is not None and head.n_rows is not None
        lines = enumerate(chain(["" if has_sizes else first_line], stream), 1)
        texts = ((line.partition("#")[0], i) for i, line in lines)
        # After a line of sizes, a row without labels and features is a space.
        is_row = str.strip if not has_sizes else (lambda text: text.strip() or text.startswith(" "))
        yield head, ((text.strip(), i) for text, i in texts if is_row(text))


def parse_sizes(line: str) -> list[int] | None:
    """Return the numbers of rows, features and labels in a line of sizes, or None."""
    sizes = line.split()
    if len(sizes) == 3 and all(size.isdecimal() and len(size) < 10 for size in sizes):
        return [int(size) for size in sizes]
    return None


def _parse_head(line: str) -> Head | None:
    """Return the sizes and names in a first line, or None if it is an ordinary row."""
    if sizes := parse_sizes(line):
        n_rows, n_features, n_labels = sizes
        return Head(n_features, n_labels, first_feature=0, first_label=0, n_rows=n_rows)
    if not line.startswith(COMMENT_START):
        return None
    try:
        head = json.loads(line[len(COMMENT_START) :])
    except (ValueError, RecursionError) as error:
        raise format_error(f"the comment {quote(line.strip())} is not JSON: {error}", 1) from error
    *counts, features, labels = (head.get(key) if type(head) is dict else None for key in COMMENT_KEYS)
    are_sizes = all(type(count) is int and 0 < count <= MAX_COLUMN for count in counts)
    if not are_sizes or not all(names is None or type(names) is list for names in (features, labels)):
        raise format_error(f"the comment {quote(line.strip())} must give n_features and n_labels", 1)
    return Head(**{key: head.get(key) for key in COMMENT_KEYS}, first_feature=1, first_label=0)


def _head_from_options(options: ReadOptions) -> Head:
    """Return the head that the options or the columns of the model give."""
    known = {key: getattr(options, key) for key in NEEDED_KEYS}
    if options.columns is not None:
        known = {key: getattr(options.columns, key) if known[key] is None else known[key] for key in NEEDED_KEYS}
        known["source"] = "that the model needs"
    if options.part and None in known.values():
        raise format_error(
            "its first line does not give the numbers of features and labels and the first column numbers, and one part "
            "of a data set does not show them: pass n_features=, n_labels=, first_feature= and first_label=, or split one "
            "file into shards with `rbrl data convert FILE FOLDER --rows-per-shard N`"
        )
    return Head(**known)


def _warn_first_columns(path: Path, guesses: list[str]) -> None:
    """Warn if the columns of features or labels were guessed to start at 1."""
    if guesses:
        names, options = (" and ".join(form.format(what) for what in guesses) for form in ("{}s", "first_{}=0"))
        guess = "are assumed to start at 1, because there is no column 0; if they start at 0,"
        warn_guess(path, f"its {names} {guess} pass {options}.")


def _split_labels(text: str, line: int) -> tuple[list[int], str]:
    """Return the labels and the rest of a row."""
    first, *rest = text.split(maxsplit=1) or [""]
    if ":" in first or not first:
        return [], text
    labels = first.split(",")
    if not all(_is_column(label) for label in labels):
        raise format_error(f"labels must be numbers from 0, with commas; got {quote(first)}", line)
    found = {int(label) for label in labels}
    if len(found) < len(labels):
        raise format_error(f"a label occurs twice: {quote(first)}", line)
    return sorted(found), rest[0] if rest else ""


def _is_column(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 12 and int(text) <= MAX_COLUMN


def _parse_row(text: str, line: int) -> dict[int, float]:
    row: dict[int, float] = {}
    for word in text.split():
        column, colon, value = word.partition(":")
        if not colon or not _is_column(column):
            raise format_error(f"expected index:value; got {quote(word)}", line)
        if int(column) in row:
            raise format_error(f"feature {column} occurs twice in a row", line)
        number = parse_number(value)
        if number is None or number != number:
            raise format_error(f"feature {column} must be a finite number; got {quote(value)}", line)
        row[int(column)] = number
    return row
