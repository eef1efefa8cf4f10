"""Tables with named columns (ARFF, CSV, Parquet): from the words of a file to the numbers of a data set.

The reader of such a format yields a `Table` for some rows at a time. `TableFormat` makes whole data
sets, parts of data sets and blocks of features from these tables.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from scipy import sparse

from rbrl._common.categories import refuse_counts
from rbrl._common.features import MAX_CATEGORY_WORDS
from rbrl._common.frames import as_dense
from rbrl._common.matrices import stack_rows, stored_values
from rbrl._common.typing import Matrix
from rbrl.datasets.columns import (
    ColumnChoice,
    Columns,
    find_feature_columns,
    find_ignored_columns,
    find_label_columns,
    write_label_names,
)
from rbrl.datasets.dataset import Dataset, Split
from rbrl.datasets.formats import (
    MAX_DENSE_CELLS,
    Format,
    ReadOptions,
    create_text,
    format_error,
    format_number,
    list_some,
    quote,
)
from rbrl.datasets.formats.words import known_codes, unknown_word_error
from rbrl.exceptions import DataFormatError

NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _unclear_label_error(name: str, words: Sequence[str]) -> DataFormatError:
    """Return the error for words of a label whose meaning is not known."""
    choices = " or ".join(f"positive={quote(word)}" for word in words)
    rule = f"declare the word that means that a label is relevant with {choices}, or write 0 and 1"
    if len(words) > 2:
        rule = "a label has two values: write 0 and 1, or declare all words but one with positive="
    some = " and ".join(map(quote, words)) if len(words) == 2 else list_some(words, 4)
    plural = "s" * (len(words) > 1)
    return format_error(f"the label {quote(name)} has the word{plural} {some}, which may mean 1 or 0: {rule}")


@dataclass
class Table:
    """Rows of a file as numbers; a missing feature or label is NaN.

    Examples
    --------
    >>> table = Table(Path("flowers.csv"), ["width", "red"], np.array([[1.5, 0.0], [2.5, 1.0]]))
    >>> table.to_dataset(ReadOptions(labels=["red"])).feature_names
    ('width',)
    """

    path: Path
    names: Sequence[str]  # of the columns
    matrix: Any  # numbers, and codes of words, dense or sparse
    lines: Any = None  # line number of each row, for messages
    codes: Mapping[int, Mapping[str, float]] = field(default_factory=dict)  # by column and word
    declares_words: bool = False  # the codes do not depend on the rows
    declared_labels: int | None = None  # the first n columns, or the last -n
    declared_codes: Sequence[int] = ()  # features with codes
    name: str = ""  # of the data set
    hint: str = ""  # addition to the message that no features are left

    @classmethod
    def join(cls, tables: Iterable["Table"]) -> "Table":
        """Return one table with the rows of all tables of a file."""
        tables = list(tables)
        lines = None if tables[0].lines is None else np.concatenate([table.lines for table in tables])
        return replace(tables[0], matrix=stack_rows([table.matrix for table in tables]), lines=lines)

    def to_dataset(self, options: ReadOptions, is_whole: bool = True) -> Dataset:
        """Return the data set; `options.labels` or the file says which columns are labels.

        Few words of a feature become columns of 0/1, if the table has all rows of the data set.
        """
        declared = options.default_labels if self.declared_labels is None else self.declared_labels
        model_labels = None if options.columns is None else options.columns.label_names
        labels = find_label_columns(self.path, self.names, options.labels, declared, model_labels)
        ignored = find_ignored_columns(self.names, options)
        for name in (self.names[j] for j in labels if j in ignored):
            raise format_error(f"column {quote(name)} cannot be a label and an ignored column: choose one of the two")
        taken = ignored.union(labels)
        features = [j for j in range(len(self.names)) if j not in taken]
        words = self._find_categories(features, options) if is_whole and not options.part else {}
        self._refuse_undeclared_words([j for j in features if j not in words], options)
        if not features:
            raise format_error(
                "all columns are labels or ignored, so no feature is left. "
                f"Columns: {quote(list(self.names))}{self.hint}"
            )
        meanings = self._find_label_meanings(labels, options)
        Y = label_matrix(self._check_labels(labels, meanings), options.sparse_labels)
        X = self.matrix[:, features]
        names = [self.names[j] for j in features]
        nominal = {i: self.codes[j] for i, j in enumerate(features) if len(self.codes.get(j, ())) > 2}
        if nominal and options.nominal == "onehot":
            X, names = _encode_onehot(X, names, nominal)
            nominal = {}
        elif words:
            X = as_dense(X)
            for i, j in enumerate(features):
                X[:, i] = self._recode(j, words[j]) if j in words else X[:, i]
            categories = {self.names[j]: own for j, own in words.items()}
            X, names = expand_categories(X, names, categories)
            nominal = {}
        use_declared = options.labels is None and self.declared_codes
        return Dataset(
            X,
            Y,
            names,
            [self.names[j] for j in labels],
            self.name or self.path.name.split(".")[0],
            categorical_index=self.declared_codes if use_declared else sorted(nominal),
            ignored=[self.names[j] for j in sorted(ignored)],
            label_words=meanings,
            categories={self.names[j]: own for j, own in words.items()},
        )

    def _line_of(self, row: Any) -> int | None:
        """Return the line number of a row in the file; None if it is not known."""
        return None if row is None or self.lines is None else int(self.lines[row])

    def _find_categories(self, features: list[int], options: ReadOptions) -> dict[int, list[str]]:
        """Return the words of the features whose undeclared words are few, or are those of the model."""
        known = options.columns.categories if options.columns else {}
        found = {j: list(known[self.names[j]]) for j in features if self.names[j] in known}
        if self.declares_words or options.nominal:
            return found
        for j in features:
            words = self.codes.get(j, {})
            if j not in found and known_codes(words) is None and not self._describe_refused(j):
                found[j] = list(words)
        return found

    def _describe_refused(self, column: int) -> str:
        """Return the reason why the words of a column are no categories; "" if they are."""
        if max(len(word.split()) for word in self.codes[column]) > MAX_CATEGORY_WORDS:
            return f"sentences, {len(self.codes[column])} different ones"
        n_rows = int(np.count_nonzero(~np.isnan(as_dense(self.matrix[:, [column]]))))
        return refuse_counts(len(self.codes[column]), n_rows)

    def _recode(self, column: int, words: Sequence[str]) -> Any:
        """Return the place of each word of a column among the words of a model; refuse other words."""
        values = as_dense(self.matrix[:, [column]])[:, 0]
        own = {code: word for word, code in self.codes.get(column, {}).items()}
        places = {word: float(place) for place, word in enumerate(words)}
        recoded = np.full(len(values), np.nan)
        for row in np.flatnonzero(~np.isnan(values)):
            word = own.get(values[row], format_number(values[row]))
            if word not in places:
                raise unknown_word_error(self.names[column], word, words, self._line_of(row))
            recoded[row] = places[word]
        return recoded

    def _refuse_undeclared_words(self, features: list[int], options: ReadOptions) -> None:
        """Refuse features with words that the file does not declare: codes would depend on its rows.

        Words with known codes, such as yes and no, are allowed; so is any word with `nominal`, unless the file
        is a part of a data set.
        """
        if self.declares_words or (options.nominal and not options.part):
            return
        in_python = "" if options.part else "; nominal='codes' or 'onehot' codes them in Python"
        for j in (j for j in features if known_codes(self.codes.get(j, ())) is None):
            words = {code: word for word, code in self.codes[j].items()}
            row = next(iter(np.flatnonzero(~np.isnan(self.matrix[:, j]))), None)
            word = next(iter(words.values())) if row is None else words[self.matrix[row, j]]
            name = quote(self.names[j])
            reason = self._describe_refused(j)
            raise format_error(
                f"the feature {name} has {quote(word)}, and features must be numbers: leave the column out with "
                f"ignore={name}, write numbers, or declare its words in an ARFF file{in_python}"
                f"{reason and f' (it has {reason})'}",
                self._line_of(row),
            )

    def _find_label_meanings(self, labels: list[int], options: ReadOptions) -> dict[str, int]:
        """Return {word: 1 or 0} for words of labels that need a declaration.

        Positive words mean 1. If a column with positive words has one other word, that means 0.
        """
        columns = [(self.names[j], list(self.codes[j])) for j in labels if j in self.codes]
        words = sorted({word for _, own in columns for word in own})
        for word in () if options.part else options.positive:
            if word not in words:
                some = f"their words are {', '.join(map(quote, words[:4]))}" if words else "they are numbers"
                raise format_error(f"none of its labels has the word {quote(word)} of positive={quote(word)}; {some}")
        meanings = dict(options.columns.label_words) if options.columns else {}
        meanings |= dict.fromkeys(options.positive, 1)
        columns = [
            (name, own) for name, own in columns if known_codes(own) is None or not meanings.keys().isdisjoint(own)
        ]
        for _, own in columns:
            others = [word for word in own if meanings.get(word) != 1]
            if len(others) == 1 and len(own) > 1:
                meanings.setdefault(others[0], 0)
        for name, own in columns:
            if not meanings.keys() >= set(own):
                raise _unclear_label_error(name, own)
        return meanings

    def _check_labels(self, labels: list[int], meanings: Mapping[str, int]) -> Matrix:
        """Return the mask of relevant labels, or 0, 1 and NaN if labels are missing.

        `labels` are positions of columns. -1 stands for 0 in sparse rows, and in dense rows without
        a 0. Words are 1 and 0 by `meanings`. Other values raise an error.
        """
        Y = self.matrix[:, labels]
        for i, j in enumerate(labels):
            codes = self.codes.get(j)
            if codes and codes.keys() <= meanings.keys():
                Y = label_matrix(Y, as_sparse=False)
                values = {code: meanings[word] for word, code in codes.items()}
                Y[:, i] = [values.get(code, np.nan) for code in Y[:, i].tolist()]
        is_sparse = sparse.issparse(Y)
        stored = stored_values(Y)
        allowed = (0, 1, -1) if is_sparse or not (Y == 0).any() else (0, 1)
        odd = ~(np.isnan(stored) | np.isin(stored, allowed))
        if odd.any():
            first = tuple(np.argwhere(odd)[0])
            row, column = (part[first] for part in sparse.coo_array(Y).coords) if is_sparse else first
            words = {code: word for word, code in self.codes.get(labels[column], {}).items()}
            got = quote(words.get(stored[first], float(stored[first])))
            name = quote(self.names[labels[column]])
            raise format_error(f"the label {name} must be 0 or 1; got {got}", self._line_of(row))
        return relevant_labels(Y)


class TableFormat(Format):
    """Format whose features and labels are the columns of one table."""

    has_columns = True

    @abstractmethod
    def tables(
        self, path: Path, options: ReadOptions, size: int | None = None, choose: ColumnChoice | None = None
    ) -> Iterator[Table]:
        """Yield the chosen columns, `size` rows at a time; by default all rows, in tables of any size."""

    def read(self, path: Path, options: ReadOptions) -> Dataset:
        """Read a file."""
        return Table.join(self.tables(path, options)).to_dataset(options)

    def parts(self, path: Path, options: ReadOptions, size: int) -> Iterator[Dataset]:
        """Yield the file as data sets of `size` rows; words have the codes of the whole file."""
        return (table.to_dataset(options, is_whole=False) for table in self.tables(path, options, size))

    def features(self, path: Path, options: ReadOptions, columns: Columns, size: int) -> Iterator[Matrix]:
        """Yield the features for a model with these columns, at most `size` rows at a time."""
        raw = columns.with_words()
        has_words = False

        def choose(names: Sequence[str], declared: int | None) -> list[int]:
            nonlocal has_words
            has_words = not columns.categories.keys().isdisjoint(names)
            return find_feature_columns(path, options, raw if has_words else columns, names, declared)

        for table in self.tables(path, options, size, choose):
            if not has_words:
                yield table.matrix
            elif table.declares_words:
                raise format_error(
                    f"the model reads words in {list_some(list(columns.categories), 3)}, and an ARFF file has codes in "
                    "their place: write a CSV or Parquet file"
                )
            else:
                yield expand_categories(table.matrix, raw.feature_names or (), columns.categories)[0]


def _encode_onehot(X: Any, names: list[str], nominal: Mapping[int, Mapping[str, float]]) -> tuple[Any, list[str]]:
    """Replace each nominal column by a 0/1 column `name=value` per value, all 0 for a missing value.

    `nominal` maps positions of columns to the codes of their values. Return the matrix and its
    names.
    """
    plain = [j for j in range(len(names)) if j not in nominal]
    values = [(j, word, code) for j, codes in nominal.items() for word, code in codes.items()]
    places, words, codes = zip(*values)
    encoded = (as_dense(X[:, places]) == np.array(codes)).astype(np.float64)
    all_names = [names[j] for j in plain] + [f"{names[j]}={word}" for j, word in zip(places, words)]
    stack = partial(sparse.hstack, format="csr") if sparse.issparse(X) else np.hstack
    order = np.argsort([*plain, *places], kind="stable")  # new columns stand where their feature stood
    return stack([X[:, plain], encoded])[:, order], [all_names[i] for i in order]


def expand_categories(X: Any, names: Sequence[str], categories: Mapping[str, Sequence[str]]) -> tuple[Any, list[str]]:
    """Return new columns and their names: each column of places among words becomes a 0/1 column per word.

    X (n_rows, n_columns) is a dense array of floats with the `names`, and it is not changed. The new
    columns are named `name=word`. They are NaN where the place is NaN, which means a missing word.
    """
    columns, all_names = [], []
    for j, name in enumerate(names):
        words = categories.get(name)
        if words is None:
            columns.append(X[:, [j]])
            all_names.append(name)
            continue
        places = X[:, [j]]
        is_word = np.where(np.isnan(places), np.nan, places == np.arange(len(words)))
        columns.append(is_word)
        all_names += [f"{name}={word}" for word in words]
    return np.hstack(columns), all_names


def label_matrix(Y: Any, as_sparse: bool) -> Matrix:
    """Return labels as a sparse array, or as a dense array unless that is too large."""
    if as_sparse:
        if np.isnan(stored_values(Y)).any():
            raise format_error("labels that are missing cannot be read with sparse_labels=True: leave that out")
        return sparse.csr_array(Y)
    if sparse.issparse(Y) and Y.shape[0] * Y.shape[1] > MAX_DENSE_CELLS:
        raise format_error(f"labels of shape {Y.shape} are too large for a dense array; read with sparse_labels=True")
    return as_dense(Y)


def relevant_labels(Y: Any) -> Matrix:
    """Return the mask of the labels above 0; with missing labels, a dense array of 0, 1 and NaN."""
    if not np.isnan(stored_values(Y)).any():
        return Y > 0
    Y = label_matrix(Y, as_sparse=False)
    return np.where(np.isnan(Y), np.nan, Y > 0)


def join_parts(train: tuple[Any, Any], test: tuple[Any, Any]) -> tuple[Any, Any, dict[str, Split]]:
    """Return X, Y and the split "source" of a data set that comes as training and test parts."""
    n_train = train[0].shape[0]
    X, Y = map(stack_rows, zip(train, test))
    return X, Y, {"source": (np.arange(n_train), np.arange(n_train, X.shape[0]))}


@contextmanager
def create_text_table(
    dataset: Dataset, path: Path, labels_first: bool
) -> Iterator[tuple[TextIO, list[Any], list[str]]]:
    """Open a text file for a table and Mulan's XML file; yield the stream, [X, Y] and the column names."""
    check_writable(dataset)
    for name in dataset.label_names:
        if NOT_IN_XML.search(name):
            raise format_error(f"the label name {quote(name)} has a character that XML cannot hold")
    with create_text(path) as stream:
        yield stream, *order_columns(dataset, labels_first)
    write_label_names(dataset.label_names, path)


def check_writable(dataset: Dataset, missing: bool = True) -> None:
    """Raise an error if a text file, perhaps without missing values, cannot hold a data set."""
    values = stored_values(dataset.X)
    if np.isinf(values).any():
        raise format_error(f"infinite values cannot be written: X has {np.isinf(values).sum()}")
    for name, count in (("X", np.isnan(values).sum()), ("Y", dataset.missing_labels)):
        if count and not missing:
            raise format_error(f"missing values cannot be written in this format: {name} has {count}")
    if not dataset.n_labels or not dataset.n_samples:
        raise format_error(f"a file needs rows and labels; got {dataset.n_samples} and {dataset.n_labels}")
    check_names(dataset)


def check_names(dataset: Dataset) -> None:
    """Raise an error if a column name cannot be encoded."""
    for name in (*dataset.feature_names, *dataset.label_names):
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise format_error(f"the name {quote(name)} is not valid text")


def check_dense_size(dataset: Dataset) -> None:
    """Raise an error if a data set is too large for a format without sparse rows."""
    if dataset.n_samples * (dataset.n_features + dataset.n_labels) > MAX_DENSE_CELLS:
        raise format_error(f"X of shape {dataset.X.shape} is too large to be written out in full: use a sparse format")


def order_columns(dataset: Dataset, labels_first: bool) -> tuple[list[Any], list[str]]:
    """Return [X, Y] and all column names; with `labels_first`, labels come before features."""
    if labels_first:
        return [dataset.Y, dataset.X], [*dataset.label_names, *dataset.feature_names]
    return [dataset.X, dataset.Y], [*dataset.feature_names, *dataset.label_names]
