"""Is the answer the same wherever the rows are? ``python -m studies.benchmarks.equal_answers``, with RBRL_DATA and Dask."""

import tempfile

import dask
import distributed
from threadpoolctl import threadpool_limits

from rbrl import datasets
from rbrl.solvers import SOLVERS
from studies.benchmarks.problems import first_model, folder, write_results

TOLERANCES = {"arts": 1e-4, "bibtex": 1e-3}
ROWS = 1000
TEXT = f"""RBRL with the parameters of the paper on all rows of a data set, to the certified gap in the column
"asked for": as arrays, from NPZ shards of {ROWS} rows, from delayed parts of {ROWS} rows on Dask clusters of worker
processes, and with every other solver that certifies. "Above the lowest" is the relative distance from the lowest
objective of the data set; a proof of equality needs it to be at most the certified gap."""


def in_memory(data, tol, solver="auto"):
    return first_model(tol=tol, solver=solver).fit(data.X, data.Y)


def out_of_core(data, tol):
    with tempfile.TemporaryDirectory(prefix="rbrl-shards-") as where:
        return first_model(tol=tol).fit(datasets.write_shards(data, where, rows_per_shard=ROWS))


def on_dask(data, tol, n_workers):
    parts = [dask.delayed(data.take(slice(a, a + ROWS))) for a in range(0, data.n_samples, ROWS)]
    cluster = distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster):
        return first_model(tol=tol).fit(parts)


def models(data, tol):
    """Yield (place, fitted model)."""
    yield "arrays in memory", in_memory(data, tol)
    yield "shards on disk", out_of_core(data, tol)
    for n_workers in (1, 2, 4):
        workers = f"{n_workers} workers" if n_workers > 1 else "1 worker"
        yield f"Dask, {workers}", on_dask(data, tol, n_workers)
    for name in sorted(set(SOLVERS) - {"auto", "apg"}):
        yield f"arrays in memory, solver {name!r}", in_memory(data, tol, name)


def rows_of(name, tol):
    found = dict(models(datasets.load(name, data_home=folder("RBRL_DATA")), tol))
    lowest = min(model.objective_ for model in found.values())
    for place, model in found.items():
        above = model.objective_ / lowest - 1
        if above > model.gap_:
            raise SystemExit(f"{name}, {place}: {above:.1e} above the lowest, certified {model.gap_:.1e}")
        yield {
            "data": name,
            "place": place,
            "asked for": f"{tol:g}",
            "certified gap": f"{model.gap_:.1e}",
            "objective": f"{model.objective_:.8g}",
            "above the lowest": f"{above:.1e}",
            "evaluations": f"{model.n_evaluations_:g}",
        }


if __name__ == "__main__":
    with threadpool_limits(1):
        rows = [row for name, tol in TOLERANCES.items() for row in rows_of(name, tol)]
    write_results(__file__, "Equal answers", TEXT, rows)
