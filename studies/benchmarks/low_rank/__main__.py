"""Compare the solver in factors with the default: ``python -m studies.benchmarks.low_rank``, with RBRL_DATA."""

import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from rbrl.problem import linear_design, with_constant
from rbrl.solvers import LowRank, QuasiNewton
from studies.benchmarks.problems import part, rbrl_objective, write_results

CASES = {
    "arts": [(1, 0.01, 0.1), (1, 1, 10), (10, 1, 100)],
    "bibtex": [(1, 0.1, 30), (10, 1, 100), (10, 0.1, 200)],
}
TEXT = """Objective and certified gap of the default solver and of `LowRank`, tol = 1e-4, on 60 % parts, seed 0. "apart" is
the relative distance of the two objectives, which the larger of the two gaps must exceed. Seconds are processor time without
the set-up of the design, one thread."""


def row(name, weights, design, Y):
    line = {"data": name, "ridge, ranking, nuclear": ", ".join(f"{w:g}" for w in weights)}
    found = []
    for title, solver in (("default", QuasiNewton()), ("factors", LowRank())):
        objective = rbrl_objective(design, Y, *weights)
        started = time.process_time()
        result = solver.solve(objective)
        seconds = time.process_time() - started
        sigma = np.linalg.svd(result.weights, compute_uv=False)
        found.append(result)
        line[title] = (
            f"{result.objective:.6g}, gap {result.gap:.0e}, {result.evaluations:.0f} evaluations, {seconds:.1f} s"
        )
        line["rank"] = np.count_nonzero(sigma > 1e-6 * sigma[0])
    apart = abs(found[0].objective / found[1].objective - 1)
    line["apart"] = f"{apart:.0e}"
    assert apart <= max(result.gap for result in found)
    print(line, flush=True)
    return line


def main():
    warnings.simplefilter("ignore")
    rows = []
    for name, cases in CASES.items():
        X, Y = part(name)
        design = linear_design(with_constant(X))
        rows += [row(name, weights, design, Y) for weights in cases]
    write_results(__file__, "Weights in factors", TEXT, rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
