"""The columns of an ARFF file: what each word in them is worth."""

import numpy as np

from rbrl.datasets.formats.errors import quote
from rbrl.datasets.formats.values import nominal_codes, number

FEW = 8


class Columns:
    """Converts words to numbers, one by one or for whole blocks.

    Parameters
    ----------
    header : Header

    Attributes
    ----------
    names : list of str
    codes : dict of int to dict of str to float
        For each nominal column, the code of each value.
    defaults : dict of int to float
        Columns whose omitted value in a sparse row is not 0: ARFF omits the first value of a nominal attribute.
    """

    def __init__(self, header):
        self.names = header.names
        cache = {values: nominal_codes(values) for values in set(header.values) if values}
        self.codes = {j: cache[values] for j, values in enumerate(header.values) if values}
        first = {values: next(iter(codes.values())) for values, codes in cache.items()}
        self.defaults = {j: first[v] for j, v in enumerate(header.values) if v and first[v] != 0}
        self.spelled = {v for v, codes in cache.items() if all(number(word) == code for word, code in codes.items())}
        self.wordy = [j for j, v in enumerate(header.values) if v and v not in self.spelled]
        self.groups = _groups(header.values, cache, self.spelled)
        self.kind = self._kinds(len(self.names))

    def __len__(self):
        return len(self.names)

    def value(self, column, word, quoted):
        """Return the number that `word` is worth in `column`; raises ValueError with the reason otherwise."""
        if word == "?" and not quoted:
            return np.nan
        codes = self.codes.get(column)
        if codes is not None and word in codes:
            return codes[word]
        value = number(word)
        if codes is None and value is None:
            raise ValueError(f"{quote(self.names[column])} is numeric; got {quote(word)}")
        if codes is None or (value is not None and self._fits(column, value)):
            return value
        raise ValueError(f"{quote(self.names[column])} must be one of {_few(codes)}; got {quote(word)}")

    def _fits(self, column, value):
        return self.kind[column] >= 0 and (value != value or value in self.codes[column].values())

    def converters(self):
        """Return functions for the columns whose words are not numbers, as `numpy.loadtxt` takes them."""
        return {j: _converter(self.codes[j]) for j in self.wordy}

    def block_is_valid(self, block):
        """Whether a dense block of numbers keeps to the values of its nominal columns, and has no infinity."""
        if np.isinf(block).any():
            return False
        parts = ((block[:, columns], allowed) for columns, allowed in self.groups)
        return all(_allowed(part, allowed).all() for part, allowed in parts)

    def entries_are_valid(self, columns, values):
        """Whether entries (column, value) of sparse rows do; any missing value or word is left to the slow way."""
        kind = self.kind[columns]
        if (kind < 0).any() or not np.isfinite(values).all():
            return False
        return all(_allowed(values[kind == k], allowed).all() for k, (_, allowed) in enumerate(self.groups, 1))

    def _kinds(self, n_columns):
        kind = np.zeros(n_columns, dtype=np.int32)  # 0 numeric, k > 0 the k-th group, -1 words
        for k, (columns, _) in enumerate(self.groups, 1):
            kind[columns] = k
        kind[self.wordy] = -1
        return kind


def _groups(values, cache, spelled):
    """Return [(columns, allowed numbers)], columns of equal values together."""
    groups = {}
    for j, value in enumerate(values):
        if value and value in spelled:
            groups.setdefault(tuple(sorted(set(cache[value].values()))), []).append(j)
    return [(np.array(columns), np.array(allowed)) for allowed, columns in groups.items()]


def _allowed(values, allowed):
    if len(allowed) > FEW:
        return np.isin(values, allowed) | np.isnan(values)
    good = np.isnan(values)
    for value in allowed:
        good |= values == value
    return good


def _converter(codes):
    return lambda word: codes[word.strip()]


def _few(codes):
    shown = ", ".join(quote(word) for word in list(codes)[:FEW])
    return shown + (", …" if len(codes) > FEW else "")
