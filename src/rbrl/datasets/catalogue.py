"""The catalogue: a card for each of the paper's ten data sets, and for others that are often used.

The cards are in `cards.toml`. `load` finds a data set in a folder or downloads it, and checks its
content with the content hash on the card.
"""

import json
import os
import time
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from scipy import sparse

from rbrl._common.checks import suggest
from rbrl._common.environment import import_extra
from rbrl._common.frames import as_dense
from rbrl._common.progress import bar, display_for
from rbrl.datasets.dataset import Dataset, canonical_order, content_hash, row_digests
from rbrl.datasets.files import load_file, save_file
from rbrl.datasets.formats.table import join_parts
from rbrl.exceptions import DataFormatError, DatasetNotFoundError

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

WHOLE_SET_ENDINGS = (".npz", ".arff", ".arff.gz", ".mat")
PART_ENDINGS = ("-train.arff", "-test.arff")
MAX_DOWNLOAD_BYTES = 512 << 20  # no file of the catalogue is as large
MAX_DESCRIPTION_BYTES = 1 << 20  # a description is a page of JSON
DOWNLOAD_BLOCK_BYTES = 1 << 16  # progress and limits are checked after each block


@dataclass(frozen=True, kw_only=True)
class Address:
    """Web address of a data set.

    The addresses are those of ARFF files: the whole data set, or its training part and its test
    part. The label columns are the first n, or the last -n. With `openml`, the address is that of
    OpenML's description (JSON), which has the address of the file.
    """

    urls: tuple[str, ...]
    labels: int
    openml: bool = False


@dataclass(frozen=True)
class Card:
    """Sizes, source and content hash of a data set, which `load` checks.

    Parameters
    ----------
    name : str
        Name of the data set.
    n_samples, n_features, n_labels : int
        Number of rows, of columns of X and of columns of Y.
    cardinality, density : float
        Labels per sample, and this number divided by `n_labels`.
    domain : str
        Field that the data come from.
    sparse : bool
        X is a sparse array.
    sha256 : str
        Content hash, as defined in :mod:`rbrl.datasets.dataset`.
    source : str
        Authors of the data set, and where this version is from.
    licence : str
        Terms of use.
    model : {"kernel", "linear"} or None
        Model that the paper uses; None for data sets that the paper does not use.
    published : tuple of (str, float)
        Figures in the paper's Table 1 that differ from the data.
    note : str
        Peculiarities.
    address : Address or None
        Web address; None if there is no stable address.

    Examples
    --------
    >>> from rbrl.datasets import CARDS
    >>> CARDS["yeast"].sizes
    (2417, 103, 14)
    """

    name: str
    n_samples: int
    n_features: int
    n_labels: int
    cardinality: float
    density: float
    domain: str
    sparse: bool
    sha256: str
    source: str
    licence: str = "none stated; circulates freely for research"
    model: str | None = None
    published: tuple[tuple[str, float], ...] = ()
    note: str = ""
    address: Address | None = None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of samples, features and labels."""
        return self.n_samples, self.n_features, self.n_labels

    @property
    def description(self) -> str:
        """Text of a few lines about the data set."""
        sizes = f"{self.n_samples} samples, {self.n_features} features, {self.n_labels} labels"
        labels = f"labels per sample {self.cardinality:.3f}, density {self.density:.3f}"
        origin = f"source: {self.source}\nlicence: {self.licence}"
        return f"{self.name} ({self.domain})\n{sizes}\n{labels}\n{origin}\n{self.note}".rstrip("\n")


def _read_card(name: str, fields: dict[str, Any]) -> Card:
    """Return the card of a table in cards.toml; `fields` is changed."""
    address = fields.pop("address", None)
    published = tuple(fields.pop("published", {}).items())
    if address:
        address = Address(**{**address, "urls": tuple(address["urls"])})
    return Card(name, **fields, published=published, address=address)


# Cards of all data sets of the catalogue, by name.
CARDS = {
    name: _read_card(name, fields)
    for name, fields in tomllib.loads(Path(__file__).with_name("cards.toml").read_text(encoding="utf-8")).items()
}

CARD_COLUMNS = ["n_samples", "n_features", "n_labels", "cardinality", "density", "domain", "model"]


def catalogue() -> "pd.DataFrame":
    """Return the catalogue as a DataFrame.

    Returns
    -------
    DataFrame
        One row per data set, with sizes, label statistics, domain, the paper's model, licence and
        source. The index has the names.

    Examples
    --------
    >>> from rbrl.datasets import catalogue
    >>> catalogue().loc["yeast", "n_labels"]
    np.int64(14)
    """
    return _to_frame(CARDS.values(), [*CARD_COLUMNS, "licence", "source"])


def table() -> "pd.DataFrame":
    """Return Table 1 of the paper as a DataFrame, with figures computed from the data.

    Returns
    -------
    DataFrame
        One row per data set of the paper. The column `note` has the figures that the paper prints
        differently.

    Examples
    --------
    >>> from rbrl.datasets import table
    >>> table().loc["image", "note"]
    'the paper prints cardinality 1.240, density 0.248'
    """
    cards = [card for card in CARDS.values() if card.model]
    printed = [", ".join(f"{key} {value:.3f}" for key, value in card.published) for card in cards]
    notes = [f"the paper prints {figures}" if figures else "" for figures in printed]
    return _to_frame(cards, CARD_COLUMNS).assign(note=notes)


def _to_frame(cards: Collection[Card], keys: Iterable[str]) -> "pd.DataFrame":
    """Return the attributes `keys` of cards as a data frame, one row per card."""
    pandas = import_extra("pandas", "data", "The catalogue as a table")
    names = pandas.Index([card.name for card in cards], name="dataset")
    return pandas.DataFrame({key: [getattr(card, key) for card in cards] for key in keys}, index=names)


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
        meant = suggest(name, CARDS) or f" Known: {', '.join(sorted(CARDS))}."
        raise DatasetNotFoundError(f"no data set is called {name!r}.{meant}")
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
    """Yield the folders to search, in order; they need not exist.

    The cache comes last, since its location needs the package platformdirs.
    """
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

    The card has an address. `timeout` is the longest time without new bytes and `deadline` the
    longest time for a file, both in seconds.
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
    """Download one file to `path`; raise DownloadError for a failure or a limit.

    The limits are those of :func:`fetch`. An incomplete file may remain, in the caller's temporary
    folder.
    """
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
    """Return the address of the data file in OpenML's description; raise DownloadError without one.

    `url` is the address of the description, for messages.
    """
    try:
        found = json.loads(description.read_bytes())["data_set_description"]["url"]
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadError(f"{url} did not answer with OpenML's description of a data set: {error!r}") from error
    if not str(found).startswith(("https://", "http://")):
        raise DownloadError(f"{url} names the file {found!r}, which is not a web address")
    return str(found)
