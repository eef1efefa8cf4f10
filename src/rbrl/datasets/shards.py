"""`Shards`: a data set in several files, of which one is in memory at a time; `write_shards` makes them."""

import glob
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from scipy import sparse

from rbrl._common.checks import check_number, users_level
from rbrl._common.typing import Matrix
from rbrl.datasets.columns import Columns
from rbrl.datasets.dataset import Dataset, Part, stack_rows
from rbrl.datasets.files import ENDINGS, FORMATS, TABLES, format_of, load_file, load_parts
from rbrl.datasets.formats import LabelChoice, ReadOptions, bad, naming
from rbrl.exceptions import DataFormatError

ROWS_PER_SHARD = 50_000
# What a copy of a file's rows does not hold.
COPIED_FIELDS = (
    "feature_names", "label_names", "name", "categorical_index", "first_feature", "first_label", "ignored", "label_words",
)  # fmt: skip

Paths = str | Path | Iterable[str | Path]
Stamp = tuple[int, int]


class Shards(Sequence[Part]):
    """Rows in several files with the same columns.

    Item i is the :class:`Part` ``(X, Y)`` of file i, read each time that it is asked for; only one file need fit in memory.
    Classifiers with an objective learn from it: ``RBRLClassifier().fit(shards)``.

    The columns are those of the first file. In others they may stand in another order, and are put into that of the first
    by their names; a file with other names is refused.

    Parameters
    ----------
    paths : folder, file, pattern such as ``folder/*.npz``, or sequence of paths
        A folder stands for all data files in it, in the order of their names, as a pattern does.
    cache : bool or folder, default=True
        A fit reads every file many times, and parsing takes longer than a pass over its rows, for all formats but NPZ: the
        second time that a file is read, its rows are kept as NPZ in a folder that is removed with this object, in the
        system's folder for temporary files or in the one named here. Where there is no room for twice the file's rows, a
        warning says so. False: parse each time.
    **options
        As for :func:`load_file`.

    Examples
    --------
    >>> import tempfile
    >>> from rbrl.datasets import load, open_shards, write_shards
    >>> folder = tempfile.TemporaryDirectory()
    >>> shards = write_shards(load("yeast"), folder.name, rows_per_shard=1000)
    >>> shards
    Shards(3 files, 'part-00000.npz' to 'part-00002.npz')
    >>> [X.shape for X, Y in open_shards(folder.name)]
    [(1000, 103), (1000, 103), (417, 103)]
    >>> folder.cleanup()
    """

    def __init__(self, paths: Paths, *, cache: bool | str | Path = True, **options: Any):
        self.paths = _found(paths, options) if isinstance(paths, str | Path) else [Path(path) for path in paths]
        self.cache, self.options = cache, options
        self._first = next(iter(self.paths), Path())
        self._columns: Columns | None = None
        self._copies = _Copies(cache, options)
        missing = next((path for path in self.paths if not path.is_file()), None)
        if missing is not None:
            raise FileNotFoundError(f"no such file: {missing}, one of {len(self.paths)} shards")

    @property
    def names(self) -> list[str]:
        """What to call each shard in a message."""
        return [str(path) for path in self.paths]

    def read(self, i: int) -> Dataset:
        """Return shard i as a :class:`Dataset`, with the names of its columns.

        Parameters
        ----------
        i : int

        Returns
        -------
        Dataset

        Examples
        --------
        >>> import tempfile
        >>> from rbrl.datasets import load, write_shards
        >>> folder = tempfile.TemporaryDirectory()
        >>> write_shards(load("yeast"), folder.name, rows_per_shard=1000).read(2).n_samples
        417
        >>> folder.cleanup()
        """
        path = self.paths[i]
        dataset = self._copies.get(path)
        if dataset is None:
            dataset = self._parsed(path)
            self._copies.offer(path, dataset)
        return dataset

    def _parsed(self, path: Path) -> Dataset:
        options = {"part": True, **self.options}
        if self._columns is None:
            first = load_file(self._first, **options)
            self._columns = first.columns
            if path == self._first:
                return first
        labels, owner = self._columns.label_names, f"{self._first.name}, the first shard, has"
        if format_of(path, options.get("format")) in TABLES:
            # The meaning of the words of a label may show in the first file alone.
            options["columns"] = Columns(label_words=self._columns.label_words)
            options["labels"] = options.get("labels") if labels is None else list(labels)
        dataset = load_file(path, **options)
        with naming(path):
            if dataset.n_labels != self._columns.n_labels:
                raise bad(f"it has {dataset.n_labels} labels; {owner} {self._columns.n_labels}")
            return dataset.matching(self._columns, owner)

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> "Shards": ...
    def __getitem__(self, index: int | slice) -> "Part | Shards":
        if isinstance(index, slice):
            some = Shards(self.paths[index], cache=self.cache, **self.options)
            some._first, some._columns = self._first, self._columns
            return some
        dataset = self.read(index)
        return Part(dataset.X, dataset.Y)

    def __repr__(self) -> str:
        ends = f"{self.paths[0].name!r} to {self.paths[-1].name!r}" if self.paths else "none"
        return f"Shards({len(self)} files, {ends})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_copies": _Copies(self.cache, self.options)}  # another process makes its own


class _Copies:
    """Copies, as NPZ, of files that are slow to parse, from their second reading on."""

    def __init__(self, where: bool | str | Path, options: dict[str, Any]):
        self.where, self.options = where, options
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        self.seen: dict[Path, tuple[Stamp, Path | None, dict[str, Any]]] = {}  # its copy, and what that does not hold

    def get(self, path: Path) -> Dataset | None:
        """Return the data set of a file of which there is a copy, and which has not changed since, or None."""
        stamp, copy, fields = self.seen.get(path, (None, None, {}))
        if copy is None or stamp != _stamp(path):
            return None
        options = ReadOptions(max_bytes=sys.maxsize, sparse_labels=self.options.get("sparse_labels", False))
        return replace(FORMATS["npz"].read(copy, options), **fields)

    def offer(self, path: Path, dataset: Dataset) -> None:
        """Take note of a file that was parsed; keep its rows if it was before."""
        if not self.where or format_of(path, self.options.get("format")) == "npz":
            return
        stamp = _stamp(path)
        known = path in self.seen and self.seen[path][0] == stamp
        copy = self._written(path, dataset) if known else None
        self.seen[path] = stamp, copy, {key: getattr(dataset, key) for key in COPIED_FIELDS}

    def _written(self, path: Path, dataset: Dataset) -> Path | None:
        if self.folder is None:
            parent = None if self.where is True else str(self.where)
            self.folder = tempfile.TemporaryDirectory(prefix="rbrl-shards-", dir=parent)
        copy = Path(self.folder.name, f"{len(self.seen)}-{path.name}.npz")
        room = shutil.disk_usage(self.folder.name).free
        try:
            if room < 2 * (_n_bytes(dataset.X) + _n_bytes(dataset.Y)):
                raise OSError(f"{room} bytes are free")
            FORMATS["npz"].write(Dataset(dataset.X, dataset.Y), copy, compressed=False)
        except OSError as error:
            warnings.warn(
                f"There is no room in {self.folder.name} for the rows of {path} ({error}), so that they are parsed in every "
                "pass, which may take several times as long: name another folder with cache=, or convert the files once "
                "with rbrl.datasets.write_shards(shards, folder).",
                stacklevel=users_level(),
            )
            self.where = False
            return None
        return copy


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _n_bytes(A: Any) -> int:
    return sum(array.nbytes for array in ((A.data, A.indices, A.indptr) if sparse.issparse(A) else (A,)))


def open_shards(where: Paths, labels: LabelChoice = None, **options: Any) -> Shards:
    """Open a data set that is in several files.

    Parameters
    ----------
    where : folder, file, pattern such as ``folder/*.npz``, or sequence of paths
        As for :class:`Shards`.
    labels : int, sequence of str, path of an XML file, or None
        As for :func:`load_file`.
    **options : Any
        As for :class:`Shards` and :func:`load_file`. svmlight files that do not begin with their sizes need `n_features`,
        `n_labels`, `first_feature` and `first_label`. Words must be declared (ARFF) or coded as numbers: codes made from one
        file would not be those of another.

    Returns
    -------
    Shards

    Raises
    ------
    FileNotFoundError
        Nothing is there.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rbrl.datasets import open_shards, write_shards
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = write_shards((np.eye(5), np.eye(5)), folder.name, rows_per_shard=2)
    >>> len(open_shards(f"{folder.name}/*.npz"))
    3
    >>> folder.cleanup()
    """
    return Shards(where, labels=labels, **options)


def _found(where: str | Path, options: dict[str, Any]) -> list[Path]:
    if Path(where).is_dir():
        found = [path for path in Path(where).iterdir() if _is_data(path)]
    else:
        names = [where] if Path(where).is_file() else glob.glob(str(where), recursive=True)
        found = [Path(name) for name in names if Path(name).is_file()]
    if not found:
        raise FileNotFoundError(
            f"no data files: {where}; name a folder of them, a pattern such as 'folder/*.npz', or a list"
        )
    kinds = sorted({path.name.removesuffix(".gz").rpartition(".")[2] for path in found})
    if len(kinds) > 1 and options.get("format") is None:
        raise DataFormatError(f"{where}: shards are files of one format. Got the endings {', '.join(kinds)}.")
    return sorted(found)


def _is_data(path: Path) -> bool:
    return path.is_file() and Path(path.name.removesuffix(".gz")).suffix.lower() in ENDINGS


def write_shards(
    source: Dataset | tuple[Matrix, Matrix] | str | Path | Shards | Iterable[tuple[Matrix, Matrix]],
    folder: str | Path,
    rows_per_shard: int = ROWS_PER_SHARD,
    labels: LabelChoice = None,
    **options: Any,
) -> Shards:
    """Write rows as NPZ files part-00000.npz, part-00001.npz, …, uncompressed, with bounded memory.

    Parameters
    ----------
    source : Dataset, (X, Y), path of a data file, Shards, or iterable of (X, Y)
        CSV, svmlight, ARFF and Parquet files are read block by block; NPZ and MATLAB files whole. Of an iterable, one part
        and one shard are in memory at a time.
    folder : path
        Made if it is not there; it must not hold shards of other data.
    rows_per_shard : int, default=50000
        The last shard may have fewer.
    labels : int, sequence of str, path of an XML file, or None
        Of a file: as for :func:`load_file`.
    **options : Any
        Of a file: as for :func:`load_file`.

    Returns
    -------
    Shards

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rbrl.datasets import write_shards
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_shards(((np.eye(2), np.eye(2)) for _ in range(4)), folder.name, rows_per_shard=3)
    Shards(3 files, 'part-00000.npz' to 'part-00002.npz')
    >>> folder.cleanup()
    """
    check_number("write_shards", "rows_per_shard", rows_per_shard, low=1, integer=True)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    present = next(iter(sorted(folder.glob("part-*.npz"))), None)
    if present is not None:
        raise FileExistsError(
            f"{folder} holds shards already, such as {present.name}: name another folder, or empty it"
        )
    paths: list[Path] = []
    for dataset in _regrouped(_parts(source, rows_per_shard, labels, options), rows_per_shard):
        paths.append(folder / f"part-{len(paths):05d}.npz")
        FORMATS["npz"].write(dataset, paths[-1], compressed=False)
    if not paths:
        raise ValueError(f"There are no rows to write to {folder}: the source is empty.")
    return Shards(paths)


def _parts(source: Any, rows: int, labels: LabelChoice, options: dict[str, Any]) -> Iterator[Dataset]:
    if isinstance(source, str | Path):
        yield from load_parts(source, labels, rows=rows, **options)
    elif isinstance(source, Shards):
        yield from (source.read(i) for i in range(len(source)))
    elif isinstance(source, Dataset):
        yield source
    elif isinstance(source, tuple) and len(source) == 2 and getattr(source[0], "ndim", 0) == 2:
        yield Dataset(*source)
    else:
        yield from (Dataset(X, Y) for X, Y in source)


def _regrouped(parts: Iterable[Dataset], rows: int) -> Iterator[Dataset]:
    """Yield data sets of `rows` rows each, the last one perhaps smaller, with the names that the columns have."""
    kept: list[Part] = []
    n_kept = 0
    for part in parts:
        start, named = 0, part
        while start < part.n_samples:
            stop = min(part.n_samples, start + rows - n_kept)
            kept.append(part.take(slice(start, stop)))
            n_kept, start = n_kept + stop - start, stop
            if n_kept == rows:
                yield _stacked(kept, named)
                kept, n_kept = [], 0
    if kept:
        yield _stacked(kept, named)


def _stacked(parts: Sequence[Part], named: Dataset) -> Dataset:
    X, Y = map(stack_rows, zip(*parts))
    return Dataset(X, Y, named.columns.feature_names, named.columns.label_names)
