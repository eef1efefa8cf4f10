"""Compare the estimated with the measured memory of fits: ``python -m studies.benchmarks.memory``.

Every fit runs in a process of its own, which prints its numbers with ``--shape NAME``.
"""

import argparse
import json
import resource
import subprocess
import sys
import warnings

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier
from studies.benchmarks.problems import write_results

TEXT = """The estimate is `RBRLClassifier(...).problem(X, Y).estimate_memory().usual`. The measured memory is the growth of
the peak memory of the process during `fit`, without Python, libraries and data. The data are random: sparse rows have 40
entries each, labels follow the features, and 5 labels of a row are relevant on average."""
MEGABYTE = 1e6

# Rows, features, labels, whether the features are sparse, and parameters, by the name of the problem.
SHAPES = {
    "few rows, many labels": (500, 200, 10_000, False, {}),
    "dense": (20_000, 300, 100, False, {}),
    "dense, weak ridge": (5_000, 300, 500, False, {"ridge": 1e-3}),
    "dense, nuclear norm": (20_000, 500, 200, False, {"nuclear": 1.0}),
    "text": (2_000, 28_000, 441, True, {}),
    "text, nuclear norm": (2_000, 28_000, 100, True, {"nuclear": 0.1, "ridge": 1.0}),
    "text, weak ridge": (3_000, 10_000, 1_000, True, {"ridge": 1e-2}),
    "text, ten thousand labels": (5_000, 29_540, 11_969, True, {"ridge": 1.0, "tol": 1e-2}),
    "the same without ranking": (5_000, 29_540, 11_969, True, {"ridge": 1.0, "ranking": 0, "tol": 1e-2}),
    "the same, compressed": (5_000, 29_540, 11_969, True, {"ridge": 1.0, "ranking": 0, "tol": 1e-2, "compress": 0.01}),
    "text, rank 50": (3_000, 5_000, 2_000, True, {"ridge": 1.0, "max_rank": 50, "tol": 1e-2}),
    "rbf kernel": (4_000, 50, 20, False, {"kernel": "rbf"}),
    "rbf kernel, nuclear norm": (2_000, 50, 20, False, {"kernel": "rbf", "nuclear": 0.1}),
    "rbf kernel by 500 features": (10_000, 50, 20, False, {"kernel": "rbf", "approximation": "nystroem"}),
}  # fmt: skip


def make_problem(n, m, l, is_sparse):
    """Return random rows, and labels that follow them."""
    rng = np.random.default_rng(0)
    n_relevant = min(5, l // 3)
    if not is_sparse:
        X = rng.standard_normal((n, m))
        best = np.argpartition(-(X[:, :20] @ rng.standard_normal((20, l))), n_relevant, axis=1)[:, :n_relevant]
    else:
        columns = (m * rng.random((n, 40)) ** 3).astype(np.int64)
        places = np.repeat(np.arange(n), 40), columns.ravel()
        X = sparse.csr_array(sparse.coo_array((rng.random(n * 40) / 6, places), shape=(n, m)))
        best = columns[:, :n_relevant] % l
    Y = sparse.csr_array(
        (np.ones(best.size, dtype=np.int64), (np.repeat(np.arange(n), n_relevant), best.ravel())), (n, l)
    )
    Y.data[:] = 1
    return X, Y if is_sparse else Y.toarray().clip(0, 1).astype(np.int8)


def measure(name):
    """Return the estimated and the measured number of megabytes of a fit, and its gap."""
    *sizes, is_sparse, parameters = SHAPES[name]
    X, Y = make_problem(*sizes, is_sparse)
    model = RBRLClassifier(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:50], Y[:50])
        estimated = model.problem(X, Y).estimate_memory().usual
        before = current_bytes()
        model.fit(X, Y)
    measured = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    return {"estimated": estimated / MEGABYTE, "measured": measured / MEGABYTE, "gap": model.gap_}


def current_bytes():
    """Return the memory that this process holds now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def main():
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.memory", description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, help="measure one problem in this process, and print its numbers")
    name = parser.parse_args().shape
    if name:
        with threadpool_limits(1):
            sys.stdout.write(json.dumps(measure(name)))
        return
    rows = []
    for name, (n, m, l, is_sparse, parameters) in SHAPES.items():
        command = [sys.executable, "-m", "studies.benchmarks.memory", "--shape", name]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        rows.append(
            {
                "problem": name,
                "rows": n,
                "features": f"{m}, {'sparse' if is_sparse else 'dense'}",
                "labels": l,
                "parameters": ", ".join(f"{key}={value}" for key, value in parameters.items()) or "defaults",
                "estimated MB": f"{found['estimated']:.0f}",
                "measured MB": f"{found['measured']:.0f}",
                "measured / estimated": f"{found['measured'] / found['estimated']:.2f}",
                "gap": f"{found['gap']:.0e}",
            }
        )
        sys.stderr.write(f"{rows[-1]}\n")
    write_results(__file__, "Memory", TEXT, rows)


if __name__ == "__main__":
    main()
