"""`load`: a data set of the catalogue by name, from the nearest place that has it, checked against its card."""

import difflib
import gzip
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import sparse

from rbrl._common.extras import import_extra
from rbrl._common.progress import Transfer
from rbrl.datasets.catalogue import CARDS, Card, canonical_order, content_hash, row_digests
from rbrl.datasets.dataset import Dataset, dense
from rbrl.datasets.files import load_file, save_file
from rbrl.datasets.formats import join_parts
from rbrl.exceptions import DataFormatError, DatasetNotFoundError

ENDINGS = (".npz", ".arff", ".arff.gz", ".mat")
PARTS = ("-train.arff", "-test.arff")
MAX_DOWNLOAD = 512 << 20
MAX_DESCRIPTION = 1 << 20


class DownloadError(DatasetNotFoundError):
    """A download failed; the message has the address and the reason."""


def load(name: str, data_home: str | Path | None = None, *, download: bool = True) -> Dataset:
    """Return a data set of the catalogue, its rows in canonical order, its content checked.

    Looked for in this order: `data_home`; for yeast, the wheel of river; the folder RBRL_DATA; the cache; the source's
    address.

    Parameters
    ----------
    name : str
        One of `CARDS`.
    data_home : path, optional
        Folder with NAME.npz, or NAME.arff and NAME.xml, or NAME-train.arff, NAME-test.arff and NAME.xml, or NAME.mat.
    download : bool, default=True
        Whether a set found nowhere else may be downloaded into the cache.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetNotFoundError
        The name is unknown, or no place has the set; the message says which file to put where.
    DataFormatError
        The file found is not the set that the card describes.

    Examples
    --------
    >>> from rbrl.datasets import load
    >>> load("yeast").Y.shape
    (2417, 14)
    """
    if name not in CARDS:
        close = difflib.get_close_matches(str(name), CARDS, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(sorted(CARDS))}."
        raise DatasetNotFoundError(f"no data set is called {name!r}. {hint}")
    card = CARDS[name]
    if data_home is None and card.name == "yeast" and (path := yeast_path()):
        return checked(read_yeast(path), card, path)
    folders = []
    for folder in _folders(data_home):
        folders.append(folder)
        files, xml = find_files(folder, card.name)
        if files:
            default_labels = card.address.labels if card.address else -card.n_labels
            return checked(read_files(files, xml, default_labels), card, files[0])
    reason = "it has no stable public address" if card.address is None else "downloads were not allowed"
    if card.address and download:
        try:
            dataset = checked(fetch(card), card, " and ".join(card.address.urls))
        except DownloadError as error:
            reason = str(error)
        else:
            cache_folder().mkdir(parents=True, exist_ok=True)
            save_file(dataset, cache_folder() / f"{card.name}.npz")
            return dataset
    raise DatasetNotFoundError(
        f"{card.name} is in none of {', '.join(map(str, folders))}, and {reason}. Put {card.name}.npz, or "
        f"{card.name}.arff with {card.name}.xml, or {card.name}.mat into {folders[0]}, or into a folder that you name "
        f"with data_home= or the environment variable RBRL_DATA. Source: {card.source}. {card.note}".rstrip()
    )


def _folders(data_home: str | Path | None) -> Iterator[Path]:
    """Those to look into. The cache in its turn: who has the file elsewhere needs nothing to find the cache with."""
    yield from (Path(folder) for folder in (data_home, os.environ.get("RBRL_DATA")) if folder)
    yield cache_folder()


def cache_folder() -> Path:
    """Return the folder that downloads are kept in: RBRL_CACHE, or the user's cache folder.

    Returns
    -------
    Path
    """
    if cache := os.environ.get("RBRL_CACHE"):
        return Path(cache)
    return Path(import_extra("pooch", "data", "Loading a data set that is in no folder you named").os_cache("rbrl"))


def checked(dataset: Dataset, card: Card, place: str | Path) -> Dataset:
    """Return `dataset` in canonical order with its card, or raise if it is not the set the card describes.

    X is dense or sparse as the card has it, whatever the file's form was.

    Parameters
    ----------
    dataset : Dataset
    card : Card
    place : str or Path
        Where it came from, for messages.

    Returns
    -------
    Dataset
    """
    found = (dataset.n_samples, dataset.n_features, dataset.n_labels)
    if found != card.sizes:
        sizes = f"(samples, features, labels) = {card.sizes}"
        raise DataFormatError(f"{place}: {card.name} has {sizes}; this file has {found}.")
    digests = row_digests(dataset.X, dataset.Y)
    sha256 = content_hash(digests, card.n_features, card.n_labels)
    if sha256 != card.sha256:
        raise DataFormatError(
            f"{place}: the sizes are those of {card.name} but the content is not: "
            f"its hash is {sha256}, the card says {card.sha256}."
        )
    ordered = dataset.reorder(canonical_order(digests))
    X = sparse.csr_array(ordered.X) if card.sparse else dense(ordered.X)
    return replace(ordered, X=X, name=card.name, description=card.description, card=card)


def find_files(folder: str | Path, name: str) -> tuple[list[Path], Path | None]:
    """Return (files, XML file or None) of a data set in `folder`.

    The files are one, or a training and a test part, or none. Case is ignored, and `-` stands for `_`.

    Parameters
    ----------
    folder : path
        It need not exist.
    name : str

    Returns
    -------
    files : list of Path
    xml : Path or None
    """
    present = {path.name.lower(): path for path in Path(folder).iterdir()} if Path(folder).is_dir() else {}
    for spelling in dict.fromkeys([name, name.replace("_", "-")]):
        xml = present.get(f"{spelling}.xml")
        for ending in ENDINGS:
            if spelling + ending in present:
                return [present[spelling + ending]], xml if "arff" in ending else None
        if all(spelling + part in present for part in PARTS):
            return [present[spelling + part] for part in PARTS], xml
    return [], None


def read_files(paths: Sequence[Path], labels: Path | None, default_labels: int) -> Dataset:
    """Read the files of a data set; two are its training and test parts, which become its split "source".

    Parameters
    ----------
    paths : sequence of Path
    labels : path of an XML file, or None
    default_labels : int
        Where the labels stand, if neither `labels` nor the files say.

    Returns
    -------
    Dataset
    """
    datasets = [load_file(path, labels, default_labels=default_labels) for path in paths]
    if len(datasets) == 1:
        return datasets[0]
    X, Y, splits = join_parts(*((part.X, part.Y) for part in datasets))
    return replace(datasets[0], X=X, Y=Y, name="data", splits=splits)


def yeast_path() -> Path | None:
    """Return the path of river's yeast file, or None where river is absent or has no such file.

    Returns
    -------
    Path or None
    """
    spec = find_spec("river")  # a top-level name: finds the folder, runs none of its code
    folders = spec.submodule_search_locations if spec else None
    paths = [Path(folder, "datasets", "yeast.csv.gz") for folder in folders or ()]
    return next((path for path in paths if path.is_file()), None)


def read_yeast(path: Path) -> Dataset:
    """Read river's yeast, a column per feature, then one per label: several times as fast as any CSV file is read.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Dataset
    """
    n_labels = CARDS["yeast"].n_labels
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            names = stream.readline().strip().split(",")
            values = np.loadtxt(stream, delimiter=",", ndmin=2)
    except (ValueError, OSError, EOFError) as error:
        raise DataFormatError(f"{path}: not the yeast file expected in river's wheel: {error}") from error
    return Dataset(values[:, :-n_labels], values[:, -n_labels:], names[:-n_labels], names[-n_labels:], name="yeast")


def fetch(card: Card, *, timeout: float = 30, deadline: float = 1800, max_bytes: int = MAX_DOWNLOAD) -> Dataset:
    """Download a data set and return it as read; nothing is kept. Terminals see a progress bar.

    Parameters
    ----------
    card : Card
        With an address.
    timeout : float
        Seconds to wait for the server's next bytes.
    deadline : float
        Seconds for each file as a whole.
    max_bytes : int
        Larger files are refused.

    Returns
    -------
    Dataset

    Raises
    ------
    DownloadError
    """
    assert card.address is not None
    limits = {"timeout": timeout, "deadline": deadline}
    urls = card.address.urls
    with TemporaryDirectory(prefix="rbrl-") as folder:
        if card.address.openml:
            description = _download(urls[0], Path(folder, "description.json"), MAX_DESCRIPTION, **limits)
            urls = (_file_url(urls[0], description),)
        paths = [Path(folder, f"{card.name}-{i}.arff") for i in range(len(urls))]
        for url, path in zip(urls, paths):
            _download(url, path, max_bytes, **limits)
        return read_files(paths, None, card.address.labels)


def _download(url: str, path: Path, max_bytes: int, *, timeout: float, deadline: float) -> Path:
    bar = _Bar(url, max_bytes, time.monotonic() + deadline)
    pooch, requests = (import_extra(name, "data", "Downloading a data set") for name in ("pooch", "requests"))
    downloader = pooch.HTTPDownloader(progressbar=bar, timeout=timeout, chunk_size=1 << 16)
    try:
        downloader(url, str(path), None)
    except (requests.RequestException, ValueError, OSError) as error:
        raise DownloadError(f"download from {url} failed: {error}") from error
    finally:
        bar.close()
    return path


def _file_url(url: str, description: Path) -> str:
    """Return the address of the file that OpenML's description names."""
    try:
        found = json.loads(description.read_bytes())["data_set_description"]["url"]
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadError(f"{url} did not answer with OpenML's description of a data set: {error!r}") from error
    if not str(found).startswith(("https://", "http://")):
        raise DownloadError(f"{url} names the file {found!r}, which is not a web address")
    return str(found)


class _Bar:
    """A progress bar as pooch takes it, which also stops downloads that are too large or too slow."""

    def __init__(self, url: str, max_bytes: int, end: float):
        self.url, self.max_bytes, self.end, self.done, self.total = url, max_bytes, end, 0, None  # pooch sets the total
        self._progress = Transfer(url.rpartition("/")[2])

    def update(self, n_bytes: int) -> None:
        """So many more bytes have come."""
        self.done += n_bytes
        if self.done > self.max_bytes:
            raise DownloadError(f"{self.url} is larger than {self.max_bytes} bytes")
        if time.monotonic() > self.end:
            raise DownloadError(f"{self.url} sent only {self.done} bytes within the time allowed")
        self._progress.update(self.done, self.total)

    def reset(self) -> None:
        """Count from the beginning."""
        self.done = 0

    def close(self) -> None:
        """Nothing more will come."""
        self._progress.close()
