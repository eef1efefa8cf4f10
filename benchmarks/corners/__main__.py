"""Are the corners of the paper's grid certified? ``python -m benchmarks.corners``, with RBRL_DATA and RBRL_GOLDEN."""

import itertools
import time
import warnings

from threadpoolctl import threadpool_limits

from benchmarks.problems import golden_emotions, kernel_design, linear_design, rbrl_objective, write_results, yeast
from rbrl.solvers import QuasiNewton

TEXT = """Default fits (tol = 1e-4, max_iter = 1000), cold start, at the eight corners of {1e-4, ..., 1e2}^3. %d of %d end
certified."""


def main():
    warnings.simplefilter("ignore")
    (X, Y), (X_yeast, Y_yeast) = golden_emotions(), yeast()
    rows = []
    for name, rows_, labels in (("emotions", X, Y), ("yeast", X_yeast, Y_yeast)):
        for kind, make in (("kernel", kernel_design), ("linear", linear_design)):
            design = make(rows_)
            for weights in itertools.product((1e-4, 1e2), repeat=3):
                started = time.perf_counter()
                fit = QuasiNewton().solve(rbrl_objective(design, labels, *weights))
                rows.append(
                    {
                        "problem": f"{name} {kind}",
                        "ridge, ranking, nuclear": ", ".join(f"{w:g}" for w in weights),
                        "certified gap": f"{fit.gap:.0e}",
                        "met": "yes" if fit.converged else "no",
                        "evaluations": f"{fit.evaluations:.1f}",
                        "seconds": f"{time.perf_counter() - started:.2f}",
                    }
                )
                print(rows[-1], flush=True)
    met = sum(row["met"] == "yes" for row in rows)
    write_results(__file__, "Certified corners", TEXT % (met, len(rows)), rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
