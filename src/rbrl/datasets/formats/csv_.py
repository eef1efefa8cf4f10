"""CSV and TSV files: a header of column names, then numbers or words.

Labels are told by name or count, or by Mulan's XML file of the same name, which the writer puts beside the file.
An empty cell, `?`, `NA` and `nan` are missing values. A column with words is nominal, its values in alphabetical order.
"""

import csv
import re
from contextlib import contextmanager
from itertools import chain

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.errors import bad, bad_word, quote
from rbrl.datasets.formats.labels import feature_columns, xml_path
from rbrl.datasets.formats.limits import MAX_DENSE_CELLS
from rbrl.datasets.formats.mulan_xml import write_labels
from rbrl.datasets.formats.table import Table
from rbrl.datasets.formats.text import read_text, streaming_text, writing_text
from rbrl.datasets.formats.values import nominal_codes, number, spell
from rbrl.datasets.formats.writable import check_writable

MISSING = {"", "?", "NA", "nan", "NaN"}
QUOTED = re.compile(r'"(?:[^"]|"")*+(?:"|\Z)')
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
ROWS = 4096
MAX_WORDS = 10_000


def read_csv(path, options):
    """Read a CSV file; the separator (comma, semicolon, tab) is the one that the header has most of."""
    table = read_text(path, lambda stream: _table(path, stream), options)
    table.check_part(options)
    return table.dataset(options)


def csv_blocks(path, options, model, size):
    """Yield X, at most `size` rows at a time."""
    with streaming_text(path, options) as stream, _opened(path, stream) as (names, reader):
        wanted = feature_columns(path, names, options, model)
        for rows, lines in _row_blocks(path, reader, names, size):
            cells = _block(rows)
            yield np.column_stack([_plain(path, names[j], cells[j], lines) for j in wanted])


def _plain(path, name, cells, lines):
    if isinstance(cells, list):
        place = next(i for i, cell in enumerate(cells) if cell not in MISSING and number(cell) is None)
        raise bad_word(path, name, cells[place], lines[place])
    return cells


def write_csv(dataset, path, labels_first=False):
    """Write a CSV file and Mulan's XML file beside it. Sparse rows are written out in full."""
    check_writable(dataset, path, xml=True)
    if dataset.n_samples * (dataset.n_features + dataset.n_labels) > MAX_DENSE_CELLS:
        raise bad(path, f"X of shape {dataset.X.shape} is too large to be written out in full: use a sparse format")
    sides = [(dataset.X, dataset.feature_names), (dataset.Y, dataset.label_names)]
    blocks, names = zip(*(sides[::-1] if labels_first else sides))
    blocks = [sparse.csr_array(block) if sparse.issparse(block) else block for block in blocks]
    mark = "\t" if path.name.removesuffix(".gz").endswith(".tsv") else ","
    with writing_text(path) as stream:
        csv.writer(stream, delimiter=mark, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow([*names[0], *names[1]])
        for i in range(dataset.n_samples):
            row = [value for block in blocks for value in _row(block, i)]
            stream.write(mark.join(spell(value) if value == value else "?" for value in row) + "\n")
    write_labels(dataset.label_names, xml_path(path))


def _row(block, i):
    return (block[[i]].toarray()[0] if sparse.issparse(block) else block[i]).tolist()


def _table(path, stream):
    with _opened(path, stream) as (names, reader):
        blocks, lines = _read(path, reader, names)
    if not lines:
        raise bad(path, f"there are no rows below the header of {len(names)} columns", 1)
    matrix, codes = _numbers(path, names, blocks, lines)
    return Table(path, names, matrix, lines, codes)


@contextmanager
def _opened(path, stream):
    """Yield the names of the columns, and a reader of the rows."""
    first = stream.readline()
    plain = QUOTED.sub("", first)
    reader = csv.reader(chain([first], stream), delimiter=max(",;\t", key=plain.count), strict=True)
    try:
        names = next(reader, None)
        if not names:
            raise bad(path, f"there is no header of column names; the file begins with {quote(first)}", 1)
        yield names, reader
    except csv.Error as error:
        raise bad(path, f"{error}", reader.line_num) from error


def _read(path, reader, names):
    """Return the cells in blocks, numbers where a whole block is numbers, and the line of each row."""
    blocks, lines = [], []
    for rows, numbers in _row_blocks(path, reader, names, ROWS):
        blocks.append(_block(rows))
        lines += numbers
        if len(lines) * len(names) > MAX_DENSE_CELLS:
            raise bad(path, f"more than {MAX_DENSE_CELLS} cells: use a sparse format", lines[-1])
    return blocks, lines


def _row_blocks(path, reader, names, size):
    """Yield (rows, their lines), at most `size` at a time."""
    rows, lines = [], []
    for row in reader:
        if not row:
            continue
        if len(row) != len(names):
            raise bad(path, f"a row has {len(row)} cells, the header {len(names)} columns", reader.line_num)
        rows.append(row)
        lines.append(reader.line_num)
        if len(rows) == size:
            yield rows, lines
            rows, lines = [], []
    if rows:
        yield rows, lines


def _block(rows):
    """Return {column: array of numbers, or list of words}."""
    return [_column(cells) for cells in zip(*rows)]


def _column(cells):
    values = [np.nan if cell.strip() in MISSING else number(cell) for cell in cells]
    return [cell.strip() for cell in cells] if None in values else np.array(values)


def _numbers(path, names, blocks, lines):
    matrix, codes = np.empty((len(lines), len(names))), {}
    for j in range(len(names)):
        parts = [block[j] for block in blocks]
        if any(isinstance(part, list) for part in parts):
            cells = [word for part in parts for word in _words(part)]
            codes[j] = _codes(path, names[j], cells, lines)
            parts = [[codes[j].get(word, np.nan) for word in cells]]
        matrix[:, j] = np.concatenate(parts)
    return matrix, codes


def _words(part):
    return part if isinstance(part, list) else ["" if value != value else spell(value) for value in part.tolist()]


def _codes(path, name, cells, lines):
    values = sorted(set(cells) - MISSING)
    comma = next((i for i, cell in enumerate(cells) if DECIMAL_COMMA.fullmatch(cell)), None)
    if comma is not None:
        raise bad(path, f"column {quote(name)} has a decimal comma: {quote(cells[comma])}", lines[comma])
    if len(values) > MAX_WORDS:
        word = next(i for i, cell in enumerate(cells) if cell not in MISSING and number(cell) is None)
        raise bad(path, f"column {quote(name)} has over {MAX_WORDS} words, such as {quote(cells[word])}", lines[word])
    return nominal_codes(values)
