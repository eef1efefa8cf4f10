"""`load_file`, `save_file`, `convert`: data files of any format we know."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats.arff import read_arff
from rbrl.datasets.formats.arff_header import write_arff
from rbrl.datasets.formats.csv import read_csv, write_csv
from rbrl.datasets.formats.mat import read_mat, write_mat
from rbrl.datasets.formats.npz import read_npz, write_npz
from rbrl.datasets.formats.parquet import read_parquet, write_parquet
from rbrl.datasets.formats.svmlight import read_svmlight, write_svmlight
from rbrl.datasets.formats.text import MAX_BYTES, memory_said
from rbrl.datasets.names import Columns
from rbrl.exceptions import DataFormatError


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
    """

    labels: int | Sequence[str] | str | None = None
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

    def __post_init__(self):
        if self.nominal not in ("codes", "onehot"):
            raise ValueError(f"nominal must be 'codes' or 'onehot'; got {self.nominal!r}.")
        for name in ("first_feature", "first_label"):
            if getattr(self, name) not in (None, 0, 1):
                raise ValueError(f"{name} must be 0, 1 or None; got {getattr(self, name)!r}.")

    @property
    def known_labels(self):
        """The names of the labels of the model that the file is for, or None."""
        return None if self.columns is None else self.columns.label_names


FORMATS = {
    "arff": (read_arff, write_arff),
    "csv": (read_csv, write_csv),
    "mat": (read_mat, write_mat),
    "npz": (read_npz, write_npz),
    "parquet": (read_parquet, write_parquet),
    "svmlight": (read_svmlight, write_svmlight),
}
ENDINGS = {f".{name}": name for name in FORMATS} | {
    ".tsv": "csv",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "svmlight",
}
PACKED = {"arff", "csv", "svmlight"}  # formats that may end in .gz
SIDED = {"arff", "csv", "parquet"}  # formats in which labels stand before or after the features


def load_file(path, labels=None, *, format=None, **options):
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
    nominal : {"codes", "onehot"}, default="codes"
        A nominal feature with more than two values is one column of codes, listed in `categorical_index`, or one 0/1
        column per value. Values that are numbers are their own codes; other words are numbered from 0.
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

    Returns
    -------
    Dataset

    Raises
    ------
    DataFormatError
        The file cannot be read; the message has file, line and reason.
    MemoryError
        The file may be good; there is not enough memory for it.
    """
    path, options = Path(path), ReadOptions(labels=labels, **options)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    read, _ = FORMATS[format_of(path, format)]
    try:
        with memory_said(path):
            dataset = read(path, options)
        return dataset if options.columns is None else dataset.matching(options.columns)
    except DataFormatError as error:
        if str(error).startswith(str(path)):
            raise
        raise DataFormatError(f"{path}: {error}") from error


def save_file(dataset: Dataset, path, *, format=None, labels_first=False):
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
    """
    path = Path(path)
    name = format_of(path, format)
    options = {"labels_first": labels_first} if name in SIDED else {}
    FORMATS[name][1](dataset, path, **options)


def convert(source, target, labels=None, *, labels_first=False, **options):
    """Read the file `source` and write it as `target`, each in the format of its ending; options as for `load_file`.

    Returns
    -------
    Dataset
        What was read.
    """
    dataset = load_file(source, labels, **options)
    save_file(dataset, target, labels_first=labels_first)
    return dataset


def format_of(path, name=None):
    """Return the format of a file: `name`, or that of its ending."""
    packed = path.suffix == ".gz"
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    name = name or ENDINGS.get(ending)
    if name not in FORMATS:
        raise DataFormatError(f"{path}: the ending {ending!r} tells no format; pass format=, one of {sorted(FORMATS)}")
    if packed and name not in PACKED:
        raise DataFormatError(f"{path}: {name} files are not read or written packed; unpack it first")
    return name
