"""Time the compiled loops: ``python -m studies.benchmarks.loops [--against SOURCE] [--only NAME ...]``

Every loop beside its plain twin, on the shapes of five data sets. SOURCE is the folder `src` of another version of rbrl,
whose compiled loops are then timed in turn with ours.
"""

import argparse
import importlib
import inspect
import itertools
import sys
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rbrl._loops import COMPILED, reference, rows
from rbrl.ranking_svm.pairs import ranking_pairs
from studies.benchmarks.problems import write_results

# Rows and labels as in the training parts of these sets, and how many labels a row has on average.
SHAPES = {
    "emotions": (593, 6, 1.9), "yeast": (1450, 14, 4.2), "arts": (3000, 26, 1.6), "enron": (1702, 53, 3.4),
    "delicious": (12920, 983, 19.0),
}  # fmt: skip
N_FEATURES, MOST_PAIRS, MOST_ROWS = 300, 2_000_000, 1000
ROUNDS, ROUND_SECONDS = 12, 2e-3
TEXT = """Microseconds of one call, and the time of the compiled loop as a share of that of its plain twin; random scores, as
many relevant labels as in the data set. Weights are of rows; `entries` says that each entry has its own, `single` that
scores are in single precision. Loops over pairs that are listed take as many rows as have two million of them, those with
a kernel matrix a thousand. Least processor time of several rounds in which the versions take turns."""
AGAINST = "\nThe last column is our time as a share of that of the loops in `{}`."
LOOPS = {name: f for name, f in vars(reference).items() if inspect.isfunction(f) and name[0] != "_"}


def other_loops(source):
    """Import the compiled loops of another version in the place of ours, return them, and restore ours."""
    own = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "rbrl"}
    sys.path.insert(0, str(source))
    loops = importlib.import_module("rbrl._loops").rows
    sys.path.remove(str(source))
    sys.modules.update(own)  # modules that only the other has stay: they may be asked for when a loop is first called
    return loops


@lru_cache(maxsize=1)
def of_losses(n, l, cardinality, kind):
    rng = np.random.default_rng(0)
    dtype = np.float32 if kind == "single" else np.float64
    return {
        "Y": np.where(rng.random((n, l)) < cardinality / l, np.int8(1), np.int8(-1)),
        "weights": rng.random((n, l)) + 0.1 if kind == "entries" else np.ones(n),
        **{name: rng.standard_normal((n, l)).astype(dtype) for name in "FDRHP"},
        **{name: rng.standard_normal(l) for name in ("t", "d1", "d2")},
        **{"M": np.zeros((l, l)), "costs": np.ones(l), "scale": 1.0, "margin": 2.0, "coupling": 1.0},
    }


def of_solvers(rng, n, l, name):
    m = N_FEATURES
    X = sparse.random_array((n, m), density=0.05, rng=rng, format="csr")
    return {
        **{key: rng.standard_normal((m, l)) for key in ("A", "B", "q", "z", "W")},
        **{key: rng.standard_normal((5, m, l)) for key in ("steps", "changes")},
        **{"rho": np.zeros((5, l)), "coefficients": np.zeros((5, l)), "order": np.arange(5), "joint": False},
        **{"data": X.data, "indices": X.indices, "indptr": X.indptr, "D": rng.standard_normal((n, l))},
        "out": np.zeros((m if name == "sparse_adjoint" else n, l)),
        **{"sigma": rng.random(l), "linear": 3.0, "quadratic": 0.5, "reach": 1.0, "ridge": 0.2, "limit": 0.5},
    }


def of_pairs(rng, n, l, cardinality, name):
    per_row = max(1.0, cardinality * (l - cardinality))
    n = int(min(n, MOST_PAIRS / per_row, MOST_ROWS if name in ("ascend_gram", "gram_blocks") else np.inf))
    pairs = ranking_pairs(np.where(rng.random((n, l)) < cardinality / l, 1, -1).astype(np.int8), 1.0)
    m = 50 if name == "gram_blocks" else N_FEATURES
    X = sparse.random_array((n, m), density=0.05, rng=rng, format="csr")
    K, size = (X @ X.T).toarray(), len(pairs.cap)
    return {
        **dict(zip(("start", "winner", "loser", "margin", "cap"), pairs.arrays, strict=True)),
        **{"alpha": rng.random(size) * pairs.cap, "new": np.zeros(size), "out": np.zeros(size)},
        **{
            "curvatures": rng.random(size),
            "values": rng.random(size),
            "sign": -1.0,
            "K": K,
            "norms": np.diag(K).copy(),
        },
        **{"data": X.data, "indices": X.indices, "indptr": X.indptr, "lift": 0.0, "order": np.arange(n), "inner": 1},
        **{"F": rng.standard_normal((n, l)), "R": np.zeros((n, l)), "steps": np.ones(n)},
        **{"biases": np.zeros(l), "r": np.zeros(l), "scores": np.zeros((l, n)), "W": np.zeros((m, l))},
        **{"H": np.zeros((n, l) if name == "gram_blocks" else (l, l)), "G": np.zeros((m, m, l))},
    }


def cases(names, shape):
    """Yield (loop, kind, arguments) of loops on a shape, except those that no fit calls there."""
    rng, (n, l, cardinality) = np.random.default_rng(0), shape
    of_scores = [name for name in names if name.startswith(("squared_hinge", "pairwise_hinge"))]
    for kind, name in itertools.product(("", "entries", "single"), of_scores):
        yield name, kind, chosen(name, of_losses(n, l, cardinality, kind))
    for name in (name for name in names if name not in of_scores):
        if name.startswith(("pair_", "ascend_", "project_", "gram_")):
            if l <= 100 or name != "gram_blocks":
                yield name, "", chosen(name, of_pairs(rng, n, l, cardinality, name))
        else:
            yield name, "", chosen(name, of_solvers(rng, n, l, name))


def chosen(name, values):
    return [values[key] for key in inspect.signature(LOOPS[name]).parameters]


def microseconds(functions, arguments):
    """Least time of each, in turns, on the same arrays: what changes are sums, and duals that the first call has settled."""
    started = time.perf_counter()
    functions[0](*arguments)
    once = time.perf_counter() - started
    for function in functions[1:]:
        function(*arguments)
    repeats, best = max(1, int(ROUND_SECONDS / max(once, 1e-7))), [np.inf] * len(functions)
    for _ in range(ROUNDS if once < 0.05 else 3):
        for k, function in enumerate(functions):
            started = time.process_time()
            for _ in range(repeats):
                function(*arguments)
            best[k] = min(best[k], (time.process_time() - started) / repeats)
    return [1e6 * value for value in best]


def plain_microseconds(name, arguments):
    started = time.process_time()
    LOOPS[name](*arguments)
    return 1e6 * (time.process_time() - started)


def row(name, kind, data, shape, arguments, other):
    # The twins first: the duals that they leave are settled.
    plain = plain_microseconds(name, arguments)
    functions = [getattr(rows, name)] + ([getattr(other, name)] if other else [])
    ours, *theirs = microseconds(functions, arguments)
    found = {"loop": f"{name} {kind}".strip(), "shape": f"{data} {shape[0]}x{shape[1]}"}
    found |= {"plain": f"{plain:.0f}", "compiled": f"{ours:.1f}", "share": f"{ours / plain:.3f}"}
    return found | ({"of the other's": f"{ours / theirs[0]:.2f}"} if theirs else {})


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", nargs="*", default=list(LOOPS))
    options = parser.parse_args(arguments)
    if not COMPILED:
        sys.exit("There is no compiled core to be measured: see rbrl.info().")
    other = other_loops(options.against.resolve()) if options.against else None
    found = []
    for data, shape in SHAPES.items():
        for name, kind, call in cases(options.only, shape):
            found.append(row(name, kind, data, shape, call, other))
            print(*found[-1].values(), flush=True)
    if options.only == list(LOOPS):
        write_results(__file__, "Compiled loops", TEXT + (AGAINST.format(options.against) if other else ""), found)


if __name__ == "__main__":
    with threadpool_limits(1):
        main(sys.argv[1:])
