"""`Shards`: a data set in several files, of which one is in memory at a time; `write_shards` writes them."""

import glob
import json
import os
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, overload

from scipy import sparse

from rbrl._common.checks import check_number, users_level
from rbrl._common.environment import write_text_atomically
from rbrl._common.typing import Matrix
from rbrl.datasets.columns import Columns
from rbrl.datasets.dataset import Dataset, Part, stack_rows
from rbrl.datasets.files import FORMAT_OF_ENDING, file_ending, find_format, load_file, load_parts
from rbrl.datasets.formats import LabelChoice, format_error, name_file_in_errors
from rbrl.datasets.formats.arrays import Npz
from rbrl.exceptions import DataFormatError

Paths = str | Path | Iterable[str | Path]
# File that `write_shards` adds to a folder: the number of rows and of bytes of each shard.
MANIFEST = "shards.json"


class Shards(Sequence[Part]):
    """A data set in several files with the same columns.

    Item i is the pair ``(X, Y)`` of file i. It is read on every access, so that only one file must
    fit into memory. Classifiers with an objective can be fitted: ``RBRLClassifier().fit(shards)``.

    The first file determines the columns. Columns of other files are matched by name and may have
    another order; a file with other names is refused.

    Parameters
    ----------
    paths : folder, file, pattern such as ``folder/*.npz``, or sequence of paths
        The files. A folder or a pattern stands for all its data files, sorted by name. If
        :func:`write_shards` wrote them, they are compared with its manifest, ``shards.json``: a
        file that is missing or has another size is refused.
    cache : bool or folder, default=True
        Keep a copy of a file that is read a second time, unless it is an NPZ file, since other
        formats are slow to parse. Copies are in a temporary folder, inside the folder given here if there is one,
        and are removed with this object. A warning says if the disk is too full. False: no copies.
    **options
        Options of :func:`load_file`.

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
        if isinstance(paths, str | Path):
            self.paths = _find_files(paths, options)
        else:
            # A list of all files of a folder contains the manifest, which is no shard.
            self.paths = [path for path in map(Path, paths) if path.name != MANIFEST]
        self.cache = cache
        self.options = options
        self._first = next(iter(self.paths), Path())
        self._columns: Columns | None = None
        self._copies = _Copies(cache)
        for path in self.paths:
            if not path.is_file():
                raise FileNotFoundError(f"no such file: {path}, one of {len(self.paths)} shards")

    def read(self, i: int) -> Dataset:
        """Read shard i as a :class:`Dataset`, with the names of its columns.

        Parameters
        ----------
        i : int
            Number of the shard, from 0.

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
        if find_format(path, self.options.get("format")).name == "npz":
            return self._parse(path)
        dataset = self._copies.get(path)
        if dataset is None:
            dataset = self._parse(path)
            self._copies.add(path, dataset)
        return dataset

    def _parse(self, path: Path) -> Dataset:
        """Return the data set of one file, with its columns in the order of the first file.

        The first file is read, too, if its columns are not known yet.
        """
        options = {"part": True, **self.options}
        if self._columns is None:
            first = load_file(self._first, **options)
            self._columns = first.columns
            if path == self._first:
                return first
        owner = f"{self._first.name}, the first shard, has"
        if find_format(path, options.get("format")).has_columns:
            # Only the first file may show the meaning of the words of a label.
            options["columns"] = Columns(label_words=self._columns.label_words)
            if self._columns.label_names is not None:
                options["labels"] = list(self._columns.label_names)
        dataset = load_file(path, **options)
        with name_file_in_errors(path):
            columns = dataset.columns
            if columns.n_labels != self._columns.n_labels:
                raise format_error(f"it has {columns.n_labels} labels; {owner} {self._columns.n_labels}")
            return dataset if columns == self._columns else dataset.matching(self._columns, owner)

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> "Shards": ...
    def __getitem__(self, index: int | slice) -> "Part | Shards":
        """Return the rows of a shard, or shards of some files with the columns of the first one."""
        if isinstance(index, slice):
            part = Shards(self.paths[index], cache=self.cache, **self.options)
            part._first = self._first
            part._columns = self._columns
            return part
        dataset = self.read(index)
        return Part(dataset.X, dataset.Y)

    def __repr__(self) -> str:
        ends = f"{self.paths[0].name!r} to {self.paths[-1].name!r}" if self.paths else "none"
        return f"Shards({len(self)} files, {ends})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the copies, because another process makes its own."""
        return {**self.__dict__, "_copies": _Copies(self.cache)}  # another process makes its own copies


class _Copies:
    """Copies of files that are slow to parse, made when a file is read for the second time."""

    def __init__(self, cache: bool | str | Path):
        self.cache = cache
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        # For each file that was read: its size, the time of its last change, and its copy.
        self.seen: dict[Path, tuple[tuple[int, int], Path | None]] = {}

    def get(self, path: Path) -> Dataset | None:
        """Return the data set of a file that has a copy and has not changed since, or None."""
        stamp, copy = self.seen.get(path, (None, None))
        if copy is None or stamp != file_stamp(path):
            return None
        with copy.open("rb") as stream:
            return pickle.load(stream)

    def add(self, path: Path, dataset: Dataset) -> None:
        """Record that a file was parsed; make a copy if it was parsed before."""
        if not self.cache:
            return
        stamp = file_stamp(path)
        was_seen = path in self.seen and self.seen[path][0] == stamp
        self.seen[path] = (stamp, self._write(path, dataset) if was_seen else None)

    def _write(self, path: Path, dataset: Dataset) -> Path | None:
        """Return the path of a new copy; None, with a warning, if there is no room for it.

        After that no further copies are made.
        """
        if self.folder is None:
            parent = None if self.cache is True else str(self.cache)
            self.folder = tempfile.TemporaryDirectory(prefix="rbrl-shards-", dir=parent)
        copy = Path(self.folder.name, f"{len(self.seen)}-{path.name}.pickle")
        n_free = shutil.disk_usage(self.folder.name).free
        try:
            if n_free < 2 * (_count_bytes(dataset.X) + _count_bytes(dataset.Y)):
                raise OSError(f"{n_free} bytes are free")
            with copy.open("wb") as stream:
                pickle.dump(dataset, stream)
        except OSError as error:
            warnings.warn(
                f"There is no room in {self.folder.name} for the rows of {path} ({error}). The file will be parsed in "
                "every pass, which may take several times as long. Name another folder with cache=, or convert the files "
                "once with rbrl.datasets.write_shards(shards, folder).",
                stacklevel=users_level(),
            )
            self.cache = False
            return None
        return copy


def file_stamp(path: Path) -> tuple[int, int]:
    """Return the size of a file in bytes and the time of its last change in nanoseconds."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _count_bytes(A: Any) -> int:
    """Return the number of bytes of a dense or CSR matrix."""
    return sum(array.nbytes for array in ((A.data, A.indices, A.indptr) if sparse.issparse(A) else (A,)))


def open_shards(where: Paths, labels: LabelChoice = None, **options: Any) -> Shards:
    """Open a data set in several files.

    Parameters
    ----------
    where : folder, file, pattern such as ``folder/*.npz``, or sequence of paths
        The files; see :class:`Shards`.
    labels : int, sequence of str, path of an XML file, or None
        Label columns; see :func:`load_file`.
    **options : Any
        Options of :class:`Shards` and :func:`load_file`. svmlight files that do not begin with
        their sizes need `n_features`, `n_labels`, `first_feature` and `first_label`. Features must
        be numbers, or words that an ARFF file declares, since codes of words would differ
        between files.

    Returns
    -------
    Shards

    Raises
    ------
    FileNotFoundError
        There are no such files.

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


def _find_files(where: str | Path, options: dict[str, Any]) -> list[Path]:
    """Return the files of a folder, a pattern or a path, sorted by name.

    In a folder, files whose ending belongs to no format are left out. All must have one format.
    """
    if Path(where).is_dir():
        found = [path for path in Path(where).iterdir() if path.is_file() and file_ending(path) in FORMAT_OF_ENDING]
    else:
        names = [where] if Path(where).is_file() else glob.glob(str(where), recursive=True)
        found = [Path(name) for name in names if Path(name).is_file() and Path(name).name != MANIFEST]
    if not found:
        raise FileNotFoundError(
            f"no data files: {where}; name a folder of them, a pattern such as 'folder/*.npz', or a list"
        )
    endings = sorted({file_ending(path) for path in found})
    if len(endings) > 1 and options.get("format") is None:
        raise DataFormatError(f"{where}: shards are files of one format. Got the endings {', '.join(endings)}.")
    for folder in sorted({path.parent for path in found}):
        _check_manifest(folder, where, found)
    return sorted(found)


def _check_manifest(folder: Path, where: str | Path, found: Sequence[Path]) -> None:
    """Compare files with the manifest of their folder, if it has one."""
    path = folder / MANIFEST
    if not path.is_file():
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        sizes = {str(name): int(one["bytes"]) for name, one in content["files"].items()}
        is_finished = bool(content["finished"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataFormatError(
            f"{path}: not a manifest of shards ({type(error).__name__}: {error}); remove it to read the files unchecked"
        ) from error
    if not is_finished:
        raise DataFormatError(
            f"{folder}: write_shards was stopped before the last shard: write the shards again, into another folder"
        )
    for name, size in sizes.items():
        shard = folder / name
        is_asked = shard in found or Path(where).is_dir() or fnmatch(*map(os.path.normpath, (shard, where)))
        if is_asked and not shard.is_file():
            raise FileNotFoundError(
                f"no such file: {shard}, one of the {len(sizes)} shards of {path}: copy it there, or write the shards again"
            )
        if is_asked and shard.stat().st_size != size:
            raise DataFormatError(
                f"{shard}: it has {shard.stat().st_size} bytes, and {size} according to {path}: copy it there again; if it "
                "was changed on purpose, remove the manifest"
            )


def _write_manifest(paths: Sequence[Path], rows: Sequence[int], folder: Path, finished: bool) -> None:
    """Write the manifest of a folder; it says if shards will follow."""
    files = {path.name: {"rows": n, "bytes": path.stat().st_size} for path, n in zip(paths, rows)}
    content = {"finished": finished, "n_shards": len(paths), "files": files}
    write_text_atomically(folder / MANIFEST, json.dumps(content, indent=1) + "\n")


def write_shards(
    source: Dataset | tuple[Matrix, Matrix] | str | Path | Shards | Iterable[tuple[Matrix, Matrix]],
    folder: str | Path,
    rows_per_shard: int = 50_000,
    labels: LabelChoice = None,
    **options: Any,
) -> Shards:
    """Write rows as uncompressed NPZ files part-00000.npz, part-00001.npz, …, with bounded memory.

    The manifest ``shards.json`` says how many shards there are, and how many rows and bytes each
    has, so that a lost or incomplete file is found when the folder is opened.

    Parameters
    ----------
    source : Dataset, (X, Y), path of a data file, Shards, or iterable of (X, Y)
        Source of the rows. CSV, svmlight, ARFF and Parquet files are read in blocks; NPZ and
        MATLAB files are read whole. One item of an iterable and one shard are in memory at a time.
    folder : path
        Folder for the shards. It is created if necessary, and must not contain other shards.
    rows_per_shard : int, default=50000
        Number of rows of each shard. The last shard may have fewer rows.
    labels : int, sequence of str, path of an XML file, or None
        Label columns of a file; see :func:`load_file`.
    **options : Any
        Options of :func:`load_file` for a file.

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
    for path in sorted(folder.glob("part-*.npz")):
        raise FileExistsError(f"{folder} holds shards already, such as {path.name}: name another folder, or empty it")
    paths: list[Path] = []
    n_rows: list[int] = []
    _write_manifest(paths, n_rows, folder, finished=False)
    for dataset in _regroup(_read_source(source, rows_per_shard, labels, options), rows_per_shard):
        paths.append(folder / f"part-{len(paths):05d}.npz")
        Npz().write(dataset, paths[-1], compressed=False)
        n_rows.append(dataset.n_samples)
    if not paths:
        (folder / MANIFEST).unlink()
        raise ValueError(f"There are no rows to write to {folder}: the source is empty.")
    _write_manifest(paths, n_rows, folder, finished=True)
    return Shards(paths)


def _read_source(source: Any, rows: int, labels: LabelChoice, options: dict[str, Any]) -> Iterator[Dataset]:
    """Yield the rows of any source of :func:`write_shards`; a file in parts of `rows` rows."""
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


def _regroup(parts: Iterable[Dataset], rows: int) -> Iterator[Dataset]:
    """Yield data sets of `rows` rows, the last one perhaps smaller, with the names of the last part.

    At most `rows` rows are kept, in the order of the parts.
    """
    kept: list[Part] = []
    n_kept = 0
    for part in parts:
        start = 0
        while start < part.n_samples:
            stop = min(part.n_samples, start + rows - n_kept)
            kept.append(part.take(slice(start, stop)))
            n_kept += stop - start
            start = stop
            if n_kept == rows:
                yield _stack(kept, part.columns)
                kept = []
                n_kept = 0
    if kept:
        yield _stack(kept, part.columns)


def _stack(parts: Sequence[Part], columns: Columns) -> Dataset:
    """Return parts of rows as one data set with these columns."""
    X, Y = map(stack_rows, zip(*parts))
    return Dataset(X, Y, columns.feature_names, columns.label_names)
