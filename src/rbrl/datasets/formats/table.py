"""From a table of numbers to a `Dataset`: labels out, nominal columns coded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats.errors import bad, quote
from rbrl.datasets.formats.labels import label_columns
from rbrl.datasets.formats.limits import dense_labels
from rbrl.datasets.formats.values import is_plain


@dataclass
class Table:
    """The columns of a file as numbers.

    Parameters
    ----------
    path : Path
    names : list of str
    matrix : ndarray or csr_array of shape (n_rows, n_columns)
    lines : array of int, or None
        The line of each row, for error messages.
    codes : mapping of int to mapping of str to float
        For each nominal column, what its words became.
    own_labels : int, list of str or None
        Which columns the file itself calls labels.
    name : str
    hint : str
        What to think of where no column is left for the features.
    """

    path: Path
    names: Sequence[str]
    matrix: Any
    lines: Any = None
    codes: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    own_labels: Any = None
    name: str = ""
    hint: str = ""

    def dataset(self, options):
        """Return the `Dataset`, its label columns as `options.labels` or the file says."""
        own = options.default_labels if self.own_labels is None else self.own_labels
        labels = label_columns(self.path, self.names, options.labels, own, options.known_labels)
        taken = set(labels)
        features = [j for j in range(len(self.names)) if j not in taken]
        if not features:
            columns = f"its {len(self.names)} columns are" if len(self.names) > 1 else "its only column is"
            raise bad(self.path, f"no feature is left, {columns} labels: {quote(list(self.names))}{self.hint}")
        Y = self._label_matrix(labels, options.sparse_labels)
        names = [self.names[j] for j in features]
        X, nominal = self.matrix[:, features], {i: self.codes[j] for i, j in enumerate(features) if j in self.codes}
        nominal = {i: codes for i, codes in nominal.items() if len(codes) > 2}
        if nominal and options.nominal == "onehot":
            X, names, nominal = _onehot(X, names, nominal)
        return Dataset(
            X,
            Y,
            feature_names=names,
            label_names=[self.names[j] for j in labels],
            name=self.name or self.path.name.split(".")[0],
            categorical_index=sorted(nominal),
        )

    def check_part(self, options):
        """Refuse words whose codes depend on rows that this part does not have."""
        for j, codes in self.codes.items() if options.part else ():
            odd = next((word for word in codes if not is_plain(word)), None)
            if odd is not None:
                raise bad(
                    self.path,
                    f"column {quote(self.names[j])} has words, such as {quote(odd)}, whose codes depend on all parts of the "
                    "data set: code them as numbers first",
                )

    def _label_matrix(self, labels, as_sparse):
        for j in labels:
            if len(self.codes.get(j, ())) == 1 and not is_plain(next(iter(self.codes[j]))):
                raise bad(self.path, f"the label {quote(self.names[j])} has one word only: {list(self.codes[j])}")
        Y = self.matrix[:, labels]
        if not sparse.issparse(Y):
            self._check_labels(labels, Y, np.arange(Y.shape[0]), None)
            Y = Y > 0
            return sparse.csr_array(Y) if as_sparse else Y
        Y = sparse.coo_array(Y)
        self._check_labels(labels, Y.data, Y.row, Y.col)
        Y = sparse.csr_array((Y.data > 0, (Y.row, Y.col)), shape=Y.shape)
        Y.eliminate_zeros()
        return Y if as_sparse else dense_labels(self.path, Y)

    def _check_labels(self, labels, values, rows, columns):
        odd = ~((values == 0) | (values == 1))
        if values.ndim == 2 and odd.any() and not (values == 0).any():
            odd &= values != -1  # a file without a single 0 codes its labels as -1 and 1
        elif values.ndim == 1:
            odd &= values != -1
        if not odd.any():
            return
        first = np.argwhere(odd)[0]
        column = labels[first[1] if columns is None else columns[first[0]]]
        value = values[tuple(first)]
        reason = "is missing" if np.isnan(value) else f"must be 0 or 1; got {self._word(column, value)}"
        raise bad(self.path, f"the label {quote(self.names[column])} {reason}", self._line(rows[first[0]]))

    def _word(self, column, value):
        words = {code: word for word, code in self.codes.get(column, {}).items()}
        return quote(words.get(value, float(value)))

    def _line(self, row):
        return None if self.lines is None else int(self.lines[row])


def _onehot(X, names, nominal):
    """Replace each nominal column by one 0/1 column per value, called `name=value`; a missing value has none."""
    blocks, titles, start = [], [], 0
    for j in [*sorted(nominal), X.shape[1]]:
        if j > start:
            blocks.append(X[:, start:j])
            titles += names[start:j]
        if j < X.shape[1]:
            column = X[:, [j]]
            column = column.toarray() if sparse.issparse(column) else column
            blocks.append((column == np.array(list(nominal[j].values()))).astype(np.float64))
            titles += [f"{names[j]}={word}" for word in nominal[j]]
        start = j + 1
    stack = sparse.hstack if sparse.issparse(X) else np.hstack
    return stack([sparse.csr_array(b) for b in blocks] if sparse.issparse(X) else blocks), titles, {}
