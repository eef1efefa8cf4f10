"""Count the evaluations of the default solver.

Command: ``python -m studies.benchmarks.evaluations``, with RBRL_DATA and RBRL_GOLDEN.
"""

import time
import warnings

from threadpoolctl import threadpool_limits

from rbrl.solvers import QuasiNewton
from studies.benchmarks.problems import (
    golden_emotions,
    kernel_design,
    linear_design,
    rbrl_objective,
    write_results,
    yeast,
)

# Problem, weights, and the best count known before, to gaps 1e-3 / 1e-4 / 1e-6.
CASES = [
    ("emotions kernel", (1, 0.01, 0.1), (2.5, 3.5, 5.5)),
    ("emotions kernel", (0.1, 1, 1), (10, 12, 18)),
    ("emotions kernel", (0.01, 0.01, 0.01), (20, 30, 48)),
    ("emotions kernel", (10, 1, 100), (8, 15, 17)),
    ("emotions linear", (1, 0.01, 0.1), (8.5, 12.5, 22.5)),
    ("emotions linear", (0.01, 0.01, 0.01), (36, 84, 182)),
    ("yeast kernel", (1, 0.01, 0.1), (2, 4, 6)),
    ("yeast kernel", (10, 1, 100), (6, 12, 18)),
]
GAPS = (1e-3, 1e-4, 1e-6)
TEXT = """Evaluations (one product with the design and one with its transpose) until the objective is within 1e-3, 1e-4, 1e-6
of the optimum, cold start; "before" is the best count known before. The optimum is a run to a certified gap of 1e-10.
"certified" is the default fit, tol = 1e-4: evaluations, the gap it certifies, its true gap, and milliseconds without
the set-up of the design."""


def row(name, weights, before, design, Y):
    objective = rbrl_objective(design, Y, *weights)
    tight = QuasiNewton().solve(objective, tol=1e-10, max_iter=2000)
    counts = [cost(tight, gap) for gap in GAPS]
    started = time.perf_counter()
    fit = QuasiNewton().solve(objective)
    seconds = time.perf_counter() - started
    return {
        "problem": name,
        "ridge, ranking, nuclear": ", ".join(f"{w:g}" for w in weights),
        "evaluations": " / ".join(f"{c:.3g}" for c in counts),
        "before": " / ".join(f"{c:g}" for c in before),
        "certified": f"{fit.evaluations:.3g} evaluations, gap {fit.gap:.0e}, true {fit.objective / tight.objective - 1:.0e}",
        "ms": f"{1e3 * seconds:.0f}",
    }


def cost(result, gap):
    reached = result.history <= result.objective * (1 + gap)
    return result.costs[reached.argmax()]


def main():
    warnings.simplefilter("ignore")
    X, Y = golden_emotions()
    X_yeast, Y_yeast = yeast()
    problems = {
        "emotions kernel": (kernel_design(X), Y),
        "emotions linear": (linear_design(X), Y),
        "yeast kernel": (kernel_design(X_yeast), Y_yeast),
    }
    rows = [row(name, weights, before, *problems[name]) for name, weights, before in CASES]
    write_results(__file__, "Evaluations of the default solver", TEXT, rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
