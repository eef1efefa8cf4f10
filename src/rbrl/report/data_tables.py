"""Tables about data sets. They alone need the catalogue, whose import takes a while."""

from collections.abc import Iterable

import pandas as pd

from rbrl.datasets import CARDS
from rbrl.datasets import table as catalogue_table
from rbrl.report.table import Table, count, number, word

SIZES = ("n_samples", "n_features", "n_labels")


def datasets_table(names: Iterable[str]) -> Table:
    """Table 1: sizes of the data sets; of sets outside the catalogue only the name is known."""
    cards = {name: CARDS.get(name) for name in names}
    keys = [*SIZES, "cardinality", "density", "domain"]
    rows = tuple(
        (word(name), *((count(getattr(card, key)) for key in SIZES) if card else [number(None)] * 3), *_density(card))
        for name, card in cards.items()
    )
    frame = pd.DataFrame(
        [{"dataset": name} | {key: getattr(card, key, None) for key in keys} for name, card in cards.items()]
    )
    titles = ("Data set", "Samples", "Features", "Labels", "Labels per sample", "Density", "Domain")
    return Table("datasets", "Data sets", titles, rows, frame)


def _density(card):
    if card is None:
        return number(None), number(None), word("")
    return number(card.cardinality), number(card.density), word(card.domain)


def datasets_beside() -> Table:
    """Table 1: what the data say, with a note where the paper prints another figure."""
    frame = catalogue_table().reset_index()
    rows = tuple(
        (
            word(row.dataset),
            *(count(n) for n in (row.n_samples, row.n_features, row.n_labels)),
            *(number(row.cardinality), number(row.density), word(row.domain), word(row.model), word(row.note)),
        )
        for row in frame.itertuples()
    )
    titles = ("Data set", "Samples", "Features", "Labels", "Labels per sample", "Density", "Domain", "Model", "Note")
    return Table("table1", "Table 1: data sets", titles, rows, frame)
