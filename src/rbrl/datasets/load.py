"""`load`: find a data set of the catalogue in a folder or download it, and check its content."""

import difflib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scipy import sparse

from rbrl._common.environment import import_extra
from rbrl._common.frames import as_dense
from rbrl._common.progress import bar, display_for
from rbrl.datasets.catalogue import CARDS, Card, canonical_order, content_hash, row_digests
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.files import load_file, save_file
from rbrl.datasets.formats.table import join_parts
from rbrl.exceptions import DataFormatError, DatasetNotFoundError

WHOLE_SET_ENDINGS = (".npz", ".arff", ".arff.gz", ".mat")
PART_ENDINGS = ("-train.arff", "-test.arff")
if TYPE_CHECKING:
    from rich.table import Table

MAX_DOWNLOAD_BYTES = 512 << 20
MAX_DESCRIPTION_BYTES = 1 << 20
DOWNLOAD_BLOCK_BYTES = 1 << 16


class DownloadError(DatasetNotFoundError):
    """Error of a download; the message has the address and the reason."""


def load(name: str, data_home: str | Path | None = None, *, download: bool = True) -> Dataset:
    """Load a data set of the catalogue, check its content, and put its rows into canonical order.

    The data set is searched in `data_home`; for yeast, in the installed package river; in the folder
    RBRL_DATA; in the cache; and at its web address.

    Parameters
    ----------
    name : str
        Name of the data set, a key of `CARDS`.
    data_home : path, optional
        Folder with NAME.npz, or NAME.arff and NAME.xml, or NAME-train.arff, NAME-test.arff and
        NAME.xml, or NAME.mat.
    download : bool, default=True
        Allow a download into the cache if no folder has the data set.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetNotFoundError
        The name is unknown, or the data set is not found. The message says which file to put where.
    DataFormatError
        The content of the file is not that of the data set.

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
    if data_home is None and name == "yeast" and (path := find_yeast()):
        return check_content(load_file(path, -card.n_labels), card, path)
    folders = []
    for folder in _search_folders(data_home):
        folders.append(folder)
        files, xml = find_files(folder, card.name)
        if files:
            default_labels = card.address.labels if card.address else -card.n_labels
            return check_content(read_files(files, xml, default_labels), card, files[0])
    reason = "it has no stable public address" if card.address is None else "downloads were not allowed"
    if card.address and download:
        try:
            dataset = check_content(fetch(card), card, " and ".join(card.address.urls))
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


def _search_folders(data_home: str | Path | None) -> Iterator[Path]:
    """Yield the folders to search; the cache comes last, since its location needs the package platformdirs."""
    yield from (Path(folder) for folder in (data_home, os.environ.get("RBRL_DATA")) if folder)
    yield cache_folder()


def cache_folder() -> Path:
    """Return the folder for downloads: RBRL_CACHE, or the user's cache folder."""
    if cache := os.environ.get("RBRL_CACHE"):
        return Path(cache)
    platformdirs = import_extra("platformdirs", "data", "Loading a data set that is in no folder you named")
    return Path(platformdirs.user_cache_dir("rbrl"))


def check_content(dataset: Dataset, card: Card, place: str | Path) -> Dataset:
    """Return `dataset` in canonical order with its card; raise an error if the card has other content.

    X becomes dense or sparse as the card says. `place` is the file or address, for messages.
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
    X = sparse.csr_array(ordered.X) if card.sparse else as_dense(ordered.X)
    return replace(ordered, X=X, name=card.name, description=card.description, card=card)


def find_files(folder: str | Path, name: str) -> tuple[list[Path], Path | None]:
    """Return the files of a data set in a folder, and the XML file with its labels, or None.

    There is one file, or a training and a test part, or no file. Upper and lower case do not matter,
    nor `-` and `_`. The folder need not exist.
    """
    present = {path.name.lower(): path for path in Path(folder).iterdir()} if Path(folder).is_dir() else {}
    for spelling in dict.fromkeys([name, name.replace("_", "-")]):
        xml = present.get(f"{spelling}.xml")
        for ending in WHOLE_SET_ENDINGS:
            if spelling + ending in present:
                return [present[spelling + ending]], xml if "arff" in ending else None
        if all(spelling + part in present for part in PART_ENDINGS):
            return [present[spelling + part] for part in PART_ENDINGS], xml
    return [], None


def read_files(paths: Sequence[Path], labels: Path | None, default_labels: int) -> Dataset:
    """Read the files of a data set; a training and a test part become the split "source".

    `labels` is an XML file. `default_labels` is used if neither it nor the files declare labels.
    """
    datasets = [load_file(path, labels, default_labels=default_labels) for path in paths]
    if len(datasets) == 1:
        return datasets[0]
    X, Y, splits = join_parts(*((part.X, part.Y) for part in datasets))
    return replace(datasets[0], X=X, Y=Y, name="data", splits=splits)


def find_yeast() -> Path | None:
    """Return the path of the yeast file in the package river, or None if there is none."""
    spec = find_spec("river")  # does not import the package
    folders = spec.submodule_search_locations if spec else None
    paths = [Path(folder, "datasets", "yeast.csv.gz") for folder in folders or ()]
    return next((path for path in paths if path.is_file()), None)


def fetch(card: Card, *, timeout: float = 30, deadline: float = 1800, max_bytes: int = MAX_DOWNLOAD_BYTES) -> Dataset:
    """Download a data set and return it; no file is kept. A terminal shows a progress bar.

    Parameters
    ----------
    card : Card
        Card with an address.
    timeout : float
        Longest time without new bytes, in seconds.
    deadline : float
        Longest time for a file, in seconds.
    max_bytes : int
        Largest size of a file.
    """
    assert card.address is not None
    urls = card.address.urls
    with TemporaryDirectory(prefix="rbrl-") as folder:
        if card.address.openml:
            description = Path(folder, "description.json")
            _download(urls[0], description, timeout, deadline, MAX_DESCRIPTION_BYTES)
            urls = (_parse_description(urls[0], description),)
        paths = [Path(folder, f"{card.name}-{i}.arff") for i in range(len(urls))]
        for url, path in zip(urls, paths):
            _download(url, path, timeout, deadline, max_bytes)
        return read_files(paths, None, card.address.labels)


def _download(url: str, path: Path, timeout: float, deadline: float, max_bytes: int) -> None:
    requests = import_extra("requests", "data", "Downloading a data set")
    end = time.monotonic() + deadline
    display = display_for(verbose=False)
    n_bytes = 0
    n_expected = 0

    def draw() -> "Table":
        return bar(n_bytes, max(n_expected, n_bytes), path.name)

    try:
        with requests.get(url, stream=True, timeout=timeout) as response, path.open("wb") as file:
            response.raise_for_status()
            n_expected = int(response.headers.get("Content-Length", 0))
            for block in response.iter_content(DOWNLOAD_BLOCK_BYTES):
                n_bytes += file.write(block)
                if n_bytes > max_bytes:
                    raise DownloadError(f"{url} is larger than {max_bytes} bytes")
                if time.monotonic() > end:
                    raise DownloadError(f"{url} sent only {n_bytes} bytes within the time allowed")
                display.view(draw)
    except (requests.RequestException, ValueError, OSError) as error:
        raise DownloadError(f"download from {url} failed: {error}") from error
    finally:
        display.close()


def _parse_description(url: str, description: Path) -> str:
    """Return the address of the data file in OpenML's description."""
    try:
        found = json.loads(description.read_bytes())["data_set_description"]["url"]
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadError(f"{url} did not answer with OpenML's description of a data set: {error!r}") from error
    if not str(found).startswith(("https://", "http://")):
        raise DownloadError(f"{url} names the file {found!r}, which is not a web address")
    return str(found)
