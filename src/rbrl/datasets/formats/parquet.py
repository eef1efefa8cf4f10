"""Parquet files (needs pyarrow): a column per feature and label; the file's metadata says which are labels."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.atomic_files import replace_file
from rbrl._common.extras import import_extra
from rbrl._common.typing import FloatArray
from rbrl.datasets.dataset import Dataset, dense
from rbrl.datasets.formats import MAX_DENSE_CELLS, ReadOptions, bad, bad_word, quote
from rbrl.datasets.formats.column_choice import Choice, ignored_columns, index_columns, warn_of_index
from rbrl.datasets.formats.table import Table, check_names
from rbrl.datasets.formats.words import column_codes, is_missing, number, truth_codes

KEY = b"rbrl"
ROWS = 1 << 16


def tables(path: Path, options: ReadOptions, size: int | None = None, choose: Choice | None = None) -> Iterator[Table]:
    """Yield the rows of a Parquet file, `size` at a time; by default all of them, in tables of any size.

    Words become the codes that they have in the whole file, nulls missing values. Chosen columns alone are read, and all
    words among them but those for truth, such as yes and no, are refused.

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
    pa, pq = _pyarrow()
    with _readable(pa, options.max_bytes), pq.ParquetFile(path) as file:
        schema, head = file.schema_arrow, _head(file.schema_arrow.metadata)
        if size is None:
            _check_size(file.metadata, options.max_bytes)
        labels, coded = head.get("labels"), head.get("categorical_index") or ()
        # A file of ours says which columns there are: none of them is an index.
        index = set() if head else index_columns(schema.names, options)
        if index and not options.part:
            warn_of_index(path, [schema.names[j] for j in sorted(index)])
        places = [j for j in range(len(schema)) if j not in index]
        names = [schema.names[j] for j in places]
        if choose:
            names = [names[j] for j in choose(names, labels)]
            for batch in _batches(file, size or ROWS, names):
                columns = [_numbers(name, column, None, pa) for name, column in zip(names, batch.columns)]
                yield Table(path, names, np.column_stack(columns), own_labels=labels, own_coded=coded)
            return
        ignored = ignored_columns(names, options)
        codes = _codes(file, {i: j for i, j in enumerate(places) if i not in ignored}, pa)
        for batch in _batches(file, size or ROWS):
            matrix = np.full((batch.num_rows, len(names)), np.nan)
            for i, j in enumerate(places):
                if i not in ignored:
                    matrix[:, i] = _numbers(names[i], batch.column(j), codes.get(i), pa)
            yield Table(path, names, matrix, None, codes, own_labels=labels, own_coded=coded)


def _batches(file: Any, size: int = ROWS, names: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the rows, as many as the file says that it has: stricter with a damaged file than `file.read()`."""
    n_rows = 0
    size = max(1, min(size, file.metadata.num_rows))
    for batch in file.iter_batches(size, columns=names, use_threads=False):
        n_rows += batch.num_rows
        yield batch
    if n_rows != file.metadata.num_rows:
        raise bad(f"not a readable Parquet file: it has {n_rows} rows, and says {file.metadata.num_rows}")


def _codes(file: Any, places: Mapping[int, int], pa: Any) -> dict[int, dict[str, float]]:
    """Return the codes of words, by column, from a pass over the file if it has any.

    `places` has the number of each column that is read, and its place in the file.
    """
    schema = file.schema_arrow
    counts: dict[int, Counter[str]] = {i: Counter() for i, j in places.items() if _is_text(schema[j].type, pa)}
    for batch in _batches(file) if counts else ():  # not by name: two columns may have the same
        for i in counts:
            words = (word.strip() for word in batch.column(places[i]).to_pylist() if word is not None)
            counts[i].update(word for word in words if not is_missing(word))
    return {i: column_codes(schema.names[places[i]], counts[i]) for i in counts}


def _numbers(name: str, column: Any, codes: Mapping[str, float] | None, pa: Any) -> FloatArray:
    """A column as numbers; of words without codes, only those that spell a number or a truth value have one."""
    kind = _kind(column.type, pa)
    if _is_text(kind, pa):
        words = [word.strip() if word else "" for word in column.to_pylist()]
        codes = truth_codes({word for word in words if not is_missing(word)}) if codes is None else codes
        if codes is not None:
            return np.array([codes.get(word, np.nan) for word in words], dtype=np.float64)
        values = [np.nan if is_missing(word) else number(word) for word in words]
        if None in values:
            raise bad_word(name, words[values.index(None)])
        return np.array(values, dtype=np.float64)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    raise bad(
        f"column {quote(name)} has type {column.type}; numbers and words can be read: leave it out with ignore={quote(name)}"
    )


def _kind(column_type: Any, pa: Any) -> Any:
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type


def _is_text(column_type: Any, pa: Any) -> bool:
    kind = _kind(column_type, pa)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


@contextmanager
def _readable(pa: Any, max_bytes: int) -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        claimed = re.search(r"size (\d+)", str(error))
        if claimed is None or int(claimed[1]) <= max_bytes:
            raise
        raise bad(f"not a readable Parquet file: a part of it claims {claimed[1]} bytes") from error
    except (pa.ArrowException, OSError, OverflowError, UnicodeError) as error:
        raise bad(f"not a readable Parquet file: {error}") from error


def _check_size(metadata: Any, max_bytes: int) -> None:
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    cells = metadata.num_rows * metadata.num_columns
    if cells > MAX_DENSE_CELLS or max([*sizes, sum(sizes)]) > max_bytes:
        raise bad(f"{metadata.num_rows} rows of {metadata.num_columns} columns are too large to read")
    if not cells:
        raise bad(f"it has {metadata.num_rows} rows and {metadata.num_columns} columns")


def _head(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata or KEY not in metadata:
        return {}
    try:
        head = json.loads(metadata[KEY])
    except (ValueError, RecursionError) as error:
        raise bad(f"its metadata {quote(metadata[KEY])} is not JSON: {error}") from error
    coded = head.get("categorical_index", []) if type(head) is dict else None
    if type(coded) is not list or not all(type(j) is int for j in [*coded, head.get("labels")]):
        raise bad(f"its metadata must give 'labels' as a number; got {quote(head)}")
    return head


def write(dataset: Dataset, path: Path, labels_first: bool = False) -> None:
    """Write a Parquet file. Sparse columns are written out in full, one at a time.

    Parameters
    ----------
    dataset : Dataset
    path : Path
    labels_first : bool
        Put the labels before the features.
    """
    pa, pq = _pyarrow()
    check_names([*dataset.feature_names, *dataset.label_names])
    if dataset.n_samples * dataset.n_features > MAX_DENSE_CELLS:
        raise bad(f"X of shape {dataset.X.shape} is too large to be written out in full: use a sparse format")
    sides = [(dataset.X, dataset.feature_names), (dataset.Y, dataset.label_names)]
    sides = sides[::-1] if labels_first else sides
    count = dataset.n_labels if labels_first else -dataset.n_labels
    head = {"labels": count, "categorical_index": dataset.categorical_index.tolist()}
    blocks = [sparse.csc_array(block) if sparse.issparse(block) else block for block, _ in sides]
    columns = (dense(block[:, [j]])[:, 0] for block in blocks for j in range(block.shape[1]))
    arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
    names = [name for _, names in sides for name in names]
    table = pa.Table.from_arrays(arrays, names=names).replace_schema_metadata({KEY: json.dumps(head)})
    with replace_file(path) as temporary:
        pq.write_table(table, temporary)


def _pyarrow() -> tuple[Any, Any]:
    what = "Reading and writing Parquet files"
    return import_extra("pyarrow", "data", what), import_extra("pyarrow.parquet", "data", what)
