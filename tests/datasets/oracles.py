"""Readers of other programs, for comparison: pandas, SciPy, scikit-learn, NumPy."""

import io
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.words import MISSING_WORDS

SPELLINGS = sorted(
    {form for word in MISSING_WORDS for form in (word, word.upper(), word.title(), "NaN", "None", "null")} - {""}
)


def csv_columns(content, separator):
    """The columns that pandas reads as numbers, others as None."""
    import pandas as pd

    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # pandas loses a cell after two empty lines of \r
    frame = pd.read_csv(
        io.BytesIO(content),
        sep=separator,
        index_col=False,
        na_values=["", *SPELLINGS],
        keep_default_na=False,
        float_precision="round_trip",
        low_memory=False,
        encoding="utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig",
        on_bad_lines="error",
    )
    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    return [column.to_numpy(np.float64) if column.dtype.kind in "fiub" else None for column in columns]


def arff_columns(content):
    """The columns that SciPy reads as numbers, others as None."""
    from scipy.io.arff import loadarff

    table, meta = loadarff(io.StringIO(content.decode("utf-8")))
    return [table[name] if meta[name][0] == "numeric" else None for name in meta.names()]


def svmlight_matrix(content):
    """The features that scikit-learn reads."""
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(io.BytesIO(content), multilabel=True, zero_based="auto")[0].toarray()


def repository_matrix(content):
    """The features that scikit-learn reads after the line of sizes."""
    from sklearn.datasets import load_svmlight_file

    sizes, _, rows = content.partition(b"\n")
    n_rows, n_features, _ = map(int, sizes.split())
    X = load_svmlight_file(io.BytesIO(rows), n_features=n_features, multilabel=True, zero_based=True)[0].toarray()
    return X if len(X) == n_rows else None  # scikit-learn skips rows without labels and features


def sparse_matrix(content):
    """The matrix that SciPy reads."""
    return sparse.load_npz(io.BytesIO(content)).toarray()


def xml_names(content):
    """The names of labels that ElementTree finds."""
    tags = ElementTree.fromstring(content).iter()
    return [tag.attrib["name"] for tag in tags if tag.tag.rpartition("}")[2].rpartition(":")[2] == "label"]


def npz_matrices(content):
    """X and Y as NumPy reads them."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return _whole(archive, "X"), _whole(archive, "Y")


def _whole(archive, key):
    if key in archive.files:
        return archive[key].astype(np.float64)
    data, indices, indptr, shape = (archive[f"{key}_{part}"] for part in ("data", "indices", "indptr", "shape"))
    return sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist())).toarray().astype(np.float64)


def mat_matrices(content):
    """The features and the labels, as they stand, as SciPy reads them."""
    from scipy.io import loadmat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variables = loadmat(io.BytesIO(content), variable_names=["X", "Y", "data", "target"])
    pair = ("X", "Y") if "X" in variables and "Y" in variables else ("data", "target")
    matrices = [variables[key] for key in pair]
    return [
        np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64) for matrix in matrices
    ]


def parquet_columns(content):
    """The columns that pandas reads as numbers, others as None."""
    import pandas as pd

    frame = pd.read_parquet(io.BytesIO(content))
    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    return [column.to_numpy(np.float64) if column.dtype.kind in "fiub" else None for column in columns]
