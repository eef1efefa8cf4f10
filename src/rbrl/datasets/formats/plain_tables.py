"""CSV, TSV and Parquet files: tables that do not declare the words of their columns.

A CSV file has a header of column names, then numbers or words. Labels are named by the user, or by
Mulan's XML file of the same name, which is also written. The metadata of a Parquet file (needs
pyarrow) say which columns are labels.

An empty cell, `?`, `NA`, `null` and the like (`words.MISSING_WORDS`) are missing values. With the
option `nominal`, words have codes in alphabetical order; without it, few words become columns of 0/1.
Words in a column of numbers are refused.
The row index that pandas writes into a first column without a name is left out, with a warning.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.environment import import_extra, replace_file
from rbrl._common.frames import as_dense
from rbrl._common.typing import FloatArray
from rbrl.datasets.columns import ColumnChoice, drop_index_columns, find_ignored_columns, find_index_columns
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import (
    MAX_DENSE_CELLS,
    ReadOptions,
    format_error,
    format_number,
    open_text,
    quote,
)
from rbrl.datasets.formats.table import (
    Table,
    TableFormat,
    check_dense_size,
    check_names,
    create_text_table,
    order_columns,
)
from rbrl.datasets.formats.words import (
    MAX_WORDS,
    column_codes,
    is_missing,
    parse_categories,
    parse_cells,
    undeclared_word_error,
    unknown_word_error,
)

CSV_SEPARATORS = ",;\t|"
SEPARATOR_HINT = "; cells are separated by a comma, semicolon, tab or |"
N_HEAD_LINES = 20  # lines from which the separator is guessed
ROWS_PER_PASS_BLOCK = 4096  # rows of CSV that are cells of text at one time
METADATA_KEY = b"rbrl"
ROWS_PER_BATCH = 1 << 16  # rows of Parquet that are decoded at a time

Codes = Mapping[int, Mapping[str, float]]


class Csv(TableFormat):
    """Reader and writer of CSV and TSV files."""

    name = "csv"
    endings = (".csv", ".tsv")
    may_be_packed = True

    def tables(
        self, path: Path, options: ReadOptions, size: int | None = None, choose: ColumnChoice | None = None
    ) -> Iterator[Table]:
        """Yield the rows of a file, `size` at a time; by default all rows, in tables of any size.

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
            blocks = _read_blocks(path, options, size or ROWS_PER_PASS_BLOCK, {}, choose(names, None), truth=True)
        for block in blocks:
            for j, (word, line) in block.words.items():
                if choose and names[j] in _model_categories(options):
                    raise unknown_word_error(names[j], word, _model_categories(options)[names[j]], line)
                raise undeclared_word_error(names[j], word, line)
            yield Table(path, names, block.matrix, block.lines, codes, hint=SEPARATOR_HINT)

    def write(self, dataset: Dataset, path: Path, labels_first: bool = False) -> None:
        """Write a file, and Mulan's XML file in the same folder; sparse rows are written in full."""
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


class _Block(NamedTuple):
    """Some rows: numbers, line numbers, and {column: (word, line)} of the first word without a code."""

    matrix: FloatArray
    lines: list[int]
    words: dict[int, tuple[str, int]]


def _read_all_columns(
    path: Path, options: ReadOptions, names: list[str], size: int | None
) -> tuple[Codes, Iterator[_Block]]:
    """Return the codes of words, and an iterator over all rows with these codes.

    Without `size`, rows that were read in the first pass are kept unless words occur.
    """
    kept: list[_Block] = []
    word_columns: set[int] = set()
    n_rows = 0
    for block in _read_blocks(path, options, ROWS_PER_PASS_BLOCK, {}):
        word_columns |= block.words.keys()
        n_rows += len(block.lines)
        if size is None and n_rows * len(names) > MAX_DENSE_CELLS:
            raise format_error(f"more than {MAX_DENSE_CELLS} cells: use a sparse format", block.lines[-1])
        if size is None and not word_columns:
            kept.append(block)
    if size is None and not n_rows:
        raise format_error(f"there are no rows below the header of {len(names)} columns", 1)
    if size is None and not word_columns:
        return {}, iter(kept)
    codes = _count_words(path, options, names, sorted(word_columns)) if word_columns else {}
    return codes, _read_blocks(path, options, size or ROWS_PER_PASS_BLOCK, codes)


def _count_words(path: Path, options: ReadOptions, names: list[str], columns: list[int]) -> Codes:
    """Return the codes of words in these columns, from a pass over the file.

    A column that is not made of categories, such as one of ids, raises an error.
    """
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
    path: Path, options: ReadOptions, size: int, codes: Codes, chosen: Sequence[int] | None = None,
    truth: bool = False,
) -> Iterator[_Block]:  # fmt: skip
    """Read the chosen columns, by default all, `size` rows at a time, with the codes of words.

    Ignored columns are NaN. With `truth`, words such as yes and no are 1 and 0 if a block of a
    column has no other words. A block reports the first word without a code of each column.
    """
    with _open_rows(path, options) as (names, numbered_rows):
        ignored = find_ignored_columns(names, options)
        columns = range(len(names)) if chosen is None else chosen
        while block := list(islice(numbered_rows, size)):
            rows, lines = map(list, zip(*block))
            cells = list(zip(*rows))
            words = {}
            matrix = np.full((len(rows), len(columns)), np.nan)
            for i, j in enumerate(columns):
                if j in ignored:
                    continue
                categories = _model_categories(options).get(names[j]) if truth else None
                values = (
                    parse_categories(cells[j], categories) if categories else parse_cells(cells[j], codes.get(j), truth)
                )
                if None in values:
                    place = values.index(None)
                    words[j] = (cells[j][place].strip(), lines[place])
                matrix[:, i] = values  # a word without a code is NaN
            yield _Block(matrix, lines, words)


@contextmanager
def _open_rows(
    path: Path, options: ReadOptions, warn: bool = False
) -> Iterator[tuple[list[str], Iterator[tuple[list[str], int]]]]:
    """Yield the names of the columns, and the rows with their line numbers.

    The row index of pandas is left out; `warn` says so. Rows are read on demand.
    """
    with open_text(path, options) as stream:
        head = list(islice(stream, N_HEAD_LINES))
        reader = csv.reader(chain(head, stream), delimiter=_guess_separator(head), strict=True)
        try:
            names = next(reader, None)
            if not names:
                found = f"the file begins with {quote(head[0])}" if head else "the file is empty"
                raise format_error(
                    f"there is no header of column names; {found}: write the names into the first line", 1
                )
            kept = drop_index_columns(path, names, options, warn)
            yield [names[j] for j in kept], _check_rows(reader, len(names), kept)
        except csv.Error as error:
            raise format_error(f"{error}", reader.line_num) from error


def _check_rows(reader: Any, n_columns: int, kept: Sequence[int]) -> Iterator[tuple[list[str], int]]:
    """Yield the kept cells of each row and its line number; refuse a row of another length."""
    for row in filter(None, reader):
        if len(row) != n_columns:
            raise format_error(f"a row has {len(row)} cells, the header {n_columns} columns", reader.line_num)
        yield row if len(kept) == n_columns else [row[j] for j in kept], reader.line_num


def _guess_separator(head: list[str]) -> str:
    """Return the separator that gives the header as many cells as the first row, and most cells.

    `head` are the first lines. Of equally good separators, the first one of `CSV_SEPARATORS` wins.
    """

    def count_cells(mark: str) -> tuple[bool, int]:
        try:
            header, row, *_ = chain(islice(filter(None, csv.reader(head, delimiter=mark)), 2), ([], []))
        except csv.Error:
            return False, 0
        return 1 < len(header) == len(row), len(header)

    return max(CSV_SEPARATORS, key=count_cells)


class Parquet(TableFormat):
    """Reader and writer of Parquet files."""

    name = "parquet"
    endings = (".parquet", ".pq")

    def tables(
        self, path: Path, options: ReadOptions, size: int | None = None, choose: ColumnChoice | None = None
    ) -> Iterator[Table]:
        """Yield the rows of a file, `size` at a time; by default all rows, in tables of any size.

        Words have the codes of the whole file, and nulls are missing values. `choose` chooses the
        columns; then all words but truth words, such as yes and no, are refused.
        """
        pa, pq = _import_pyarrow()
        with _convert_errors(pa, options.max_bytes), pq.ParquetFile(path) as file:
            all_names = file.schema_arrow.names
            head = _parse_metadata(file.schema_arrow.metadata)
            if size is None:
                _check_size(file.metadata, options.max_bytes)
            # Our own files have no row index of pandas, whatever the names of their columns.
            places = list(range(len(all_names)))
            if not head:
                places = drop_index_columns(path, all_names, options, warn=not options.part)
            names = [all_names[j] for j in places]
            codes: Codes = {}
            if choose:
                places = [places[j] for j in choose(names, head.get("labels"))]
                names = [all_names[j] for j in places]
                read = dict(enumerate(places))
            else:
                ignored = find_ignored_columns(names, options)
                read = {i: j for i, j in enumerate(places) if i not in ignored}
                codes = _count_parquet_words(file, read, pa)
            for batch in _read_batches(file, size or ROWS_PER_BATCH):
                matrix = np.full((batch.num_rows, len(names)), np.nan)
                for i, j in read.items():
                    categories = _model_categories(options).get(names[i]) if choose else None
                    matrix[:, i] = _convert_column(names[i], batch.column(j), codes.get(i), pa, categories)
                table = Table(path, names, matrix, None, codes, declared_labels=head.get("labels"))
                yield replace(table, declared_codes=head.get("categorical_index") or ())

    def write(self, dataset: Dataset, path: Path, labels_first: bool = False) -> None:
        """Write a file; sparse columns are written in full, one at a time."""
        pa, pq = _import_pyarrow()
        check_names(dataset)
        check_dense_size(dataset)
        blocks, names = order_columns(dataset, labels_first)
        count = dataset.n_labels if labels_first else -dataset.n_labels
        head = {"labels": count, "categorical_index": dataset.categorical_index.tolist()}
        arrays = []
        for block in blocks:
            block = sparse.csc_array(block) if sparse.issparse(block) else block
            columns = (as_dense(block[:, [j]])[:, 0] for j in range(block.shape[1]))
            arrays += [pa.array(np.ascontiguousarray(column)) for column in columns]
        table = pa.Table.from_arrays(arrays, names=names)
        with replace_file(path) as temporary:
            pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(head)}), temporary)


def _import_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its module for Parquet files, which the extra installs."""
    what = "Reading and writing Parquet files"
    return import_extra("pyarrow", "data", what), import_extra("pyarrow.parquet", "data", what)


def _read_batches(file: Any, size: int = ROWS_PER_BATCH) -> Iterator[Any]:
    """Yield the rows; refuse a damaged file that has another number of rows than its metadata says."""
    n_rows = 0
    size = max(1, min(size, file.metadata.num_rows))
    for batch in file.iter_batches(size, use_threads=False):
        n_rows += batch.num_rows
        yield batch
    if n_rows != file.metadata.num_rows:
        raise format_error(f"not a readable Parquet file: it has {n_rows} rows, and says {file.metadata.num_rows}")


def _count_parquet_words(file: Any, places: Mapping[int, int], pa: Any) -> Codes:
    """Return the codes of words by column, from a pass over the file if it has text columns.

    `places` maps the number of each column that is read to its position in the file.
    """
    schema = file.schema_arrow
    counts: dict[int, Counter[str]] = {i: Counter() for i, j in places.items() if _is_text(schema[j].type, pa)}
    for batch in _read_batches(file) if counts else ():  # by position: several columns may have the same name
        for i in counts:
            words = (word.strip() for word in batch.column(places[i]).to_pylist() if word is not None)
            counts[i].update(word for word in words if not is_missing(word))
    return {i: column_codes(schema.names[places[i]], counts[i]) for i in counts}


def _model_categories(options: ReadOptions) -> Mapping[str, Sequence[str]]:
    """Return the words of the model that will use the file, by the name of the column."""
    return options.columns.categories if options.columns else {}


def _convert_column(
    name: str, column: Any, codes: Mapping[str, float] | None, pa: Any, categories: Sequence[str] | None = None
) -> FloatArray:
    """Return a column as numbers; words without codes must be numbers, truth words or words of a model."""
    if _is_text(column.type, pa):
        words = [word.strip() if word else "" for word in column.to_pylist()]
        if categories:
            places = parse_categories(words, categories)
            if None in places:
                raise unknown_word_error(name, words[places.index(None)], categories)
            return np.array(places, dtype=np.float64)
        values = parse_cells(words, codes, truth=True)
        if None in values:
            raise undeclared_word_error(name, words[values.index(None)])
        return np.array(values, dtype=np.float64)
    kind = _value_type(column.type, pa)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    raise format_error(
        f"column {quote(name)} has type {column.type}; numbers and words can be read: "
        f"leave it out with ignore={quote(name)}"
    )


def _value_type(column_type: Any, pa: Any) -> Any:
    """Return the type of the values of a column, which may be a dictionary."""
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type


def _is_text(column_type: Any, pa: Any) -> bool:
    """Return whether the values of a column are text."""
    kind = _value_type(column_type, pa)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


@contextmanager
def _convert_errors(pa: Any, max_bytes: int) -> Iterator[None]:
    """Raise errors of pyarrow about a damaged file as our errors."""
    try:
        yield
    except MemoryError as error:
        claimed = re.search(r"size (\d+)", str(error))
        if claimed is None or int(claimed[1]) <= max_bytes:
            raise
        raise format_error(f"not a readable Parquet file: a part of it claims {claimed[1]} bytes") from error
    except (pa.ArrowException, OSError, OverflowError, UnicodeError) as error:
        raise format_error(f"not a readable Parquet file: {error}") from error


def _check_size(metadata: Any, max_bytes: int) -> None:
    """Raise an error for a file that is too large for memory, or empty, from its metadata."""
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    n_cells = metadata.num_rows * metadata.num_columns
    if n_cells > MAX_DENSE_CELLS or max([*sizes, sum(sizes)]) > max_bytes:
        raise format_error(f"{metadata.num_rows} rows of {metadata.num_columns} columns are too large to read")
    if not n_cells:
        raise format_error(f"it has {metadata.num_rows} rows and {metadata.num_columns} columns")


def _parse_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Return the checked facts that rbrl wrote into a file; an empty dict for other files."""
    if not metadata or METADATA_KEY not in metadata:
        return {}
    try:
        head = json.loads(metadata[METADATA_KEY])
    except (ValueError, RecursionError) as error:
        raise format_error(f"its metadata {quote(metadata[METADATA_KEY])} is not JSON: {error}") from error
    coded = head.get("categorical_index", []) if type(head) is dict else None
    if type(coded) is not list or not all(type(j) is int for j in [*coded, head.get("labels")]):
        raise format_error(f"its metadata must give 'labels' as a number; got {quote(head)}")
    return head
