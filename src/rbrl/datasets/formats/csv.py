"""CSV and TSV files: a header of column names, then numbers or words.

Labels are told by name or count, or by Mulan's XML file of the same name, which the writer puts beside the file.
An empty cell, `?`, `NA`, `null` and the like (`values.MISSING`) are missing values. A column of words is nominal, its
values in alphabetical order; numbers with a stray word among them are refused.
"""

import csv
from collections import Counter
from contextlib import contextmanager
from itertools import chain, islice

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.table import Table, check_writable, feature_columns, write_labels, xml_path
from rbrl.datasets.formats.text import MAX_DENSE_CELLS, bad, bad_word, quote, streaming_text, writing_text
from rbrl.datasets.formats.values import MAX_WORDS, OddWordError, column_codes, is_missing, number, spell

SEPARATORS = ",;\t|"
HEAD_LINES = 20  # from which the separator is guessed
ROWS = 4096


def read_csv(path, options):
    """Read a CSV file; the separator (comma, semicolon, tab, |) is the one that header and first row have most of."""
    names, lines, blocks, wordy = _numbers(path, options)
    if not lines:
        raise bad(path, f"there are no rows below the header of {len(names)} columns", 1)
    matrix = np.concatenate(blocks)
    codes, cells = _words(path, options, names, wordy)
    for j in codes:
        matrix[:, j] = cells[j]
    return _dataset(path, names, matrix, lines, codes, options)


def csv_parts(path, options, rows):
    """Yield the rows as data sets of `rows` rows; words have the codes that they have in the whole file."""
    names, _, _, wordy = _numbers(path, options, keep=False)
    codes, _ = _words(path, options, names, wordy, keep=False)
    with _opened(path, options) as (names, reader):
        for block, lines in _row_blocks(path, reader, names, rows):
            columns = list(zip(*block))
            matrix = np.column_stack([_coded(columns[j], codes.get(j)) for j in range(len(names))])
            yield _dataset(path, names, matrix, lines, codes, options)


def csv_blocks(path, options, model, size):
    """Yield X, at most `size` rows at a time."""
    with _opened(path, options) as (names, reader):
        wanted = feature_columns(path, names, options, model)
        for rows, lines in _row_blocks(path, reader, names, size):
            cells = list(zip(*rows))
            yield np.column_stack([_plain(path, names[j], cells[j], lines) for j in wanted])


def _plain(path, name, cells, lines):
    values = [_value(cell) for cell in cells]
    if None in values:
        place = values.index(None)
        raise bad_word(path, name, cells[place].strip(), lines[place])
    return np.array(values)


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


def _dataset(path, names, matrix, lines, codes, options):
    table = Table(path, names, matrix, lines, codes, hint="; cells are separated by a comma, semicolon, tab or |")
    table.check_part(options)
    return table.dataset(options)


@contextmanager
def _opened(path, options):
    """Yield the names of the columns, and a reader of the rows."""
    with streaming_text(path, options) as stream:
        head = list(islice(stream, HEAD_LINES))
        reader = csv.reader(chain(head, stream), delimiter=_separator(head), strict=True)
        try:
            names = next(reader, None)
            if not names:
                first = head[0] if head else ""
                raise bad(path, f"there is no header of column names; the file begins with {quote(first)}", 1)
            yield names, reader
        except csv.Error as error:
            raise bad(path, f"{error}", reader.line_num) from error


def _separator(head):
    """The mark that gives the header as many cells as the first row, and most of them."""

    def cells(mark):
        try:
            header, row, *_ = chain(islice(filter(None, csv.reader(head, delimiter=mark)), 2), ([], []))
        except csv.Error:
            return False, 0
        return 1 < len(header) == len(row), len(header)

    return max(SEPARATORS, key=cells)


def _numbers(path, options, keep=True):
    """A pass over the file: its names, the line of each row, the rows as numbers in blocks, which columns have words."""
    blocks, all_lines, wordy = [], [], set()
    with _opened(path, options) as (names, reader):
        for rows, lines in _row_blocks(path, reader, names, ROWS):
            columns = [[_value(cell) for cell in cells] for cells in zip(*rows)]
            wordy |= {j for j, values in enumerate(columns) if None in values}
            if keep:
                blocks.append(np.array(columns, dtype=np.float64).T)  # None is NaN here, until its code is known
                all_lines += lines
            if len(all_lines) * len(names) > MAX_DENSE_CELLS:
                raise bad(path, f"more than {MAX_DENSE_CELLS} cells: use a sparse format", lines[-1])
    return names, all_lines, blocks, sorted(wordy)


def _words(path, options, names, wordy, keep=True):
    """Another pass, if any column is `wordy`: {column: {word: code}}, and {column: its values}."""
    counts, seen, cells = {j: Counter() for j in wordy}, {j: {} for j in wordy}, {j: [] for j in wordy}
    if not wordy:
        return {}, {}
    with _opened(path, options) as (_, reader):
        for rows, lines in _row_blocks(path, reader, names, ROWS):
            for j in wordy:
                words = [row[j].strip() for row in rows]
                for word, line in zip(words, lines):
                    seen[j].setdefault(word, line)
                counts[j].update(word for word in words if not is_missing(word))
                if keep:
                    cells[j] += words
                if len(counts[j]) > MAX_WORDS:
                    _codes(path, names[j], counts[j], seen[j])
    codes = {j: _codes(path, names[j], counts[j], seen[j]) for j in wordy}
    return codes, {j: _coded(cells[j], codes[j]) for j in wordy}


def _codes(path, name, counts, seen):
    try:
        return column_codes(counts)
    except OddWordError as error:
        raise bad(path, f"column {quote(name)} has {quote(error.word)}, {error}", seen[error.word]) from error


def _coded(cells, codes):
    if codes is None:
        return np.array([_value(cell) for cell in cells])
    return np.array([codes.get(cell.strip(), np.nan) for cell in cells])


def _value(cell):
    """The number in a cell, NaN if it is missing, None if it is a word."""
    value = number(cell)
    return np.nan if value is None and is_missing(cell.strip()) else value


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
