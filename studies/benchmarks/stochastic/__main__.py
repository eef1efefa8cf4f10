"""Compare stochastic methods with the default solver by their passes over the rows.

``python -m studies.benchmarks.stochastic``, with RBRL_DATA.
"""

import time
import warnings
from unittest import mock

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rbrl import datasets
from rbrl.losses import PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.metrics import ranking_loss
from rbrl.out_of_core import batches as streaming
from rbrl.solvers import QuasiNewton
from studies.benchmarks.out_of_core.text_like import TextLike
from studies.benchmarks.problems import first_model, folder, markdown, signed, write_results
from studies.benchmarks.stochastic.methods import BUDGET, Problem, averaged, growing, quasi_newton, variance_reduced

LEVELS, BATCH = (1e-2, 1e-3, 1e-4), 1000
TEXT = f"""Passes over the rows until the objective is within a share of its optimum, and the best share within
{BUDGET} passes; a product with X or its transpose is half a pass. All methods start where the default solver does
and have its preconditioner; the best of two steps, 0.05 and 0.2, is shown, with batches of {BATCH} rows. Rows are in
random order, in memory; ridge 1, ranking 0.1, nuclear 0.1.

{{one_pass}}

The table above: one pass over the rows in batches of {BATCH}, by `partial_fit` from sums (up to 5000 features) and by
steps, beside a fit of the first fifth of the rows and of all. "Above the optimum" is the objective over all rows,
relative; ranking loss is that of rows not learned from; seconds are processor time. The table below: passes."""


def text_like(n_rows):
    source = TextLike()
    parts = [source.block(i, 10_000) for i in range(n_rows // 10_000 + 1)]
    return sparse.vstack([X for X, _ in parts], format="csr"), signed(np.vstack([Y for _, Y in parts]))


def imdb():
    data = datasets.load("imdb", data_home=folder("RBRL_DATA"))
    return data.X, signed(data.Y)


def candidates(problem):
    """Methods with their settings: name, list of runs."""
    yield "quasi-Newton, the default", [("", quasi_newton(problem, 0))]
    for share in (0.1, 0.3):
        yield f"quasi-Newton, {share:.0%} of the rows first", [("", growing(problem, 0, share))]
    for name, method in {"variance-reduced": variance_reduced, "averaged gradients": averaged}.items():
        yield name, [(f"step {step}", method(problem, 0, BATCH, step)) for step in (0.05, 0.2)]


def passes_row(data, name, runs, optimum):
    def reached(way, level):
        return next((passes for passes, value in way if value / optimum - 1 <= level), np.inf)

    setting, way = min(runs, key=lambda run: (reached(run[1], 1e-3), min(value for _, value in run[1])))
    found = {f"to {level:g}": reached(way, level) for level in LEVELS}
    shown = {key: f"{passes:.1f}" if np.isfinite(passes) else "–" for key, passes in found.items()}
    best = min(value for passes, value in way if passes <= BUDGET + 1) / optimum - 1
    return {"data": data, "method": name, "setting": setting, **shown, "best": f"{best:.0e}"}


def streamed(problem, largest_gram):
    model = first_model()
    with mock.patch.object(streaming, "LARGEST_GRAM", largest_gram):
        for a in range(0, problem.n, BATCH):
            model.partial_fit(problem.X[a : a + BATCH], problem.Y[a : a + BATCH])
        _ = model.coef_
    return model


def one_pass(problem):
    """Methods: name, function that fits."""
    fifth = problem.n // 5
    if problem.X.shape[1] <= streaming.LARGEST_GRAM:
        yield "partial_fit, sums", lambda: streamed(problem, streaming.LARGEST_GRAM)
    yield "partial_fit, steps", lambda: streamed(problem, 0)
    yield "fit of a fifth, to 1e-3", lambda: first_model(tol=1e-3).fit(problem.X[:fifth], problem.Y[:fifth])
    yield "fit of all, to 1e-3", lambda: first_model(tol=1e-3).fit(problem.X, problem.Y)


def one_pass_row(data, problem, name, fit, optimum, test):
    started = time.process_time()
    model = fit()
    seconds = time.process_time() - started
    W = problem.design.weights(np.vstack([model.coef_.T, model.intercept_]))
    above = problem.objective.value(W) / optimum - 1
    loss = ranking_loss((test[1] > 0).astype(int), model.decision_function(test[0]))
    return {
        "data": data,
        "method": name,
        "above the optimum": f"{above:.1e}",
        "ranking loss": f"{loss:.4f}",
        "cpu seconds": f"{seconds:.1f}",
    }


def main():
    passes, single = [], []
    loss = WeightedSum((1.0, SquaredHinge()), (0.1, PairwiseSquaredHinge()))
    for data, (X, Y) in {"imdb": imdb(), "text-like, 20,000 rows": text_like(20_000)}.items():
        *train, X_test, Y_test = X[:-10_000], Y[:-10_000], X[-10_000:], Y[-10_000:]
        problem = Problem(*train, loss, 1.0, 0.1)
        result = QuasiNewton().solve(problem.objective, tol=1e-5)
        optimum = result.objective / (1 + result.gap)
        for name, fit in one_pass(problem):
            single.append(one_pass_row(data, problem, name, fit, optimum, (X_test, Y_test)))
            print(single[-1], flush=True)
        for name, runs in candidates(problem):
            passes.append(passes_row(data, name, runs, optimum))
            print(passes[-1], flush=True)
    write_results(__file__, "Stochastic methods", TEXT.format(one_pass=markdown(single)), passes)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
