"""Measure how the time of one APG iteration grows with rows, features and labels. Rewrites results.md.

Run ``python -m studies.benchmarks.cost_per_iteration`` with one BLAS thread. Beside each measured exponent stands the
paper's bound: O(n m^2 + m^2 l + n m l^2) for the linear model, O(n^3 + n^2 l^2) for the kernel model.
"""

import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from rbrl.losses import PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.problem import MatrixDesign, SpectralDesign
from rbrl.problem.objective import Objective
from rbrl.solvers import APG

LINEAR, KERNEL = {"n": 2000, "m": 400, "l": 16}, {"n": 800, "l": 16}
SWEEPS = {"n": (1000, 2000, 4000, 8000), "m": (200, 400, 800, 1600), "l": (8, 16, 32, 64)}
KERNEL_SWEEPS = {"n": (400, 800, 1600), "l": SWEEPS["l"]}
PAPER = {("linear", "n"): 1, ("linear", "m"): 2, ("linear", "l"): 2, ("kernel", "n"): 3, ("kernel", "l"): 2}


def problem(n, l, m=None, seed=0):
    """Random rows and labels, three relevant labels in a row; a kernel problem where m is None."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m or 10))
    Y = np.where(rng.random((n, l)) < 3 / l, 1, -1)
    design = MatrixDesign(X) if m else SpectralDesign(np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2)))
    return Objective(design, Y, WeightedSum((1.0, SquaredHinge()), (1.0, PairwiseSquaredHinge())), 1.0, 1.0)


def seconds_per_iteration(objective, n_iter=10, repeats=5):
    """Return the shortest long run less the shortest short one: setup and certificate cancel out."""
    short, long = (min(_run(objective, k * n_iter) for _ in range(repeats)) for k in (1, 3))
    return (long - short) / (2 * n_iter)


def _run(objective, n_iter):
    started = time.process_time()
    APG(check_every=10**9).solve(objective, tol=1e-15, max_iter=n_iter)
    return time.process_time() - started


def sweep(kind, base, sizes):
    """One line of the table for each size that varies."""
    for name, values in sizes.items():
        times = [seconds_per_iteration(problem(**(base | {name: value}))) for value in values]
        exponent = np.polyfit(np.log(values), np.log(times), 1)[0]
        shown = " / ".join(f"{1e3 * t:.2f}" for t in times)
        yield f"| {kind} | {name} = {', '.join(map(str, values))} | {shown} | {exponent:.2f} | {PAPER[kind, name]} |"


def main():
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        lines = [*sweep("linear", LINEAR, SWEEPS), *sweep("kernel", KERNEL, KERNEL_SWEEPS)]
    text = f"""# Cost of one APG iteration

Milliseconds per iteration while one size varies (linear: n = 2000, m = 400, l = 16; kernel: n = 800, l = 16), the slope of
log time on log size, and the exponent of that size in the paper's bound. Processor time, one BLAS
thread, on a shared machine: read the slopes, not the digits. The exact operation counts are tested.

| model | size | ms per iteration | measured exponent | paper's bound |
|---|---|---|---|---|
{chr(10).join(lines)}
"""
    Path(__file__).with_name("results.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
