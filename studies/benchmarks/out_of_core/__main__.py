"""Fit a million rows on disk within 2 GB of memory: ``python -m studies.benchmarks.out_of_core [ROWS ...]``.

The folder of the shards is made in the temporary directory, and removed.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from studies.benchmarks.out_of_core.text_like import N_FEATURES, N_LABELS, TextLike
from studies.benchmarks.problems import first_model, write_results

SIZES = (20_000, 100_000, 1_000_000)
PLACES = ("in memory", "in memory, one block", "out of core")
ROWS_PER_SHARD, LIMIT, TOL = 20_000, 2 * 2**30, 1e-3
TEXT = f"""Rows that look like text (`text_like.py`): {N_FEATURES:,} features, about 58 of them in a row,
{N_LABELS} labels, 3 of them relevant; in NPZ shards of {ROWS_PER_SHARD:,} rows. RBRL with its default
parameters to a certified gap of {TOL:g}. Out of core, the address space of the whole process is limited to 2 GB
(`RLIMIT_AS`), so that nothing, not even a mapped file, is beyond it; memory is the peak resident size.
Processor time of `fit`, one thread; "in passes" is its part in passes over the rows, "between"
the solver's own. Reading is the share of wall time in which shards were read and unpacked;
the files were in the system's cache as far as that goes. "One block" is `fit([(X, Y)])`: the solver of shards, on
arrays."""


def write(folder, n_rows):
    """Shards, block by block."""
    from rbrl.datasets import write_shards

    source = TextLike()
    write_shards((source.block(i, ROWS_PER_SHARD) for i in range(n_rows // ROWS_PER_SHARD)), folder, ROWS_PER_SHARD)


def fit(folder, place):
    """Fit in this process; print the figures."""
    if place == "out of core":
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    from rbrl.datasets import open_shards
    from rbrl.out_of_core import LocalBlocks

    shards = open_shards(folder)
    warm = shards[0].X[:200], shards[0].Y[:200]
    first_model().fit([warm])  # compiled loops are loaded once
    blocks = LocalBlocks(shards)
    data = (blocks,) if place == "out of core" else _loaded(shards)
    if place == "in memory, one block":
        blocks = LocalBlocks([data])
        data = (blocks,)
    started, wall = time.process_time(), time.perf_counter()
    with threadpool_limits(1):
        model = first_model(tol=TOL).fit(*data)
    seconds, wall = time.process_time() - started, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    figures = {"seconds": seconds, "wall": wall, "reading": blocks.reading_seconds / wall, "peak": peak}
    figures["in passes"] = blocks.pass_processor_seconds
    print(json.dumps(figures | {"evaluations": model.n_evaluations_, "gap": model.gap_, "objective": model.objective_}))


def _loaded(shards):
    parts = list(shards)
    return sparse.vstack([X for X, _ in parts], format="csr"), np.vstack([Y for _, Y in parts])


def measure(folder, n_rows, place):
    """`fit` in a new process, as a line of the table."""
    command = [sys.executable, "-m", "studies.benchmarks.out_of_core", "fit", str(folder), place]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{place} with {n_rows} rows failed:\n{run.stderr}")
    found = json.loads(run.stdout.splitlines()[-1])
    return {
        "rows": f"{n_rows:,}",
        "place": place,
        "GB on disk": f"{sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**30:.2f}",
        "evaluations": f"{found['evaluations']:.1f}",
        "certified gap": f"{found['gap']:.1e}",
        "objective": f"{found['objective']:.7g}",
        "cpu seconds": f"{found['seconds']:.0f}",
        "in passes": f"{found['in passes']:.1f}" if place != "in memory" else "",
        "between": f"{found['seconds'] - found['in passes']:.1f}" if place != "in memory" else "",
        "wall seconds": f"{found['wall']:.0f}",
        "cpu µs per row": f"{1e6 * found['seconds'] / n_rows:.0f}",
        "reading": f"{found['reading']:.1%}" if place == "out of core" else "",
        "GB peak": f"{found['peak']:.2f}",
    }


def main(sizes):
    rows = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory(prefix="rbrl-shards-") as folder:
            write(folder, n_rows)
            for place in PLACES:
                rows.append(measure(folder, n_rows, place))
                print(rows[-1], flush=True)
    write_results(__file__, "Out of core", TEXT, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["fit"]:
        fit(*sys.argv[2:])
    else:
        main([int(size) for size in sys.argv[1:]] or SIZES)
