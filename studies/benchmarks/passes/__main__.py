"""How many passes a fit of files takes, what a pass costs in each format, and how far `partial_fit` ends from the optimum:
``python -m studies.benchmarks.passes``.
"""

import tempfile
import time

import numpy as np
from threadpoolctl import threadpool_limits

from rbrl import datasets
from rbrl.datasets import Dataset, open_shards, save_file
from rbrl.out_of_core import BlockDesign, LocalBlocks
from rbrl.out_of_core.objective import BlockObjective
from studies.benchmarks.problems import first_model, folder, markdown, write_results

SETS = ("arts", "enron", "slashdot", "tmc2007_500", "imdb")
RIDGES = (1.0, 10.0)
FORMATS = ("npz", "svm", "parquet")
TOL, BATCH, N_SHARDS = 1e-3, 500, 3
TEXT = f"""Passes are evaluations of the objective over all rows, to a certified gap of {TOL:g}, and one to look at the
rows, with the seconds in them and between them,
of RBRL with ranking 1, nuclear 0.1 and the ridge named, for all rows of the set as they are, in {N_SHARDS} blocks.
`partial_fit` saw each row once, in random order, in batches of {BATCH}; "above" is its objective relative to that of the
fit."""
AFTER = f"""tmc2007_500 in {N_SHARDS} files of a format: processor seconds of a fit with the paper's parameters to a gap of
{TOL:g}, and the share of its time in which files were read. "Parsed every time" is `open_shards(…, cache=False)`.

"""


def parts_of(X, Y):
    """The rows in blocks."""
    step = -(-X.shape[0] // N_SHARDS)
    return [(X[a : a + step], Y[a : a + step]) for a in range(0, X.shape[0], step)]


def line(name, ridge):
    """A fit and a `partial_fit` of one set."""
    data = datasets.load_file(folder("RBRL_DATA") / f"{name}.npz")
    order = np.random.default_rng(0).permutation(data.n_samples)
    X, Y = data.X[order], data.Y[order]
    parts = parts_of(X, Y)
    model = first_model(ridge=ridge, ranking=1, nuclear=0.1, tol=TOL).fit(parts)
    stream = first_model(ridge=ridge, ranking=1, nuclear=0.1)
    for a in range(0, len(Y), BATCH):
        stream.partial_fit(X[a : a + BATCH], Y[a : a + BATCH])
    design = BlockDesign(LocalBlocks(parts), stream.fit_intercept)
    objective = BlockObjective(design, stream.loss(), ridge, stream.nuclear)
    start = np.column_stack([stream.coef_, stream.intercept_]).T
    above = objective.value(design.weights(start)) / model.objective_ - 1
    sizes = f"{data.n_samples:,} x {data.n_features:,}, {data.n_labels} labels"
    return {
        "data": name,
        "sizes": sizes,
        "ridge": f"{ridge:g}",
        "passes": f"{model.n_evaluations_ + 1:.1f}",
        "s in passes": f"{model.pass_seconds_[0]:.1f}",
        "s between": f"{model.pass_seconds_[1]:.1f}",
        "gap": f"{model.gap_:.0e}",
        "partial_fit": "sums" if data.n_features <= 5000 else "steps",
        "above": f"{above:+.1%}",
    }


def cost(ending):
    """A fit of the same rows in one format, with copies and without."""
    data = datasets.load_file(folder("RBRL_DATA") / "tmc2007_500.npz")
    found = {"format": ending}
    with tempfile.TemporaryDirectory() as place:
        for i, (X, Y) in enumerate(parts_of(data.X, data.Y)):
            save_file(Dataset(X, Y, data.feature_names, data.label_names), f"{place}/{i}.{ending}")
        for title, cache in (("parsed every time", False), ("by default", True)):
            blocks = LocalBlocks(open_shards(f"{place}/*.{ending}", cache=cache))
            started, wall = time.process_time(), time.perf_counter()
            model = first_model(tol=TOL).fit(blocks)
            found[f"{title}, s"] = f"{time.process_time() - started:.1f}"
            found[f"{title}, reading"] = f"{blocks.reading_seconds / (time.perf_counter() - wall):.0%}"
        found["passes"] = f"{model.n_evaluations_ + 1:.1f}"
    return found


def main():
    with threadpool_limits(1):
        lines = [line(name, ridge) for name in SETS for ridge in RIDGES]
        costs = [cost(ending) for ending in FORMATS]
    write_results(__file__, "Passes over files", TEXT, lines, AFTER + markdown(costs))


if __name__ == "__main__":
    main()
