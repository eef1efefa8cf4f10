"""Words and header of ARFF, read and written."""

import re
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.table import check_writable, write_labels, xml_path
from rbrl.datasets.formats.text import bad, quote, writing_text
from rbrl.datasets.formats.values import spell

WORD = re.compile(r"""\s*+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^,{}%]*))\s*+""", re.DOTALL)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
BACK = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
PLAIN = re.compile(r"[^\s,{}%'\"\\?@]+\Z")


def unquote(text):
    """Return the text that stands between quotes with its backslashes resolved."""
    return ESCAPE.sub(_letter, text) if "\\" in text else text


def enquote(text):
    """Return `text` as an ARFF word, in quotes where needed."""
    if PLAIN.match(text):
        return text
    return "'" + "".join(BACK.get(letter, letter) for letter in text) + "'"


def words(text, start=0, close=""):
    """Split `text` at commas outside quotes, up to `close` or, where that is empty, the end or a comment.

    Returns
    -------
    found : list of (str, bool)
        The words, and whether each was quoted.
    end : int or None
        Where the list ended; None if it is malformed.
    """
    found = []
    while True:
        match = WORD.match(text, start)
        quoted = match[3] is None
        found.append(
            (unquote(match[1] if match[1] is not None else match[2]), True) if quoted else (match[3].rstrip(), False)
        )
        start = match.end()
        after = text[start : start + 1]
        if after == close or (not close and after == "%"):
            return found, start + len(close)
        if after != ",":
            return found, None
        start += 1


def _letter(match):
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return LETTERS.get(code, code)


NUMERIC = re.compile(r"(?:numeric|real|integer)\s*(?:\[.*\]\s*)?(?:%.*)?", re.DOTALL | re.IGNORECASE)
NAME = re.compile(r"""[ \t]*(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^\s{'"][^\s{]*))[ \t]*(.*)""", re.DOTALL)
MEKA = re.compile(r":.*-[Cc]\s+(-?\d{1,9})\b", re.DOTALL)


@dataclass
class Header:
    """What stands above `@data`.

    Attributes
    ----------
    relation : str
        Without MEKA's options.
    names : list of str
    values : list of (tuple of str, or None)
        The values of each nominal attribute; None for a numeric one.
    n_labels : int or None
        MEKA's `-C`: the first n attributes are labels, or the last -n.
    n_lines : int
        Lines read, `@data` included.
    """

    relation: str = ""
    names: list = field(default_factory=list)
    values: list = field(default_factory=list)
    n_labels: int | None = None
    n_lines: int = 0


def read_header(stream, path):
    """Read up to and with `@data`."""
    header = Header()
    for line in stream:
        header.n_lines += 1
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        keyword, rest = _keyword(text)
        if keyword == "@data":
            if not header.names:
                raise bad(path, "there is no @attribute before @data", header.n_lines)
            return header
        if keyword == "@relation":
            _relation(header, rest)
        elif keyword == "@attribute":
            name, values = _attribute(path, rest, header.n_lines)
            header.names.append(name)
            header.values.append(values)
        else:
            raise bad(path, f"expected @relation, @attribute or @data; got {quote(text)}", header.n_lines)
    raise bad(path, f"the file ends after {header.n_lines} lines without @data", header.n_lines)


def _keyword(text):
    keyword, *rest = text.split(maxsplit=1)
    return keyword.lower(), rest[0] if rest else ""


def _relation(header, rest):
    match = NAME.match(rest)
    quoted = match and match[3] is None
    text = unquote(match[1] or match[2] or "") if quoted else rest.partition("%")[0].strip()
    options = MEKA.search(text)
    header.n_labels = int(options[1]) if options else header.n_labels
    header.relation = text.partition(":")[0].strip() if options else text


def _attribute(path, rest, line):
    match = NAME.match(rest)
    if not match:
        raise bad(path, f"an attribute needs a name and a type; got {quote(rest)}", line)
    name = match[3] if match[3] is not None else unquote(match[1] if match[1] is not None else match[2])
    kind = match[4]
    if kind.startswith("{"):
        return name, _nominal(path, kind, line)
    if NUMERIC.fullmatch(kind):
        return name, None
    raise bad(path, f"attribute {quote(name)} has type {quote(kind)}; numeric and nominal ones can be read", line)


def _nominal(path, kind, line):
    values, end = words(kind, 1, "}")
    if end is None:
        raise bad(path, f"the list of values is not closed or badly quoted: {quote(kind)}", line)
    rest = kind[end:].strip()
    if rest and not rest.startswith("%"):
        raise bad(path, f"unexpected {quote(rest)} after the list of values", line)
    if values == [("", False)]:
        raise bad(path, f"a nominal attribute needs values; got {quote(kind)}", line)
    return tuple(dict.fromkeys(value for value, _ in values))


def write_arff(dataset, path, labels_first=False):
    """Write `path` and the XML file beside it; sparse rows if X is sparse. Missing values become `?`."""
    check_writable(dataset, path, xml=True)
    Y = sparse.csr_array(dataset.Y, dtype=np.float64) if sparse.issparse(dataset.X) else _dense(dataset.Y)
    blocks = [Y, dataset.X] if labels_first else [dataset.X, Y]
    with writing_text(path) as stream:
        _write_header(stream, dataset, labels_first)
        if sparse.issparse(dataset.X):
            _write_sparse(stream, sparse.hstack(blocks, format="csr"))
        else:
            _write_dense(stream, blocks)
    write_labels(dataset.label_names, xml_path(path))


def _dense(Y):
    return Y.toarray() if sparse.issparse(Y) else Y


def _write_header(stream, dataset, labels_first):
    count = dataset.n_labels if labels_first else -dataset.n_labels
    stream.write(f"@relation {enquote(f'{dataset.name}: -C {count}')}\n\n")
    labels = [f"@attribute {enquote(name)} {{0,1}}\n" for name in dataset.label_names]
    coded = set(dataset.categorical_index.tolist())
    kinds = (_kind(dataset.X, j) if j in coded else "numeric" for j in range(dataset.n_features))
    features = [f"@attribute {enquote(name)} {kind}\n" for name, kind in zip(dataset.feature_names, kinds)]
    stream.writelines(labels + features if labels_first else features + labels)
    stream.write("\n@data\n")


def _kind(X, column):
    values = X[:, [column]]
    values = np.unique(values.data if sparse.issparse(values) else values)
    values = np.unique(values[~np.isnan(values)])
    if sparse.issparse(X):
        values = np.concatenate([[0.0], values[values != 0]])  # sparse rows leave out the first value declared
    return "{" + ",".join(spell(value) for value in values.tolist()) + "}"


def _write_dense(stream, blocks):
    for rows in zip(*blocks):
        values = (spell(value) if value == value else "?" for row in rows for value in row.tolist())
        stream.write(",".join(values) + "\n")


def _write_sparse(stream, matrix):
    matrix.eliminate_zeros()
    matrix.sort_indices()
    for start, stop in zip(matrix.indptr, matrix.indptr[1:]):
        indexes, values = matrix.indices[start:stop].tolist(), matrix.data[start:stop].tolist()
        entries = (f"{j} {spell(value) if value == value else '?'}" for j, value in zip(indexes, values))
        stream.write("{" + ",".join(entries) + "}\n")
