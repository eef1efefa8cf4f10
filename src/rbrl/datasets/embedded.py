"""yeast, read from the file in the wheel of the package `river`; the package itself is never imported."""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats.errors import bad

N_LABELS = 14


def yeast_path():
    """Return the path of river's yeast file, or None where river is absent or has no such file."""
    spec = find_spec("river")  # a top-level name: finds the folder, runs none of its code
    folders = spec.submodule_search_locations if spec else None
    paths = [Path(folder, "datasets", "yeast.csv.gz") for folder in folders or ()]
    return next((path for path in paths if path.is_file()), None)


def read_yeast(path):
    """Read river's yeast: a column per feature, then one per label."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            names = stream.readline().strip().split(",")
            values = np.loadtxt(stream, delimiter=",", ndmin=2)
    except (ValueError, OSError, EOFError) as error:
        raise bad(path, f"not the yeast file expected in river's wheel: {error}") from error
    return Dataset(values[:, :-N_LABELS], values[:, -N_LABELS:], names[:-N_LABELS], names[-N_LABELS:], name="yeast")
