"""CSV and TSV files: a header of column names, then numbers or words.

Labels are named by the user, or by Mulan's XML file of the same name, which `write` also creates.
An empty cell, `?`, `NA`, `null` and the like (`table.MISSING_WORDS`) are missing values. With the
option `nominal`, words have codes in alphabetical order. Words in a column of numbers are refused.
The row index that pandas writes into a first column without a name is left out, with a warning.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.frames import as_dense
from rbrl._common.typing import FloatArray
from rbrl.datasets.columns import ColumnChoice, drop_index_columns, find_ignored_columns, find_index_columns
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import (
    MAX_DENSE_CELLS,
    ReadOptions,
    format_error,
    format_number,
    group_rows,
    open_text,
    quote,
)
from rbrl.datasets.formats.table import (
    MAX_WORDS,
    Table,
    check_dense_size,
    column_codes,
    create_text_table,
    is_missing,
    parse_cells,
    undeclared_word_error,
)

CSV_SEPARATORS = ",;\t|"
SEPARATOR_HINT = "; cells are separated by a comma, semicolon, tab or |"
N_HEAD_LINES = 20  # lines from which the separator is guessed
ROWS_PER_PASS_BLOCK = 4096

Codes = Mapping[int, Mapping[str, float]]


class _Block(NamedTuple):
    """Some rows: numbers, line numbers, and {column: (word, line)} of the first word without a code."""

    matrix: FloatArray
    lines: list[int]
    words: dict[int, tuple[str, int]]


def tables(
    path: Path, options: ReadOptions, size: int | None = None, choose: ColumnChoice | None = None
) -> Iterator[Table]:
    """Yield the rows of a CSV file, `size` at a time; by default all rows, in tables of any size.

    The separator (comma, semicolon, tab, |) is the one that splits the header and the first row
    into most cells. Words have the codes of the whole file, which needs further passes over it.
    `choose` chooses the columns; then all words but truth words, such as yes and no, are refused.
    """
    with _open_rows(path, options, warn=not options.part) as (names, _):
        pass
    codes: Codes = {}
    if choose is None:
        codes, blocks = _read_all_columns(path, options, names, size)
    else:
        blocks = _read_blocks(path, options, size, {}, choose(names, None), truth=True)
    for block in blocks:
        for j, (word, line) in block.words.items():
            raise undeclared_word_error(names[j], word, line)
        yield Table(path, names, block.matrix, block.lines, codes, hint=SEPARATOR_HINT)


def _read_all_columns(
    path: Path, options: ReadOptions, names: list[str], size: int | None
) -> tuple[Codes, Iterator[_Block]]:
    """Return the codes of words, and all rows with these codes; without a size, rows are kept from the first pass."""
    kept: list[_Block] = []
    word_columns: set[int] = set()
    n_rows = 0
    for block in _read_blocks(path, options, ROWS_PER_PASS_BLOCK, {}):
        word_columns |= block.words.keys()
        n_rows += len(block.lines)
        if size is None and n_rows * len(names) > MAX_DENSE_CELLS:
            raise format_error(f"more than {MAX_DENSE_CELLS} cells: use a sparse format", block.lines[-1])
        kept += [block] if size is None else []
    if size is None and not n_rows:
        raise format_error(f"there are no rows below the header of {len(names)} columns", 1)
    codes = _count_words(path, options, names, sorted(word_columns)) if word_columns else {}
    if size is not None:
        return codes, _read_blocks(path, options, size, codes)
    coded = _read_blocks(path, options, ROWS_PER_PASS_BLOCK, codes, list(codes)) if codes else ()
    for block, coded_block in zip(kept, coded):
        block.matrix[:, list(codes)] = coded_block.matrix
        block.words.clear()
    return codes, iter(kept)


def _count_words(path: Path, options: ReadOptions, names: list[str], columns: list[int]) -> Codes:
    """Return the codes of words in these columns, from a pass over the file."""
    counts: dict[int, Counter[str]] = {j: Counter() for j in columns}
    first_lines: dict[int, dict[str, int]] = {j: {} for j in columns}
    with _open_rows(path, options) as (_, rows):
        for row, line in rows:
            for j in columns:
                word = row[j].strip()
                if not is_missing(word):
                    first_lines[j].setdefault(word, line)
                    counts[j][word] += 1
                if len(counts[j]) > MAX_WORDS:
                    column_codes(names[j], counts[j], first_lines[j])  # raises an error
    return {j: column_codes(names[j], counts[j], first_lines[j]) for j in columns}


def _read_blocks(
    path: Path, options: ReadOptions, size: int | None, codes: Codes, chosen: Sequence[int] | None = None,
    truth: bool = False,
) -> Iterator[_Block]:  # fmt: skip
    """Read the chosen columns, by default all, with the codes of words; ignored columns are NaN.

    With `truth`, words such as yes and no are 1 and 0 if a block of a column has no other words.
    """
    with _open_rows(path, options) as (names, numbered_rows):
        ignored = find_ignored_columns(names, options)
        columns = range(len(names)) if chosen is None else chosen
        for rows, lines in group_rows(numbered_rows, size):
            cells = list(zip(*rows))
            words = {}
            matrix = np.full((len(rows), len(columns)), np.nan)
            for i, j in enumerate(columns):
                if j in ignored:
                    continue
                values = parse_cells(cells[j], codes.get(j), truth)
                if None in values:
                    place = values.index(None)
                    words[j] = (cells[j][place].strip(), lines[place])
                matrix[:, i] = values  # a word without a code is NaN
            yield _Block(matrix, lines, words)


@contextmanager
def _open_rows(
    path: Path, options: ReadOptions, warn: bool = False
) -> Iterator[tuple[list[str], Iterator[tuple[list[str], int]]]]:
    """Yield the names of the columns, and the rows with their line numbers, without pandas' row index."""
    with open_text(path, options) as stream:
        head = list(islice(stream, N_HEAD_LINES))
        reader = csv.reader(chain(head, stream), delimiter=_guess_separator(head), strict=True)
        try:
            names = next(reader, None)
            if not names:
                first = head[0] if head else ""
                raise format_error(f"there is no header of column names; the file begins with {quote(first)}", 1)
            kept = drop_index_columns(path, names, options, warn)
            rows = _check_rows(reader, len(names))
            if len(kept) < len(names):
                rows = (([row[j] for j in kept], line) for row, line in rows)
            yield [names[j] for j in kept], rows
        except csv.Error as error:
            raise format_error(f"{error}", reader.line_num) from error


def _check_rows(reader: Any, n_columns: int) -> Iterator[tuple[list[str], int]]:
    for row in reader:
        if row and len(row) != n_columns:
            raise format_error(f"a row has {len(row)} cells, the header {n_columns} columns", reader.line_num)
        if row:
            yield row, reader.line_num


def _guess_separator(head: list[str]) -> str:
    """Return the separator that gives the header as many cells as the first row, and most cells."""

    def count_cells(mark: str) -> tuple[bool, int]:
        try:
            header, row, *_ = chain(islice(filter(None, csv.reader(head, delimiter=mark)), 2), ([], []))
        except csv.Error:
            return False, 0
        return 1 < len(header) == len(row), len(header)

    return max(CSV_SEPARATORS, key=count_cells)


def write(dataset: Dataset, path: Path, labels_first: bool = False) -> None:
    """Write a CSV or TSV file and Mulan's XML file beside it; sparse rows are written in full."""
    check_dense_size(dataset)
    separator = "\t" if path.name.removesuffix(".gz").endswith(".tsv") else ","
    with create_text_table(dataset, path, labels_first) as (stream, blocks, names):
        for j in find_index_columns(names):
            raise format_error(
                f"column {quote(names[j])} would be read as the row index of pandas: give it another name"
            )
        csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(names)
        for i in range(dataset.n_samples):
            row = [value for block in blocks for value in as_dense(block[[i]])[0].tolist()]
            stream.write(separator.join(map(format_number, row)) + "\n")
