"""ARFF files, dense and sparse, in the dialects of Weka, Mulan, MEKA and scikit-multilearn.

Labels are told by `options.labels`, else by Mulan's XML file beside the file, else by MEKA's `-C` in the relation's name.
The columns of Y stand in the order of the header, however the XML orders them.
"""

import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, FloatArray
from rbrl.datasets.dataset import Dataset, dense, stored_values
from rbrl.datasets.formats import MAX_DENSE_CELLS, ReadOptions, bad, quote
from rbrl.datasets.formats.arff_header import QUOTED, Header, read_header, unquote, words
from rbrl.datasets.formats.column_choice import Choice, write_labels, xml_path
from rbrl.datasets.formats.table import Table, check_writable
from rbrl.datasets.formats.text import Pairs, in_blocks, reading_text, writing_text
from rbrl.datasets.formats.words import number, spell, word_codes

ENTRY = re.compile(
    rf"""\s*(?P<column>\d{{1,10}})\s+(?:{QUOTED}|(?P<plain>[^\s,{{}}%'"]+))\s*(?P<end>[,}}])""", re.DOTALL
)
ESCAPED = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
NEEDS_NO_QUOTES = re.compile(r"[^\s,{}%'\"\\?@]+\Z")
SPECIAL = "'\"%{}\\"  # letters of dense rows that NumPy's parser does not understand
FEW = 8  # values of an attribute that a message names


class Attributes:
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
    ignored : set of int
        Columns whose values are not read: they are 0.
    kind : array of int
        Kind of each column: 0 numeric, -1 words or ignored, k > 0 those of the numbers ``allowed[k - 1]``.

    Examples
    --------
    >>> Attributes(Header(names=["colour"], values=[("red", "blue")])).value(0, "blue", quoted=False, line=1)
    1.0
    """

    def __init__(self, header: Header):
        self.names, self.ignored = header.names, header.ignored
        codes = {values: word_codes(values) for values in set(header.values) if values}
        self.codes = {j: codes[values] for j, values in enumerate(header.values) if values}
        self.defaults = {j: first for j, own in self.codes.items() if (first := next(iter(own.values()))) != 0}
        numbers = {
            values: tuple(sorted(set(own.values())))
            for values, own in codes.items()
            if all(number(word) == code for word, code in own.items())
        }
        kinds = {allowed: k for k, allowed in enumerate(dict.fromkeys(numbers.values()), 1)}
        kind = [0 if not values else kinds[numbers[values]] if values in numbers else -1 for values in header.values]
        self.kind, self.allowed = np.array(kind, dtype=np.int32), [np.array(allowed) for allowed in kinds]
        self.kind[list(self.ignored)] = -1
        self.wordy = np.flatnonzero(self.kind < 0).tolist()

    def value(self, column: int, word: str, quoted: bool, line: int) -> float:
        """Return the number that `word` is worth in `column`.

        Parameters
        ----------
        column : int
        word : str
        quoted : bool
            Whether it stood in quotes, where `?` is a word as others are.
        line : int
            Where it stands, for messages.

        Returns
        -------
        float
            NaN for a missing value.

        Raises
        ------
        DataFormatError
            The attribute has no such value.
        """
        if column in self.ignored:
            return 0.0
        if word == "?" and not quoted:
            return np.nan
        codes = self.codes.get(column)
        if codes is not None and word in codes:
            return codes[word]
        value = number(word)
        if codes is None:
            if value is None:
                raise bad(f"{quote(self.names[column])} is numeric; got {quote(word)}", line)
            return value
        if value is not None and self.kind[column] >= 0 and (value != value or value in codes.values()):
            return value
        some = ", ".join(quote(word) for word in list(codes)[:FEW]) + (", …" if len(codes) > FEW else "")
        raise bad(f"{quote(self.names[column])} must be one of {some}; got {quote(word)}", line)

    def are_valid(self, values: FloatArray, kind: Array) -> bool:
        """Whether values, whose last axis has columns of these kinds, are allowed there, and none is infinite.

        Parameters
        ----------
        values : ndarray
        kind : ndarray of int
            Of each column, as in the attribute `kind`.

        Returns
        -------
        bool
        """
        parts = ((values[..., kind == k], allowed) for k, allowed in enumerate(self.allowed, 1))
        return not np.isinf(values).any() and all((np.isin(v, some) | np.isnan(v)).all() for v, some in parts)


def tables(path: Path, options: ReadOptions, size: int | None = None, choose: Choice | None = None) -> Iterator[Table]:
    """Yield the rows of an ARFF file, `size` at a time; by default all of them, in tables of any size.

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
    with reading_text(path, options) as stream:
        header = read_header(stream, options)
        attributes, wanted = Attributes(header), choose(header.names, header.n_labels) if choose else None
        read = None
        # Without blank lines and comments.
        numbered = enumerate(stream, header.n_lines + 1)
        rows = ((line, i) for i, line in numbered if not line.isspace() and not line.lstrip().startswith("%"))
        for block, lines in in_blocks(rows, size):
            read = read or (_sparse_rows if block[0].lstrip().startswith("{") else _dense_rows)
            matrix = read(attributes, block, lines)
            matrix = matrix if wanted is None else matrix[:, wanted]
            told: dict[str, Any] = {"declared": True, "own_labels": header.n_labels, "name": header.relation}
            yield Table(path, header.names, matrix, np.array(lines), attributes.codes, **told)
        if read is None and size is None:
            raise bad("there are no rows after @data", header.n_lines)


def _dense_rows(attributes: Attributes, lines: list[str], numbers: list[int]) -> FloatArray:
    block = _plain_dense(attributes, lines)
    return np.array([*map(partial(_dense_row, attributes), lines, numbers)]) if block is None else block


def _plain_dense(attributes: Attributes, lines: list[str]) -> FloatArray | None:
    """All rows at once, where there are only numbers and undisguised words; None where a row needs a closer look."""
    text = "".join(lines)
    if any(letter in text for letter in SPECIAL) or ("?" in text and attributes.wordy):
        return None
    coded = [j for j in attributes.wordy if j not in attributes.ignored]
    converters: Any = {j: lambda word, codes=attributes.codes[j]: codes[word.strip()] for j in coded}
    converters |= {j: lambda word: 0.0 for j in attributes.ignored}
    source: Any = io.StringIO(text.replace("?", "nan")) if "?" in text else lines
    try:
        block = np.loadtxt(source, delimiter=",", comments=None, ndmin=2, converters=converters or None)
    except (ValueError, KeyError, OverflowError):
        return None
    fits = block.shape[1] == len(attributes.names) and attributes.are_valid(block, attributes.kind)
    return block if fits else None


def _dense_row(attributes: Attributes, line: str, line_number: int) -> list[float]:
    found, end = words(line.strip())
    if end is None:
        raise bad(f"badly quoted, or a brace in a dense row: {quote(line.strip())}", line_number)
    n_columns = len(attributes.names)
    if len(found) == 1 and n_columns > 1 and not found[0][1]:
        found = [(word, False) for word in found[0][0].split()]  # Weka takes white space for commas
    if len(found) != n_columns:
        raise bad(f"a row has {len(found)} values, the header {n_columns} attributes", line_number)
    return [attributes.value(j, word, quoted, line_number) for j, (word, quoted) in enumerate(found)]


def _sparse_rows(attributes: Attributes, lines: list[str], numbers: list[int]) -> Any:
    pairs = _plain_sparse(attributes, lines)
    if pairs is None:
        pairs = Pairs.of_rows([_sparse_row(attributes, line.strip(), place) for line, place in zip(lines, numbers)])
    shape = (len(lines), len(attributes.names))
    matrix = sparse.csr_array((pairs.values, pairs.indexes.astype(np.int32), pairs.starts), shape=shape)
    return _with_defaults(matrix, attributes.defaults)


def _plain_sparse(attributes: Attributes, lines: list[str]) -> Pairs | None:
    """All rows at once, where there are only numbers; None where a row needs a closer look."""
    rows = [line.strip() for line in lines]
    if not all(row[0] == "{" and row[-1] == "}" for row in rows):
        return None
    pairs = Pairs.read([row[1:-1] for row in rows], ",")
    if pairs is None or pairs.indexes.max(initial=-1) >= len(attributes.names):
        return None
    kind = attributes.kind[pairs.indexes]
    return None if (kind < 0).any() or not attributes.are_valid(pairs.values, kind) else pairs


def _sparse_row(attributes: Attributes, text: str, line: int) -> dict[int, float]:
    if not text.startswith("{"):
        raise bad(f"a dense row among sparse ones: {quote(text)}", line)
    row: dict[int, float] = {}
    start = len(text) - len(text[1:].lstrip())
    closed = text[start : start + 1] == "}"
    start += closed
    while not closed:
        match = ENTRY.match(text, start)
        if not match:
            raise bad(f"expected 'index value' and a comma or brace; got {quote(text[start:])}", line)
        column = int(match["column"])
        if column >= len(attributes.names):
            raise bad(f"index {column} is beyond the {len(attributes.names)} attributes (counted from 0)", line)
        if column in row:
            raise bad(f"index {column} occurs twice in a row", line)
        row[column] = attributes.value(column, unquote(match), match["plain"] is None, line)
        start, closed = match.end(), match["end"] == "}"
    rest = text[start:].strip()
    if rest and not rest.startswith("%"):
        raise bad(f"unexpected {quote(rest)} after a row", line)
    return row


def _with_defaults(matrix: Any, defaults: dict[int, float]) -> Any:
    """Put the columns' default values where a row has no entry; explicit zeros stand for zero."""
    if not defaults:
        return matrix
    columns, values = np.array(list(defaults)), np.array(list(defaults.values()))
    if matrix.shape[0] * len(columns) > MAX_DENSE_CELLS:
        raise bad(f"{len(columns)} nominal attributes begin with a value other than 0: too many")
    there = sparse.csr_array((np.ones(matrix.nnz, dtype=bool), matrix.indices, matrix.indptr), shape=matrix.shape)
    rows, which = np.nonzero(~there[:, columns].toarray())
    return matrix + sparse.csr_array((values[which], (rows, columns[which])), shape=matrix.shape)


def write(dataset: Dataset, path: Path, labels_first: bool = False) -> None:
    """Write `path` and the XML file beside it; sparse rows if X is sparse. Missing values become `?`.

    Parameters
    ----------
    dataset : Dataset
    path : Path
    labels_first : bool
        Put the labels before the features.
    """
    check_writable(dataset, xml=True)
    is_sparse = sparse.issparse(dataset.X)
    Y = sparse.csr_array(dataset.Y, dtype=np.float64) if is_sparse else dense(dataset.Y)
    blocks = [Y, dataset.X] if labels_first else [dataset.X, Y]
    count = dataset.n_labels if labels_first else -dataset.n_labels
    labels = [f"@attribute {_enquoted(name)} {{0,1}}\n" for name in dataset.label_names]
    coded = set(dataset.categorical_index.tolist())
    kinds = (_coded_kind(dataset.X, j) if j in coded else "numeric" for j in range(dataset.n_features))
    features = [f"@attribute {_enquoted(name)} {kind}\n" for name, kind in zip(dataset.feature_names, kinds)]
    with writing_text(path) as stream:
        stream.write(f"@relation {_enquoted(f'{dataset.name}: -C {count}')}\n\n")
        stream.writelines(labels + features if labels_first else features + labels)
        stream.write("\n@data\n")
        stream.writelines(_sparse_text(sparse.hstack(blocks, format="csr")) if is_sparse else _dense_text(blocks))
    write_labels(dataset.label_names, xml_path(path))


def _enquoted(text: str) -> str:
    if NEEDS_NO_QUOTES.match(text):
        return text
    return "'" + "".join(ESCAPED.get(letter, letter) for letter in text) + "'"


def _coded_kind(X: Any, column: int) -> str:
    values = np.unique(stored_values(X[:, [column]]))
    values = values[~np.isnan(values)]
    if sparse.issparse(X):
        values = np.concatenate([[0.0], values[values != 0]])  # sparse rows leave out the first value declared
    return "{" + ",".join(spell(value) for value in values.tolist()) + "}"


def _dense_text(blocks: Sequence[Any]) -> Iterator[str]:
    for rows in zip(*blocks):
        yield ",".join(spell(value) for row in rows for value in row.tolist()) + "\n"


def _sparse_text(matrix: Any) -> Iterator[str]:
    matrix.eliminate_zeros()
    matrix.sort_indices()
    for start, stop in zip(matrix.indptr, matrix.indptr[1:]):
        entries = zip(matrix.indices[start:stop].tolist(), matrix.data[start:stop].tolist())
        yield "{" + ",".join(f"{j} {spell(value)}" for j, value in entries) + "}\n"
