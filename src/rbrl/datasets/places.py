"""Where a data set's files may lie in a folder."""

from pathlib import Path

import numpy as np
from scipy import sparse

from rbrl.datasets.dataset import Dataset
from rbrl.datasets.files import load_file

ENDINGS = (".npz", ".arff", ".arff.gz", ".mat")
PARTS = ("-train.arff", "-test.arff")


def find_files(folder, name):
    """Return (files, XML file or None) of a data set in `folder`.

    The files are one, or a training and a test part, or none. Case is ignored, and `-` stands for `_`.
    """
    present = {path.name.lower(): path for path in Path(folder).iterdir()} if Path(folder).is_dir() else {}
    for spelling in dict.fromkeys([name, name.replace("_", "-")]):
        xml = present.get(f"{spelling}.xml")
        for ending in ENDINGS:
            if spelling + ending in present:
                return [present[spelling + ending]], xml if "arff" in ending else None
        if all(spelling + part in present for part in PARTS):
            return [present[spelling + part] for part in PARTS], xml
    return [], None


def read_files(paths, labels, default_labels):
    """Read the files of a data set; two are its training and test parts, which become its split "source".

    Parameters
    ----------
    paths : list of Path
    labels : path of an XML file, or None
    default_labels : int
        Where the labels stand, if neither `labels` nor the files say.
    """
    if len(paths) == 1:
        return load_file(paths[0], labels, default_labels=default_labels)
    train, test = (load_file(path, labels, default_labels=default_labels) for path in paths)
    stack = sparse.vstack if sparse.issparse(train.X) else np.vstack
    split = np.arange(len(train)), np.arange(len(train), len(train) + len(test))
    return Dataset(
        stack([train.X, test.X]),
        np.vstack([train.Y, test.Y]),
        feature_names=train.feature_names,
        label_names=train.label_names,
        splits={"source": split},
        categorical_index=train.categorical_index,
    )
