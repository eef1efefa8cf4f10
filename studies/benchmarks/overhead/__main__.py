"""Measure the share of Python in a small fit: ``python -m studies.benchmarks.overhead``, with RBRL_GOLDEN."""

import time
import warnings

from threadpoolctl import threadpool_limits

from rbrl.solvers import QuasiNewton
from studies.benchmarks.problems import golden_emotions, kernel_design, linear_design, rbrl_objective, write_results

WEIGHTS = ((0.01, 0.01, 0.01), (0.1, 1, 1), (1, 0.01, 0.1))
TINY, REPEATS, ITERATIONS = 16, 60, 40
TEXT = f"""Milliseconds of processor time per iteration of the default solver (one evaluation and its certificate) on the
authors' training part of emotions, 355 rows, and on its first {TINY} rows, where the same calls are made and the arithmetic
is next to nothing: that is the overhead, and the difference the arithmetic. Shortest of {REPEATS} alternating runs."""
DESIGNS = {"kernel": kernel_design, "linear": linear_design}


def milliseconds_per_iteration(design, Y, weights):
    objective = rbrl_objective(design, Y, *weights)
    started = time.process_time()
    result = QuasiNewton().solve(objective, tol=1e-12, max_iter=ITERATIONS)
    return 1e3 * (time.process_time() - started) / result.n_iter


def row(kind, weights):
    X, Y = golden_emotions()
    designs = {n: DESIGNS[kind](X[:n]) for n in (TINY, len(X))}
    runs = [
        {n: milliseconds_per_iteration(design, Y[:n], weights) for n, design in designs.items()} for _ in range(REPEATS)
    ]
    overhead, whole = (min(run[n] for run in runs) for n in designs)
    return {
        "model": kind,
        "ridge, ranking, nuclear": ", ".join(f"{value:g}" for value in weights),
        "whole": f"{whole:.2f}",
        "overhead": f"{overhead:.2f}",
        "overhead / arithmetic": f"{overhead / (whole - overhead):.1f}",
    }


def main():
    warnings.simplefilter("ignore")
    rows = [row(kind, weights) for kind in DESIGNS for weights in WEIGHTS]
    write_results(__file__, "Python's share of a small fit", TEXT, rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
