"""CSV and TSV files: a header of column names, then numbers or words.

Labels are told by name or count, or by Mulan's XML file of the same name, which the writer puts beside the file.
An empty cell, `?`, `NA`, `null` and the like (`words.MISSING`) are missing values. A column of words has codes in
alphabetical order, which only `nominal` asks for; numbers with a stray word among them are refused. The row index that
pandas writes into a first column without a name is left out, with a warning.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.typing import FloatArray
from rbrl.datasets.dataset import Dataset, dense
from rbrl.datasets.formats import MAX_DENSE_CELLS, MAX_WORDS, ReadOptions, bad, bad_word, quote
from rbrl.datasets.formats.column_choice import (
    Choice,
    ignored_columns,
    index_columns,
    warn_of_index,
    write_labels,
    xml_path,
)
from rbrl.datasets.formats.table import Table, check_writable
from rbrl.datasets.formats.text import in_blocks, reading_text, writing_text
from rbrl.datasets.formats.words import column_codes, is_missing, number, spell, truth_codes

SEPARATORS = ",;\t|"
HEAD_LINES = 20  # from which the separator is guessed
ROWS = 4096
HINT = "; cells are separated by a comma, semicolon, tab or |"

Codes = Mapping[int, Mapping[str, float]]


class _Block(NamedTuple):
    """Some rows: their numbers and lines, and {column: (word, line)} of the first word that has no code."""

    matrix: FloatArray
    lines: list[int]
    words: dict[int, tuple[str, int]]


def tables(path: Path, options: ReadOptions, size: int | None = None, choose: Choice | None = None) -> Iterator[Table]:
    """Yield the rows of a CSV file, `size` at a time; by default all of them, in tables of any size.

    The separator (comma, semicolon, tab, |) is the one that header and first row have most of. Words have the codes that
    they have in the whole file, which takes further passes over it; among chosen columns all words but those for truth,
    such as yes and no, are refused.

    Parameters
    ----------
    path : Path
    options : ReadOptions
    size : int, optional
    choose : callable, optional
        Which columns are wanted.

    Yields
    ------
    Table
    """
    with _opened(path, options, warn=not options.part) as (names, _):
        pass
    if choose is None:
        codes, kept = _first_pass(path, options, names, keep=size is None)
        for block, coded in zip(kept, _blocks(path, options, ROWS, codes, list(codes)) if codes else ()):
            block.matrix[:, list(codes)] = coded.matrix
            block.words.clear()
        blocks = iter(kept) if kept else _blocks(path, options, size, codes)
    else:
        codes, blocks = {}, _blocks(path, options, size, {}, choose(names, None), truth=True)
    for block in blocks:
        for j, (word, line) in block.words.items():
            raise bad_word(names[j], word, line)
        yield Table(path, names, block.matrix, block.lines, codes, hint=HINT)


def _first_pass(path: Path, options: ReadOptions, names: list[str], keep: bool) -> tuple[Codes, list[_Block]]:
    """What words are worth, which takes another pass if there are any; and the rows without them, to `keep` them."""
    kept: list[_Block] = []
    wordy: set[int] = set()
    n_rows = 0
    for block in _blocks(path, options, ROWS, {}):
        wordy |= block.words.keys()
        n_rows += len(block.lines)
        if keep and n_rows * len(names) > MAX_DENSE_CELLS:
            raise bad(f"more than {MAX_DENSE_CELLS} cells: use a sparse format", block.lines[-1])
        kept += [block] if keep else []
    if keep and not n_rows:
        raise bad(f"there are no rows below the header of {len(names)} columns", 1)
    return _codes(path, options, names, sorted(wordy)) if wordy else {}, kept


def _codes(path: Path, options: ReadOptions, names: list[str], wordy: list[int]) -> Codes:
    counts: dict[int, Counter[str]] = {j: Counter() for j in wordy}
    seen: dict[int, dict[str, int]] = {j: {} for j in wordy}
    with _opened(path, options) as (_, rows):
        for row, line in rows:
            for j in wordy:
                word = row[j].strip()
                if not is_missing(word):
                    seen[j].setdefault(word, line)
                    counts[j][word] += 1
                if len(counts[j]) > MAX_WORDS:
                    column_codes(names[j], counts[j], seen[j])
    return {j: column_codes(names[j], counts[j], seen[j]) for j in wordy}


def _blocks(
    path: Path, options: ReadOptions, size: int | None, codes: Codes, wanted: Sequence[int] | None = None,
    truth: bool = False,
) -> Iterator[_Block]:  # fmt: skip
    """Read the file once: the columns that are wanted, or all, with the codes that are known.

    Columns to ignore are NaN. With `truth`, words such as yes and no are 1 and 0 where a block of a column has no others.
    """
    with _opened(path, options) as (names, numbered):
        ignored = ignored_columns(names, options)
        for rows, lines in in_blocks(numbered, size):
            cells, words, columns = list(zip(*rows)), {}, range(len(names)) if wanted is None else wanted
            matrix = np.full((len(rows), len(columns)), np.nan)
            for i, j in enumerate(columns):
                if j in ignored:
                    continue
                own = codes.get(j)
                values = [_value(cell) if own is None else own.get(cell.strip(), np.nan) for cell in cells[j]]
                if truth and None in values:
                    values = _truth_values(cells[j]) or values
                if None in values:
                    place = values.index(None)
                    words[j] = cells[j][place].strip(), lines[place]
                matrix[:, i] = values  # None is NaN here, until its code is known
            yield _Block(matrix, lines, words)


def _value(cell: str) -> float | None:
    """The number in a cell, NaN if it is missing, None if it is a word."""
    value = number(cell)
    return np.nan if value is None and is_missing(cell.strip()) else value


def _truth_values(cells: Sequence[str]) -> list[float | None] | None:
    """Return 1 and 0 for words such as yes and no, NaN where a cell is missing; None if there are other words."""
    words = [cell.strip() for cell in cells]
    codes = truth_codes({word for word in words if not is_missing(word)})
    return None if codes is None else [codes.get(word, np.nan) for word in words]


@contextmanager
def _opened(
    path: Path, options: ReadOptions, warn: bool = False
) -> Iterator[tuple[list[str], Iterator[tuple[list[str], int]]]]:
    """Yield the names of the columns, and the rows with their lines; both without the row index of pandas."""
    with reading_text(path, options) as stream:
        head = list(islice(stream, HEAD_LINES))
        reader = csv.reader(chain(head, stream), delimiter=_separator(head), strict=True)
        try:
            names = next(reader, None)
            if not names:
                first = head[0] if head else ""
                raise bad(f"there is no header of column names; the file begins with {quote(first)}", 1)
            index = index_columns(names, options)
            if index and warn:
                warn_of_index(path, [names[j] for j in sorted(index)])
            kept = [j for j in range(len(names)) if j not in index]
            rows = _rows(reader, len(names))
            if index:
                rows = (([row[j] for j in kept], line) for row, line in rows)
            yield [names[j] for j in kept], rows
        except csv.Error as error:
            raise bad(f"{error}", reader.line_num) from error


def _rows(reader: Any, n_columns: int) -> Iterator[tuple[list[str], int]]:
    for row in reader:
        if row and len(row) != n_columns:
            raise bad(f"a row has {len(row)} cells, the header {n_columns} columns", reader.line_num)
        if row:
            yield row, reader.line_num


def _separator(head: list[str]) -> str:
    """The mark that gives the header as many cells as the first row, and most of them."""

    def cells(mark: str) -> tuple[bool, int]:
        try:
            header, row, *_ = chain(islice(filter(None, csv.reader(head, delimiter=mark)), 2), ([], []))
        except csv.Error:
            return False, 0
        return 1 < len(header) == len(row), len(header)

    return max(SEPARATORS, key=cells)


def write(dataset: Dataset, path: Path, labels_first: bool = False) -> None:
    """Write a CSV file and Mulan's XML file beside it. Sparse rows are written out in full.

    Parameters
    ----------
    dataset : Dataset
    path : Path
        Its ending, .csv or .tsv, decides between commas and tabs.
    labels_first : bool
        Put the labels before the features.
    """
    check_writable(dataset, xml=True)
    if dataset.n_samples * (dataset.n_features + dataset.n_labels) > MAX_DENSE_CELLS:
        raise bad(f"X of shape {dataset.X.shape} is too large to be written out in full: use a sparse format")
    sides = [(dataset.X, dataset.feature_names), (dataset.Y, dataset.label_names)]
    (first, first_names), (second, second_names) = sides[::-1] if labels_first else sides
    names = [*first_names, *second_names]
    if index := index_columns(names):
        raise bad(f"column {quote(names[min(index)])} would be read as the row index of pandas: give it another name")
    mark = "\t" if path.name.removesuffix(".gz").endswith(".tsv") else ","
    with writing_text(path) as stream:
        header = csv.writer(stream, delimiter=mark, quoting=csv.QUOTE_ALL, lineterminator="\n")
        header.writerow(names)
        for i in range(dataset.n_samples):
            row = [value for block in (first, second) for value in dense(block[[i]])[0].tolist()]
            stream.write(mark.join(map(spell, row)) + "\n")
    write_labels(dataset.label_names, xml_path(path))
