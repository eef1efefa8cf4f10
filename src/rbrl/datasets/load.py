"""`load`: a data set of the catalogue by name, from the nearest place that has it, checked against its card."""

import difflib
import os
from dataclasses import replace
from pathlib import Path

from rbrl.datasets.canonical import canonical_order, content_hash, row_digests
from rbrl.datasets.cards import CARDS
from rbrl.datasets.embedded import read_yeast, yeast_path
from rbrl.datasets.formats.npz import read_npz
from rbrl.exceptions import DataFormatError, DatasetNotFoundError


def load(name, data_home=None):
    """Return a data set of the catalogue, its rows in canonical order, its content checked.

    Parameters
    ----------
    name : str
        One of `CARDS`.
    data_home : path, optional
        Folder with `NAME.npz`. Default: the environment variable RBRL_DATA.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetNotFoundError
        The name is unknown, or no place has the set; the message says which file to put where.
    DataFormatError
        The file found is not the set that the card describes.
    """
    card = _card(name)
    dataset, place = _find(card, data_home)
    return checked(dataset, card, place)


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
    ordered = dataset.reorder(canonical_order(digests))
    return replace(ordered, name=card.name, description=card.description, card=card)


def _card(name):
    if name in CARDS:
        return CARDS[name]
    close = difflib.get_close_matches(str(name), CARDS, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(sorted(CARDS))}."
    raise DatasetNotFoundError(f"no data set is called {name!r}. {hint}")


def _find(card, data_home):
    if data_home is None and card.name == "yeast" and (path := yeast_path()):
        return read_yeast(path), path
    home = data_home or os.environ.get("RBRL_DATA")
    path = Path(home, f"{card.name}.npz") if home else None
    if path and path.is_file():
        return read_npz(path), path
    raise DatasetNotFoundError(
        f"{card.name} is not in {home or 'RBRL_DATA (not set)'}: put {card.name}.npz into a folder and name it with "
        f"data_home or the environment variable RBRL_DATA. Source: {card.source}. {card.note}"
    )
