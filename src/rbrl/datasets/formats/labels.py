"""Which columns of a table are labels."""

import os
from collections import Counter
from numbers import Integral
from pathlib import Path

from rbrl.datasets.formats.errors import bad, quote
from rbrl.datasets.formats.mulan_xml import read_labels


def label_columns(path, names, labels, own=None):
    """Return the indexes of the label columns.

    Parameters
    ----------
    path : Path
        The data file; a file of the same name with .xml is looked for beside it.
    names : sequence of str
        The columns.
    labels : int, sequence of str, path or None
        As in `ReadOptions`.
    own : int, list of str or None
        What the file says itself; used when `labels` is None and there is no XML file.
    """
    if labels is None:
        beside = xml_path(path)
        labels = beside if beside.is_file() else own
    if labels is None:
        raise bad(
            path,
            f"it does not say which of its {len(names)} columns are labels: put Mulan's {xml_path(path).name} "
            "beside it, or pass labels= (names, n for the first n columns, -n for the last)",
        )
    if isinstance(labels, Integral):
        return _counted(path, len(names), int(labels))
    if isinstance(labels, os.PathLike) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        return sorted(_named(path, names, read_labels(Path(labels))))
    return _named(path, names, [labels] if isinstance(labels, str) else [str(label) for label in labels])


def feature_columns(path, names, labels, n_features, own=None):
    """Return the indexes of the columns that are no labels; a file with `n_features` columns need not have any labels.

    Parameters as for `label_columns`.
    """
    if labels is None and len(names) == n_features and not xml_path(path).is_file():
        return list(range(n_features))
    taken = set(label_columns(path, names, labels, own))
    return [j for j in range(len(names)) if j not in taken]


def xml_path(path):
    """Return where the XML file of a data file would be: the same name, .gz and the format's ending replaced."""
    return Path(path.parent, path.name.removesuffix(".gz")).with_suffix(".xml")


def _counted(path, n_columns, count):
    if count == 0 or abs(count) > n_columns:
        raise bad(path, f"{count} labels cannot be taken from {n_columns} columns")
    return list(range(count)) if count > 0 else list(range(n_columns + count, n_columns))


def _named(path, names, wanted):
    places = {name: i for i, name in enumerate(names)}
    times, asked = Counter(names), Counter(wanted)
    for label in wanted:
        if asked[label] > 1:
            raise bad(path, f"the label {quote(label)} is named {asked[label]} times")
        if label not in places:
            raise bad(path, f"it has no column {quote(label)}, which was named as a label")
        if times[label] > 1:
            raise bad(path, f"it has {times[label]} columns {quote(label)}, one of which was named as a label")
    if not wanted:
        raise bad(path, f"labels= names none of its {len(names)} columns")
    return [places[label] for label in wanted]
