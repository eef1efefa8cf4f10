"""Files of rows with named columns (ARFF, CSV, Parquet): the way from rows to data sets.

Such a format has one reader, which yields a `Table` for some rows at a time; a whole data set, parts of one, and blocks
of features alone are made of these.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.typing import Matrix
from rbrl.datasets.dataset import Dataset, dense, stack_rows, stored_values
from rbrl.datasets.formats import ReadOptions, bad, label_matrix, quote
from rbrl.datasets.formats.column_choice import ignored_columns, label_columns
from rbrl.datasets.formats.words import are_plain, label_meanings

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
        own = options.default_labels if self.own_labels is None else self.own_labels
        known = None if options.columns is None else options.columns.label_names
        labels = label_columns(self.path, self.names, options.labels, own, known)
        ignored = ignored_columns(self.names, options)
        both = next((self.names[j] for j in labels if j in ignored), None)
        if both is not None:
            raise bad(
                f"column {quote(both)} is one of the labels, and one of the columns to ignore: it can only be one"
            )
        taken = ignored.union(labels)
        features = [j for j in range(len(self.names)) if j not in taken]
        self._refuse_words(features, options)
        if not features:
            columns = f"its {len(self.names)} columns are" if len(self.names) > 1 else "its only column is"
            raise bad(f"no feature is left, {columns} labels: {quote(list(self.names))}{self.hint}")
        words = self._label_words(labels, options)
        Y = label_matrix(self._labels(labels, words), options.sparse_labels)
        X, names = self.matrix[:, features], [self.names[j] for j in features]
        nominal = {i: self.codes[j] for i, j in enumerate(features) if len(self.codes.get(j, ())) > 2}
        if nominal and options.nominal == "onehot":
            (X, names), nominal = _onehot(X, names, nominal), {}
        coded = self.own_coded if options.labels is None and self.own_coded else sorted(nominal)
        label_names = [self.names[j] for j in labels]
        facts: dict[str, Any] = {"ignored": [self.names[j] for j in sorted(ignored)], "label_words": words}
        title = self.name or self.path.name.split(".")[0]
        return Dataset(X, Y, names, label_names, title, categorical_index=coded, **facts)

    def _refuse_words(self, features: list[int], options: ReadOptions) -> None:
        """Refuse features of words that the file does not declare: their codes would depend on the rows of the file."""
        if self.declared or (options.nominal and not options.part):
            return
        in_python = "" if options.part else "; nominal='codes' or 'onehot' codes them in Python"
        for j in features:
            if are_plain(self.codes.get(j, ())):
                continue
            words = {code: word for word, code in self.codes[j].items()}
            row = next(iter(np.flatnonzero(~np.isnan(self.matrix[:, j]))), None)
            word = next(iter(words.values())) if row is None else words[self.matrix[row, j]]
            raise bad(
                f"the feature {quote(self.names[j])} has {quote(word)}, and features must be numbers: leave the column out "
                f"with ignore={quote(self.names[j])}, write numbers, or declare its words in an ARFF file{in_python}",
                None if row is None or self.lines is None else int(self.lines[row]),
            )

    def _label_words(self, labels: list[int], options: ReadOptions) -> dict[str, int]:
        """Return what the words of labels mean where they do not say it: 1 or 0."""
        columns = [(self.names[j], self.codes[j]) for j in labels if j in self.codes]
        known = options.columns.label_words if options.columns else None
        met = {word for _, codes in columns for word in codes}
        absent = next((word for word in options.positive if word not in met), None)
        if absent is not None and not options.part:
            some = f"their words are {', '.join(map(quote, sorted(met)[:4]))}" if met else "they are numbers"
            raise bad(f"none of its labels has the word {quote(absent)} of positive={quote(absent)}; {some}")
        return label_meanings(columns, options.positive, known)

    def _coded_labels(self, labels: list[int], words: Mapping[str, int]) -> Matrix:
        """Return the label columns, with 1 and 0 for words whose meaning was declared."""
        Y = self.matrix[:, labels]
        declared = {
            i: codes for i, j in enumerate(labels) if (codes := self.codes.get(j)) and codes.keys() <= words.keys()
        }
        if declared:
            Y = label_matrix(Y, as_sparse=False)
        for i, codes in declared.items():
            meanings = {code: words[word] for word, code in codes.items()}
            Y[:, i] = [meanings.get(code, np.nan) for code in Y[:, i].tolist()]
        return Y

    def _labels(self, labels: list[int], words: Mapping[str, int]) -> Matrix:
        """Return which labels are relevant, NaN for missing labels.

        -1 stands for 0 in sparse rows, and in dense ones without a single 0.
        """
        Y = self._coded_labels(labels, words)
        is_sparse = sparse.issparse(Y)
        values, rows, columns = Y, *np.indices(Y.shape, sparse=True)
        if is_sparse:
            values, (rows, columns) = Y.data, sparse.coo_array(Y).coords
        missing = np.isnan(values)
        odd = ~(missing | (values == 0) | (values == 1) | ((values == -1) & (is_sparse or not (Y == 0).any())))
        if odd.any():
            row, column, value = (np.broadcast_to(array, odd.shape)[odd][0] for array in (rows, columns, values))
            spelled = {code: word for word, code in self.codes.get(labels[column], {}).items()}
            got = quote(spelled.get(value, float(value)))
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
