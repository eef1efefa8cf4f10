"""Problems and functions for results that several benchmarks share."""

import csv
import io
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, __version__, datasets
from rbrl.datasets.dataset import canonical_order, row_digests
from rbrl.losses import PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.problem import SpectralDesign, eigen_design, with_constant
from rbrl.problem.objective import Objective
from studies.text_files import append_rows, read_text


def folder(variable):
    """Return the folder that an environment variable names; without it, stop with a message."""
    path = os.environ.get(variable)
    if not path:
        sys.exit(f"{variable} is not set: this benchmark needs that folder of real data.")
    return Path(path)


def first_model(**parameters):
    """Return RBRL with the parameters of the paper, which the benchmarks use unless they state others."""
    first = {
        "ridge": 1.0,
        "ranking": 0.1,
        "nuclear": 0.1,
        "intercept_ridge": None,
        "gamma": "paper",
        "non_empty": False,
    }
    return RBRLClassifier(**first | parameters)


def golden_emotions():
    """Return the authors' own split of emotions: 355 standardised rows, labels in {-1, +1}."""
    data = np.load(folder("RBRL_GOLDEN") / "emotions-split.npz")
    return data["X_train"].astype(float), data["Y_train"]


def yeast():
    """Return the source's own training rows of yeast, standardised, labels in {-1, +1}."""
    (X, Y), _ = datasets.load("yeast", data_home=folder("RBRL_DATA")).split("source")
    return StandardScaler().fit_transform(X), signed(Y)


def dataset(name):
    """Load a data set of the catalogue, or the file NAME.npz in the folder RBRL_DATA, with rows in canonical order."""
    home = folder("RBRL_DATA")
    if name in datasets.CARDS:
        return datasets.load(name, data_home=home)
    found = datasets.load_file(home / f"{name}.npz")
    return found.reorder(canonical_order(row_digests(found.X, found.Y)))


def part(name, seed=0):
    """Return the 60 % part of a data set: dense features standardised, sparse ones unchanged; labels in {-1, +1}."""
    (X, Y), _ = dataset(name).split(seed)
    return (X if sparse.issparse(X) else StandardScaler().fit_transform(X)), signed(Y)


def signed(Y):
    """Return labels in {-1, +1}."""
    return np.where(np.asarray(Y) > 0, 1, -1).astype(np.int8)


def kernel_design(X):
    """RBF kernel of width 1 / n_features, in spectral coordinates."""
    return SpectralDesign(rbf_kernel(X, gamma=1.0 / X.shape[1]))


def linear_design(X):
    """Return the design of features and a column of ones, in the eigenbasis of their covariance."""
    return eigen_design(with_constant(X))


def rbrl_objective(design, Y, ridge, ranking, nuclear):
    """RBRL's objective."""
    loss = WeightedSum((1.0, SquaredHinge()), (ranking, PairwiseSquaredHinge()))
    return Objective(design, Y, loss, ridge, nuclear)


def markdown(rows):
    """Format a Markdown table from dicts with equal keys."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([str(row[key]) for key in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_results(file, title, text, rows, after=""):
    """Rewrite the results.md beside a benchmark, and show it; `after` follows the table."""
    name = Path(file).parent.name
    stamp = (
        f"Command: `python -m studies.benchmarks.{name}`, rbrl {__version__}, {datetime.now(UTC):%Y-%m-%d}, one thread."
    )
    page = f"# {title}\n\n{stamp}\n\n{text}\n\n{markdown(rows)}\n" + (f"\n{after}\n" if after else "")
    Path(file).with_name("results.md").write_text(page, encoding="utf-8")
    print(page)


def write_rows(file, columns, rows, mode="a"):
    """Add rows to a table that a benchmark can continue; with the mode "w" they replace the rows that it has."""
    if mode == "w":
        file.unlink(missing_ok=True)
    append_rows(file, columns, rows)


def read_rows(file, key):
    """Return the rows of a table by their values in the columns `key`."""
    if not file.exists():
        return {}
    lines = io.StringIO(read_text(file), newline="")
    return {tuple(row[name] for name in key): row for row in csv.DictReader(lines)}
