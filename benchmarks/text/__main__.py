"""How does a fit of text with many labels compare? ``python -m benchmarks.text [--only NAME] [--rounds N]``, with RBRL_DATA.

Rows that were measured are kept in results.csv, and a run goes on with the others; --again measures all of them anew.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from benchmarks.problems import folder, read_rows, write_results, write_rows
from scipy import sparse
from sklearn.preprocessing import normalize

HERE = Path(__file__).parent
RESULTS = HERE / "results.csv"
COLUMNS = ("problem", "method", "rows", "columns", "labels", "cpu", "megabytes", "average precision", "gap", "passes",
           "sum of the data")  # fmt: skip
METHODS = ("rbrl", "LinearSVC", "LinearSVC, same ridge", "rbrl, nuclear=0.1")
# With more labels, the decompositions of a nuclear norm take minutes.
MOST_LABELS_OF_NORM = 1000
# Name, data set, labels (0: all), training rows (0: all but those of the test).
PROBLEMS = [
    *((f"debdepends {l} labels {n} rows", "debdepends", l, n) for l in (500, 1000, 3000) for n in (2000, 6000, 20_000)),
    ("rcv1subset1", "rcv1subset1", 0, 0),
    ("yahoo_arts_full, unit rows", "yahoo_arts_full", 0, 0),
    ("20ng", "20ng", 0, 0),
    ("imdb 30,000 rows", "imdb", 0, 30_000),
    ("bibtex", "bibtex", 0, 0),
    ("delicious", "delicious", 0, 0),
    ("tmc2007_500", "tmc2007_500", 0, 0),
]
N_TEST = 2000
TEXT = """Every fit is in a process of its own, one thread. Methods take turns, and of their `--rounds` fits the
fastest counts; the rows below are of one round. "s" is processor time. "MB" is the peak of the process less what it
held before the fit, and "of data" its ratio to the sum of X, Y, scores and weights. "AP" is the average precision on
2,000 rows that are not in the training part. Labels are the most frequent ones. OneVsRest(LinearSVC()) has the
defaults of scikit-learn; "same ridge" has C = 1 / (2 ridge), with the ridge that rbrl chooses. The default of rbrl
has no nuclear norm here. "times" is the time of the faster LinearSVC by that of rbrl: above 1, rbrl is faster."""


def load(data, n_labels, n_rows):
    """Training and test parts of a data set, in an order drawn once; sparse."""
    parts = np.load(folder("RBRL_DATA") / f"{data}.npz", allow_pickle=False)
    X, Y = (
        sparse.csr_array((parts[f"{name}_data"].astype(float) if name == "X" else np.ones(len(parts[f"{name}_indices"])),
                          parts[f"{name}_indices"], parts[f"{name}_indptr"]), shape=tuple(parts[f"{name}_shape"]))
        if f"{name}_indices" in parts else sparse.csr_array(parts[name].astype(float))
        for name in ("X", "Y")
    )  # fmt: skip
    X = sparse.csr_array(normalize(X)) if data == "yahoo_arts_full" else X
    if n_labels:
        Y = Y[:, np.argsort(-Y.sum(axis=0), kind="stable")[:n_labels]]
    order = np.random.default_rng(0).permutation(X.shape[0])
    train, test = order[:-N_TEST], order[-N_TEST:]
    train = train[:n_rows] if n_rows else train
    return X[train], Y[train], X[test], Y[test]


def write_problem(path, matrices):
    arrays = {}
    for name, M in zip(("X", "Y", "X_test", "Y_test"), matrices):
        arrays |= {
            f"{name}_data": M.data,
            f"{name}_indices": M.indices,
            f"{name}_indptr": M.indptr,
            f"{name}_shape": M.shape,
        }
    np.savez(path, **arrays)


def run(path, method):
    environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, str(HERE / "worker.py"), path, method]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(name, data, n_labels, n_rows, rounds):
    """Rows of all methods, which take turns."""
    matrices = load(data, n_labels, n_rows)
    best = {}
    with tempfile.TemporaryDirectory() as home:
        path = str(Path(home) / "problem.npz")
        write_problem(path, matrices)
        for _ in range(rounds):
            for method in METHODS if matrices[1].shape[1] <= MOST_LABELS_OF_NORM else METHODS[:3]:
                facts = run(path, method)
                if method not in best or facts["cpu"] < best[method]["cpu"]:
                    best[method] = facts
    sizes = {"rows": matrices[0].shape[0], "columns": matrices[0].shape[1], "labels": matrices[1].shape[1]}
    return [{"problem": name, "method": method, **sizes, **facts} for method, facts in best.items()]


def table(rows):
    lines = []
    for name, *_ in PROBLEMS:
        found = {method: rows[name, method] for method in METHODS if (name, method) in rows}
        if len(found) < 3:
            continue
        first = found["rbrl"]
        peer = min(float(found[method]["cpu"]) for method in METHODS[1:3])
        line = {"problem": name, "n x m x l": f"{first['rows']} x {first['columns']} x {first['labels']}"}
        for method in METHODS:
            line[f"{method}: s"] = f"{float(found[method]['cpu']):.2f}" if method in found else ""
        line["times"] = f"{peer / float(first['cpu']):.2f}"
        line["MB"] = f"{float(first['megabytes']):.0f}"
        line["of data"] = f"{float(first['megabytes']) / float(first['sum of the data']):.1f}"
        line["AP"] = f"{float(first['average precision']):.4f}"
        line["AP, LinearSVC"] = f"{float(found['LinearSVC']['average precision']):.4f}"
        line["gap"] = f"{float(first['gap']):.0e}"
        lines.append(line)
    return lines


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text", description=__doc__)
    parser.add_argument("--only", default="", help="problems whose names contain this")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    known = {} if options.again else read_rows(RESULTS, ("problem", "method"))
    if options.again:
        RESULTS.unlink(missing_ok=True)
    for problem in PROBLEMS:
        if options.only not in problem[0] or (problem[0], METHODS[0]) in known:
            continue
        rows = measure(*problem, options.rounds)
        write_rows(RESULTS, COLUMNS, rows)
        print(json.dumps([(row["method"], round(row["cpu"], 2)) for row in rows]), problem[0], flush=True)
    lines = table(read_rows(RESULTS, ("problem", "method")))
    faster = [float(line["times"]) >= 1 for line in lines]
    slowest = min(float(line["times"]) for line in lines)
    after = f"""rbrl is not slower than the faster LinearSVC on {sum(faster)} of {len(lines)} problems. At its
slowest, it takes {1 / slowest:.2f} times as long."""
    write_results(__file__, "Text with many labels", TEXT, lines, after)


if __name__ == "__main__":
    main()
