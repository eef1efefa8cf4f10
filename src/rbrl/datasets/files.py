"""Data files of any format we know: read whole, or of any size some rows at a time; written; converted."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from rbrl._common.typing import Matrix
from rbrl.datasets.columns import Columns
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import LabelChoice, ReadOptions, bad, naming
from rbrl.datasets.formats.column_choice import feature_columns
from rbrl.datasets.formats.table import Table
from rbrl.exceptions import DataFormatError

# A format is a module of `rbrl.datasets.formats`, with `write`, and with `tables` or `read`.
NAMES = ("arff", "csv", "mat", "npz", "parquet", "svmlight")
FORMATS: dict[str, Any] = {name: import_module(f"rbrl.datasets.formats.{name}") for name in NAMES}
TABLES = {"arff", "csv", "parquet"}  # formats in which labels stand before or after the features
OTHER_ENDINGS = {".tsv": "csv", ".pq": "parquet", ".svm": "svmlight", ".libsvm": "svmlight", ".txt": "svmlight"}
ENDINGS = {f".{name}": name for name in FORMATS} | OTHER_ENDINGS
PACKED = {"arff", "csv", "svmlight"}  # formats that may end in .gz


def load_file(path: str | Path, labels: LabelChoice = None, *, format: str | None = None, **options: Any) -> Dataset:
    """Read a data set from a file.

    Parameters
    ----------
    path : path
        ARFF, CSV, TSV and svmlight files may be packed with gzip.
    labels : int, sequence of str, path of an XML file, or None
        Which columns of an ARFF, CSV or Parquet file are labels: the first n, the last -n, those of these names (Y has
        their order), those in Mulan's XML file. None: as the file says, or an XML file of the same name beside it.
    format : str, optional
        One of "arff", "csv", "mat", "npz", "parquet", "svmlight". Default: by the file's ending.
    **options : Any
        Those below.

    Returns
    -------
    Dataset

    Other Parameters
    ----------------
    ignore : str or sequence of str
        Columns of an ARFF, CSV or Parquet file that are not read, such as ids, dates and texts.
    positive : str or sequence of str
        Words in label columns that mean that a label is relevant, such as "active"; each column may have one other word,
        which means that it is not. 0/1, -1/1, true/false, yes/no, t/f and y/n need none.
    nominal : {"codes", "onehot"}, optional
        A nominal feature with more than two values is one column of codes, listed in `categorical_index`, or one 0/1
        column per value. Values that are numbers are their own codes; other words are numbered from 0. By default the
        values that an ARFF file declares have codes, and words in CSV and Parquet files are refused: their codes would
        depend on the rows of the file.
    encoding : str, optional
        Of a text file. Default: by its mark, else UTF-8, else Latin-1.
    sparse_labels : bool, default=False
        Give Y as a sparse array.
    max_bytes : int
        Refuse files that unpack to more; 4 GiB by default.
    n_features, n_labels, first_feature, first_label : int, optional
        Of a svmlight file whose first line does not say: its sizes, and the numbers, 0 or 1, that features and labels
        count from. Default: as its rows show; where no 0 occurs, counting from 1 is a guess, and a warning says so.
    part : bool, default=False
        The file is one of several that belong together: what would be guessed from its rows has to be said.
    columns : Columns, optional
        Those of the model that the file is for, such as the `columns` of the :class:`Dataset` it was fitted on: features and
        labels are found by name and come in the model's order, and the columns of a svmlight file count from where the
        model's did. Labels that the model does not know are left out; other features are refused.

    Raises
    ------
    DataFormatError
        The file cannot be read; the message has file, line and reason.
    MemoryError
        The file may be good; there is not enough memory for it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from rbrl.datasets import load_file
    >>> path = Path(mkdtemp(), "flowers.csv")
    >>> _ = path.write_text("length,width,red,tall\\n1,2,0,1\\n3,4,1,1\\n")
    >>> load_file(path, labels=-2).Y
    array([[0, 1],
           [1, 1]], dtype=int8)
    """
    path, kind = _found(path, format)
    reader, chosen = FORMATS[kind], ReadOptions(labels=labels, **options)
    with naming(path):
        _check_options(kind, chosen)
        if kind in TABLES:
            dataset = Table.joined(reader.tables(path, chosen)).dataset(chosen)
        else:
            dataset = reader.read(path, chosen)
        return dataset if chosen.columns is None else dataset.matching(chosen.columns)


def load_parts(
    path: str | Path, labels: LabelChoice = None, *, rows: int = 50_000, format: str | None = None, **options: Any
) -> Iterator[Dataset]:
    """Yield the rows of a file as data sets of `rows` rows, in order; options as for :func:`load_file`.

    Text and Parquet files are read with bounded memory; NPZ and MATLAB files are read whole. Words have the codes that
    they have in the whole file, over which CSV and svmlight need a pass before the first part.

    Parameters
    ----------
    path : path
    labels : int, sequence of str, path of an XML file, or None
        As for :func:`load_file`.
    rows : int, default=50000
        Of each part; the last may have fewer.
    format : str, optional
        As for :func:`load_file`.
    **options : Any
        As for :func:`load_file`.

    Returns
    -------
    iterator of Dataset

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from rbrl.datasets import load_parts
    >>> path = Path(mkdtemp(), "flowers.csv")
    >>> _ = path.write_text("length,width,red,tall\\n1,2,0,1\\n3,4,1,1\\n5,6,1,0\\n")
    >>> [part.n_samples for part in load_parts(path, labels=-2, rows=2)]
    [2, 1]
    """
    path, kind = _found(path, format)
    if kind not in TABLES and kind != "svmlight":
        whole = load_file(path, labels, format=format, **options)
        return (
            replace(whole, X=X, Y=Y, splits={}) for X, Y in zip(row_blocks(whole.X, rows), row_blocks(whole.Y, rows))
        )
    return _read_parts(path, kind, ReadOptions(labels=labels, **{"max_bytes": sys.maxsize, **options}), rows)


def _read_parts(path: Path, kind: str, options: ReadOptions, rows: int) -> Iterator[Dataset]:
    parts = FORMATS["svmlight"].parts(path, options, rows)
    if kind in TABLES:
        parts = (table.dataset(options) for table in FORMATS[kind].tables(path, options, rows))
    with naming(path):
        _check_options(kind, options)
        for part in parts:
            yield part if options.columns is None else part.matching(options.columns)


def read_blocks(
    path: str | Path,
    n_features: int | Columns,
    labels: LabelChoice = None,
    *,
    block_size: int = 4096,
    format: str | None = None,
    first_feature: int | None = None,
    ignore: str | Sequence[str] = (),
) -> Iterator[Matrix]:
    """Yield the features of a file in blocks of rows.

    ARFF, CSV, Parquet and svmlight files are read as the blocks are asked for, without a limit on their size; others are
    read whole. Labels are left out and not checked; an ARFF, CSV or Parquet file may do without them.

    Parameters
    ----------
    path : path
    n_features : int or Columns
        How many features there must be; or all that a model knows of its columns, such as the `columns` of the
        :class:`Dataset` it was fitted on. Then features are found by name and come in the model's order, labels that it
        knows are left out, and the features of a svmlight file count from where the model's did.
    labels : int, sequence of str, path of an XML file, or None
        Which columns are labels, as for `load_file`.
    block_size : int, default=4096
        The most rows that a block may have; 0: all of them.
    format : str, optional
        As for `load_file`.
    first_feature : {0, 1}, optional
        As for `load_file`.
    ignore : str or sequence of str
        See `load_file`. Columns that were ignored when the model's file was read are ignored in any case.

    Yields
    ------
    X : array or csr_array, shape (n_rows, n_features)

    Raises
    ------
    DataFormatError
        The file cannot be read, has other features, no rows, or, in CSV and Parquet, words other than true/false and
        yes/no: these have no code before the whole file is known.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from rbrl.datasets import read_blocks
    >>> path = Path(mkdtemp(), "new.csv")
    >>> _ = path.write_text("length,width\\n1,2\\n3,4\\n5,6\\n")
    >>> [X.shape for X in read_blocks(path, n_features=2, block_size=2)]
    [(2, 2), (1, 2)]
    """
    path, kind = _found(path, format)
    size = block_size or sys.maxsize
    columns = n_features if isinstance(n_features, Columns) else Columns(n_features)
    options = ReadOptions(
        labels=labels, max_bytes=sys.maxsize, first_feature=first_feature, ignore=ignore, columns=columns
    )
    blocks: Iterator[Matrix]
    if kind in TABLES:
        choose = partial(feature_columns, path, options, columns)
        blocks = (table.matrix for table in FORMATS[kind].tables(path, options, size, choose))
    elif kind == "svmlight":
        blocks = FORMATS["svmlight"].features(path, options, columns, size)
    else:
        blocks = row_blocks(load_file(path, labels, format=format, ignore=ignore, columns=columns).X, size)
    n_rows = 0
    with naming(path):
        _check_options(kind, options)
        for X in blocks:
            if X.shape[1] != columns.n_features:
                raise bad(f"it has {X.shape[1]} features; there should be {columns.n_features}")
            n_rows += X.shape[0]
            yield X
        if not n_rows:
            raise bad(f"it has {n_rows} rows")


def row_blocks(X: Matrix, size: int) -> Iterator[Matrix]:
    """Yield the rows of a matrix, at most `size` at a time.

    Parameters
    ----------
    X : ndarray or csr_array
    size : int

    Yields
    ------
    ndarray or csr_array
    """
    for start in range(0, X.shape[0], size):
        yield X[start : start + size]


def save_file(dataset: Dataset, path: str | Path, *, format: str | None = None, labels_first: bool = False) -> None:
    """Write a data set to a file, which appears when it is complete.

    Parameters
    ----------
    dataset : Dataset
    path : path
        ARFF and CSV files get Mulan's XML file of the same name beside them.
    format : str, optional
        As for `load_file`.
    labels_first : bool, default=False
        ARFF, CSV, Parquet: put the labels before the features.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from rbrl.datasets import Dataset, save_file
    >>> path = Path(mkdtemp(), "tiny.csv")
    >>> save_file(Dataset([[1.5, 0], [0, 2]], [[0, 1], [1, 1]], label_names=["red", "tall"]), path)
    >>> print(path.read_text(), end="")
    "x1","x2","red","tall"
    1.5,0,0,1
    0,2,1,1
    """
    path = Path(path)
    kind = format_of(path, format)
    with naming(path):
        FORMATS[kind].write(dataset, path, **({"labels_first": labels_first} if kind in TABLES else {}))


def convert(
    source: str | Path, target: str | Path, labels: LabelChoice = None, *, labels_first: bool = False, **options: Any
) -> Dataset:
    """Read the file `source` and write it as `target`, each in the format of its ending; options as for `load_file`.

    Parameters
    ----------
    source, target : path
    labels : int, sequence of str, path of an XML file, or None
        As for :func:`load_file`.
    labels_first : bool, default=False
        As for :func:`save_file`.
    **options : Any
        As for :func:`load_file`.

    Returns
    -------
    Dataset
        What was read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from rbrl.datasets import convert, load_file
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "flowers.csv").write_text("length,width,red,tall\\n1,2,0,1\\n3,4,1,1\\n")
    >>> _ = convert(folder / "flowers.csv", folder / "flowers.npz", labels=["red", "tall"])
    >>> load_file(folder / "flowers.npz").label_names
    ('red', 'tall')
    """
    dataset = load_file(source, labels, **options)
    save_file(dataset, target, labels_first=labels_first)
    return dataset


def _check_options(kind: str, options: ReadOptions) -> None:
    """Refuse options that name columns or words of a file whose format has none."""
    for name in ("ignore", "positive"):
        if getattr(options, name) and kind not in TABLES:
            raise bad(f"{name}= goes with ARFF, CSV and Parquet files; this is a {kind} file")


def format_of(path: Path, name: str | None = None) -> str:
    """Return the format of a file: `name`, or that of its ending.

    Parameters
    ----------
    path : Path
    name : str, optional
        One of `FORMATS`.

    Returns
    -------
    str
    """
    packed = path.suffix == ".gz"
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    name = name or ENDINGS.get(ending)
    if name not in FORMATS:
        raise DataFormatError(f"{path}: the ending {ending!r} tells no format; pass format=, one of {sorted(FORMATS)}")
    if packed and name not in PACKED:
        raise DataFormatError(f"{path}: {name} files are not read or written packed; unpack it first")
    return name


def _found(path: str | Path, format: str | None) -> tuple[Path, str]:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    return path, format_of(path, format)
