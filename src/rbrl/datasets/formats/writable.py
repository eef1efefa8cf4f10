"""What text formats cannot hold is refused before anything is written."""

import re

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.errors import bad, quote
from rbrl.datasets.names import NumberedNames

NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def check_writable(dataset, path, xml=False, missing=True):
    """Raise if `dataset` has names or values that a text file cannot hold."""
    values = dataset.X.data if sparse.issparse(dataset.X) else dataset.X
    if np.isinf(values).any():
        raise bad(path, f"infinite values cannot be written: X has {np.isinf(values).sum()}")
    if not missing and np.isnan(values).any():
        raise bad(path, f"missing values cannot be written in this format: X has {np.isnan(values).sum()}")
    if not dataset.n_labels or not dataset.n_samples:
        raise bad(path, f"a file needs rows and labels; got {dataset.n_samples} and {dataset.n_labels}")
    check_names(dataset.feature_names, path)
    check_names(dataset.label_names, path)
    odd = next((name for name in dataset.label_names if xml and NOT_IN_XML.search(name)), None)
    if odd is not None:
        raise bad(path, f"the label name {quote(odd)} has a character that XML cannot hold")


def check_names(names, path):
    """Raise if a name cannot be encoded."""
    for name in names:
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise bad(path, f"the name {quote(name)} is not valid text")


def json_names(dataset):
    """Return the names for a JSON head; numbered names, which need not be stored, as None."""
    pairs = {"feature_names": dataset.feature_names, "label_names": dataset.label_names}
    return {key: None if isinstance(names, NumberedNames) else list(names) for key, names in pairs.items()}
