"""The choice of label and feature columns of a file, and of those to leave out: by name, by number, or by Mulan's XML."""

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from numbers import Integral
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from rbrl._common.checks import users_level
from rbrl.datasets.columns import Columns, find_names
from rbrl.datasets.formats import LabelChoice, ReadOptions, bad, naming, quote
from rbrl.datasets.formats.text import reading_bytes, writing_text
from rbrl.exceptions import DataFormatError, GuessWarning

# From the names of a file's columns, and what it says itself about labels, to the columns that are wanted.
Choice = Callable[[Sequence[str], int | None], list[int]]

MAX_XML_BYTES = 64 << 20
DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
NAMESPACE = "http://mulan.sourceforge.net/labels"
INDEX_NAME = re.compile(r"Unnamed: 0(\.\d+)*|__index_level_\d+__")  # names that pandas gives to a row index without one


def read_labels(path: Path) -> list[str]:
    """Return the label names in a Mulan XML file, those of a hierarchy in document order.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of str
    """
    with naming(path), reading_bytes(path, MAX_XML_BYTES) as stream:
        content = stream.read()
        try:
            names = _names(content)
        except expat.ExpatError as error:
            raise bad(f"not XML: {expat.ErrorString(error.code)}", error.lineno) from error
        except (LookupError, UnicodeError) as error:
            raise bad(f"not XML: {error}") from error
        if not names:
            raise bad("it names no labels")
    return names


def _names(content: bytes | str) -> list[str]:
    names: list[str] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] == "label":
            if "name" not in attributes:
                raise bad("a <label> has no name", parser.CurrentLineNumber)
            names.append(attributes["name"])

    def refuse(name: str, *_: object) -> None:
        raise bad(f"a DOCTYPE ({quote(name)}) is not allowed here", parser.CurrentLineNumber)

    parser.StartElementHandler, parser.StartDoctypeDeclHandler = start, refuse
    try:
        parser.Parse(content, True)
    except ValueError as error:
        if isinstance(error, DataFormatError | UnicodeError) or isinstance(content, str):
            raise
        declared = DECLARED.match(content)
        if declared is None:
            raise UnicodeError(f"its encoding is not declared; it begins {content[:20]!r}") from error
        # Expat knows no encoding in which a letter has several bytes.
        return _names(content.decode(declared[1].decode("ascii")))
    return names


def write_labels(names: Sequence[str], path: Path) -> None:
    """Write a Mulan XML file, over another such file but never over XML of another kind.

    Parameters
    ----------
    names : sequence of str
        Of the labels.
    path : Path
    """
    if path.exists():
        read_labels(path)  # raises where it is of another kind
    with writing_text(path) as stream:
        stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{NAMESPACE}">\n')
        stream.writelines(f"  <label name={quoteattr(name)}></label>\n" for name in names)
        stream.write("</labels>\n")


def index_columns(names: Sequence[str], options: ReadOptions | None = None) -> set[int]:
    """Return the places of columns that hold the row index of a pandas data frame, which pandas writes without a name.

    Parameters
    ----------
    names : sequence of str
        The columns of a file; in a CSV file the first name may be empty.
    options : ReadOptions, optional
        Columns that it names to be ignored, and features of its model, are no row index, whatever their names.

    Returns
    -------
    set of int

    Examples
    --------
    >>> index_columns(["", "width", "red"]), index_columns(["Unnamed: 0", "width"])
    ({0}, {0})
    """
    unnamed = {j for j, name in enumerate(names) if INDEX_NAME.fullmatch(name) or (j == 0 and name == "")}
    if not unnamed or options is None:
        return unnamed
    features = options.columns.feature_names if options.columns else None
    return {j for j in unnamed if names[j] not in {*options.ignore, *(features or ())}}


def warn_of_index(path: Path, names: Sequence[str]) -> None:
    """Warn that columns are left out because they look like the row index of pandas.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Names of the columns.
    """
    what = f"column {quote(names[0])}" if names[0] else "first column, which has no name,"
    text = f"its {what} is taken for the row index of pandas and left out; if it is a feature, give it another name."
    warnings.warn(f"{path}: {text}", GuessWarning, stacklevel=users_level())


def ignored_columns(names: Sequence[str], options: ReadOptions) -> set[int]:
    """Return the places of the columns that are not read: those that the options name, or that the model did not read.

    Parameters
    ----------
    names : sequence of str
        The columns of a file.
    options : ReadOptions

    Returns
    -------
    set of int
    """
    absent = next((name for name in options.ignore if name not in names), None)
    if absent is not None:
        some = ", ".join([*map(quote, names[:3]), *["…"][: len(names) > 3]])
        raise bad(f"it has no column {quote(absent)}, which ignore={quote(absent)} names; it has {some}")
    ignored = options.ignored_names
    return {j for j, name in enumerate(names) if name in ignored}


def label_columns(
    path: Path, names: Sequence[str], labels: LabelChoice, own: LabelChoice = None, known: Sequence[str] | None = None
) -> list[int]:
    """Return the indexes of the label columns.

    Parameters
    ----------
    path : Path
        The data file; a file of the same name with .xml is looked for beside it.
    names : sequence of str
        The columns.
    labels : int, sequence of str, path or None
        As in `ReadOptions`.
    own : int, list of str or None
        What the file says itself; used when `labels` is None and there is no XML file.
    known : sequence of str or None
        The labels of the model that the file is for; used where the file says nothing, or names others.

    Returns
    -------
    list of int
        In the order in which Y has them.
    """
    if labels is None:
        beside = xml_path(path)
        labels = beside if beside.is_file() else own
        if known and set(known) & set(names) and not beside.is_file():
            covered = own is not None and set(known) <= {names[j] for j in label_columns(path, names, own)}
            labels = own if covered else list(known)
    if labels is None:
        raise bad(
            f"it does not say which of its {len(names)} columns are labels: put Mulan's {xml_path(path).name} "
            "beside it, or pass labels= (names, n for the first n columns, -n for the last)"
        )
    if isinstance(labels, Integral | int):
        count, places = int(labels), list(range(len(names)))
        if count == 0 or abs(count) > len(places):
            raise bad(f"{count} labels cannot be taken from {len(places)} columns")
        return places[:count] if count > 0 else places[count:]
    if isinstance(labels, os.PathLike) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        return sorted(_named(names, read_labels(Path(labels))))
    return _named(names, [labels] if isinstance(labels, str) else [str(label) for label in labels])


def feature_columns(
    path: Path, options: ReadOptions, columns: Columns, names: Sequence[str], own: int | None = None
) -> list[int]:
    """Return the indexes of the features of a model, in its order.

    By name where model and file have names; then any other column must be a label. Without names, they are the columns
    that are no labels; a file with as many columns as the model has features need not have any labels.

    Parameters
    ----------
    path, names, own
        As for `label_columns`.
    options : ReadOptions
    columns : Columns
        Those of the model.

    Returns
    -------
    list of int
    """
    ignored = ignored_columns(names, options)
    as_many = len(names) - len(ignored) == columns.n_features
    labels = _labels_in(path, names, options.labels, columns, own, as_many)
    rest = [j for j in range(len(names)) if j not in labels and j not in ignored]
    found = find_names("feature", [names[j] for j in rest], columns.feature_names)
    if found is None:
        return rest
    strange = set(rest) - {rest[i] for i in found}
    if strange:
        raise bad(
            f"its column {quote(names[min(strange)])} is neither a feature nor a label that the model was fitted on: leave "
            f"it out with ignore={quote(names[min(strange)])}, or name it among labels="
        )
    return [rest[i] for i in found]


def _labels_in(
    path: Path, names: Sequence[str], labels: LabelChoice, columns: Columns, own: int | None, as_many: bool
) -> set[int]:
    """Return the places of label columns: as said, as the file says, and those that the model knows as such.

    `as_many` tells that the file has as many columns as the model has features.
    """
    features = set(columns.feature_names or ())
    labels_of_model = set(columns.label_names or ()) - features
    known = {j for j, name in enumerate(names) if name in labels_of_model}
    if labels is not None:
        return known | set(label_columns(path, names, labels))
    unsaid = not xml_path(path).is_file() and (own is None or as_many)
    if unsaid and (known or as_many or features & set(names)):
        return known
    return known | {j for j in label_columns(path, names, None, own) if names[j] not in features}


def xml_path(path: Path) -> Path:
    """Return where the XML file of a data file would be: the same name, .gz and the format's ending replaced.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Path
    """
    return Path(path.parent, path.name.removesuffix(".gz")).with_suffix(".xml")


def _named(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    places = {name: i for i, name in enumerate(names)}
    times, asked = Counter(names), Counter(wanted)
    for label in wanted:
        if asked[label] > 1:
            raise bad(f"the label {quote(label)} is named {asked[label]} times")
        if label not in places:
            raise bad(f"it has no column {quote(label)}, which was named as a label")
        if times[label] > 1:
            raise bad(f"it has {times[label]} columns {quote(label)}, one of which was named as a label")
    if not wanted:
        raise bad(f"labels= names none of its {len(names)} columns")
    return [places[label] for label in wanted]
