"""The header of an ARFF file, and words in quotes: Weka's grammar, with MEKA's option for labels."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from rbrl.datasets.formats import ReadOptions, bad, quote
from rbrl.datasets.formats.column_choice import ignored_columns

QUOTED = r"""'(?P<single>(?:[^'\\]|\\.)*+)'|"(?P<double>(?:[^"\\]|\\.)*+)\""""
WORD = re.compile(rf"\s*+(?:{QUOTED}|(?P<plain>[^,{{}}%]*))\s*+", re.DOTALL)
NAME = re.compile(rf"""[ \t]*(?:{QUOTED}|(?P<plain>[^\s{{'"][^\s{{]*))[ \t]*(?P<rest>.*)""", re.DOTALL)
NUMERIC = re.compile(r"(?:numeric|real|integer)\s*(?:\[.*\]\s*)?(?:%.*)?", re.DOTALL | re.IGNORECASE)
MEKA = re.compile(r":.*-[Cc]\s+(-?\d{1,9})\b", re.DOTALL)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


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
    ignored : set of int
        Attributes that are not read, whatever their type.

    Examples
    --------
    >>> read_header(["@relation flowers", "@attribute width real", "@attribute red {0,1}", "@data"]).values
    [None, ('0', '1')]
    """

    relation: str = ""
    names: list[str] = field(default_factory=list)
    values: list[tuple[str, ...] | None] = field(default_factory=list)
    n_labels: int | None = None
    n_lines: int = 0
    ignored: set[int] = field(default_factory=set)


def read_header(stream: Iterable[str], options: ReadOptions | None = None) -> Header:
    """Read up to and with `@data`.

    Parameters
    ----------
    stream : iterable of str
        The lines of the file; those after `@data` are left in it.
    options : ReadOptions, optional
        Options that name attributes to ignore; default: none.

    Returns
    -------
    Header
    """
    header = Header()
    options = options or ReadOptions()
    for line in stream:
        header.n_lines += 1
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        keyword, rest = [*text.split(maxsplit=1), ""][:2]
        if keyword.lower() == "@data":
            if not header.names:
                raise bad("there is no @attribute before @data", header.n_lines)
            header.ignored = ignored_columns(header.names, options)
            return header
        if keyword.lower() == "@relation":
            _read_relation(header, rest)
        elif keyword.lower() == "@attribute":
            _read_attribute(header, rest, options.ignored_names)
        else:
            raise bad(f"expected @relation, @attribute or @data; got {quote(text)}", header.n_lines)
    raise bad(f"the file ends after {header.n_lines} lines without @data", header.n_lines)


def _read_relation(header: Header, rest: str) -> None:
    match = NAME.match(rest)
    text = rest.partition("%")[0].strip() if match is None or match["plain"] is not None else unquote(match)
    options = MEKA.search(text)
    header.n_labels = int(options[1]) if options else header.n_labels
    header.relation = text.partition(":")[0].strip() if options else text


def _read_attribute(header: Header, rest: str, ignored: set[str]) -> None:
    match = NAME.match(rest)
    if not match:
        raise bad(f"an attribute needs a name and a type; got {quote(rest)}", header.n_lines)
    name, kind = unquote(match), match["rest"]
    is_nominal = kind.startswith("{") and name not in ignored
    if not is_nominal and not NUMERIC.fullmatch(kind) and name not in ignored:
        what = f"attribute {quote(name)} has type {quote(kind)}; numeric and nominal ones can be read"
        raise bad(f"{what}: leave it out with ignore={quote(name)}", header.n_lines)
    header.names.append(name)
    header.values.append(_nominal(kind, header.n_lines) if is_nominal else None)


def _nominal(kind: str, line: int) -> tuple[str, ...]:
    values, end = words(kind, 1, "}")
    if end is None:
        raise bad(f"the list of values is not closed or badly quoted: {quote(kind)}", line)
    rest = kind[end:].strip()
    if rest and not rest.startswith("%"):
        raise bad(f"unexpected {quote(rest)} after the list of values", line)
    if values == [("", False)]:
        raise bad(f"a nominal attribute needs values; got {quote(kind)}", line)
    return tuple(dict.fromkeys(value for value, _ in values))


def words(text: str, start: int = 0, close: str = "") -> tuple[list[tuple[str, bool]], int | None]:
    """Split `text` at commas outside quotes, up to `close` or, where that is empty, the end or a comment.

    Parameters
    ----------
    text : str
    start : int
        Where the first word begins.
    close : str
        The letter that ends the list, or none.

    Returns
    -------
    found : list of (str, bool)
        The words, and whether each was quoted.
    end : int or None
        Where the list ended; None if it is malformed.

    Examples
    --------
    >>> words("a, 'b, c' % two words")
    ([('a', False), ('b, c', True)], 10)
    """
    found: list[tuple[str, bool]] = []
    while True:
        match = WORD.match(text, start)
        assert match is not None  # the pattern takes an empty word too
        found.append((unquote(match).rstrip(), False) if match["plain"] is not None else (unquote(match), True))
        start = match.end()
        after = text[start : start + 1]
        if after == close or (not close and after == "%"):
            return found, start + len(close)
        if after != ",":
            return found, None
        start += 1


def unquote(match: re.Match[str]) -> str:
    """Return the word that a pattern found: as it stands, or without its quotes and backslashes.

    Parameters
    ----------
    match : match of a pattern with the groups `plain`, `single` and `double`

    Returns
    -------
    str
    """
    if match["plain"] is not None:
        return match["plain"]
    quoted = match["single"] if match["single"] is not None else match["double"]
    return ESCAPE.sub(
        lambda code: chr(int(code[1][1:], 16)) if len(code[1]) == 5 else LETTERS.get(code[1], code[1]), quoted
    )
