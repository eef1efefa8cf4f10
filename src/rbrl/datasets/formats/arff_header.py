"""The header of an ARFF file: relation, attributes, and MEKA's `-C`."""

import re
from dataclasses import dataclass, field

from rbrl.datasets.formats.arff_words import unquote, words
from rbrl.datasets.formats.errors import bad, quote

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
