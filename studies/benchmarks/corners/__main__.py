"""Certify the corners of the paper's grid: ``python -m studies.benchmarks.corners``.

RBRL_DATA and RBRL_GOLDEN name the folders of data sets and of the authors' split.
"""

import itertools
import time
import warnings

from threadpoolctl import threadpool_limits

from studies.benchmarks.problems import first_model, golden_emotions, write_results, yeast

TEXT = """Fits from zero (tol = 1e-4, max_iter = 1000) at the eight corners of {1e-4, ..., 1e2}^3,
with the kernel and the intercept of the paper. The solver is the automatic choice of
RBRLClassifier: dual ascent for linear models unless the ridge is too weak for the length of the
rows, and quasi-Newton otherwise. Seconds are processor time, set-up of the design included. %d of
%d fits end certified."""


def measure(name, kernel, X, Y, weights):
    """Solve one problem and return its line of the table."""
    parameters = dict(zip(("ridge", "ranking", "nuclear"), weights))
    problem = first_model(kernel=kernel, **parameters).problem(X, Y)
    started = time.process_time()
    solution = problem.solve()
    seconds = time.process_time() - started
    is_certified = solution.proof.gap <= problem.model.tol
    return {
        "problem": f"{name} {'linear' if kernel == 'linear' else 'kernel'}",
        "ridge, ranking, nuclear": ", ".join(f"{weight:g}" for weight in weights),
        "solver": type(problem.solver).__name__,
        "certified gap": f"{solution.proof.gap:.0e}",
        "met": "yes" if is_certified else "no",
        "evaluations": f"{solution.result.evaluations:.1f}",
        "seconds": f"{seconds:.2f}",
    }


def main():
    """Solve all corners, and write the page."""
    warnings.simplefilter("ignore")
    data = {"emotions": golden_emotions(), "yeast": yeast()}
    corners = list(itertools.product((1e-4, 1e2), repeat=3))
    rows = []
    for (name, (X, Y)), kernel in itertools.product(data.items(), ("rbf", "linear")):
        for weights in corners:
            rows.append(measure(name, kernel, X, Y, weights))
            print(rows[-1], flush=True)
    n_certified = sum(row["met"] == "yes" for row in rows)
    write_results(__file__, "Certified corners", TEXT % (n_certified, len(rows)), rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
