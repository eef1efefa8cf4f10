"""Tables about data sets. They alone need the catalogue, whose import takes a while."""

from collections.abc import Mapping

import pandas as pd

from rbrl.datasets import CARDS, Card
from rbrl.datasets import table as catalogue_table
from rbrl.report.results import Results, Sizes
from rbrl.report.table import Table, count, number, word

SIZES = ("n_samples", "n_features", "n_labels")


def known_sizes(results: Results) -> dict[str, Card | Sizes | None]:
    """What is known of each data set of a run: from the file it came from, or from its card; None for nothing."""
    return {name: results.sizes.get(name) or CARDS.get(name) for name in results.datasets}


def datasets_table(known: Mapping[str, Card | Sizes | None]) -> Table:
    """Table 1: sizes of data sets; of some only the name is known."""
    keys = [*SIZES, "cardinality", "density", "domain"]
    rows = tuple(
        (word(name), *((count(getattr(one, key)) for key in SIZES) if one else [number(None)] * 3), *_density(one))
        for name, one in known.items()
    )
    frame = pd.DataFrame(
        [{"dataset": name} | {key: getattr(one, key, None) for key in keys} for name, one in known.items()]
    )
    titles = ("Data set", "Samples", "Features", "Labels", "Labels per sample", "Density", "Domain")
    return Table("datasets", "Data sets", titles, rows, frame)


def _density(known):
    if known is None:
        return number(None), number(None), word("")
    return number(known.cardinality), number(known.density), word(known.domain)


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
