"""Compare fits with a thousand labels: ``python -m studies.benchmarks.many_labels``, with RBRL_DATA.

LIBMULTILABEL_PYTHON names the interpreter that has LibMultiLabel; without it, its rows are left out.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rbrl import datasets
from rbrl.metrics import ranking_loss
from rbrl.problem import linear_design, with_constant
from studies.benchmarks.problems import folder, markdown, rbrl_objective, signed, write_results

# Of eight points around (10, 1, 10), the one with the lowest ranking loss on a fifth of the training rows.
RBRL = {"ridge": 100, "ranking": 1, "nuclear": 100, "tol": 1e-3}
SAME_C = 1 / (2 * RBRL["ridge"])
METHODS = [
    ("RBRL, tol=1e-3", "rbrl", RBRL),
    ("RBRL, intercept_ridge=1", "rbrl", {**RBRL, "intercept_ridge": 1.0}),
    ("RBRL, max_rank=50", "rbrl", {**RBRL, "max_rank": 50}),
    ("OneVsRest(LinearSVC())", "one_vs_rest", {}),
    (f"OneVsRest(LinearSVC(C={SAME_C:g}))", "one_vs_rest", {"C": SAME_C}),
    ("LibMultiLabel, one-vs-rest", "libmultilabel", {"options": ""}),
    (f"LibMultiLabel, -s 1 -c {SAME_C:g}", "libmultilabel", {"options": f"-s 1 -c {SAME_C:g}"}),
]
SHARES = (8, 4, 2, 1)
TEXT = f"""delicious, 9,663 training and 6,442 test rows (60 / 40, seed 0), 500 features, 983 labels, 19 of them relevant
in a row. Every method in a process of its own, one thread; seconds are processor time, "GB" is the peak of the process,
Python, libraries and data included. RBRL with ridge={RBRL["ridge"]}, ranking={RBRL["ranking"]}, nuclear={RBRL["nuclear"]}
unless stated otherwise, the best of eight points on a fifth of the training rows; C = 1 / (2 ridge) is the same ridge.
"gap" is certified; with max_rank it is the distance from the optimum without that constraint. Intercepts have the same ridge
as all weights unless stated otherwise; intercept_ridge=1, the default of the classifier, is a hundredth of it here."""
GROWTH = """## Cost against the number of labels

The same fit on nested subsets of the labels, drawn at random, tol = 1e-3. "pairs" is what the ranking term must look at,
relevant times irrelevant labels of all rows; "loss" is one pass over the loss and its gradient, and both slopes are those
of the logarithms against l x cardinality: 1 is linear."""


def write_problem(home, train, test):
    for name, matrix in zip(("X", "Y", "X_test"), (*train, test[0])):
        M = sparse.csr_matrix(matrix)
        np.savez(Path(home) / f"{name}.npz", data=M.data, indices=M.indices, indptr=M.indptr, shape=M.shape)


def run(home, method, parameters):
    python = os.environ.get("LIBMULTILABEL_PYTHON") if method == "libmultilabel" else sys.executable
    if not python:
        return None
    command = [python, str(Path(__file__).with_name("worker.py")), home, method, json.dumps(parameters)]
    environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def row(home, name, method, parameters, Y_test):
    facts = run(home, method, parameters)
    if facts is None:
        return []
    scores = np.load(Path(home) / "scores.npy")
    line = {
        "method": name,
        "fit": f"{facts['fit']:.1f}",
        "predict": f"{facts['predict']:.2f}",
        "GB": f"{facts['peak']:.2f}",
    }
    line |= {"ranking loss": f"{ranking_loss(Y_test, scores):.4f}", "gap": "", "rank": "", "objective": ""}
    if "gap" in facts:
        line |= {"gap": f"{facts['gap']:.1e}", "rank": facts["rank"], "objective": f"{facts['objective']:.0f}"}
    print(line, flush=True)
    return [line]


def growth(train, test):
    X, Y = train
    order = np.random.default_rng(0).permutation(Y.shape[1])
    design = linear_design(with_constant(X))
    rows = []
    for share in SHARES:
        part = np.sort(order[: len(order) // share])
        with tempfile.TemporaryDirectory() as home:
            write_problem(home, (X, Y[:, part]), test)
            facts = run(home, "rbrl", RBRL)
        p = np.asarray(Y[:, part].sum(axis=1), dtype=np.int64).ravel()
        rows.append(
            {
                "l": len(part),
                "cardinality": round(float(p.mean()), 2),
                "pairs": int(np.sum(p * (len(part) - p))),
                "fit": round(facts["fit"], 2),
                "evaluations": round(facts["evaluations"], 1),
                "fit / evaluation": round(facts["fit"] / facts["evaluations"], 3),
                "loss": round(loss_seconds(design, signed(Y[:, part])), 4),
            }
        )
        print(rows[-1], flush=True)
    size = np.log([row["l"] * row["cardinality"] for row in rows])
    slopes = {key: np.polyfit(size, np.log([row[key] for row in rows]), 1)[0] for key in ("fit / evaluation", "loss")}
    text = "; ".join(f"{key}: {slope:.2f}" for key, slope in slopes.items())
    return f"{GROWTH}\n\n{markdown(rows)}\n\nSlopes: {text}."


def loss_seconds(design, Y, repeats=5):
    objective = rbrl_objective(design, Y, RBRL["ridge"], RBRL["ranking"], RBRL["nuclear"])
    F = 0.1 * np.random.default_rng(0).standard_normal(Y.shape) - 0.9
    objective.loss.evaluate(objective.Y, F)
    started = time.process_time()
    for _ in range(repeats):
        objective.loss.evaluate(objective.Y, F)
    return (time.process_time() - started) / repeats


def main():
    train, test = datasets.load("delicious", data_home=folder("RBRL_DATA")).split(0)
    with tempfile.TemporaryDirectory() as home:
        write_problem(home, train, test)
        rows = [line for method in METHODS for line in row(home, *method, test[1])]
    write_results(__file__, "Many labels", TEXT, rows, after=growth(train, test))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
