"""Formats of data files, a module each; here what they share: options, limits, and errors that say file, line, reason."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array, Matrix
from rbrl.datasets.columns import Columns
from rbrl.datasets.dataset import Split, dense, stack_rows, stored_values
from rbrl.exceptions import DataFormatError

MAX_BYTES = 4 << 30  # of a file once unpacked
MAX_DENSE_CELLS = 1 << 29  # of a matrix that has to be dense: 4 GiB of float64
MAX_WORDS = 10_000  # different ones in a column
LONGEST_QUOTE = 60

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
    ignore : str or sequence of str
        Names of columns of an ARFF, CSV or Parquet file that are not read.
    positive : str or sequence of str
        Words of label columns that mean that a label is relevant.
    nominal : {"codes", "onehot"} or None
        Form of a nominal feature with more than two values. None: codes if the file declares its values, as ARFF
        does; words that are not declared are refused.
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
    ignore: str | Sequence[str] = ()
    positive: str | Sequence[str] = ()
    nominal: str | None = None
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
        if self.nominal not in (None, "codes", "onehot"):
            raise ValueError(f"nominal must be 'codes' or 'onehot'; got {self.nominal!r}.")
        for name in ("ignore", "positive"):
            given = getattr(self, name)
            vars(self)[name] = (given,) if isinstance(given, str) else tuple(map(str, given))
        for name in ("first_feature", "first_label"):
            if getattr(self, name) not in (None, 0, 1):
                raise ValueError(f"{name} must be 0, 1 or None; got {getattr(self, name)!r}.")

    @property
    def ignored_names(self) -> set[str]:
        """Names of columns that are not read if the file has them: those to ignore, and those that the model ignored."""
        return {*self.ignore, *(self.columns.ignored if self.columns else ())}


def bad(reason: str, line: int | None = None) -> DataFormatError:
    """Return the error for something wrong in the file that is read or written, to be raised under `naming`.

    Parameters
    ----------
    reason : str
    line : int, optional
        Where it is wrong.

    Returns
    -------
    DataFormatError
        To which `naming` adds the file.
    """
    error = DataFormatError(reason)
    error.line = line
    return error


def bad_word(name: str, word: str, line: int | None = None) -> DataFormatError:
    """Return the error for a word in a block of a file that does not declare its words.

    Parameters
    ----------
    name : str
        Of the column.
    word : str
    line : int, optional

    Returns
    -------
    DataFormatError
    """
    reason = "the code of a word depends on the whole file; use numbers, or ARFF, which declares its words"
    return bad(f"column {quote(name)} has {quote(word)}: {reason}", line)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in errors which file is wrong, and where; or for which memory ran out, and what needs less.

    In the latter case nothing need be wrong with the file.

    Parameters
    ----------
    path : Path
        The file that is read or written in the `with` block.
    """
    try:
        yield
    except DataFormatError as error:
        if str(error).startswith(str(path)):
            raise
        place = f"{path}, line {error.line}" if error.line else path
        raise DataFormatError(f"{place}: {error}") from error
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise MemoryError(
            f"{path}: there is not enough memory to read it{why}. rbrl.datasets.load_parts reads text and Parquet files "
            "some rows at a time, and rbrl.datasets.write_shards (rbrl data convert --rows-per-shard) splits them into "
            "files that are fitted one at a time."
        ) from error


def quote(value: object) -> str:
    """Return `value` in quotes, cut to a length that fits a message.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
    """
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…")


def label_matrix(Y: Any, as_sparse: bool) -> Matrix:
    """Return the labels as a sparse array or, unless they are too large, as a dense one.

    Parameters
    ----------
    Y : ndarray or sparse array of shape (n_samples, n_labels)
    as_sparse : bool

    Returns
    -------
    ndarray or csr_array
    """
    if as_sparse:
        if np.isnan(stored_values(Y)).any():
            raise bad("labels that are missing cannot be read with sparse_labels=True: leave that out")
        return sparse.csr_array(Y)
    if sparse.issparse(Y) and Y.shape[0] * Y.shape[1] > MAX_DENSE_CELLS:
        raise bad(f"labels of shape {Y.shape} are too large for a dense array; read with sparse_labels=True")
    return dense(Y)


def join_parts(train: tuple[Any, Any], test: tuple[Any, Any]) -> tuple[Any, Any, dict[str, Split]]:
    """Return X and Y of all rows, and where those of the two parts are, as the split "source".

    Parameters
    ----------
    train, test : (X, Y)
        Matrices, dense or sparse.

    Returns
    -------
    X, Y : ndarray or sparse array
    splits : dict
        {"source": (train_index, test_index)}.
    """
    n_train, n_samples = train[0].shape[0], train[0].shape[0] + test[0].shape[0]
    X, Y = map(stack_rows, zip(train, test))
    return X, Y, {"source": (np.arange(n_train), np.arange(n_train, n_samples))}


def check_compressed(values: Array, indexes: Array, starts: Array, n_lines: int, length: int) -> None:
    """Raise ValueError unless the arrays are a CSR or CSC matrix of `n_lines` rows or columns of `length` places.

    SciPy's own check looks no further where the last start is 0, and what then decreases crashes the interpreter.

    Parameters
    ----------
    values, indexes, starts : ndarray
        The three arrays of the matrix.
    n_lines : int
        Rows of a CSR matrix, columns of a CSC matrix.
    length : int
        Places in each of them.
    """
    whole = all(array.ndim == 1 and array.dtype.kind in "iu" for array in (indexes, starts))
    if not whole or values.ndim != 1:
        raise ValueError("its indexes and starts must be lists of whole numbers")
    if len(starts) != n_lines + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"its starts must rise from 0 in {n_lines + 1} steps")
    if not starts[-1] <= len(values) == len(indexes):
        raise ValueError(f"there are {len(values)} values and {len(indexes)} indexes where {starts[-1]} are said to be")
    if len(indexes) and not (indexes.min() >= 0 and indexes.max() < length):
        raise ValueError(f"its indexes must lie in 0..{length - 1}; got {indexes.min()}..{indexes.max()}")
