"""ARFF files, dense and sparse, in the dialects of Weka, Mulan, MEKA and scikit-multilearn."""

from itertools import chain, islice

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.arff_columns import Columns
from rbrl.datasets.formats.arff_dense import dense_block
from rbrl.datasets.formats.arff_header import read_header
from rbrl.datasets.formats.arff_sparse import fill_defaults, sparse_block
from rbrl.datasets.formats.errors import bad
from rbrl.datasets.formats.labels import feature_columns
from rbrl.datasets.formats.table import Table
from rbrl.datasets.formats.text import line_blocks, read_text, streaming_text


def read_arff(path, options):
    """Read an ARFF file.

    Labels are told by `options.labels`, else by Mulan's XML file beside it, else by MEKA's `-C` in the relation's name.
    The columns of Y stand in the order of the header, however the XML orders them.
    """
    table = read_text(path, lambda stream: _table(path, stream), options)
    return table.dataset(options)


def arff_blocks(path, options, model, size):
    """Yield X, at most `size` rows at a time; the labels are not looked at."""
    with streaming_text(path, options) as stream:
        header = read_header(stream, path)
        columns = Columns(header)
        wanted = feature_columns(path, columns.names, options, model, header.n_labels)
        for block in _row_lines(stream, header.n_lines, size):
            matrix, _ = _reader(block)(path, columns, [block])
            yield matrix[:, wanted]


def arff_parts(path, options, rows):
    """Yield the rows as data sets of `rows` rows; the header declares what words are worth."""
    with streaming_text(path, options) as stream:
        header = read_header(stream, path)
        columns, reader = Columns(header), None
        for block in _row_lines(stream, header.n_lines, rows):
            reader = reader or _reader(block)
            matrix, lines = reader(path, columns, [block])
            yield _named(path, columns, header, matrix, lines).dataset(options)


def _table(path, stream):
    header = read_header(stream, path)
    columns = Columns(header)
    blocks = _row_lines(stream, header.n_lines)
    first = next(blocks, None)
    if first is None:
        raise bad(path, "there are no rows after @data", header.n_lines)
    matrix, lines = _reader(first)(path, columns, chain([first], blocks))
    return _named(path, columns, header, matrix, lines)


def _named(path, columns, header, matrix, lines):
    return Table(path, columns.names, matrix, lines, columns.codes, header.n_labels, header.relation)


def _reader(block):
    return _sparse_rows if block[0][0].lstrip().startswith("{") else _dense_rows


def _row_lines(stream, n_lines, size=None):
    """Yield (lines, their numbers) without blank lines and comments: `size` of them, or about four million characters."""
    if size is not None:
        rows = (numbered for numbered in enumerate(stream, n_lines + 1) if _is_row(numbered[1]))
        while block := list(islice(rows, size)):
            numbers, lines = zip(*block)
            yield list(lines), np.array(numbers)
        return
    for lines in line_blocks(stream):
        numbers = np.arange(n_lines + 1, n_lines + 1 + len(lines))
        n_lines += len(lines)
        keep = [_is_row(line) for line in lines]
        if not all(keep):
            lines, numbers = [line for line, good in zip(lines, keep) if good], numbers[keep]
        if lines:
            yield lines, numbers


def _is_row(line):
    return not line.isspace() and not line.lstrip().startswith("%")


def _dense_rows(path, columns, blocks):
    matrix, lines = [], []
    for block, numbers in blocks:
        matrix.append(dense_block(path, columns, block, numbers))
        lines.append(numbers)
    return np.concatenate(matrix), np.concatenate(lines)


def _sparse_rows(path, columns, blocks):
    indexes, values, counts, lines = [], [], [np.zeros(1, dtype=np.int64)], []
    for block, numbers in blocks:
        part = sparse_block(path, columns, block, numbers)
        indexes.append(part[0].astype(np.int32))
        values.append(part[1])
        counts.append(part[2])
        lines.append(numbers)
    indptr = np.cumsum(np.concatenate(counts))
    shape = (len(indptr) - 1, len(columns))
    matrix = sparse.csr_array((np.concatenate(values), np.concatenate(indexes), indptr), shape=shape)
    return fill_defaults(path, matrix, columns.defaults), np.concatenate(lines)
