"""Mulan's XML file of label names. Files with a DOCTYPE are refused, so that no entity is ever expanded."""

import re
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from rbrl.datasets.formats.errors import bad, quote
from rbrl.datasets.formats.text import read_bytes, writing_text
from rbrl.exceptions import DataFormatError

MAX_XML_BYTES = 64 << 20
DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
NAMESPACE = "http://mulan.sourceforge.net/labels"


def read_labels(path):
    """Return the label names in a Mulan XML file, those of a hierarchy in document order."""
    content = read_bytes(path, MAX_XML_BYTES)
    try:
        try:
            names = _names(path, content)
        except ValueError as error:
            if isinstance(error, DataFormatError | UnicodeError):
                raise
            names = _names(path, _decoded(content))  # Expat knows no encoding in which a letter has several bytes
    except expat.ExpatError as error:
        raise bad(path, f"not XML: {expat.ErrorString(error.code)}", error.lineno) from error
    except (LookupError, UnicodeError) as error:
        raise bad(path, f"not XML: {error}") from error
    if not names:
        raise bad(path, "it names no labels")
    return names


def _names(path, content):
    names, parser = [], expat.ParserCreate()

    def start(tag, attributes):
        if tag.rpartition(":")[2] == "label":
            if "name" not in attributes:
                raise bad(path, "a <label> has no name", parser.CurrentLineNumber)
            names.append(attributes["name"])

    def refuse(name, *_):
        raise bad(path, f"a DOCTYPE ({quote(name)}) is not allowed here", parser.CurrentLineNumber)

    parser.StartElementHandler, parser.StartDoctypeDeclHandler = start, refuse
    parser.Parse(content, True)
    return names


def _decoded(content):
    declared = DECLARED.match(content)
    if declared is None:
        raise UnicodeError(f"its encoding is not declared; it begins {content[:20]!r}")
    return content.decode(declared[1].decode("ascii"))


def write_labels(names, path):
    """Write a Mulan XML file, over another such file but never over XML of another kind."""
    if path.exists():
        read_labels(path)
    with writing_text(path) as stream:
        stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{NAMESPACE}">\n')
        stream.writelines(f"  <label name={quoteattr(name)}></label>\n" for name in names)
        stream.write("</labels>\n")
