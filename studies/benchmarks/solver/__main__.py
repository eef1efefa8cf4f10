"""Measure the default solver on a fixed list: ``python -m studies.benchmarks.solver [--against FOLDER]``.

RBRL_DATA names the folder of data sets. The problems are those of ``problems.csv``. FOLDER is the
``src`` of another checkout with a compiled core, which is run beside this one. Every result is
written at once; the same command continues where it was interrupted. ``results.md`` is written from
the committed ``results.csv`` only: with another file of ``--results``, the summary is shown.
"""

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from studies.benchmarks.problems import part, write_results, write_rows
from studies.benchmarks.solver.draw import read

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src"
NUMBERS = ("evaluations", "n_iter", "cpu", "gap", "objective")
COLUMNS = ("problem", "source", "end", *NUMBERS, "certified", "solver")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# The checkout that results.csv was measured against.
OTHER = "commit 50282f7, the last one before dual ascent, which solves all by quasi-Newton"
TEXT = f"""The solver that RBRLClassifier chooses, on a list of problems that was drawn before the
solvers were tuned. A third of the list is held out. The choice is named in the column "solver":
dual ascent for linear models unless the ridge is too weak for the length of the rows, and
quasi-Newton otherwise, for kernels with a nuclear norm among others. Every problem has a nuclear
norm, which models do not have by default.

60 % parts, seed 0; the kernel is RBF with gamma = 1 / n_features, "unit" divides each row by its
norm. Settings are ridge, ranking, nuclear; tol is 1e-4, and 1e-3 from 200 labels on. Every run is
in a process of its own and starts from zero; the set-up of the design is included. CPU is
processor time in seconds, of short runs the least of several, with ">" where the run was stopped.
The gap is certified; a star says that it is above tol. The other is {OTHER}; both were measured
in turns. The ratio is the CPU of the other divided by the CPU of this one: above 1, this one is
faster."""


def parameters_of(problem, n_features):
    """Return the parameters of the classifier."""
    parameters = {name: problem[name] for name in ("ridge", "ranking", "nuclear", "tol")}
    parameters |= {"kernel": "linear", "max_iter": 1000}
    if problem["design"] == "kernel":
        parameters |= {"kernel": "rbf", "gamma": 1.0 / n_features}
    return parameters


def write_problem(home, problem):
    """Write the rows of a problem for the worker; return the number of features."""
    X, Y = part(problem["data"])
    X = normalize(X) if problem["design"] == "unit" else X
    file = Path(home) / "rows.npz"
    if sparse.issparse(X):
        np.savez(file, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, Y=Y)
    else:
        np.savez(file, X=X, Y=Y)
    return X.shape[1]


def run(home, problem, parameters, source, seconds):
    """Solve one problem with the package in the folder `source`, and return its row."""
    command = [sys.executable, str(HERE / "worker.py"), home, json.dumps(parameters), str(seconds)]
    environment = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode == -signal.SIGXCPU:
        return {"end": "stopped", "cpu": seconds, "certified": False}
    if done.returncode:
        print(done.stderr, file=sys.stderr, flush=True)
        return {"end": "failed", "certified": False}
    facts = json.loads(done.stdout.splitlines()[-1])
    if not Path(facts["package"]).is_relative_to(source):
        sys.exit(f"The worker imported {facts['package']}, not the package in {source}.")
    row = {name: facts[name] for name in (*NUMBERS, "solver")}
    return row | {"end": "solved", "certified": facts["gap"] <= problem["tol"]}


def run_all(problems, sources, file, known, seconds):
    """Solve every problem that the results file does not have."""
    for i, problem in enumerate(problems):
        missing = [label for label in sources if (problem["problem"], label) not in known]
        if not missing:
            continue
        with tempfile.TemporaryDirectory() as home:
            parameters = parameters_of(problem, write_problem(home, problem))
            # The first of two has the colder caches.
            for label in missing[:: -1 if i % 2 else 1]:
                row = dict.fromkeys(COLUMNS, "") | {"problem": problem["problem"], "source": label}
                row |= run(home, problem, parameters, sources[label], seconds)
                write_rows(file, COLUMNS, [row])
                print(", ".join(str(row[name]) for name in COLUMNS), flush=True)


def results(file):
    """Return the rows by (problem, source), with numbers as floats."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        read_lines = list(csv.DictReader(lines))
    rows = [row | {name: float(row[name] or "nan") for name in NUMBERS} for row in read_lines]
    return {(row["problem"], row["source"]): row for row in rows}


def format_cpu(row):
    """Return the time of a run as text."""
    if row["end"] == "failed":
        return "failed"
    return f"{'> ' if row['end'] == 'stopped' else ''}{row['cpu']:.3g}"


def format_gap(row):
    """Return the gap of a run as text, with a star if it is above the tolerance."""
    if np.isnan(row["gap"]):
        return ""
    return f"{row['gap']:.1e}{'' if row['certified'] == 'True' else ' *'}"


def table_row(problem, known, against):
    """Return the line of one problem."""
    here = known[problem["problem"], "here"]
    row = {"problem": f"{problem['data']} {problem['design']}", "part": problem["part"]}
    row["settings"] = ", ".join(f"{problem[name]:g}" for name in ("ridge", "ranking", "nuclear"))
    row["solver"] = here["solver"]
    row["evaluations"] = "" if np.isnan(here["evaluations"]) else f"{here['evaluations']:.0f}"
    row |= {"CPU": format_cpu(here), "gap": format_gap(here)}
    if against:
        other = known[problem["problem"], "against"]
        ratio = other["cpu"] / here["cpu"]
        row |= {"other CPU": format_cpu(other), "other gap": format_gap(other)}
        row["ratio"] = "" if np.isnan(ratio) else f"{ratio:.2f}"
    return row


def summary(problems, known, against):
    """Return the certified share and the ratios of the times, for each part of the list."""
    lines = []
    for part_name in ("tuning", "held"):
        names = [problem["problem"] for problem in problems if problem["part"] == part_name]
        if not names:
            continue
        here = [known[name, "here"] for name in names]
        line = f"{part_name}: {certified_share(here)}, {total_seconds(here)} s of processor time"
        if against:
            line += compare(here, [known[name, "against"] for name in names])
        lines.append(f"- {line}.")
    if against and (unequal := find_unequal(problems, known)):
        listed = "; ".join(unequal)
        lines.append(f"- The two objectives differ by more than both gaps allow on: {listed}.")
    return "\n".join(lines)


def compare(here, other):
    """Return the share, the time and the ratios of the other checkout, as text."""
    ratios = np.array([row["cpu"] for row in other]) / [row["cpu"] for row in here]
    ratios = ratios[np.isfinite(ratios)]
    mean = np.exp(np.mean(np.log(ratios)))
    return (
        f"; the other {certified_share(other)}, {total_seconds(other)} s; its CPU divided by this "
        f"one's: geometric mean {mean:.2f}, worst {ratios.min():.2f}"
    )


def certified_share(rows):
    """Return how many rows are certified, as text."""
    return f"{sum(row['certified'] == 'True' for row in rows)} of {len(rows)} certified"


def total_seconds(rows):
    """Return the sum of the times, as text."""
    return f"{np.nansum([row['cpu'] for row in rows]):.0f}"


def find_unequal(problems, known):
    """Return the problems whose two objectives differ by more than both gaps allow."""
    wrong = []
    for problem in problems:
        here, other = (known[problem["problem"], label] for label in ("here", "against"))
        allowed = here["gap"] * here["objective"] + other["gap"] * other["objective"]
        if abs(here["objective"] - other["objective"]) > allowed + 1e-9 * here["objective"]:
            wrong.append(problem["problem"])
    return wrong


def parse_arguments():
    """Return the options of the command."""
    first_line = __doc__.splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.solver", description=first_line)
    parser.add_argument("--part", choices=("tuning", "held", "all"), default="all")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="src of another checkout")
    parser.add_argument("--only", type=re.compile, default="", metavar="REGEX", help="of names")
    parser.add_argument("--seconds", type=int, default=200, help="CPU limit of a run")
    parser.add_argument("--results", type=Path, default=HERE / "results.csv", metavar="FILE")
    parser.add_argument("--again", action="store_true", help="measure these problems anew")
    return parser.parse_args()


def forget(problems, sources, file):
    """Remove the rows of these problems and sources from the results file."""
    names = {problem["problem"] for problem in problems}
    known = results(file)
    kept = [row for key, row in known.items() if key[0] not in names or key[1] not in sources]
    write_rows(file, COLUMNS, kept, "w")


def main():
    """Solve the missing problems, and write the page or show the summary."""
    options = parse_arguments()
    wanted = [problem for problem in read() if options.part in ("all", problem["part"])]
    wanted = [problem for problem in wanted if re.search(options.only, problem["problem"])]
    if not wanted:
        sys.exit(f"No problem of the part {options.part!r} matches {options.only.pattern!r}.")
    sources = {"here": SOURCE}
    if options.against:
        sources["against"] = options.against.resolve()
    if options.again:
        forget(wanted, sources, options.results)
    run_all(wanted, sources, options.results, results(options.results), options.seconds)
    known = results(options.results)
    against = options.against is not None
    after = summary(wanted, known, against)
    if options.results == HERE / "results.csv":
        rows = [table_row(problem, known, against) for problem in wanted]
        write_results(__file__, "The default solver", TEXT, rows, after)
    else:
        print(after)


if __name__ == "__main__":
    main()
