"""`Shards`: a data set in several files, of which one is in memory at a time."""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from rbrl.datasets.dataset import Dataset, Part
from rbrl.datasets.files import ENDINGS, load_file
from rbrl.exceptions import DataFormatError


class Shards(Sequence):
    """Rows in several files with the same columns.

    Item i is the :class:`Part` ``(X, Y)`` of file i, read each time that it is asked for; only one file need fit in memory.
    Classifiers with an objective learn from it: ``RBRLClassifier().fit(shards)``.

    Parameters
    ----------
    paths : sequence of paths
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

    def __init__(self, paths, **options):
        self.paths = [Path(path) for path in paths]
        self.options = options
        missing = next((path for path in self.paths if not path.is_file()), None)
        if missing is not None:
            raise FileNotFoundError(f"no such file: {missing}, one of {len(self.paths)} shards")

    @property
    def names(self):
        """What to call each shard in a message."""
        return [str(path) for path in self.paths]

    def read(self, i):
        """Return shard i as a :class:`Dataset`, with the names of its columns."""
        return load_file(self.paths[i], **{"part": True, **self.options})

    def __len__(self):
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> "Shards": ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Shards(self.paths[index], **self.options)
        dataset: Dataset = self.read(index)
        return Part(dataset.X, dataset.Y)

    def __repr__(self):
        ends = f"{self.paths[0].name!r} to {self.paths[-1].name!r}" if self.paths else "none"
        return f"Shards({len(self)} files, {ends})"


def open_shards(where, labels=None, **options):
    """Open a data set that is in several files.

    Parameters
    ----------
    where : folder, pattern such as "folder/*.npz", or sequence of paths
        A folder stands for all data files in it. Files are taken in the order of their names.
    labels, **options
        As for :func:`load_file`. svmlight files that do not begin with their sizes need `n_features`, `n_labels`,
        `first_feature` and `first_label`. Words must be declared (ARFF) or coded as numbers: codes made from one file would
        not be those of another.

    Returns
    -------
    Shards

    Raises
    ------
    FileNotFoundError
        Nothing is there.
    """
    if not isinstance(where, str | Path):
        return Shards(where, labels=labels, **options)
    if Path(where).is_dir():
        found = [path for path in Path(where).iterdir() if _is_data(path)]
    else:
        found = [Path(name) for name in glob.glob(str(where), recursive=True) if Path(name).is_file()]
    if not found:
        raise FileNotFoundError(
            f"no data files: {where}; name a folder of them, a pattern such as 'folder/*.npz', or a list"
        )
    kinds = sorted({path.name.removesuffix(".gz").rpartition(".")[2] for path in found})
    if len(kinds) > 1 and options.get("format") is None:
        raise DataFormatError(f"{where}: shards are files of one format. Got the endings {', '.join(kinds)}.")
    return Shards(sorted(found), labels=labels, **options)


def _is_data(path):
    return path.is_file() and Path(path.name.removesuffix(".gz")).suffix.lower() in ENDINGS
