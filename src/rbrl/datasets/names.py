"""Names of columns that have none."""

from collections.abc import Sequence


class NumberedNames(Sequence):
    """The names `prefix1`, `prefix2`, …, made when asked for, so that a million columns cost nothing.

    Examples
    --------
    >>> list(NumberedNames("x", 3))
    ['x1', 'x2', 'x3']
    """

    def __init__(self, prefix, n_names):
        self.prefix, self.n_names = prefix, int(n_names)

    def __len__(self):
        return self.n_names

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [f"{self.prefix}{i + 1}" for i in range(self.n_names)[index]]
        return f"{self.prefix}{range(self.n_names)[index] + 1}"

    def __eq__(self, other):
        if isinstance(other, NumberedNames):
            return (self.prefix, self.n_names) == (other.prefix, other.n_names)
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"NumberedNames({self.prefix!r}, {self.n_names})"


def column_names(names, prefix, n_columns):
    """Return `names` as a tuple of str, or numbered names if None."""
    return NumberedNames(prefix, n_columns) if names is None else tuple(str(name) for name in names)
