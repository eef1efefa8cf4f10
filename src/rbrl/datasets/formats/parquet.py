"""Parquet files (needs pyarrow): one column per feature and label; the metadata says which are labels."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.environment import import_extra, replace_file
from rbrl._common.frames import as_dense
from rbrl._common.typing import FloatArray
from rbrl.datasets.columns import ColumnChoice, drop_index_columns, find_ignored_columns
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import MAX_DENSE_CELLS, ReadOptions, format_error, quote
from rbrl.datasets.formats.table import (
    Table,
    check_dense_size,
    check_names,
    column_codes,
    is_missing,
    order_columns,
    parse_cells,
    undeclared_word_error,
)

METADATA_KEY = b"rbrl"
ROWS_PER_BATCH = 1 << 16


def tables(
    path: Path, options: ReadOptions, size: int | None = None, choose: ColumnChoice | None = None
) -> Iterator[Table]:
    """Yield the rows of a Parquet file, `size` at a time; by default all rows, in tables of any size.

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
        declared: Any = {
            "declared_labels": head.get("labels"),
            "declared_codes": head.get("categorical_index") or (),
        }
        if choose:
            names = [names[j] for j in choose(names, head.get("labels"))]
            for batch in _read_batches(file, size or ROWS_PER_BATCH, names):
                columns = [_convert_column(name, column, None, pa) for name, column in zip(names, batch.columns)]
                yield Table(path, names, np.column_stack(columns), **declared)
            return
        ignored = find_ignored_columns(names, options)
        read = {i: j for i, j in enumerate(places) if i not in ignored}
        codes = _count_words(file, read, pa)
        for batch in _read_batches(file, size or ROWS_PER_BATCH):
            matrix = np.full((batch.num_rows, len(names)), np.nan)
            for i, j in read.items():
                matrix[:, i] = _convert_column(names[i], batch.column(j), codes.get(i), pa)
            yield Table(path, names, matrix, None, codes, **declared)


def _read_batches(file: Any, size: int = ROWS_PER_BATCH, names: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the rows; refuse a damaged file that has another number of rows than its metadata says."""
    n_rows = 0
    size = max(1, min(size, file.metadata.num_rows))
    for batch in file.iter_batches(size, columns=names, use_threads=False):
        n_rows += batch.num_rows
        yield batch
    if n_rows != file.metadata.num_rows:
        raise format_error(f"not a readable Parquet file: it has {n_rows} rows, and says {file.metadata.num_rows}")


def _count_words(file: Any, places: Mapping[int, int], pa: Any) -> dict[int, dict[str, float]]:
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


def _convert_column(name: str, column: Any, codes: Mapping[str, float] | None, pa: Any) -> FloatArray:
    """Return a column as numbers; words without codes must be numbers or truth words."""
    kind = _value_type(column.type, pa)
    if _is_text(kind, pa):
        words = [word.strip() if word else "" for word in column.to_pylist()]
        values = parse_cells(words, codes, truth=True)
        if None in values:
            raise undeclared_word_error(name, words[values.index(None)])
        return np.array(values, dtype=np.float64)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    raise format_error(
        f"column {quote(name)} has type {column.type}; numbers and words can be read: leave it out with ignore={quote(name)}"
    )


def _value_type(column_type: Any, pa: Any) -> Any:
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type


def _is_text(column_type: Any, pa: Any) -> bool:
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
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    n_cells = metadata.num_rows * metadata.num_columns
    if n_cells > MAX_DENSE_CELLS or max([*sizes, sum(sizes)]) > max_bytes:
        raise format_error(f"{metadata.num_rows} rows of {metadata.num_columns} columns are too large to read")
    if not n_cells:
        raise format_error(f"it has {metadata.num_rows} rows and {metadata.num_columns} columns")


def _parse_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
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


def write(dataset: Dataset, path: Path, labels_first: bool = False) -> None:
    """Write a Parquet file; sparse columns are written in full, one at a time."""
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
    table = pa.Table.from_arrays(arrays, names=names).replace_schema_metadata({METADATA_KEY: json.dumps(head)})
    with replace_file(path) as temporary:
        pq.write_table(table, temporary)


def _import_pyarrow() -> tuple[Any, Any]:
    what = "Reading and writing Parquet files"
    return import_extra("pyarrow", "data", what), import_extra("pyarrow.parquet", "data", what)
