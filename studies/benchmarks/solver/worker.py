"""Solve one problem in a process of its own: ``python worker.py FOLDER PARAMETERS SECONDS``.

FOLDER holds the rows and labels that the benchmark wrote; PARAMETERS of the classifier are JSON.
rbrl is the one of PYTHONPATH. The worker imports nothing of the other benchmarks, so that it runs
with any version of the package. The process ends at once after SECONDS of processor time.
"""

import inspect
import json
import math
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

import rbrl
from rbrl import RBRLClassifier

# Processor time is counted in steps of some milliseconds: a time is the mean over a batch of at least
# BATCH seconds. Other processes only make it longer: of all batches, the shortest counts.
BATCH, ALL_BATCHES = 0.05, 1.0


def read(folder):
    """Return the rows and labels of the problem."""
    parts = np.load(Path(folder) / "rows.npz")
    if "X" in parts:
        return parts["X"], parts["Y"]
    X = sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    return X, parts["Y"]


def classifier(parameters):
    """Return the classifier with the intercept of the paper, for any version of the package."""
    first = {"ridge": 1.0, "ranking": 0.1, "intercept_ridge": None, "gamma": None}
    known = inspect.signature(RBRLClassifier).parameters
    return RBRLClassifier(**{name: value for name, value in first.items() if name in known} | parameters)


def warm_up(parameters):
    """Load the compiled loops: solve small problems of every design."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 8)), np.where(rng.random((40, 5)) < 0.4, 1, -1).astype(np.int8)
    for rows, kernel in ((X, "linear"), (sparse.csr_array(np.maximum(X, 0)), "linear"), (X, "rbf")):
        for more in ({}, parameters | {"kernel": kernel}):
            classifier({"kernel": kernel} | more).problem(rows, Y).solve()


def batch(parameters, X, Y):
    """Solve for a while, and return the solution and the mean seconds."""
    started, count = time.process_time(), 0
    while count == 0 or time.process_time() - started < BATCH:
        solution = classifier(parameters).problem(X, Y).solve()
        count += 1
    return solution, (time.process_time() - started) / count


def solver_name(parameters, X, Y):
    """Return the name of the chosen solver; empty for versions that do not choose."""
    solver = getattr(classifier(parameters).problem(X, Y), "solver", None)
    return "" if solver is None else type(solver).__name__


def main(folder, parameters, seconds):
    """Solve the problem, and print the facts as JSON."""
    X, Y = read(folder)
    parameters = json.loads(parameters)
    warm_up(parameters)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + float(seconds)), hard))
    first, times = time.process_time(), []
    while not times or time.process_time() - first < ALL_BATCHES:
        solution, seconds_each = batch(parameters, X, Y)
        times.append(seconds_each)
    facts = {"evaluations": solution.result.evaluations, "n_iter": solution.result.n_iter, "cpu": min(times)}
    facts |= {"gap": solution.proof.gap, "objective": solution.proof.objective}
    facts["solver"] = solver_name(parameters, X, Y)
    print(json.dumps(facts | {"package": rbrl.__file__}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
