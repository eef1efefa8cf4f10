"""Which columns of a table are labels, and which are the features of a model."""

import os
from collections import Counter
from numbers import Integral
from pathlib import Path

from rbrl.datasets.formats.errors import bad, quote
from rbrl.datasets.formats.mulan_xml import read_labels
from rbrl.datasets.names import find_names
from rbrl.exceptions import DataFormatError


def label_columns(path, names, labels, own=None, known=None):
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
    known : sequence of str or None
        The labels of the model that the file is for; used where the file says nothing, or names others.
    """
    if labels is None:
        beside = xml_path(path)
        labels = beside if beside.is_file() else own
        if set(known or ()) & set(names) and not beside.is_file():
            labels = own if own is not None and _covers(path, names, own, known) else list(known)
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


def _covers(path, names, own, known):
    """Whether the labels that the file names itself are all that a model knows."""
    return set(known) <= {names[j] for j in label_columns(path, names, own)}


def feature_columns(path, names, options, columns, own=None):
    """Return the indexes of the features of a model, in its order.

    By name where model and file have names; then any other column must be a label. Without names, they are the columns
    that are no labels; a file with as many columns as the model has features need not have any labels.

    Parameters
    ----------
    path, names, own
        As for `label_columns`.
    options : ReadOptions
    columns : Columns
        Those of the model.
    """
    labels = _labels_in(path, names, options.labels, columns, own)
    rest = [j for j in range(len(names)) if j not in labels]
    try:
        found = find_names("feature", [names[j] for j in rest], columns.feature_names, "x")
    except DataFormatError as error:
        raise bad(path, str(error)) from error
    if found is None:
        return rest
    strange = next((names[j] for i, j in enumerate(rest) if i not in set(found)), None)
    if strange is not None:
        raise bad(
            path,
            f"its column {quote(strange)} is neither a feature nor a label that the model was fitted on: leave it out, or "
            "name it among labels=",
        )
    return [rest[i] for i in found]


def _labels_in(path, names, labels, columns, own):
    """The indexes of columns that are labels: as said, as the file says, and those that the model knows as such."""
    features = set(columns.feature_names or ())
    known = {j for j, name in enumerate(names) if name in set(columns.label_names or ()) - features}
    if labels is not None:
        return known | set(label_columns(path, names, labels))
    as_many = len(names) == columns.n_features
    unsaid = not xml_path(path).is_file() and (own is None or as_many)
    if unsaid and (known or as_many or features & set(names)):
        return known
    return known | {j for j in label_columns(path, names, None, own) if names[j] not in features}


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
