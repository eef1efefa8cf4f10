"""`load`: a data set of the catalogue by name, from the nearest place that has it, checked against its card."""

import difflib
import os
from dataclasses import replace
from pathlib import Path

import pooch
from scipy import sparse

from rbrl.datasets.canonical import canonical_order, content_hash, row_digests
from rbrl.datasets.cards import CARDS
from rbrl.datasets.embedded import read_yeast, yeast_path
from rbrl.datasets.fetch import DownloadError, fetch
from rbrl.datasets.files import save_file
from rbrl.datasets.places import find_files, read_files
from rbrl.exceptions import DataFormatError, DatasetNotFoundError


def load(name, data_home=None, *, download=True):
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
    >>> load("yeast").Y.shape
    (2417, 14)
    """
    card = _card(name)
    if data_home is None and card.name == "yeast" and (path := yeast_path()):
        return checked(read_yeast(path), card, path)
    folders = [Path(folder) for folder in (data_home, os.environ.get("RBRL_DATA"), cache_folder()) if folder]
    for folder in folders:
        files, xml = find_files(folder, card.name)
        if files:
            return checked(read_files(files, xml, _default_labels(card)), card, files[0])
    return _downloaded(card, folders, download)


def cache_folder():
    """Return the folder that downloads are kept in: RBRL_CACHE, or the user's cache folder."""
    return Path(os.environ.get("RBRL_CACHE") or pooch.os_cache("rbrl"))


def checked(dataset, card, place):
    """Return `dataset` in canonical order with its card, or raise if it is not the set the card describes."""
    found = (dataset.n_samples, dataset.n_features, dataset.n_labels)
    if found != card.sizes:
        raise DataFormatError(
            f"{place}: {card.name} has (samples, features, labels) = {card.sizes}; this file has {found}."
        )
    digests = row_digests(dataset.X, dataset.Y)
    sha256 = content_hash(digests, card.n_features, card.n_labels)
    if sha256 != card.sha256:
        raise DataFormatError(
            f"{place}: the sizes are those of {card.name} but the content is not: "
            f"its hash is {sha256}, the card says {card.sha256}."
        )
    ordered = _stored_as(dataset.reorder(canonical_order(digests)), card)
    return replace(ordered, name=card.name, description=card.description, card=card)


def _stored_as(dataset, card):
    """Return the set with X dense or sparse, as its card has it, whatever the file's form was."""
    if sparse.issparse(dataset.X) == card.sparse:
        return dataset
    return replace(dataset, X=sparse.csr_array(dataset.X) if card.sparse else dataset.X.toarray())


def _downloaded(card, folders, download):
    reason = "it has no stable public address" if card.address is None else "downloads were not allowed"
    if card.address and download:
        place = " and ".join(card.address.urls)
        try:
            dataset = checked(fetch(card), card, place)
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


def _default_labels(card):
    return card.address.labels if card.address else -card.n_labels


def _card(name):
    if name in CARDS:
        return CARDS[name]
    close = difflib.get_close_matches(str(name), CARDS, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(sorted(CARDS))}."
    raise DatasetNotFoundError(f"no data set is called {name!r}. {hint}")
