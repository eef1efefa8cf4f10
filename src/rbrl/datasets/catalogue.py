"""The catalogue as tables."""

import pandas as pd

from rbrl.datasets.cards import CARDS, PAPER

COLUMNS = ["n_samples", "n_features", "n_labels", "cardinality", "density", "domain", "model"]


def catalogue():
    """Return every card as a row of a DataFrame, by name.

    Examples
    --------
    >>> catalogue().loc["yeast", "n_labels"]
    np.int64(14)
    """
    rows = {card.name: {key: getattr(card, key) for key in [*COLUMNS, "licence", "source"]} for card in CARDS.values()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("dataset")


def table():
    """Return Table 1 of the paper as a DataFrame, from the data; `note` says where the printed figures differ.

    Examples
    --------
    >>> table().loc["image", "note"]
    'the paper prints cardinality 1.240, density 0.248'
    """
    rows = {card.name: {key: getattr(card, key) for key in COLUMNS} | {"note": _difference(card)} for card in PAPER}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("dataset")


def _difference(card):
    printed = ", ".join(f"{key} {value:.3f}" for key, value in card.published)
    return f"the paper prints {printed}" if printed else ""
