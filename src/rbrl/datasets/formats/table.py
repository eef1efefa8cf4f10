"""Files of rows with named columns (ARFF, CSV, Parquet): which columns are labels, and the way from rows to data sets.

Such a format has one reader, which yields a `Table` for some rows at a time; a whole data set, parts of one, and blocks
of features alone are made of these.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
from scipy import sparse

from rbrl._common.typing import Matrix
from rbrl.datasets.dataset import Columns, Dataset, dense, find_names, stack_rows, stored_values
from rbrl.datasets.formats import LabelChoice, ReadOptions, bad, label_matrix, naming, quote
from rbrl.datasets.formats.text import is_plain, reading_bytes, writing_text
from rbrl.exceptions import DataFormatError

# From the names of a file's columns, and what it says itself about labels, to the columns that are wanted.
Choice = Callable[[Sequence[str], int | None], list[int]]

MAX_XML_BYTES = 64 << 20
DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
NAMESPACE = "http://mulan.sourceforge.net/labels"


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
    labels = _labels_in(path, names, options.labels, columns, own)
    rest = [j for j in range(len(names)) if j not in labels]
    found = find_names("feature", [names[j] for j in rest], columns.feature_names)
    if found is None:
        return rest
    strange = set(rest) - {rest[i] for i in found}
    if strange:
        raise bad(
            f"its column {quote(names[min(strange)])} is neither a feature nor a label that the model was fitted on: leave "
            "it out, or name it among labels="
        )
    return [rest[i] for i in found]


def _labels_in(path: Path, names: Sequence[str], labels: LabelChoice, columns: Columns, own: int | None) -> set[int]:
    """The indexes of columns that are labels: as said, as the file says, and those that the model knows as such."""
    features = set(columns.feature_names or ())
    labels_of_model = set(columns.label_names or ()) - features
    known = {j for j, name in enumerate(names) if name in labels_of_model}
    if labels is not None:
        return known | set(label_columns(path, names, labels))
    as_many = len(names) == columns.n_features
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


NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def check_writable(dataset: Dataset, xml: bool = False, missing: bool = True) -> None:
    """Raise if `dataset` has names or values that a text file cannot hold.

    Parameters
    ----------
    dataset : Dataset
    xml : bool
        The names of the labels go into an XML file.
    missing : bool
        The format has a word for a missing value.
    """
    values = stored_values(dataset.X)
    if np.isinf(values).any():
        raise bad(f"infinite values cannot be written: X has {np.isinf(values).sum()}")
    n_missing = {"X": np.isnan(values).sum(), "Y": dataset.missing_labels}
    for name, number in n_missing.items():
        if number and not missing:
            raise bad(f"missing values cannot be written in this format: {name} has {number}")
    if not dataset.n_labels or not dataset.n_samples:
        raise bad(f"a file needs rows and labels; got {dataset.n_samples} and {dataset.n_labels}")
    check_names([*dataset.feature_names, *dataset.label_names])
    odd = next((name for name in dataset.label_names if xml and NOT_IN_XML.search(name)), None)
    if odd is not None:
        raise bad(f"the label name {quote(odd)} has a character that XML cannot hold")


def check_names(names: Sequence[str]) -> None:
    """Raise if a name cannot be encoded.

    Parameters
    ----------
    names : sequence of str
    """
    for name in names:
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise bad(f"the name {quote(name)} is not valid text")


@dataclass
class Table:
    """Rows of a file, as numbers; NaN stands for a missing value, of a feature or of a label.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Of the columns.
    matrix : ndarray or csr_array of shape (n_rows, n_columns)
    lines : sequence of int, or None
        The line of each row, for error messages.
    codes : mapping of int to mapping of str to float
        For each nominal column, what its words became.
    declared : bool
        The file declares its words, so that their codes do not depend on its rows.
    own_labels : int or None
        Which columns the file itself calls labels.
    own_coded : sequence of int
        Which features hold codes, if the file says so.
    name : str
    hint : str
        What to think of where no column is left for the features.

    Examples
    --------
    >>> table = Table(Path("flowers.csv"), ["width", "red"], np.array([[1.5, 0.0], [2.5, 1.0]]))
    >>> table.dataset(ReadOptions(labels=["red"])).feature_names
    ('width',)
    """

    path: Path
    names: Sequence[str]
    matrix: Any
    lines: Any = None
    codes: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    declared: bool = False
    own_labels: int | None = None
    own_coded: Sequence[int] = ()
    name: str = ""
    hint: str = ""

    @classmethod
    def joined(cls, tables: Iterable["Table"]) -> "Table":
        """The rows of all tables of a file.

        Parameters
        ----------
        tables : iterable of Table

        Returns
        -------
        Table
        """
        whole = list(tables)
        matrices, lines = zip(*((table.matrix, table.lines) for table in whole))
        return replace(whole[0], matrix=stack_rows(matrices), lines=None if lines[0] is None else np.concatenate(lines))

    def dataset(self, options: ReadOptions) -> Dataset:
        """Return the `Dataset`, its label columns as `options.labels` or the file says.

        Parameters
        ----------
        options : ReadOptions

        Returns
        -------
        Dataset
        """
        if options.part and not self.declared:
            self._refuse_words()
        own = options.default_labels if self.own_labels is None else self.own_labels
        known = None if options.columns is None else options.columns.label_names
        labels = label_columns(self.path, self.names, options.labels, own, known)
        taken = set(labels)
        features = [j for j in range(len(self.names)) if j not in taken]
        if not features:
            columns = f"its {len(self.names)} columns are" if len(self.names) > 1 else "its only column is"
            raise bad(f"no feature is left, {columns} labels: {quote(list(self.names))}{self.hint}")
        Y = label_matrix(self._labels(labels), options.sparse_labels)
        X, names = self.matrix[:, features], [self.names[j] for j in features]
        nominal = {i: self.codes[j] for i, j in enumerate(features) if len(self.codes.get(j, ())) > 2}
        if nominal and options.nominal == "onehot":
            (X, names), nominal = _onehot(X, names, nominal), {}
        coded = self.own_coded if options.labels is None and self.own_coded else sorted(nominal)
        label_names = [self.names[j] for j in labels]
        return Dataset(X, Y, names, label_names, self.name or self.path.name.split(".")[0], categorical_index=coded)

    def _refuse_words(self) -> None:
        """Codes that depend on rows which this part does not have are refused."""
        for j, codes in self.codes.items():
            odd = next((word for word in codes if not is_plain(word)), None)
            if odd is not None:
                raise bad(
                    f"column {quote(self.names[j])} has words, such as {quote(odd)}, whose codes depend on all parts of the "
                    "data set: code them as numbers first"
                )

    def _labels(self, labels: list[int]) -> Matrix:
        """Which labels are relevant, NaN where that is missing.

        -1 stands for 0 in sparse rows, and in dense ones without a single 0.
        """
        for j in labels:
            if len(self.codes.get(j, ())) == 1 and not is_plain(next(iter(self.codes[j]))):
                raise bad(f"the label {quote(self.names[j])} has one word only: {list(self.codes[j])}")
        Y = self.matrix[:, labels]
        is_sparse = sparse.issparse(Y)
        values, rows, columns = Y, *np.indices(Y.shape, sparse=True)
        if is_sparse:
            values, (rows, columns) = Y.data, sparse.coo_array(Y).coords
        missing = np.isnan(values)
        odd = ~(missing | (values == 0) | (values == 1) | ((values == -1) & (is_sparse or not (Y == 0).any())))
        if odd.any():
            row, column, value = (np.broadcast_to(array, odd.shape)[odd][0] for array in (rows, columns, values))
            words = {code: word for word, code in self.codes.get(labels[column], {}).items()}
            got = quote(words.get(value, float(value)))
            line = None if self.lines is None else int(self.lines[row])
            raise bad(f"the label {quote(self.names[labels[column]])} must be 0 or 1; got {got}", line)
        if not missing.any():
            return Y > 0
        if is_sparse:
            Y = label_matrix(Y, as_sparse=False)
        return np.where(np.isnan(Y), np.nan, Y > 0)


def _onehot(X: Any, names: list[str], nominal: Mapping[int, Mapping[str, float]]) -> tuple[Any, list[str]]:
    """Replace each nominal column by one 0/1 column per value, called `name=value`; a missing value has none."""
    plain = [j for j in range(len(names)) if j not in nominal]
    values = [(j, word, code) for j, codes in nominal.items() for word, code in codes.items()]
    hot = (dense(X[:, [j for j, _, _ in values]]) == np.array([code for _, _, code in values])).astype(np.float64)
    blocks = [X[:, plain], sparse.csr_array(hot) if sparse.issparse(X) else hot]
    titles = [names[j] for j in plain] + [f"{names[j]}={word}" for j, word, _ in values]
    order = np.argsort(plain + [j for j, _, _ in values], kind="stable")  # each stands where its feature stood
    X = sparse.hstack(blocks, format="csr") if sparse.issparse(X) else np.hstack(blocks)
    return X[:, order], [titles[i] for i in order]
