"""Columns of a data set: their names, how a file was read, and where the columns of a model are in another file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from rbrl.exceptions import DataFormatError

PREFIXES = {"feature": "x", "label": "label"}  # of the numbers of columns without names


class NumberedNames(Sequence[str]):
    """The names `prefix1`, `prefix2`, …, made when asked for, so that a million columns cost nothing.

    Examples
    --------
    >>> list(NumberedNames("x", 3))
    ['x1', 'x2', 'x3']
    """

    def __init__(self, prefix: str, n_names: int):
        self.prefix, self.n_names = prefix, int(n_names)

    def __len__(self) -> int:
        return self.n_names

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [f"{self.prefix}{i + 1}" for i in range(self.n_names)[index]]
        return f"{self.prefix}{range(self.n_names)[index] + 1}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return (self.prefix, self.n_names) == (other.prefix, other.n_names)
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"NumberedNames({self.prefix!r}, {self.n_names})"


@dataclass(frozen=True)
class Columns:
    """The columns of a data set: what a model has to know of those it was fitted on, to read another file alike.

    Parameters
    ----------
    n_features, n_labels : int, optional
    feature_names, label_names : sequence of str, optional
        None: they had no names.
    first_feature, first_label : {0, 1}, optional
        The numbers that a svmlight file counted its columns from.
    ignored : sequence of str
        Columns of the file that were not read: other files may have them, too.
    label_words : mapping of str to int
        Words of label columns, and whether they mean 1 or 0, where that was declared.

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


def find_names(
    what: str, names: Sequence[str] | None, wanted: Sequence[str] | None, owner: str = "the model was fitted on"
) -> list[int] | None:
    """Return the places of the columns `wanted` of a model among those of a file, or None if names do not tell.

    Parameters
    ----------
    what : str
        "feature" or "label".
    names, wanted : sequence of str, or None
        The names of the file, and of the model. Numbers that we gave to columns without names, `x1` and `label1` and so
        on, tell nothing, unless the other side has them too.
    owner : str
        Whose columns are wanted, for messages.

    Raises
    ------
    DataFormatError
        One is missing, or there are several of its name.
    """
    if names is None or wanted is None or isinstance(names, NumberedNames):
        return None
    names, wanted = list(map(str, names)), list(map(str, wanted))
    if names == wanted:
        return list(range(len(names)))
    places, times = {name: i for i, name in enumerate(names)}, Counter(names)
    missing = [name for name in wanted if name not in places]
    if len(missing) == len(wanted) and any(
        own == list(NumberedNames(PREFIXES[what], len(own))) for own in (names, wanted)
    ):
        return None
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        others = ", ".join([*map(repr, names[:3]), *["…"][: len(names) > 3]])
        raise DataFormatError(f"it has no {what} {missing[0]!r}{more}, which {owner}; it has {others}")
    twice = next((name for name in wanted if times[name] > 1), None)
    if twice is not None:
        raise DataFormatError(f"the {what} {twice!r} is the name of several columns: they cannot be told apart")
    return [places[name] for name in wanted]
