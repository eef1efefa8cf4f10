"""Parquet files (needs pyarrow): a column per feature and label; the file's metadata says which are labels."""

import json
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from scipy import sparse

from rbrl._common.files import replacing
from rbrl.datasets.formats.table import Table, check_names, feature_columns
from rbrl.datasets.formats.text import MAX_DENSE_CELLS, bad, bad_word, quote
from rbrl.datasets.formats.values import OddWordError, column_codes, is_missing, number

KEY = b"rbrl"


def read_parquet(path, options):
    """Read a Parquet file; words become codes, nulls missing values."""
    pa, pq = _pyarrow()
    with _reading(path, pa, options.max_bytes), pq.ParquetFile(path) as file:
        _check_size(path, file.metadata, options.max_bytes)
        batches = list(_batches(path, file))  # stricter with a damaged file than file.read()
        matrix, codes = _matrix(path, pa.Table.from_batches(batches), pa, {})
    return _dataset(path, file.schema_arrow, matrix, codes, options)


def parquet_parts(path, options, rows):
    """Yield the rows of a Parquet file as data sets of `rows` rows; words have the codes that they have in all of it."""
    pa, pq = _pyarrow()
    with _reading(path, pa, options.max_bytes), pq.ParquetFile(path) as file:
        codes = _codes_of_all(path, file, pa)
        for batch in _batches(path, file, batch_size=rows):
            matrix, codes = _matrix(path, pa.Table.from_batches([batch]), pa, codes)
            yield _dataset(path, file.schema_arrow, matrix, codes, options)


def _batches(path, file, **options):
    """Yield the rows, as many as the file says that it has."""
    n_rows = 0
    for batch in file.iter_batches(use_threads=False, **options):
        n_rows += batch.num_rows
        yield batch
    if n_rows != file.metadata.num_rows:
        raise bad(path, f"not a readable Parquet file: it has {n_rows} rows, and says {file.metadata.num_rows}")


def _codes_of_all(path, file, pa):
    """{column: codes} of the columns of words, from a pass over these."""
    codes = {}
    for j, field in enumerate(file.schema_arrow):
        if _is_text(field.type, pa):
            batches = _batches(path, file, columns=[field.name])
            counts = Counter(word for batch in batches for word in _words(batch.column(0)))
            codes[j] = _codes(path, field.name, counts)
    return codes


@contextmanager
def _reading(path, pa, max_bytes):
    try:
        yield
    except MemoryError as error:
        claimed = re.search(r"size (\d+)", str(error))
        if claimed is None or int(claimed[1]) <= max_bytes:
            raise
        raise bad(path, f"not a readable Parquet file: a part of it claims {claimed[1]} bytes") from error
    except (pa.ArrowException, OSError, OverflowError, UnicodeError) as error:
        raise bad(path, f"not a readable Parquet file: {error}") from error


def _dataset(path, schema, matrix, codes, options):
    head = _head(path, schema.metadata)
    columns = Table(path, schema.names, matrix, None, codes, head.get("labels"))
    columns.check_part(options)
    dataset = columns.dataset(options)
    coded = head.get("categorical_index") if options.labels is None else None
    return replace(dataset, categorical_index=coded) if coded else dataset


def parquet_blocks(path, options, model, size):
    """Yield X, at most `size` rows at a time, without the label columns, which are not read."""
    pa, pq = _pyarrow()
    with _reading(path, pa, options.max_bytes), pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        own = _head(path, file.schema_arrow.metadata).get("labels")
        columns = [names[j] for j in feature_columns(path, names, options, model, own)]
        size = min(size, file.metadata.num_rows + 1)
        for batch in _batches(path, file, batch_size=size, columns=columns):
            table = pa.Table.from_batches([batch])
            codes = {
                j: _plain(path, columns[j], table.column(j))
                for j in range(len(columns))
                if _is_text(table.schema[j].type, pa)
            }
            yield _matrix(path, table, pa, codes)[0]


def _plain(path, name, column):
    """What the words of a block are worth that are numbers; others have no code here."""
    values = {word: number(word) for word in _words(column)}
    odd = next((word for word, value in values.items() if value is None), None)
    if odd is not None:
        raise bad_word(path, name, odd)
    return values


def write_parquet(dataset, path, labels_first=False):
    """Write a Parquet file. Sparse columns are written out in full, one at a time."""
    pa, pq = _pyarrow()
    check_names([*dataset.feature_names, *dataset.label_names], path)
    if dataset.n_samples * dataset.n_features > MAX_DENSE_CELLS:
        raise bad(path, f"X of shape {dataset.X.shape} is too large to be written out in full: use a sparse format")
    sides = [(dataset.X, dataset.feature_names), (dataset.Y, dataset.label_names)]
    sides = sides[::-1] if labels_first else sides
    arrays = [pa.array(column) for block, _ in sides for column in _columns(block)]
    head = {
        "labels": dataset.n_labels if labels_first else -dataset.n_labels,
        "categorical_index": dataset.categorical_index.tolist(),
    }
    names = [name for _, names in sides for name in names]
    table = pa.Table.from_arrays(arrays, names=names).replace_schema_metadata({KEY: json.dumps(head)})
    with replacing(path) as temporary:
        pq.write_table(table, temporary)


def _pyarrow():
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: install rbrl[parquet], or use another format.") from error
    return pa, pq


def _check_size(path, metadata, max_bytes):
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    cells = metadata.num_rows * metadata.num_columns
    if cells > MAX_DENSE_CELLS or max([*sizes, sum(sizes)]) > max_bytes:
        raise bad(path, f"{metadata.num_rows} rows of {metadata.num_columns} columns are too large to read")
    if not cells:
        raise bad(path, f"it has {metadata.num_rows} rows and {metadata.num_columns} columns")


def _matrix(path, table, pa, codes):
    """The columns as numbers, and the codes of their words: those given, or made from this table."""
    matrix, codes = np.empty((table.num_rows, table.num_columns)), dict(codes)
    for j, (name, column) in enumerate(zip(table.column_names, table.columns)):
        kind = _kind(column.type, pa)
        if _is_text(column.type, pa):
            if j not in codes:
                codes[j] = _codes(path, name, Counter(_words(column)))
            matrix[:, j] = [
                np.nan if word is None else codes[j].get(word.strip(), np.nan) for word in column.to_pylist()
            ]
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            matrix[:, j] = column.cast(pa.float64()).to_numpy()
        else:
            raise bad(path, f"column {quote(name)} has type {column.type}; numbers and words can be read")
    return matrix, codes


def _kind(column_type, pa):
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type


def _is_text(column_type, pa):
    kind = _kind(column_type, pa)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _words(column):
    """The words of a column, missing values left out."""
    return [word.strip() for word in column.to_pylist() if word is not None and not is_missing(word.strip())]


def _codes(path, name, counts):
    try:
        return column_codes(counts)
    except OddWordError as error:
        raise bad(path, f"column {quote(name)} has {quote(error.word)}, {error}") from error


def _head(path, metadata):
    if not metadata or KEY not in metadata:
        return {}
    try:
        head = json.loads(metadata[KEY])
    except (ValueError, RecursionError) as error:
        raise bad(path, f"its metadata {quote(metadata[KEY])} is not JSON: {error}") from error
    coded = head.get("categorical_index", []) if type(head) is dict else None
    whole = type(coded) is list and all(type(j) is int for j in [*coded, head.get("labels")])
    if not whole:
        raise bad(path, f"its metadata must give 'labels' as a number; got {quote(head)}")
    return head


def _columns(block):
    block = sparse.csc_array(block) if sparse.issparse(block) else block
    for j in range(block.shape[1]):
        yield block[:, [j]].toarray().ravel() if sparse.issparse(block) else np.ascontiguousarray(block[:, j])
