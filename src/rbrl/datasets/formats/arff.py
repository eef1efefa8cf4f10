"""ARFF files, dense and sparse, in the dialects of Weka, Mulan, MEKA and scikit-multilearn.

Labels are named by `options.labels`, Mulan's XML file, or MEKA's option `-C` in the relation's name.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.frames import as_dense
from rbrl._common.typing import Array, FloatArray
from rbrl.datasets.columns import ColumnChoice, find_ignored_columns
from rbrl.datasets.dataset import Dataset, stored_values
from rbrl.datasets.formats import (
    MAX_DENSE_CELLS,
    ReadOptions,
    format_error,
    format_number,
    group_rows,
    list_some,
    open_text,
    parse_number,
    quote,
    row_entries,
)
from rbrl.datasets.formats.svmlight import csr_from_rows, parse_sparse_rows
from rbrl.datasets.formats.table import Table, TableFormat, create_text_table
from rbrl.datasets.formats.words import word_codes

QUOTED = r"""'(?P<single>(?:[^'\\]|\\.)*+)'|"(?P<double>(?:[^"\\]|\\.)*+)\""""
WORD = re.compile(rf"\s*+(?:{QUOTED}|(?P<plain>[^,{{}}%]*))\s*+", re.DOTALL)
NAME_AND_REST = re.compile(rf"""[ \t]*(?:{QUOTED}|(?P<plain>[^\s{{'"][^\s{{]*))[ \t]*(?P<rest>.*)""", re.DOTALL)
NUMERIC_TYPE = re.compile(r"(?:numeric|real|integer)\s*(?:\[.*\]\s*)?(?:%.*)?", re.DOTALL | re.IGNORECASE)
MEKA_LABELS = re.compile(r":.*-[Cc]\s+(-?\d{1,9})\b", re.DOTALL)
ESCAPE_SEQUENCE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
UNESCAPED_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
ESCAPED_LETTERS = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
SPARSE_ENTRY = re.compile(
    rf"""\s*(?P<column>\d{{1,10}})\s+(?:{QUOTED}|(?P<plain>[^\s,{{}}%'"]+))\s*(?P<end>[,}}])""", re.DOTALL
)
NEEDS_NO_QUOTES = re.compile(r"[^\s,{}%'\"\\?@]+\Z")
SPECIAL_LETTERS = "'\"%{}\\"  # NumPy's parser does not understand them in dense rows


@dataclass
class Header:
    """The lines of an ARFF file up to `@data`."""

    relation: str = ""  # without MEKA's options
    names: list[str] = field(default_factory=list)  # of the attributes
    values: list[tuple[str, ...] | None] = field(default_factory=list)  # None: numeric
    n_labels: int | None = None  # MEKA: the first n are labels, or the last -n
    n_lines: int = 0
    ignored: set[int] = field(default_factory=set)  # attributes that are not read

    @classmethod
    def read(cls, stream: Iterable[str], options: ReadOptions) -> "Header":
        """Read lines up to `@data`; the rows stay in the stream."""
        header = cls()
        for line in stream:
            header.n_lines += 1
            text = line.strip()
            if not text or text.startswith("%"):
                continue
            keyword, rest = [*text.split(maxsplit=1), ""][:2]
            if keyword.lower() == "@data":
                if not header.names:
                    raise format_error("there is no @attribute before @data", header.n_lines)
                header.ignored = find_ignored_columns(header.names, options)
                return header
            if keyword.lower() == "@relation":
                header._read_relation(rest)
            elif keyword.lower() == "@attribute":
                header._read_attribute(rest, options.ignored_names)
            else:
                raise format_error(
                    f"expected @relation, @attribute or @data; got {quote(text)}: if this is no ARFF file, "
                    "rename it with the ending of its format, such as .csv",
                    header.n_lines,
                )
        raise format_error(f"the file ends after {header.n_lines} lines without @data", header.n_lines)

    def _read_relation(self, rest: str) -> None:
        """Set the name of the relation, and the number of labels if MEKA's option -C is in it."""
        match = NAME_AND_REST.match(rest)
        is_plain = match is None or match["plain"] is not None
        text = rest.partition("%")[0].strip() if is_plain else _unquote(match)
        meka = MEKA_LABELS.search(text)
        self.n_labels = int(meka[1]) if meka else self.n_labels
        self.relation = text.partition(":")[0].strip() if meka else text

    def _read_attribute(self, rest: str, ignored: set[str]) -> None:
        """Append the name and values of an attribute, None for numbers; ignored ones have any type."""
        match = NAME_AND_REST.match(rest)
        if not match:
            raise format_error(f"an attribute needs a name and a type; got {quote(rest)}", self.n_lines)
        name = _unquote(match)
        kind = match["rest"]
        is_nominal = kind.startswith("{") and name not in ignored
        if not is_nominal and not NUMERIC_TYPE.fullmatch(kind) and name not in ignored:
            what = f"attribute {quote(name)} has type {quote(kind)}; numeric and nominal ones can be read"
            raise format_error(f"{what}: leave it out with ignore={quote(name)}", self.n_lines)
        self.names.append(name)
        self.values.append(_parse_values(kind, self.n_lines) if is_nominal else None)


def _parse_values(kind: str, line: int) -> tuple[str, ...]:
    """Return the distinct values in a nominal type such as `{red, blue}`, in their order."""
    values, end = _split_words(kind, 1, "}")
    if end is None:
        raise format_error(f"the list of values is not closed or badly quoted: {quote(kind)}", line)
    rest = kind[end:].strip()
    if rest and not rest.startswith("%"):
        raise format_error(f"unexpected {quote(rest)} after the list of values", line)
    if values == [("", False)]:
        raise format_error(f"a nominal attribute needs values; got {quote(kind)}", line)
    return tuple(dict.fromkeys(value for value, _ in values))


def _split_words(text: str, start: int = 0, close: str = "") -> tuple[list[tuple[str, bool]], int | None]:
    """Split text at commas outside quotes, up to the letter `close`, a comment or the end.

    Returns a list of (word, whether it was quoted), and the end of the list, None if it is malformed.

    Examples
    --------
    >>> _split_words("a, 'b, c' % two words")
    ([('a', False), ('b, c', True)], 10)
    """
    words: list[tuple[str, bool]] = []
    while True:
        match = WORD.match(text, start)
        assert match is not None  # the pattern also matches an empty word
        is_quoted = match["plain"] is None
        words.append((_unquote(match) if is_quoted else match["plain"].rstrip(), is_quoted))
        start = match.end()
        after = text[start : start + 1]
        if after == close or (not close and after == "%"):
            return words, start + len(close)
        if after != ",":
            return words, None
        start += 1


def _unquote(match: Any) -> str:
    """Return a word without its quotes and backslashes, from a match of a pattern with `QUOTED`."""
    if match["plain"] is not None:
        return match["plain"]
    quoted = match["single"] if match["single"] is not None else match["double"]
    return ESCAPE_SEQUENCE.sub(
        lambda code: chr(int(code[1][1:], 16)) if len(code[1]) == 5 else UNESCAPED_LETTERS.get(code[1], code[1]), quoted
    )


class Attributes:
    """Conversion of the words in each column to numbers.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    codes : dict of int to dict of str to float
        Codes of the values of each nominal column.
    defaults : dict of int to float
        Values, other than 0, that sparse rows omit: ARFF omits the first value of a nominal attribute.
    ignored : set of int
        Columns that are not read; their values are 0.
    kinds : array of int
        0 for numeric columns, -1 for columns of words and ignored columns, k > 0 for columns whose
        values are the numbers ``allowed[k - 1]``.
    """

    def __init__(self, header: Header):
        self.names = header.names
        self.ignored = header.ignored
        codes = {values: word_codes(values) for values in set(header.values) if values}
        self.codes = {j: codes[values] for j, values in enumerate(header.values) if values}
        first_codes = {j: next(iter(own.values())) for j, own in self.codes.items()}
        self.defaults = {j: first for j, first in first_codes.items() if first != 0}
        # Nominal attributes whose values are numbers that are their own codes.
        numeric = [
            values for values, own in codes.items() if all(parse_number(word) == code for word, code in own.items())
        ]
        self.allowed = [np.array([*codes[values].values()]) for values in numeric]
        kinds: dict[Any, int] = {None: 0, **{values: k for k, values in enumerate(numeric, 1)}}
        self.kinds = np.array([kinds.get(values, -1) for values in header.values], dtype=np.int32)
        self.kinds[list(self.ignored)] = -1

    def parse(self, column: int, word: str, quoted: bool, line: int) -> float:
        """Return the number of a word in a column, NaN for a missing value; `'?'` in quotes is a word."""
        if column in self.ignored:
            return 0.0
        if word == "?" and not quoted:
            return np.nan
        codes = self.codes.get(column)
        if codes is not None and word in codes:
            return codes[word]
        value = parse_number(word)
        if codes is None:
            if value is None:
                raise format_error(f"{quote(self.names[column])} is numeric; got {quote(word)}", line)
            return value
        if value is not None and self.kinds[column] >= 0 and (value != value or value in codes.values()):
            return value
        raise format_error(
            f"{quote(self.names[column])} must be one of {list_some([*codes], 8)}; got {quote(word)}", line
        )

    def are_valid(self, values: FloatArray, kinds: Array) -> bool:
        """Return True if values, whose last axis has columns of these kinds, are allowed and finite."""
        parts = ((values[..., kinds == k], allowed) for k, allowed in enumerate(self.allowed, 1))
        return not np.isinf(values).any() and all((np.isin(v, some) | np.isnan(v)).all() for v, some in parts)


class Arff(TableFormat):
    """Reader and writer of ARFF files."""

    name = "arff"
    endings = (".arff",)
    may_be_packed = True

    def tables(
        self, path: Path, options: ReadOptions, size: int | None = None, choose: ColumnChoice | None = None
    ) -> Iterator[Table]:
        """Yield the chosen columns, `size` rows at a time or, by default, in tables of any size."""
        with open_text(path, options) as stream:
            header = Header.read(stream, options)
            attributes = Attributes(header)
            chosen = choose(header.names, header.n_labels) if choose else slice(None)
            parse_rows = None
            numbered = enumerate(stream, header.n_lines + 1)
            rows = ((line, i) for i, line in numbered if not line.isspace() and not line.lstrip().startswith("%"))
            for block, lines in group_rows(rows, size):
                if parse_rows is None:
                    parse_rows = _parse_sparse_rows if block[0].lstrip().startswith("{") else _parse_dense_rows
                matrix = parse_rows(attributes, block, lines)[:, chosen]
                table = Table(path, header.names, matrix, np.array(lines), attributes.codes, name=header.relation)
                yield replace(table, declares_words=True, declared_labels=header.n_labels)
            if parse_rows is None and size is None:
                raise format_error("there are no rows after @data", header.n_lines)

    def write(self, dataset: Dataset, path: Path, labels_first: bool = False) -> None:
        """Write a file, and Mulan's XML file in the same folder; rows are sparse if X is sparse."""
        types = _feature_types(dataset)
        label_types = ["{0,1}"] * dataset.n_labels
        types = label_types + types if labels_first else types + label_types
        n_labels = dataset.n_labels if labels_first else -dataset.n_labels
        with create_text_table(dataset, path, labels_first) as (stream, blocks, names):
            stream.write(f"@relation {_quote_word(f'{dataset.name}: -C {n_labels}')}\n\n")
            stream.writelines(f"@attribute {_quote_word(name)} {type}\n" for name, type in zip(names, types))
            stream.write("\n@data\n")
            if sparse.issparse(dataset.X):
                matrices = [sparse.csr_array(block, dtype=np.float64) for block in blocks]
                stream.writelines(_format_sparse_rows(sparse.hstack(matrices, format="csr")))
            else:
                stream.writelines(_format_dense_rows([as_dense(block) for block in blocks]))


def _parse_dense_rows(attributes: Attributes, lines: list[str], line_numbers: list[int]) -> FloatArray:
    """Parse rows at once if possible, else one by one, so that errors name the line; NaN is missing."""
    block = _parse_plain_dense_rows(attributes, lines)
    if block is None:
        block = np.array([_parse_dense_row(attributes, line, i) for line, i in zip(lines, line_numbers)])
    return block


def _parse_plain_dense_rows(attributes: Attributes, lines: list[str]) -> FloatArray | None:
    """Parse rows of numbers and unquoted words at once; return None if one must be parsed alone."""
    text = "".join(lines)
    words = np.flatnonzero(attributes.kinds < 0).tolist()
    if any(letter in text for letter in SPECIAL_LETTERS) or ("?" in text and words):
        return None
    converters: Any = {j: lambda word: 0.0 for j in attributes.ignored}
    for j in words:
        if j not in attributes.ignored:
            converters[j] = lambda word, codes=attributes.codes[j]: codes[word.strip()]
    source: Any = io.StringIO(text.replace("?", "nan")) if "?" in text else lines
    try:
        block = np.loadtxt(source, delimiter=",", comments=None, ndmin=2, converters=converters or None)
    except (ValueError, KeyError, OverflowError):
        return None
    fits = block.shape[1] == len(attributes.names) and attributes.are_valid(block, attributes.kinds)
    return block if fits else None


def _parse_dense_row(attributes: Attributes, line: str, line_number: int) -> list[float]:
    """Return the numbers of one row, one for each attribute; raise an error with the line number."""
    words, end = _split_words(line.strip())
    if end is None:
        raise format_error(f"badly quoted, or a brace in a dense row: {quote(line.strip())}", line_number)
    n_columns = len(attributes.names)
    if len(words) == 1 and n_columns > 1 and not words[0][1]:
        words = [(word, False) for word in words[0][0].split()]  # Weka accepts white space as separator
    if len(words) != n_columns:
        raise format_error(f"a row has {len(words)} values, the header {n_columns} attributes", line_number)
    return [attributes.parse(j, word, quoted, line_number) for j, (word, quoted) in enumerate(words)]


def _parse_sparse_rows(attributes: Attributes, lines: list[str], line_numbers: list[int]) -> Any:
    """Parse rows in braces, as :func:`_parse_dense_rows` does for dense rows; return a CSR array."""
    entries = _parse_plain_sparse_rows(attributes, lines)
    if entries is None:
        entries = csr_from_rows(
            [_parse_sparse_row(attributes, line.strip(), i) for line, i in zip(lines, line_numbers)]
        )
    shape = (len(lines), len(attributes.names))
    matrix = sparse.csr_array((entries.data, entries.indices, entries.indptr), shape=shape)
    return _fill_defaults(matrix, attributes.defaults)


def _parse_plain_sparse_rows(attributes: Attributes, lines: list[str]) -> Any:
    """Parse sparse rows of numbers at once; return None if a row must be parsed alone.

    The CSR array has `MAX_COLUMN + 1` columns, and omitted values are not filled in.
    """
    rows = [line.strip() for line in lines]
    if not all(row[0] == "{" and row[-1] == "}" for row in rows):
        return None
    entries = parse_sparse_rows([row[1:-1] for row in rows], ",")
    if entries is None or entries.indices.max(initial=-1) >= len(attributes.names):
        return None
    kinds = attributes.kinds[entries.indices]
    return None if (kinds < 0).any() or not attributes.are_valid(entries.data, kinds) else entries


def _parse_sparse_row(attributes: Attributes, text: str, line: int) -> dict[int, float]:
    """Return {column: number} for the entries of a row in braces; omitted values are not filled in."""
    if not text.startswith("{"):
        raise format_error(f"a dense row among sparse ones: {quote(text)}", line)
    row: dict[int, float] = {}
    start = len(text) - len(text[1:].lstrip())
    closed = text[start : start + 1] == "}"
    start += closed
    while not closed:
        match = SPARSE_ENTRY.match(text, start)
        if not match:
            raise format_error(f"expected 'index value' and a comma or brace; got {quote(text[start:])}", line)
        column = int(match["column"])
        if column >= len(attributes.names):
            raise format_error(
                f"index {column} is beyond the {len(attributes.names)} attributes (counted from 0)", line
            )
        if column in row:
            raise format_error(f"index {column} occurs twice in a row", line)
        row[column] = attributes.parse(column, _unquote(match), match["plain"] is None, line)
        start = match.end()
        closed = match["end"] == "}"
    rest = text[start:].strip()
    if rest and not rest.startswith("%"):
        raise format_error(f"unexpected {quote(rest)} after a row", line)
    return row


def _fill_defaults(matrix: Any, defaults: dict[int, float]) -> Any:
    """Return a CSR matrix in which a row without an entry has the column's default, if it has one."""
    if not defaults:
        return matrix
    columns = np.array(list(defaults))
    values = np.array(list(defaults.values()))
    if matrix.shape[0] * len(columns) > MAX_DENSE_CELLS:
        raise format_error(f"{len(columns)} nominal attributes begin with a value other than 0: too many")
    stored = sparse.csr_array((np.ones(matrix.nnz, dtype=bool), matrix.indices, matrix.indptr), shape=matrix.shape)
    rows, which = np.nonzero(~stored[:, columns].toarray())
    return matrix + sparse.csr_array((values[which], (rows, columns[which])), shape=matrix.shape)


def _quote_word(text: str) -> str:
    """Return a name as ARFF writes it: in quotes and escaped, if it needs them."""
    if NEEDS_NO_QUOTES.match(text):
        return text
    return "'" + "".join(ESCAPED_LETTERS.get(letter, letter) for letter in text) + "'"


def _feature_types(dataset: Dataset) -> list[str]:
    """Return the ARFF type of each feature: numeric, or the codes of a categorical feature."""
    types = ["numeric"] * dataset.n_features
    for j in dataset.categorical_index.tolist():
        values = np.unique(stored_values(dataset.X[:, [j]]))
        values = values[~np.isnan(values)]
        if sparse.issparse(dataset.X):
            values = np.concatenate([[0.0], values[values != 0]])  # sparse rows omit the first value
        types[j] = "{" + ",".join(map(format_number, values.tolist())) + "}"
    return types


def _format_dense_rows(blocks: Sequence[Any]) -> Iterator[str]:
    """Yield the lines of rows, whose columns are those of the dense blocks in order."""
    for rows in zip(*blocks):
        yield ",".join(format_number(value) for row in rows for value in row.tolist()) + "\n"


def _format_sparse_rows(matrix: Any) -> Iterator[str]:
    """Yield the lines of the rows of a CSR matrix, from which stored zeros are removed in place."""
    matrix.eliminate_zeros()
    matrix.sort_indices()
    for entries in row_entries(matrix):
        yield "{" + ",".join(f"{j} {format_number(value)}" for j, value in entries) + "}\n"
