"""Formats for very many labels: of the extreme classification repository, and pairs of NPZ files.

A file of the repository begins with a line of three numbers: rows, features, labels. A row is
`1,3 0:0.25 7:1`; labels and features are numbered from 0. A row without labels begins with a space.

A pair is two files of `scipy.sparse.save_npz`, with the features and the labels. Their names differ
in one part, X or Y: `train.X.npz` and `train.Y.npz`, or `X.trn.npz` and `Y.trn.npz` as in the files
of PECOS. The name with X stands for both, so that a data set is one path, as in all other formats.

Both formats have no names of features and labels. Y is always sparse.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy import sparse

from rbrl._common.environment import replace_file
from rbrl._common.typing import Matrix
from rbrl.datasets.columns import Columns
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats import (
    MAX_DATA_FILE_BYTES,
    Format,
    ReadOptions,
    create_text,
    format_error,
    format_number,
    name_file_in_errors,
    open_text,
    quote,
    row_blocks,
    row_entries,
)
from rbrl.datasets.formats.arrays import CSR_FIELDS, read_arrays, read_csr
from rbrl.datasets.formats.svmlight import Svmlight, parse_sizes
from rbrl.datasets.formats.table import check_writable, label_matrix

PAIR_ENDING = ".X.npz"


class Repository(Svmlight):
    """Reader and writer of files of the extreme classification repository."""

    name = "repository"
    endings = (".xmc",)

    def read(self, path: Path, options: ReadOptions) -> Dataset:
        """Read a file; Y is sparse."""
        _check_sizes(path, options)
        return super().read(path, options)

    def parts(self, path: Path, options: ReadOptions, size: int) -> Iterator[Dataset]:
        """Yield the file as data sets of `size` rows."""
        _check_sizes(path, options)
        return super().parts(path, options, size)

    def features(self, path: Path, options: ReadOptions, columns: Columns, size: int) -> Iterator[Matrix]:
        """Yield the features, at most `size` rows at a time."""
        _check_sizes(path, options)
        return super().features(path, options, columns, size)

    def write(self, dataset: Dataset, path: Path, labels_first: bool = False) -> None:
        """Write a file without the names of features and labels; missing values are refused."""
        check_writable(dataset, missing=False)
        X = sparse.csr_array(dataset.X, copy=True)
        X.eliminate_zeros()
        Y = sparse.csr_array(dataset.Y, copy=True)
        Y.eliminate_zeros()
        with create_text(path) as stream:
            stream.write(f"{dataset.n_samples} {dataset.n_features} {dataset.n_labels}\n")
            for features, labels in zip(row_entries(X), row_entries(Y)):
                words = [",".join(str(j) for j, _ in labels)]
                words += [f"{j}:{format_number(value)}" for j, value in features]
                stream.write((" ".join(words) or " ") + "\n")


def _check_sizes(path: Path, options: ReadOptions) -> None:
    """Raise an error unless the first line has three sizes."""
    with open_text(path, options) as stream:
        line = stream.readline().strip()
    if parse_sizes(line) is None:
        raise format_error(
            "a file of the extreme classification repository begins with the numbers of rows, "
            f"features and labels; got {quote(line)}; name a file without them .svm",
            1,
        )


class NpzPair(Format):
    """Reader and writer of pairs of NPZ files with sparse matrices."""

    name = "npz-pair"
    endings = (PAIR_ENDING,)
    max_bytes = MAX_DATA_FILE_BYTES

    def read(self, path: Path, options: ReadOptions) -> Dataset:
        """Read both files; Y is sparse."""
        partner = label_file(path)
        if not partner.is_file():
            raise format_error(f"the labels of the pair are in {partner.name}, which is missing")
        X = _read_sparse(path, options.max_bytes)
        Y = _read_sparse(partner, options.max_bytes)
        if X.shape[0] != Y.shape[0]:
            sizes = f"{path.name} has {X.shape[0]}, {partner.name} {Y.shape[0]}"
            raise format_error(f"X and Y must have as many rows; {sizes}")
        return Dataset(X, label_matrix(Y, as_sparse=True), name=_name_of_pair(path))

    def features(self, path: Path, options: ReadOptions, columns: Columns, size: int) -> Iterator[Matrix]:
        """Yield the features, at most `size` rows at a time; the labels are not read."""
        X = _read_sparse(path, options.max_bytes).astype("f8", copy=False)
        return row_blocks(X, size)

    def write(self, dataset: Dataset, path: Path, labels_first: bool = False) -> None:
        """Write both files, without names of features and labels; missing labels are refused."""
        if dataset.missing_labels:
            count = dataset.missing_labels
            raise format_error(f"missing labels cannot be written in this format: Y has {count}")
        for target, matrix in ((label_file(path), dataset.Y), (path, dataset.X)):
            with replace_file(target) as temporary, open(temporary, "wb") as stream:
                sparse.save_npz(stream, sparse.csr_matrix(matrix))


def label_file(path: Path) -> Path:
    """Return the file of the labels that belongs to a file of features."""
    parts = path.name.split(".")
    if "X" not in parts:
        raise format_error(f"a pair is named like train.X.npz; got {quote(path.name)}")
    parts[parts.index("X")] = "Y"
    return path.with_name(".".join(parts))


def _name_of_pair(path: Path) -> str:
    """Return the name of a data set from the name of its file of features."""
    return ".".join(part for part in path.name.split(".")[:-1] if part != "X")


def _read_sparse(path: Path, max_bytes: int) -> Any:
    """Return the matrix in a file of `scipy.sparse.save_npz` as a CSR array, after checks."""
    with name_file_in_errors(path):
        arrays = read_arrays(path, max_bytes, kinds="biufUS")
        layout = arrays["format"].tobytes().replace(b"\0", b"") if "format" in arrays else b""
        if layout != b"csr" or not arrays.keys() >= set(CSR_FIELDS):
            raise format_error(
                "a file of a pair must be a CSR matrix; got the format "
                f"{quote(layout.decode('latin-1'))} and the arrays {quote(sorted(arrays))}; write it with "
                f"scipy.sparse.save_npz({path.name!r}, M.tocsr()); "
                "if the file has X and Y, rename it"
            )
        return read_csr(arrays, "the matrix")
