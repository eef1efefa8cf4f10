"""Formats of data files, a module each: from a file to data sets and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rbrl.datasets.names import Columns

MAX_BYTES = 4 << 30  # of a file once unpacked

# What tells which columns are labels: how many, from the left or from the right; their names; an XML file.
LabelChoice = int | Sequence[str] | str | Path | None


@dataclass(frozen=True)
class ReadOptions:
    """Options common to the readers.

    Parameters
    ----------
    labels : int, sequence of str, path of an XML file, or None
        Which columns are labels: the first n, the last -n, those of these names, those in Mulan's XML file.
        None: as the file itself says.
    default_labels : int or None
        As `labels`, but used only where neither the file nor an XML file beside it says.
    nominal : {"codes", "onehot"}
        What becomes of a nominal feature with more than two values.
    encoding : str or None
        None: UTF-8 or UTF-16 by their marks, else UTF-8, else Latin-1.
    sparse_labels : bool
        Give Y as a sparse array.
    max_bytes : int
        Refuse files that unpack to more.
    n_features, n_labels, first_feature, first_label : int or None
        Of a svmlight file that does not say: its sizes, and the numbers, 0 or 1, that its columns count from.
    part : bool
        The file is one of several that belong together: what would be guessed from its rows has to be said.
    columns : Columns or None
        Those of the model that the file is for: its labels and features are found by name, and where the columns of a
        svmlight file count from is not guessed.

    Examples
    --------
    >>> ReadOptions(labels=-2, nominal="onehot").labels
    -2
    """

    labels: LabelChoice = None
    default_labels: int | None = None
    nominal: str = "codes"
    encoding: str | None = None
    sparse_labels: bool = False
    max_bytes: int = MAX_BYTES
    n_features: int | None = None
    n_labels: int | None = None
    first_feature: int | None = None
    first_label: int | None = None
    part: bool = False
    columns: Columns | None = None

    def __post_init__(self) -> None:
        if self.nominal not in ("codes", "onehot"):
            raise ValueError(f"nominal must be 'codes' or 'onehot'; got {self.nominal!r}.")
        for name in ("first_feature", "first_label"):
            if getattr(self, name) not in (None, 0, 1):
                raise ValueError(f"{name} must be 0, 1 or None; got {getattr(self, name)!r}.")
