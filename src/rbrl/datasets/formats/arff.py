"""ARFF files, dense and sparse, in the dialects of Weka, Mulan, MEKA and scikit-multilearn."""

import io
import re
from itertools import chain, islice

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.arff_header import read_header, unquote, words
from rbrl.datasets.formats.table import Table, feature_columns
from rbrl.datasets.formats.text import MAX_DENSE_CELLS, bad, line_blocks, quote, read_text, streaming_text
from rbrl.datasets.formats.values import ARFF, nominal_codes, number, read_pairs, repeated_row

FEW = 8


class Columns:
    """Converts words to numbers, one by one or for whole blocks.

    Parameters
    ----------
    header : Header

    Attributes
    ----------
    names : list of str
    codes : dict of int to dict of str to float
        For each nominal column, the code of each value.
    defaults : dict of int to float
        Columns whose omitted value in a sparse row is not 0: ARFF omits the first value of a nominal attribute.
    """

    def __init__(self, header):
        self.names = header.names
        cache = {values: nominal_codes(values) for values in set(header.values) if values}
        self.codes = {j: cache[values] for j, values in enumerate(header.values) if values}
        first = {values: next(iter(codes.values())) for values, codes in cache.items()}
        self.defaults = {j: first[v] for j, v in enumerate(header.values) if v and first[v] != 0}
        self.spelled = {v for v, codes in cache.items() if all(number(word) == code for word, code in codes.items())}
        self.wordy = [j for j, v in enumerate(header.values) if v and v not in self.spelled]
        self.groups = _groups(header.values, cache, self.spelled)
        self.kind = self._kinds(len(self.names))

    def __len__(self):
        return len(self.names)

    def value(self, column, word, quoted):
        """Return the number that `word` is worth in `column`; raises ValueError with the reason otherwise."""
        if word == "?" and not quoted:
            return np.nan
        codes = self.codes.get(column)
        if codes is not None and word in codes:
            return codes[word]
        value = number(word)
        if codes is None and value is None:
            raise ValueError(f"{quote(self.names[column])} is numeric; got {quote(word)}")
        if codes is None or (value is not None and self._fits(column, value)):
            return value
        raise ValueError(f"{quote(self.names[column])} must be one of {_few(codes)}; got {quote(word)}")

    def _fits(self, column, value):
        return self.kind[column] >= 0 and (value != value or value in self.codes[column].values())

    def converters(self):
        """Return functions for the columns whose words are not numbers, as `numpy.loadtxt` takes them."""
        return {j: _converter(self.codes[j]) for j in self.wordy}

    def block_is_valid(self, block):
        """Whether a dense block of numbers keeps to the values of its nominal columns, and has no infinity."""
        if np.isinf(block).any():
            return False
        parts = ((block[:, columns], allowed) for columns, allowed in self.groups)
        return all(_allowed(part, allowed).all() for part, allowed in parts)

    def entries_are_valid(self, columns, values):
        """Whether entries (column, value) of sparse rows do; any missing value or word is left to the slow way."""
        kind = self.kind[columns]
        if (kind < 0).any() or not np.isfinite(values).all():
            return False
        return all(_allowed(values[kind == k], allowed).all() for k, (_, allowed) in enumerate(self.groups, 1))

    def _kinds(self, n_columns):
        kind = np.zeros(n_columns, dtype=np.int32)  # 0 numeric, k > 0 the k-th group, -1 words
        for k, (columns, _) in enumerate(self.groups, 1):
            kind[columns] = k
        kind[self.wordy] = -1
        return kind


def _groups(values, cache, spelled):
    """Return [(columns, allowed numbers)], columns of equal values together."""
    groups = {}
    for j, value in enumerate(values):
        if value and value in spelled:
            groups.setdefault(tuple(sorted(set(cache[value].values()))), []).append(j)
    return [(np.array(columns), np.array(allowed)) for allowed, columns in groups.items()]


def _allowed(values, allowed):
    if len(allowed) > FEW:
        return np.isin(values, allowed) | np.isnan(values)
    good = np.isnan(values)
    for value in allowed:
        good |= values == value
    return good


def _converter(codes):
    return lambda word: codes[word.strip()]


def _few(codes):
    shown = ", ".join(quote(word) for word in list(codes)[:FEW])
    return shown + (", …" if len(codes) > FEW else "")


SPECIAL = "'\"%{}\\"


def dense_block(path, columns, lines, numbers):
    """Return the rows in `lines`, which are not blank, as an array.

    Parameters
    ----------
    path : Path
    columns : Columns
    lines : list of str
    numbers : sequence of int
        The number of each line, for error messages.
    """
    block = _plain_dense(columns, lines)
    if block is None:
        block = np.array([_dense_row(path, columns, line, number) for line, number in zip(lines, numbers)])
    return block


def _plain_dense(columns, lines):
    text = "".join(lines)
    if any(letter in text for letter in SPECIAL):
        return None
    if "?" in text:
        if columns.wordy:
            return None
        lines = io.StringIO(text.replace("?", "nan"))
    try:
        block = np.loadtxt(lines, delimiter=",", comments=None, ndmin=2, converters=columns.converters() or None)
    except (ValueError, KeyError, OverflowError):
        return None
    return block if block.shape[1] == len(columns) and columns.block_is_valid(block) else None


def _dense_row(path, columns, line, number):
    found, end = words(line.strip())
    if end is None:
        raise bad(path, f"badly quoted, or a brace in a dense row: {quote(line.strip())}", number)
    if len(found) == 1 and len(columns) > 1 and not found[0][1]:
        found = [(word, False) for word in found[0][0].split()]  # Weka takes white space for commas
    if len(found) != len(columns):
        raise bad(path, f"a row has {len(found)} values, the header {len(columns)} attributes", number)
    try:
        return [columns.value(j, word, quoted) for j, (word, quoted) in enumerate(found)]
    except ValueError as error:
        raise bad(path, str(error), number) from error


ENTRY = re.compile(
    r"""\s*(\d{1,10})\s+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^\s,{}%'"]+))\s*([,}])""", re.DOTALL
)


def sparse_block(path, columns, lines, numbers):
    """Return (indexes, values, counts per row) of the rows in `lines`; parameters as for `dense_block`."""
    block = _plain_sparse(columns, lines)
    if block is None:
        rows = [_sparse_row(path, columns, line.strip(), number) for line, number in zip(lines, numbers)]
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        indexes = np.array([j for row in rows for j in row], dtype=np.int64)
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        block = indexes, values, counts
    return block


def fill_defaults(path, matrix, defaults):
    """Put the columns' default values where a row has no entry.

    Parameters
    ----------
    matrix : csr_array
        Explicit zeros stand for zero.
    defaults : dict of int to float
    """
    columns = np.array(sorted(defaults))
    if not len(columns):
        return matrix
    if matrix.shape[0] * len(columns) > MAX_DENSE_CELLS:
        raise bad(path, f"{len(columns)} nominal attributes begin with a value other than 0: too many")
    place = np.full(matrix.shape[1], -1)
    place[columns] = np.arange(len(columns))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    there = place[matrix.indices] >= 0
    absent = np.ones((matrix.shape[0], len(columns)), dtype=bool)
    absent[rows[there], place[matrix.indices[there]]] = False
    more, which = np.nonzero(absent)
    values = np.array([defaults[j] for j in columns.tolist()])[which]
    return matrix + sparse.csr_array((values, (more, columns[which])), shape=matrix.shape)


def _plain_sparse(columns, lines):
    rows = [line.strip() for line in lines]
    if not all(row[0] == "{" and row[-1] == "}" for row in rows):
        return None
    pairs = read_pairs([row[1:-1] for row in rows], ARFF, ",")
    if pairs is None:
        return None
    indexes, values, counts = pairs
    if len(indexes) and indexes.max() >= len(columns):
        return None
    if repeated_row(indexes, counts) is not None or not columns.entries_are_valid(indexes, values):
        return None
    return pairs


def _sparse_row(path, columns, text, line):
    if not text.startswith("{"):
        raise bad(path, f"a dense row among sparse ones: {quote(text)}", line)
    row, start = {}, re.match(r"\{\s*", text).end()
    if text[start : start + 1] == "}":
        return _ended(path, row, text[start + 1 :], line)
    while True:
        match = ENTRY.match(text, start)
        if not match:
            raise bad(path, f"expected 'index value' and a comma or brace; got {quote(text[start:])}", line)
        column = int(match[1])
        if column >= len(columns):
            raise bad(path, f"index {column} is beyond the {len(columns)} attributes (counted from 0)", line)
        if column in row:
            raise bad(path, f"index {column} occurs twice in a row", line)
        row[column] = _value(path, columns, column, match, line)
        start = match.end()
        if match[5] == "}":
            return _ended(path, row, text[start:], line)


def _value(path, columns, column, match, line):
    quoted = match[4] is None
    word = unquote(match[2] if match[2] is not None else match[3]) if quoted else match[4]
    try:
        return columns.value(column, word, quoted)
    except ValueError as error:
        raise bad(path, str(error), line) from error


def _ended(path, row, rest, line):
    rest = rest.strip()
    if rest and not rest.startswith("%"):
        raise bad(path, f"unexpected {quote(rest)} after a row", line)
    return row


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
