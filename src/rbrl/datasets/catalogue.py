"""The catalogue: a card for each of the paper's ten data sets, and for others that are often used.

The cards are in `cards.toml`. Copies of the same data set differ in the order of rows, in storage and
in number types. The *content* of a row is a string of little-endian 64-bit words: the number of its
relevant labels, the number of its non-zero features, the indexes of both, and the values of these
features as floats (all NaNs are equal). The *digest* of a row is the SHA-256 of its content. The
canonical order sorts rows by digest. The content hash is the SHA-256 of the sizes followed by the
sorted digests.
"""

import hashlib
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rbrl._common.environment import import_extra
from rbrl._common.typing import Array, IntArray, MatrixLike

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Address:
    """Web address of a data set.

    Parameters
    ----------
    urls : tuple of str
        Addresses of ARFF files: the whole data set, or its training part and its test part.
    labels : int
        Label columns: the first n, or the last -n.
    openml : bool, default=False
        The address is that of OpenML's description (JSON), which has the address of the file.

    Examples
    --------
    >>> Address(urls=("https://example.org/data.arff",), labels=-6).openml
    False
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
        Content hash, as defined at the top of this module.
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
    pandas = import_extra("pandas", "data", "The catalogue as a table")
    names = pandas.Index([card.name for card in cards], name="dataset")
    return pandas.DataFrame({key: [getattr(card, key) for card in cards] for key in keys}, index=names)


def row_digests(X: MatrixLike, Y: MatrixLike | None = None) -> Array:
    """Return the SHA-256 digest of the content of each row.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features.
    Y : ndarray or sparse array of shape (n_samples, n_labels), optional
        Labels 0 and 1, or NaN for a missing label. Default: no labels.

    Returns
    -------
    ndarray of shape (n_samples, 4)
        Digests as four big-endian words.
    """
    features = _drop_zeros(X)
    labels = _drop_zeros(sparse.csr_array((features.shape[0], 0)) if Y is None else Y)
    values = features.data.astype("<f8")
    values[np.isnan(values)] = np.nan
    feature_index = features.indices.astype("<i8")
    label_index = labels.indices.astype("<i8")
    label_index = np.where(np.isnan(labels.data), -1 - label_index, label_index)  # tells missing from relevant labels
    sizes = np.column_stack([np.diff(labels.indptr), np.diff(features.indptr)]).astype("<i8")
    digests = bytearray()
    for i in range(features.shape[0]):
        row = slice(*features.indptr[i : i + 2])
        relevant = label_index[slice(*labels.indptr[i : i + 2])]
        content = (part.tobytes() for part in (sizes[i], relevant, feature_index[row], values[row]))
        digests += hashlib.sha256(b"".join(content)).digest()
    return np.frombuffer(bytes(digests), dtype=">u8").reshape(-1, 4)


def canonical_order(digests: Array) -> IntArray:
    """Return the permutation that sorts rows by digest; equal rows keep their order."""
    return np.lexsort(digests.T[::-1])


def content_hash(digests: Array, n_features: int, n_labels: int) -> str:
    """Return the hexadecimal content hash of rows with these digests, in any order."""
    head = np.array([len(digests), n_features, n_labels], dtype="<i8").tobytes()
    return hashlib.sha256(head + digests[canonical_order(digests)].tobytes()).hexdigest()


def _drop_zeros(A: Any) -> Any:
    A = sparse.csr_array(A, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    return A
