"""Compare our sparse products with SciPy's: ``python -m studies.benchmarks.sparse_products``, with RBRL_DATA."""

import time

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rbrl.problem.design import adjoint, scores
from studies.benchmarks.problems import dataset, write_results

NAMES = ("arts", "enron", "slashdot", "20ng", "yahoo_arts_full", "bibtex", "corel5k", "delicious")
TEXT = """Milliseconds of X W and of X' R for all rows and labels of a data set, the least of seven runs; SciPy's has the
transposed matrix at hand, ours needs none."""


def milliseconds(product, repeats=7):
    product()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        product()
        times.append(time.process_time() - started)
    return 1e3 * min(times)


def row(name):
    data = dataset(name)
    X, l = sparse.csr_array(data.X, dtype=np.float64), data.Y.shape[1]
    rng, Xt = np.random.default_rng(0), X.T.tocsr()
    W, R = rng.standard_normal((X.shape[1], l)), rng.standard_normal((X.shape[0], l))
    np.testing.assert_allclose(scores(X, W), X @ W, atol=1e-9)
    np.testing.assert_allclose(adjoint(X, R), Xt @ R, atol=1e-9)
    figures = {
        "X W, SciPy": milliseconds(lambda: X @ W),
        "X W": milliseconds(lambda: scores(X, W)),
        "X' R, SciPy": milliseconds(lambda: Xt @ R),
        "X' R": milliseconds(lambda: adjoint(X, R)),
    }
    return {"data": name, "rows": X.shape[0], "entries": X.nnz, "labels": l} | {
        k: f"{v:.2f}" for k, v in figures.items()
    }


def main():
    write_results(__file__, "Products with sparse rows", TEXT, [row(name) for name in NAMES])


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
