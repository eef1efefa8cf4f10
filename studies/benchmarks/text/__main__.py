"""Compare fits of text with many labels: ``python -m studies.benchmarks.text [--only NAME] [--rounds N]``.

RBRL_DATA names the folder of data sets. ``--libmultilabel PYTHON`` names a Python that has
libmultilabel, which is measured beside the others; without the option, its column shows what
results.csv has of it. Measured rows are kept in results.csv, and a run measures the missing ones;
``--again`` measures the chosen problems anew.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from studies.benchmarks.problems import folder, read_rows, write_results, write_rows

HERE = Path(__file__).parent
RESULTS = HERE / "results.csv"
SIZES = ("rows", "columns", "labels")
FACTS = ("cpu", "megabytes", "average precision", "gap", "passes", "evaluations", "sum of the data")
COLUMNS = ("problem", "method", *SIZES, *FACTS, "version")
NORM = "rbrl, nuclear=0.1"
LIBMULTILABEL = "LibMultiLabel"
PEERS = ("LinearSVC", "LinearSVC, same ridge", LIBMULTILABEL)
METHODS = ("rbrl", *PEERS, NORM)
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
TEXT = """Every fit is in a process of its own, with one thread. The methods take turns, and the
fastest of their `--rounds` fits counts. "s" is processor time. "MB" is the peak memory of the
process less its memory before the fit, and "of data" is the ratio of "MB" to the memory of X, Y,
the scores and the weights. "AP" is the average precision on 2,000 rows outside the training part.
Labels are the most frequent ones. rbrl has its defaults: no nuclear norm, and the solver that it
chooses for a linear model, which is dual ascent unless the ridge is too weak for the length of
the rows. OneVsRest(LinearSVC()) has the defaults of scikit-learn; "same ridge" has C = 1 / (2
ridge), with the ridge that rbrl chooses. LibMultiLabel is `train_1vsrest` with the options `-s 1
-c 1 -B 1 -m 1`: dual coordinate descent, which is its own choice, with the C and the intercept of
LinearSVC(). "times" is the time of the fastest peer divided by the time of rbrl: above 1, rbrl is
faster. Versions: {versions}."""


def load(data, n_labels, n_rows):
    """Return sparse training and test parts of a data set, in a fixed random order."""
    parts = np.load(folder("RBRL_DATA") / f"{data}.npz", allow_pickle=False)
    X = read_matrix(parts, "X")
    Y = read_matrix(parts, "Y")
    if data == "yahoo_arts_full":
        X = sparse.csr_array(normalize(X))
    if n_labels:
        Y = Y[:, np.argsort(-Y.sum(axis=0), kind="stable")[:n_labels]]
    order = np.random.default_rng(0).permutation(X.shape[0])
    train = order[:-N_TEST]
    test = order[-N_TEST:]
    train = train[:n_rows] if n_rows else train
    return X[train], Y[train], X[test], Y[test]


def read_matrix(parts, name):
    """Return a matrix of a data file as a CSR array; sparse labels have no values, which are 1."""
    if f"{name}_indices" not in parts:
        return sparse.csr_array(parts[name].astype(float))
    indices = parts[f"{name}_indices"]
    data = parts[f"{name}_data"].astype(float) if name == "X" else np.ones(len(indices))
    starts = parts[f"{name}_indptr"]
    return sparse.csr_array((data, indices, starts), shape=tuple(parts[f"{name}_shape"]))


def write_problem(path, matrices):
    """Write the matrices for the worker."""
    arrays = {}
    for name, M in zip(("X", "Y", "X_test", "Y_test"), matrices):
        arrays |= {
            f"{name}_data": M.data,
            f"{name}_indices": M.indices,
            f"{name}_indptr": M.indptr,
            f"{name}_shape": M.shape,
        }
    np.savez(path, **arrays)


def run(path, method, python):
    """Return the facts of one fit, in a process of its own."""
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(threads, "1")
    if python != sys.executable:
        # Packages of this Python may not fit the other one.
        environment.pop("PYTHONPATH", None)
    command = [python, str(HERE / "worker.py"), path, method]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def pythons_of(n_labels, libmultilabel):
    """Return the Python of each method to measure."""
    found = dict.fromkeys(METHODS, sys.executable)
    if not libmultilabel:
        del found[LIBMULTILABEL]
    else:
        found[LIBMULTILABEL] = libmultilabel
    if n_labels > MOST_LABELS_OF_NORM:
        del found[NORM]
    return found


def measure(problem, known, rounds, libmultilabel):
    """Return the rows of the methods that are not known, which take turns."""
    name, data, n_labels, n_rows = problem
    pythons = pythons_of(n_labels, libmultilabel)
    missing = [method for method in pythons if (name, method) not in known]
    if not missing:
        return []
    matrices = load(data, n_labels, n_rows)
    best = {}
    with tempfile.TemporaryDirectory() as home:
        path = str(Path(home) / "problem.npz")
        write_problem(path, matrices)
        for _ in range(rounds):
            for method in missing:
                facts = run(path, method, pythons[method])
                if method not in best or facts["cpu"] < best[method]["cpu"]:
                    best[method] = facts
    shapes = (*matrices[0].shape, matrices[1].shape[1])
    sizes = dict(zip(SIZES, shapes))
    return [{"problem": name, "method": method, **sizes, **facts} for method, facts in best.items()]


def table(rows):
    """Return the lines of the page: one for each problem with rbrl and both LinearSVC."""
    lines = []
    for name, *_ in PROBLEMS:
        found = {method: rows[name, method] for method in METHODS if (name, method) in rows}
        if not {"rbrl", *PEERS[:2]} <= set(found):
            continue
        first = found["rbrl"]
        cpu = {method: float(row["cpu"]) for method, row in found.items()}
        peer = min(cpu[method] for method in PEERS if method in cpu)
        sizes = [first[part] for part in SIZES]
        line = {"problem": name, "n x m x l": " x ".join(sizes)}
        for method in METHODS:
            line[f"{method}: s"] = f"{cpu[method]:.2f}" if method in cpu else ""
        line["times"] = f"{peer / cpu['rbrl']:.2f}"
        line["MB"] = f"{float(first['megabytes']):.0f}"
        line["of data"] = f"{float(first['megabytes']) / float(first['sum of the data']):.1f}"
        for method in ("rbrl", "LinearSVC", LIBMULTILABEL):
            title = "AP" if method == "rbrl" else f"AP, {method}"
            row = found.get(method)
            line[title] = f"{float(row['average precision']):.4f}" if row else ""
        line["gap"] = f"{float(first['gap']):.0e}"
        lines.append(line)
    return lines


def write_page(rows):
    """Write results.md from the measured rows."""
    lines = table(rows)
    if not lines:
        sys.exit("No problem is measured completely yet: results.md is as it was.")
    faster = [float(line["times"]) >= 1 for line in lines]
    slowest = min(float(line["times"]) for line in lines)
    share = f"{sum(faster)} of {len(lines)} problems"
    after = f"""rbrl is not slower than its fastest peer on {share}. At its slowest, it takes
{1 / slowest:.2f} times as long as the fastest peer."""
    versions = sorted({row["version"] for row in rows.values() if row["version"]})
    text = TEXT.format(versions=", ".join(versions) or "not recorded")
    write_results(__file__, "Text with many labels", text, lines, after)


def main():
    """Measure the missing rows, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.text", description=__doc__)
    parser.add_argument("--only", default="", help="problems whose names contain this")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="measure the chosen problems anew")
    parser.add_argument("--libmultilabel", metavar="PYTHON", help="a Python that has libmultilabel")
    options = parser.parse_args()
    key = ("problem", "method")
    known = read_rows(RESULTS, key)
    chosen = [problem for problem in PROBLEMS if options.only in problem[0]]
    if options.again:
        names = {problem[0] for problem in chosen}
        known = {place: row for place, row in known.items() if place[0] not in names}
        write_rows(RESULTS, COLUMNS, known.values(), "w")
    for problem in chosen:
        rows = measure(problem, known, options.rounds, options.libmultilabel)
        write_rows(RESULTS, COLUMNS, rows)
        if rows:
            times = [(row["method"], round(row["cpu"], 2)) for row in rows]
            print(json.dumps(times), problem[0], flush=True)
    write_page(read_rows(RESULTS, key))


if __name__ == "__main__":
    main()
