"""`Card`: what the catalogue knows about a data set."""

from dataclasses import dataclass


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
    """

    urls: tuple[str, ...]
    labels: int
    openml: bool = False


@dataclass(frozen=True, kw_only=True)
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
        Content hash, as defined in `rbrl.datasets.canonical`.
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
    def sizes(self):
        """(n_samples, n_features, n_labels)."""
        return self.n_samples, self.n_features, self.n_labels

    @property
    def description(self):
        """A few lines of text for people."""
        lines = [
            f"{self.name} ({self.domain})",
            f"{self.n_samples} samples, {self.n_features} features, {self.n_labels} labels",
            f"labels per sample {self.cardinality:.3f}, density {self.density:.3f}",
            f"source: {self.source}",
            f"licence: {self.licence}",
        ]
        return "\n".join([*lines, self.note] if self.note else lines)
