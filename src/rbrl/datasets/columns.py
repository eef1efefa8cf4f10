"""Columns of a data set and of a file: their names, and which of them are features, labels or skipped."""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import overload
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from rbrl._common.checks import suggest
from rbrl.datasets.formats import (
    LabelChoice,
    ReadOptions,
    create_text,
    format_error,
    list_some,
    name_file_in_errors,
    open_bytes,
    quote,
    warn_guess,
)  # fmt: skip
from rbrl.exceptions import DataFormatError

# Chooses columns by the names of all columns and the labels that the file declares.
ColumnChoice = Callable[[Sequence[str], int | None], list[int]]

NAME_PREFIXES = {"feature": "x", "label": "label"}  # for columns without names
MAX_XML_BYTES = 64 << 20  # more than the names of a million labels need
XML_ENCODING = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
XML_NAMESPACE = "http://mulan.sourceforge.net/labels"
PANDAS_INDEX = re.compile(r"Unnamed: 0(\.\d+)*|__index_level_\d+__")  # pandas names an unnamed index so


@dataclass(eq=False, repr=False)
class NumberedNames(Sequence[str]):
    """The names `prefix1`, `prefix2`, …, computed on access: a million names need no memory.

    Examples
    --------
    >>> list(NumberedNames("x", 3))
    ['x1', 'x2', 'x3']
    """

    prefix: str
    n_names: int

    def __len__(self) -> int:
        return self.n_names

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """Return the name of an index, or the list of names of a slice; numbers in names start at 1."""
        if isinstance(index, slice):
            return [f"{self.prefix}{i + 1}" for i in range(self.n_names)[index]]
        return f"{self.prefix}{range(self.n_names)[index] + 1}"

    def __eq__(self, other: object) -> bool:
        """Compare as a list of names, without making the list for two objects of this class."""
        if isinstance(other, NumberedNames):
            return (self.prefix, self.n_names) == (other.prefix, other.n_names)
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"NumberedNames({self.prefix!r}, {self.n_names})"


@dataclass(frozen=True)
class Columns:
    """Description of the columns of a data set.

    A model keeps it from `fit`, so that other files can be read in the same way.

    Parameters
    ----------
    n_features, n_labels : int, optional
        Number of columns of X and of Y.
    feature_names, label_names : sequence of str, optional
        Names of the columns; None if the columns have no names.
    first_feature, first_label : {0, 1}, optional
        Lowest column number in the svmlight file.
    ignored : sequence of str
        Columns of the file that were not read. They are skipped in other files, too.
    label_words : mapping of str to int
        Words in label columns, and the value, 1 or 0, that they were declared to mean.
    categories : mapping of str to sequence of str
        Words of the columns of words, which have a feature "column=word" for each word.

    Examples
    --------
    >>> from rbrl.datasets import Columns
    >>> Columns(n_features=2, feature_names=("length", "width")).n_features
    2
    """

    n_features: int | None = None
    n_labels: int | None = None
    feature_names: Sequence[str] | None = None
    label_names: Sequence[str] | None = None
    first_feature: int | None = None
    first_label: int | None = None
    ignored: Sequence[str] = ()
    label_words: Mapping[str, int] = field(default_factory=dict)
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def with_words(self) -> "Columns":
        """Return the columns of a file with words: a column of words in place of its columns of 0/1."""
        column_of = {f"{name}={word}": name for name, words in self.categories.items() for word in words}
        names = list(dict.fromkeys(column_of.get(name, name) for name in self.feature_names or ()))
        return replace(self, n_features=len(names), feature_names=names)


def match_names(
    what: str, names: Sequence[str] | None, wanted: Sequence[str] | None, owner: str = "the model was fitted on"
) -> list[int] | None:
    """Return the positions of the wanted columns in a file, or None if names cannot be compared.

    Parameters
    ----------
    what : {"feature", "label"}
        Kind of the columns.
    names, wanted : sequence of str, or None
        Names in the file, and names to find. Default names, such as `x1` and `label1`, match only
        if both sides have them.
    owner : str
        Source of the wanted columns in messages, such as "the model was fitted on".

    Raises
    ------
    DataFormatError
        A column is missing, or its name occurs several times.
    """
    if names is None or wanted is None or isinstance(names, NumberedNames):
        return None
    names, wanted = list(map(str, names)), list(map(str, wanted))
    if names == wanted:
        return list(range(len(names)))
    positions = {name: i for i, name in enumerate(names)}
    missing = [name for name in wanted if name not in positions]
    if len(missing) == len(wanted) and any(
        own == list(NumberedNames(NAME_PREFIXES[what], len(own))) for own in (names, wanted)
    ):
        return None
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataFormatError(f"it has no {what} {missing[0]!r}{more}, which {owner}; it has {list_some(names, 3)}")
    counts = Counter(names)
    for name in wanted:
        if counts[name] > 1:
            raise DataFormatError(f"{counts[name]} columns have the name of the {what} {name!r}: rename them")
    return [positions[name] for name in wanted]


def find_label_columns(
    path: Path,
    names: Sequence[str],
    labels: LabelChoice,
    declared: LabelChoice = None,
    model_labels: Sequence[str] | None = None,
) -> list[int]:
    """Return the positions of the label columns, in the order of the columns of Y.

    Parameters
    ----------
    path : Path
        The data file. An XML file of the same name may name its labels.
    names : sequence of str
        Names of the columns.
    labels : int, sequence of str, path or None
        Choice of the user, as in `ReadOptions`.
    declared : int, list of str or None
        Labels that the file itself declares; used if there is no choice and no XML file.
    model_labels : sequence of str or None
        Labels of the model, used if the file declares none or others.
    """
    if labels is None:
        xml = xml_path(path)
        labels = xml if xml.is_file() else declared
        if model_labels and set(model_labels) & set(names) and not xml.is_file():
            covered = declared is not None and set(model_labels) <= {
                names[j] for j in find_label_columns(path, names, declared)
            }
            labels = declared if covered else list(model_labels)
    if labels is None:
        raise format_error(
            f"it does not say which of its {len(names)} columns are labels: put Mulan's {xml_path(path).name} "
            "into the same folder, or pass labels= (names, n for the first n columns, -n for the last); "
            f"its last columns are {', '.join(map(quote, names[-3:]))}{_name_missing_labels(names, model_labels)}"
        )
    if isinstance(labels, Integral | int):
        count = int(labels)
        if count == 0 or abs(count) > len(names):
            raise format_error(
                f"{count} labels cannot be taken from {len(names)} columns: pass labels= from 1 to "
                f"{len(names) - 1}, or the negative number"
            )
        places = list(range(len(names)))
        return places[:count] if count > 0 else places[count:]
    if isinstance(labels, os.PathLike) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        return sorted(_find_labels_by_name(names, read_label_names(Path(labels)), Path(labels).name))
    return _find_labels_by_name(names, [labels] if isinstance(labels, str) else [str(label) for label in labels])


def find_feature_columns(
    path: Path, options: ReadOptions, columns: Columns, names: Sequence[str], declared: int | None = None
) -> list[int]:
    """Return the positions of the features of a model, in its order.

    Features are matched by name if the model and the file have names; then every other column
    must be a label. Otherwise the features are all columns that are not labels.

    Parameters
    ----------
    path, names, declared
        See `find_label_columns`.
    options : ReadOptions
        Options of the reader.
    columns : Columns
        Columns of the model.
    """
    ignored = find_ignored_columns(names, options)
    may_lack_labels = len(names) - len(ignored) == columns.n_features
    labels = _find_model_labels(path, names, options.labels, columns, declared, may_lack_labels)
    rest = [j for j in range(len(names)) if j not in labels and j not in ignored]
    found = match_names("feature", [names[j] for j in rest], columns.feature_names)
    if found is None:
        return rest
    unknown = set(rest) - {rest[i] for i in found}
    if unknown:
        name = quote(names[min(unknown)])
        raise format_error(
            f"its column {name} is neither a feature nor a label that the model was fitted on: leave "
            f"it out with ignore={name}, or name it among labels="
        )
    return [rest[i] for i in found]


def _find_model_labels(
    path: Path, names: Sequence[str], labels: LabelChoice, columns: Columns, declared: int | None, may_lack_labels: bool
) -> set[int]:
    """Return the positions of labels: chosen, declared by the file, or labels of the model.

    `may_lack_labels` says that the file has as many columns as the model has features, so that it
    may have no label. It raises an error if the labels cannot be known.
    """
    features = set(columns.feature_names or ())
    label_names = set(columns.label_names or ()) - features
    known = {j for j, name in enumerate(names) if name in label_names}
    if labels is not None:
        return known | set(find_label_columns(path, names, labels))
    undeclared = not xml_path(path).is_file() and (declared is None or may_lack_labels)
    if undeclared and (known or may_lack_labels or features):
        return known
    return known | {j for j in find_label_columns(path, names, None, declared) if names[j] not in features}


def find_ignored_columns(names: Sequence[str], options: ReadOptions) -> set[int]:
    """Return the positions of columns to skip: named by the options, or skipped by the model.

    It raises DataFormatError if the options name a column that is not among `names`.
    """
    for name in options.ignore:
        if name not in names:
            raise format_error(
                f"it has no column {quote(name)}, which ignore={quote(name)} names; it has {list_some(names, 3)}"
            )
    ignored = options.ignored_names
    return {j for j, name in enumerate(names) if name in ignored}


def find_index_columns(names: Sequence[str], options: ReadOptions | None = None) -> set[int]:
    """Return the positions of columns that hold the row index of a pandas data frame.

    Columns that the options ignore, and features of the model, are not an index.

    Examples
    --------
    >>> find_index_columns(["", "width", "red"]), find_index_columns(["Unnamed: 0", "width"])
    ({0}, {0})
    """
    found = {j for j, name in enumerate(names) if PANDAS_INDEX.fullmatch(name) or (j == 0 and name == "")}
    if not found or options is None:
        return found
    features = options.columns.feature_names if options.columns else None
    return {j for j in found if names[j] not in {*options.ignore, *(features or ())}}


def drop_index_columns(path: Path, names: Sequence[str], options: ReadOptions, warn: bool) -> list[int]:
    """Return the positions of all columns but the row index of pandas; warn if there is one."""
    index = find_index_columns(names, options)
    if index and warn:
        name = names[min(index)]
        what = f"column {quote(name)}" if name else "first column, which has no name,"
        guess = "is taken for the row index of pandas and left out; if it is a feature, give it another name."
        warn_guess(path, f"its {what} {guess}")
    return [j for j in range(len(names)) if j not in index]


def _find_labels_by_name(names: Sequence[str], wanted: Sequence[str], where: str = "labels=") -> list[int]:
    """Return the positions of the wanted labels, in the order in which they are wanted.

    It raises an error for a label that is missing, repeated or ambiguous.
    """
    if not wanted:
        raise format_error(f"labels= names none of its {len(names)} columns")
    n_columns, n_wanted = Counter(names), Counter(wanted)
    for label in wanted:
        if n_wanted[label] > 1:
            raise format_error(
                f"the label {quote(label)} is named {n_wanted[label]} times: name each label once in {where}"
            )
        if not n_columns[label]:
            meant = suggest(label, names) or f" Its last columns are {', '.join(map(quote, names[-3:]))}."
            raise format_error(f"it has no column {quote(label)}, which was named as a label in {where}.{meant}")
        if n_columns[label] > 1:
            raise format_error(f"it has {n_columns[label]} columns {quote(label)}, one of which was named as a label")
    positions = {name: j for j, name in enumerate(names)}
    return [positions[label] for label in wanted]


def _name_missing_labels(names: Sequence[str], model_labels: Sequence[str] | None) -> str:
    """Return the end of a message that names the labels of a model if a file has none of them."""
    if not model_labels or set(model_labels) & set(names):
        return ""
    return f", and none of them is a label of the model, such as {quote(model_labels[0])}"


def xml_path(path: Path) -> Path:
    """Return the path of the XML file that names the labels of a data file."""
    return Path(path.parent, path.name.removesuffix(".gz")).with_suffix(".xml")


def read_label_names(path: Path) -> list[str]:
    """Return the label names in Mulan's XML file, in the order of the file."""
    with name_file_in_errors(path), open_bytes(path, MAX_XML_BYTES) as stream:
        content = stream.read()
        try:
            names = _parse_label_names(content)
        except expat.ExpatError as error:
            raise format_error(f"not XML: {expat.ErrorString(error.code)}", error.lineno) from error
        except (LookupError, UnicodeError) as error:
            raise format_error(f"not XML: {error}") from error
        if not names:
            raise format_error("it names no labels")
    return names


def _parse_label_names(content: bytes | str) -> list[str]:
    """Return the names in an XML text; raise an error for a DOCTYPE, which may expand without limit.

    An error of the syntax is raised as `expat.ExpatError`, and one of the encoding as UnicodeError.
    """
    names: list[str] = []
    parser = expat.ParserCreate()

    def start_element(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] == "label":
            if "name" not in attributes:
                raise format_error("a <label> has no name", parser.CurrentLineNumber)
            names.append(attributes["name"])

    def refuse_doctype(name: str, *_: object) -> None:
        raise format_error(f"a DOCTYPE ({quote(name)}) is not allowed here", parser.CurrentLineNumber)

    parser.StartElementHandler = start_element
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        parser.Parse(content, True)
    except ValueError as error:
        if isinstance(error, DataFormatError | UnicodeError) or isinstance(content, str):
            raise
        declared = XML_ENCODING.match(content)
        if declared is None:
            raise UnicodeError(f"its encoding is not declared; it begins {content[:20]!r}") from error
        # Expat cannot decode multi-byte encodings other than UTF-8 and UTF-16.
        return _parse_label_names(content.decode(declared[1].decode("ascii")))
    return names


def write_label_names(names: Sequence[str], data_path: Path) -> None:
    """Write Mulan's XML file of a data file; an existing file of another kind is not overwritten."""
    path = xml_path(data_path)
    if path.exists():
        read_label_names(path)  # raises an error if the file is of another kind
    with create_text(path) as stream:
        stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{XML_NAMESPACE}">\n')
        stream.writelines(f"  <label name={quoteattr(name)}></label>\n" for name in names)
        stream.write("</labels>\n")
