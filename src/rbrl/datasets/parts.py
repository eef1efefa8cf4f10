"""Files of any size, some rows at a time: as data sets (`load_parts`), or their features alone (`read_blocks`)."""

import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from rbrl.datasets.files import ReadOptions, format_of, load_file
from rbrl.datasets.formats.arff import arff_blocks, arff_parts
from rbrl.datasets.formats.csv import csv_blocks, csv_parts
from rbrl.datasets.formats.parquet import parquet_blocks, parquet_parts
from rbrl.datasets.formats.svmlight import MARK, scan_svmlight, svmlight_blocks
from rbrl.datasets.formats.text import bad, memory_said, text_lines
from rbrl.datasets.names import Columns
from rbrl.exceptions import DataFormatError

UNLIMITED = 1 << 62


def load_parts(path, labels=None, *, rows=50_000, format=None, **options):
    """Yield the rows of a file as data sets of `rows` rows, in order; options as for :func:`load_file`.

    Text and Parquet files are read with bounded memory; NPZ and MATLAB files are read whole. Words have the codes that
    they have in the whole file, over which CSV and svmlight need a pass before the first part.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    kind = format_of(path, format)
    if kind not in _READERS:
        dataset = load_file(path, labels, format=format, **options)
        return _slices(dataset, rows)
    options = ReadOptions(labels=labels, **{"max_bytes": UNLIMITED, **options})
    return _checked(path, _READERS[kind](path, options, rows), options.columns)


def _checked(path, parts, columns):
    with memory_said(path):
        for part in parts:
            yield part if columns is None else part.matching(columns)


def _slices(dataset, rows):
    for start in range(0, dataset.n_samples, rows):
        X, Y = dataset.take(slice(start, start + rows))
        yield replace(dataset, X=X, Y=Y, splits={})


def _read_cuts(path, cuts, kind, options):
    """Read every cut as a file of its own; an error names the file that the user has."""
    with TemporaryDirectory(prefix="rbrl-") as folder:
        block = Path(folder, f"{path.name.split('.')[0]}.{kind}")
        for text in cuts:
            block.write_text(text, encoding="utf-8", newline="\n")
            try:
                yield load_file(block, format=kind, **vars(replace(options, encoding="utf-8")))
            except MemoryError as error:
                raise (error.__cause__ or error) from error
            except DataFormatError as error:
                raise DataFormatError(str(error).replace(str(block), f"{path} (in a block of its rows)")) from error


def _chunks(lines, size):
    while chunk := list(islice(lines, size)):
        yield chunk


def _svmlight(path, options, rows):
    """What counts from where is seen in all rows, before the first block is read."""
    told, skip = scan_svmlight(path, options)
    first = next(text_lines(path, options))
    head = first if first.startswith(MARK) else ""
    lines = (text for line in islice(text_lines(path, options), skip, None) if (text := line.partition("#")[0].strip()))
    cuts = (head + "\n".join([*chunk, ""]) for chunk in _chunks(lines, rows))
    return _read_cuts(path, cuts, "svmlight", replace(options, part=True, **told))


_READERS = {"csv": csv_parts, "arff": arff_parts, "svmlight": _svmlight, "parquet": parquet_parts}


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
