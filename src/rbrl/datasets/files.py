"""Data files of all formats: read whole or some rows at a time, written, and converted."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rbrl._common.checks import suggest
from rbrl._common.typing import Matrix
from rbrl.datasets.columns import Columns
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import (
    Format,
    LabelChoice,
    ReadOptions,
    format_error,
    name_file_in_errors,
)
from rbrl.datasets.formats import row_blocks as row_blocks
from rbrl.datasets.formats.arff import Arff
from rbrl.datasets.formats.arrays import Mat, Npz
from rbrl.datasets.formats.plain_tables import Csv, Parquet
from rbrl.datasets.formats.repository import NpzPair, Repository
from rbrl.datasets.formats.svmlight import Svmlight
from rbrl.exceptions import DataFormatError

ALL_FORMATS: tuple[Format, ...] = (Arff(), Csv(), Mat(), Npz(), NpzPair(), Parquet(), Repository(), Svmlight())
FORMATS = {one.name: one for one in ALL_FORMATS}
FORMAT_OF_ENDING = {ending: one for one in FORMATS.values() for ending in one.endings}


def load_file(path: str | Path, labels: LabelChoice = None, *, format: str | None = None, **options: Any) -> Dataset:
    """Read a data set from a file.

    Parameters
    ----------
    path : path
        The file. ARFF, CSV, TSV, svmlight and repository files may be compressed with gzip. Of
        a pair of NPZ files, it is the one with the features, NAME.X.npz.
    labels : int, sequence of str, path of an XML file, or None
        Label columns of an ARFF, CSV or Parquet file: the first n, the last -n, their names (Y has
        this order), or the names in Mulan's XML file. None means that the file itself, or an XML
        file of the same name in the same folder, says which columns are labels.
    format : str, optional
        One of "arff", "csv", "mat", "npz", "npz-pair", "parquet", "repository", "svmlight".
        Default: the format of the file's ending.
    **options : Any
        Further options, listed below.

    Returns
    -------
    Dataset

    Other Parameters
    ----------------
    ignore : str or sequence of str
        Columns of an ARFF, CSV or Parquet file that are not read, such as ids, dates and texts.
    positive : str or sequence of str
        Words in label columns that mean that a label is relevant, such as "active". A column may
        have one other word, which means that the label is not relevant. 0/1, -1/1, true/false,
        yes/no, t/f and y/n need no declaration.
    nominal : {"codes", "onehot"}, optional
        Form of a nominal feature with more than two values: one column of codes, listed in
        `categorical_index`, or one 0/1 column per value. Numbers are their own codes; other words
        are numbered from 0. By default, values that an ARFF file declares have codes. A feature of
        few words in a CSV or Parquet file has one 0/1 column per word: at most 40 words, each in two
        rows on average. Other words are refused, because their codes would depend on the rows.
    encoding : str, optional
        Encoding of a text file. Default: the encoding of the byte-order mark, else UTF-8 if
        possible, else Latin-1.
    sparse_labels : bool, default=False
        Return Y as a sparse array. Pairs of NPZ files, and files whose first line has their
        sizes as in the extreme classification repository, always have a sparse Y.
    max_bytes : int
        Largest size of a decompressed file; larger files are refused. Default: 4 GiB.
    n_features, n_labels : int, optional
        Sizes of a svmlight file whose first line does not contain them. Default: the sizes that
        the rows show.
    first_feature, first_label : {0, 1}, optional
        Lowest column number in a svmlight file whose first line does not determine it. Default: 0
        if a column 0 occurs, else 1, with a warning that this is a guess.
    part : bool, default=False
        The file is one of several parts of a data set, so nothing may be guessed from its rows.
    columns : Columns, optional
        Columns of the model that will use the file, such as the `columns` of the :class:`Dataset`
        that the model was fitted on. Features and labels are matched by name and returned in the
        model's order. The numbers of a svmlight file start where those of the model's file did.
        Labels that the model does not know are left out; unknown features are refused.

    Raises
    ------
    DataFormatError
        The file cannot be read. The message has the file, the line and the reason.
    MemoryError
        There is not enough memory for the file.

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
    path, file_format = _check_file(path, format)
    read_options = ReadOptions(labels=labels, **options)
    with name_file_in_errors(path):
        _check_options(file_format, read_options)
        dataset = file_format.read(path, read_options)
        return dataset if read_options.columns is None else dataset.matching(read_options.columns)


def load_parts(
    path: str | Path, labels: LabelChoice = None, *, rows: int = 50_000, format: str | None = None, **options: Any
) -> Iterator[Dataset]:
    """Read a file as several data sets, one after the other.

    Text and Parquet files are read with bounded memory; NPZ and MATLAB files are read whole. Words
    have the codes of the whole file; CSV and svmlight files need a pass before the first part.

    Parameters
    ----------
    path : path
        The file.
    labels : int, sequence of str, path of an XML file, or None
        Label columns; see :func:`load_file`.
    rows : int, default=50000
        Number of rows of each part. The last part may have fewer rows.
    format : str, optional
        Format of the file; see :func:`load_file`.
    **options : Any
        Options of :func:`load_file`.

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
    path, file_format = _check_file(path, format)
    read_options = ReadOptions(labels=labels, **{"max_bytes": file_format.max_bytes, **options})
    return _read_parts(path, file_format, read_options, rows)


def _read_parts(path: Path, file_format: Format, options: ReadOptions, rows: int) -> Iterator[Dataset]:
    """Yield the parts of a file, with its name in errors; nothing is read before the first part."""
    with name_file_in_errors(path):
        _check_options(file_format, options)
        for part in file_format.parts(path, options, rows):
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

    ARFF, CSV, Parquet and svmlight files of any size are read with bounded memory; other files are
    read whole. Labels are not read; an ARFF, CSV or Parquet file need not have any.

    Parameters
    ----------
    path : path
        The file.
    n_features : int or Columns
        Number of features; or the columns of a model, such as the `columns` of the
        :class:`Dataset` that it was fitted on. With columns, features are matched by name and
        returned in the model's order, the labels of the model are left out, and the numbers of a
        svmlight file start where those of the model's file did.
    labels : int, sequence of str, path of an XML file, or None
        Label columns; see :func:`load_file`.
    block_size : int, default=4096
        Largest number of rows of a block; 0 for one block of all rows.
    format : str, optional
        Format of the file; see :func:`load_file`.
    first_feature : {0, 1}, optional
        Lowest feature number in a svmlight file; see :func:`load_file`.
    ignore : str or sequence of str
        Columns that are not read, in addition to those that the model ignores.

    Yields
    ------
    X : array or csr_array, shape (n_rows, n_features)

    Raises
    ------
    DataFormatError
        The file cannot be read, has other features, or has no rows. In CSV and Parquet files, words
        other than true/false, yes/no and those of the model are refused, because their codes depend
        on the whole file.

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
    path, file_format = _check_file(path, format)
    columns = n_features if isinstance(n_features, Columns) else Columns(n_features)
    options = ReadOptions(
        labels, ignore=ignore, max_bytes=file_format.max_bytes, first_feature=first_feature, columns=columns
    )
    n_rows = 0
    with name_file_in_errors(path):
        _check_options(file_format, options)
        for X in file_format.features(path, options, columns, block_size or sys.maxsize):
            if X.shape[1] != columns.n_features:
                raise format_error(f"it has {X.shape[1]} features; there should be {columns.n_features}")
            n_rows += X.shape[0]
            yield X
        if not n_rows:
            raise format_error("it has no rows")


def save_file(dataset: Dataset, path: str | Path, *, format: str | None = None, labels_first: bool = False) -> None:
    """Write a data set to a file; the file appears under its name when it is complete.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    path : path
        The file. For an ARFF or CSV file, Mulan's XML file of the same name is written to the same folder.
    format : str, optional
        Format of the file; see :func:`load_file`.
    labels_first : bool, default=False
        Write the labels of an ARFF, CSV or Parquet file before the features.

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
    file_format = find_format(path, format)
    with name_file_in_errors(path):
        file_format.write(dataset, path, labels_first)


def convert(
    source: str | Path, target: str | Path, labels: LabelChoice = None, *, labels_first: bool = False, **options: Any
) -> Dataset:
    """Convert a file to another format; the endings of the two files determine the formats.

    Parameters
    ----------
    source, target : path
        The file to read, and the file to write.
    labels : int, sequence of str, path of an XML file, or None
        Label columns; see :func:`load_file`.
    labels_first : bool, default=False
        Write the labels before the features; see :func:`save_file`.
    **options : Any
        Options of :func:`load_file`.

    Returns
    -------
    Dataset
        The data set in the file.

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


def _check_options(file_format: Format, options: ReadOptions) -> None:
    """Refuse options for tables if the file has another format."""
    for name in ("labels", "ignore", "positive") if not file_format.has_columns else ():
        value = getattr(options, name)
        if value is not None and not (isinstance(value, tuple) and not value):
            what = f"this is a {file_format.name} file; got {name}={value!r}"
            raise format_error(f"{name}= goes with ARFF, CSV and Parquet files; {what}")


def find_format(path: Path, name: str | None = None) -> Format:
    """Return the format of a file: the one with this name, or the format of its ending."""
    ending = file_ending(path)
    file_format = FORMATS.get(name) if name else FORMAT_OF_ENDING.get(ending)
    if file_format is None:
        known = ", ".join(FORMAT_OF_ENDING)
        raise DataFormatError(
            f"{path}: the ending {ending!r} belongs to no format: rename the file, with one of {known}"
            f"; or, in Python, pass format=, one of {sorted(FORMATS)}"
        )
    if path.suffix == ".gz" and not file_format.may_be_packed:
        raise DataFormatError(f"{path}: {file_format.name} files are not read or written packed; unpack it first")
    return file_format


def file_ending(path: Path) -> str:
    """Return the ending of a file in lower case, without .gz; .X.npz or .Y.npz if the file is one of a pair.

    Examples
    --------
    >>> file_ending(Path("data.CSV.gz")), file_ending(Path("X.npz"))
    ('.csv', '.npz')
    >>> file_ending(Path("X.trn.npz")), file_ending(Path("train.Y.npz"))
    ('.X.npz', '.Y.npz')
    """
    *parts, last = path.name.split(".")
    letter = next((part for part in parts if part in ("X", "Y")), None)
    if letter and len(parts) > 1 and last.lower() == "npz":
        return f".{letter}.npz"
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _check_file(path: str | Path, format: str | None) -> tuple[Path, Format]:
    """Return the path and the format of a file; raise FileNotFoundError if it does not exist."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    if not path.is_file():
        others = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        meant = suggest(path.name, others)
        raise FileNotFoundError(f"no such file: {path}{'.' if meant else ''}{meant}")
    return path, find_format(path, format)
