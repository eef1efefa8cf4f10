"""`read_blocks`: the features of a file, some rows at a time, for what does not fit into memory."""

import sys
from pathlib import Path

from rbrl.datasets.files import format_of, load_file
from rbrl.datasets.formats.arff import arff_blocks
from rbrl.datasets.formats.csv_ import csv_blocks
from rbrl.datasets.formats.errors import bad, memory_said
from rbrl.datasets.formats.options import ReadOptions
from rbrl.datasets.formats.parquet import parquet_blocks
from rbrl.datasets.formats.svmlight import svmlight_blocks
from rbrl.datasets.names import Columns

READERS = {"arff": arff_blocks, "csv": csv_blocks, "parquet": parquet_blocks, "svmlight": svmlight_blocks}


def read_blocks(path, n_features, labels=None, *, block_size=4096, format=None, first_feature=None):
    """Yield the features of a file in blocks of rows.

    ARFF, CSV, Parquet and svmlight files are read as the blocks are asked for, without a limit on their size; others are
    read whole. Labels are left out and not checked; an ARFF, CSV or Parquet file may do without them.

    Parameters
    ----------
    path : path
    n_features : int or Columns
        How many features there must be; or all that a model knows of its columns, such as the `columns` of the
        :class:`Dataset` it was fitted on. Then features are found by name and come in the model's order, labels that it
        knows are left out, and the features of a svmlight file count from where the model's did.
    labels : int, sequence of str, path of an XML file, or None
        Which columns are labels, as for `load_file`.
    block_size : int, default=4096
        The most rows that a block may have; 0: all of them.
    format : str, optional
        As for `load_file`.
    first_feature : {0, 1}, optional
        As for `load_file`.

    Yields
    ------
    X : array or csr_array, shape (n_rows, n_features)

    Raises
    ------
    DataFormatError
        The file cannot be read, has other features, no rows, or, in CSV and Parquet, words: these have no code before
        the whole file is known.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "new.csv")
    >>> _ = path.write_text("length,width\\n1,2\\n3,4\\n5,6\\n")
    >>> [X.shape for X in read_blocks(path, n_features=2, block_size=2)]
    [(2, 2), (1, 2)]
    """
    path, size = Path(path), block_size or sys.maxsize
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    name = format_of(path, format)
    columns = n_features if isinstance(n_features, Columns) else Columns(n_features)
    n_features = columns.n_features
    if name in READERS:
        options = ReadOptions(labels=labels, max_bytes=sys.maxsize, first_feature=first_feature)
        blocks = READERS[name](path, options, columns, size)
    else:
        blocks = row_blocks(load_file(path, labels, format=format, columns=columns).X, size)
    n_rows = 0
    with memory_said(path):
        for X in blocks:
            if X.shape[1] != n_features:
                raise bad(path, f"it has {X.shape[1]} features; there should be {n_features}")
            n_rows += X.shape[0]
            yield X
    if not n_rows:
        raise bad(path, f"it has {n_rows} rows")


def row_blocks(X, size):
    """Yield the rows of a matrix, at most `size` at a time."""
    for start in range(0, X.shape[0], size):
        yield X[start : start + size]
