"""The catalogue: a card of every data set, the paper's ten (Table 1) and others that are often used beside them.

Copies of the same set differ in row order, in dense or sparse storage and in number types. A row's *content* is the
byte string made of, all little-endian 64-bit: the number of its relevant labels, the number of its non-zero features,
the indexes of both, and the values of those features as floats (any NaN as one NaN). Its *digest* is the SHA-256 of
that. The canonical order sorts rows by digest; the content hash is the SHA-256 of the sizes followed by the sorted
digests. Rows with equal digests are equal, so that their order among themselves changes nothing.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rbrl._common.extras import import_extra
from rbrl._common.typing import Array, IntArray, MatrixLike

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a data set can be downloaded.

    Parameters
    ----------
    urls : tuple of str
        ARFF files; more than one are the source's own training and test parts, in this order.
    labels : int
        Where the labels stand: the first n columns, or the last -n.
    openml : bool, default=False
        The one URL is that of OpenML's description (JSON), which names the file.

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
    """Sizes, origin and content hash of a data set; loading checks the file against them.

    Parameters
    ----------
    name : str
    n_samples, n_features, n_labels : int
    cardinality, density : float
        Labels per sample, and that divided by `n_labels`.
    domain : str
    sparse : bool
        X is given as a sparse array.
    sha256 : str
        Content hash, as defined at the top of this module.
    source : str
        Who made the set and where this version of it circulates.
    licence : str
    model : {"kernel", "linear"} or None
        The model the paper uses on it; None for sets the paper does not use.
    published : dict
        Figures of the paper's Table 1 that differ from the data's.
    note : str
    address : Address or None
        None where no stable address exists.

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
        """(n_samples, n_features, n_labels)."""
        return self.n_samples, self.n_features, self.n_labels

    @property
    def description(self) -> str:
        """A few lines of text for people."""
        sizes = f"{self.n_samples} samples, {self.n_features} features, {self.n_labels} labels"
        labels = f"labels per sample {self.cardinality:.3f}, density {self.density:.3f}"
        origin = f"source: {self.source}\nlicence: {self.licence}"
        return f"{self.name} ({self.domain})\n{sizes}\n{labels}\n{origin}\n{self.note}".rstrip("\n")


MULAN = "https://raw.githubusercontent.com/tsoumakas/mulan/master/data/multi-label"
NO_ADDRESS = "This version has no stable public address."
UNKNOWN_ADDRESS = "The card has no address: put the file into a data folder."
REUTERS = "Reuters' terms for RCV1: research only"
YAHOO = (
    "Ueda & Saito 2002, pages of the Yahoo directory; the version of Min-Ling Zhang with 5,000 rows, the most frequent "
    "words, and rows of unit length"
)
YAHOO_NOTE = f"{NO_ADDRESS} Mulan's sets of the same name are larger and are not this one."


def _openml(number: int, n_labels: int) -> Address:
    return Address(urls=(f"https://www.openml.org/api/v1/json/data/{number}",), labels=-n_labels, openml=True)


def _mulan(folder: str, n_labels: int, name: str = "", suffix: str = "") -> Address:
    urls = tuple(f"{MULAN}/{folder}/{name or folder}-{part}{suffix}.arff" for part in ("train", "test"))
    return Address(urls=urls, labels=-n_labels)


def _yahoo(name: str, n_features: int, n_labels: int, cardinality: float, density: float, sha256: str) -> Card:
    sizes = 5000, n_features, n_labels
    return Card(name, *sizes, cardinality, density, "text", True, sha256, YAHOO, model="linear", note=YAHOO_NOTE)


# Sizes, labels per sample, density and domain, in the order of the card's first fields; then what else it says.
PAPER = (
    Card("emotions", 593, 72, 6, 1.8685, 0.3114, "music", sparse=False, model="kernel", address=_openml(40589, 6),
         sha256="a7df668cff7a3b5874a3b2450dbf1fcbd70260250f9fd4f8c42cb11d98b051f6",
         source="Trohidis et al. 2008 (Mulan); OpenML 40589", published=(("cardinality", 1.869),),
         note="The split 'rbrl', where the file has it, is that of the paper's authors."),
    Card("image", 2000, 294, 5, 1.236, 0.2472, "image", sparse=False, model="kernel", note=NO_ADDRESS,
         sha256="cb805e2246d439b32d190f861c12ef8c48aea43a3a07f75a8302811538331b35",
         source="Zhou & Zhang 2007, natural scenes, as feature vectors (Min-Ling Zhang)",
         published=(("cardinality", 1.240), ("density", 0.248))),
    Card("scene", 2407, 294, 6, 1.0740, 0.1790, "image", sparse=False, model="kernel", address=_openml(40595, 6),
         sha256="24beeb7599843811138db4022a300f446778b8872a0a227730bef2d5a2f124e9",
         source="Boutell et al. 2004 (Mulan); OpenML 40595"),
    Card("yeast", 2417, 103, 14, 4.2371, 0.3026, "biology", sparse=False, model="kernel", address=_openml(40597, 14),
         sha256="b3a0630eff90d486d9721f4f1f9058603559c7fe8515de5d26d11bbae5dcd32d",
         source="Elisseeff & Weston 2001 (Mulan); in the wheel of river; OpenML 40597",
         note="The copy in river's wheel does not say which rows are the source's training part."),
    Card("enron", 1702, 1001, 53, 3.3784, 0.0637, "text", sparse=True, model="linear", address=_mulan("enron", 53),
         sha256="6030b8c006c21304b2f00e6476de189b9daae78c8fc306f058f2f86526ba3992",
         source="UC Berkeley Enron Email Analysis Project, prepared by Read 2008 (Mulan)"),
    _yahoo("arts", 462, 26, 1.6360, 0.0629, "57037bf2d5aab365fb6abe0edabff2b15cf570dc4206cd2a77582fa9ac3e18fd"),
    _yahoo("education", 550, 33, 1.4606, 0.0443, "c8c7246a7b24e3af4e2b6a0372a3d7596925c3074d578b639f3d68683d7c3e7e"),
    _yahoo("recreation", 606, 22, 1.4232, 0.0647, "2857e0e70d94286a240870174ee6898f0594ef2ef446a7628939f3c85558f9c9"),
    _yahoo("science", 743, 40, 1.4506, 0.0363, "77d4f50763495b57440752c353bc0cb3a00006fdecf787f323e20b5067db80d2"),
    _yahoo("business", 438, 30, 1.5878, 0.0529, "d2150718fa8df2e73132390e8936b165c33b2a3c3bdb8cd95cbce78b1a0c2826"),
)  # fmt: skip

OTHERS = (
    Card("flags", 194, 19, 7, 3.3918, 0.4845, "image", sparse=False,
         sha256="4038a16c57d9f332e93227bd95c71dc6eae040dd7ef4fbc5466ae3ca949d0639",
         source="UCI Flags, prepared by Gonçalves, Plastino & Freitas 2013 (Mulan)",
         note=f"Four columns are codes of categories. {NO_ADDRESS}"),
    Card("bibtex", 7395, 1836, 159, 2.4019, 0.0151, "text", sparse=True, address=_mulan("bibtex", 159),
         sha256="a4e94c254cbbb278b9974a376559bb0cb0dd2fcb8b948629158a59150bae178f",
         source="Katakis, Tsoumakas & Vlahavas 2008 (Mulan)"),
    Card("corel5k", 5000, 499, 374, 3.5220, 0.0094, "image", sparse=True, source="Duygulu et al. 2002 (Mulan)",
         sha256="535d7b91e97c009b01488a2d8c43a30759c06fb41764e31c83688f83cc940019",
         address=_mulan("corel5k", 374, "Corel5k", "-sparse")),
    Card("rcv1subset1", 6000, 47236, 101, 2.8797, 0.0285, "text", sparse=True, licence=REUTERS, note=NO_ADDRESS,
         sha256="1c42ee1c172cc01c24f18d0b8f56f140ecf0f71b1e8deca19f4692f728ddb6aa",
         source="Lewis et al. 2004, Reuters RCV1-v2, first subset (Mulan)"),
    Card("rcv1subset1_top944", 6000, 944, 101, 2.8797, 0.0285, "text", sparse=True, licence=REUTERS, note=NO_ADDRESS,
         sha256="0ba47a25fe2909f6570344434e57521edbb6777ca3278a082d1304b60f3cb091",
         source="rcv1subset1 with its 944 most frequent terms as 0/1, as used by several papers"),
    Card("tmc2007_500", 28596, 500, 22, 2.1579, 0.0981, "text", address=_mulan("tmc2007", 22, "tmc2007-500"),
         sha256="f19d6027b70b8874b06e62524ed102608bfab6749437e0e03d0125085dd7aebf", sparse=True,
         source="SIAM text mining competition 2007, aviation safety reports, 500 words (Mulan)"),
    Card("delicious", 16105, 500, 983, 19.0200, 0.0193, "text", sparse=True, address=_mulan("delicious", 983),
         sha256="c98f4ba0ee7c44595b9007c9a2a6d00b56565e2180b70ed231c2cabf8f913a00",
         source="Tsoumakas, Katakis & Vlahavas 2008 (Mulan)"),
    Card("imdb", 120919, 1001, 28, 1.9997, 0.0714, "text", sparse=True,
         sha256="72b34a76db9774b69af61dd3c34990c1bba6a8b5dd2474aab307ad6976784be3",
         source="Read 2010, plot summaries of the Internet Movie Database (MEKA, IMDB-F)",
         address=Address(urls=("https://downloads.sourceforge.net/project/meka/Datasets/IMDB-F.arff",), labels=28)),
    Card("cal500", 502, 68, 174, 26.0438, 0.1497, "music", sparse=False, note=UNKNOWN_ADDRESS,
         sha256="2d38aaeead468cf13e01ef0dcd06d6ea4f36a34146f6bf9339a5e75830f4cc5a",
         source="Turnbull et al. 2008, songs described by listeners (Mulan)"),
    Card("human3106", 3106, 440, 14, 1.1851, 0.0847, "biology", sparse=False, note=UNKNOWN_ADDRESS,
         sha256="83dfa1ae42ea23dc4a1684d6973e8ec88c8037b9c957f5106f727efb53fed544",
         source="Shen & Chou 2009, human proteins and their places in the cell; as feature vectors by Xu"),
    Card("slashdot", 3782, 1079, 22, 1.1809, 0.0537, "text", sparse=True, note=UNKNOWN_ADDRESS,
         sha256="641d34c6a6b81a377033c25b0ee66fa99e63dd4269d5f61a64d20509ec3d72ad",
         source="Read 2010, news stories and their subjects (MEKA); from mldr.datasets"),
    Card("langlog", 1460, 1004, 75, 1.1801, 0.0157, "text", sparse=True,
         sha256="02247d8d11897bc2601727cd93acd4f9fb171f3eed5d3724a667c79400863baa",
         source="Read 2010, posts of the Language Log (MEKA)", note=f"207 rows have no label. {UNKNOWN_ADDRESS}"),
    Card("stackex_chess", 1675, 585, 227, 2.4113, 0.0106, "text", sparse=True,
         sha256="8d16689883156c228d71fd6396458226ee0c3f20003f433a6408bfdbcdc963ce",
         source="Charte et al. 2015, questions about chess on Stack Exchange", note=f"Counts of words. {UNKNOWN_ADDRESS}"),
    Card("20ng", 19300, 1006, 20, 1.0289, 0.0514, "text", sparse=True, note=UNKNOWN_ADDRESS,
         sha256="a9fc27ee964e2d9d854132912c386c66afb91a3a78bc917f67bf6a4073d1a69c",
         source="Lang 1995, posts to newsgroups, 1,006 words as 0/1 (MEKA)"),
    Card("health", 5000, 612, 32, 1.6622, 0.0519, "text", sparse=True, source=YAHOO, note=YAHOO_NOTE,
         sha256="3d1a0dccc0f0fb8b685e43c6e605e691af68552c1b5a425a7eb91656c2c025db"),
    Card("yahoo_arts_full", 7484, 23146, 26, 1.6539, 0.0636, "text", sparse=True,
         sha256="a7c48cc91d65f9737075d19754781e2d03bd14a526ba29eb3f35d6fc3180ed3a",
         source="Ueda & Saito 2002, pages of the Yahoo directory, with the whole vocabulary (Mulan)",
         note=f"Counts of words, up to 2,462; arts is another version of the same directory. {UNKNOWN_ADDRESS}"),
)  # fmt: skip

# Every card of the catalogue, by name.
CARDS = {card.name: card for card in PAPER + OTHERS}

COLUMNS = ["n_samples", "n_features", "n_labels", "cardinality", "density", "domain", "model"]


def catalogue() -> "pd.DataFrame":
    """Return every card as a row of a DataFrame, by name.

    Returns
    -------
    DataFrame
        With sizes, label statistics, domain, the paper's model, licence and source.

    Examples
    --------
    >>> from rbrl.datasets import catalogue
    >>> catalogue().loc["yeast", "n_labels"]
    np.int64(14)
    """
    return _frame(CARDS.values(), [*COLUMNS, "licence", "source"])


def table() -> "pd.DataFrame":
    """Return Table 1 of the paper as a DataFrame, from the data; `note` says where the printed figures differ.

    Returns
    -------
    DataFrame
        A row for each of the paper's ten sets, by name.

    Examples
    --------
    >>> from rbrl.datasets import table
    >>> table().loc["image", "note"]
    'the paper prints cardinality 1.240, density 0.248'
    """
    printed = [", ".join(f"{key} {value:.3f}" for key, value in card.published) for card in PAPER]
    return _frame(PAPER, COLUMNS).assign(note=[f"the paper prints {figures}" if figures else "" for figures in printed])


def _frame(cards: Collection[Card], keys: Iterable[str]) -> "pd.DataFrame":
    pandas = import_extra("pandas", "data", "The catalogue as a table")
    names = pandas.Index([card.name for card in cards], name="dataset")
    return pandas.DataFrame({key: [getattr(card, key) for card in cards] for key in keys}, index=names)


def row_digests(X: MatrixLike, Y: MatrixLike | None = None) -> Array:
    """Return an (n_samples, 4) array of big-endian words: the SHA-256 digest of each row's content.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
    Y : ndarray or sparse array of shape (n_samples, n_labels), optional
        0/1 labels, NaN where nobody looked; left out of the content if None.

    Returns
    -------
    ndarray of shape (n_samples, 4)
    """
    rows = _nonzeros(X)
    tags_of = _nonzeros(sparse.csr_array((rows.shape[0], 0)) if Y is None else Y)
    values = rows.data.astype("<f8")
    values[np.isnan(values)] = np.nan
    features, labels = rows.indices.astype("<i8"), tags_of.indices.astype("<i8")
    labels = np.where(np.isnan(tags_of.data), -1 - labels, labels)  # a label that is missing is not one that is there
    sizes = np.column_stack([np.diff(tags_of.indptr), np.diff(rows.indptr)]).astype("<i8")
    digests = bytearray()
    for i in range(rows.shape[0]):
        row, tags = slice(*rows.indptr[i : i + 2]), slice(*tags_of.indptr[i : i + 2])
        content = b"".join((sizes[i].tobytes(), labels[tags].tobytes(), features[row].tobytes(), values[row].tobytes()))
        digests += hashlib.sha256(content).digest()
    return np.frombuffer(bytes(digests), dtype=">u8").reshape(-1, 4)


def canonical_order(digests: Array) -> IntArray:
    """Return the permutation that sorts rows by digest; equal rows keep their order.

    Parameters
    ----------
    digests : ndarray of shape (n_samples, 4)
        Of `row_digests`.

    Returns
    -------
    ndarray of int
    """
    return np.lexsort(digests.T[::-1])


def content_hash(digests: Array, n_features: int, n_labels: int) -> str:
    """Return the hexadecimal content hash of the rows with these digests, in any order.

    Parameters
    ----------
    digests : ndarray of shape (n_samples, 4)
        Of `row_digests`.
    n_features, n_labels : int

    Returns
    -------
    str
    """
    head = np.array([len(digests), n_features, n_labels], dtype="<i8").tobytes()
    return hashlib.sha256(head + digests[canonical_order(digests)].tobytes()).hexdigest()


def _nonzeros(A: Any) -> Any:
    A = sparse.csr_array(A, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    return A
