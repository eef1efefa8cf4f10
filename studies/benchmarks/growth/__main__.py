"""Measure how the time of a linear fit grows: ``python -m studies.benchmarks.growth``.

Rows, labels and columns of synthetic text are doubled separately. Every fit is written to
results.csv at once, and the same command continues where it was interrupted; ``--again`` measures
everything anew. results.md is written from the committed results.csv only: with another file of
``--results``, the tables are shown.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from studies.benchmarks.growth.synthetic import LABELS_PER_ROW, TERMS_PER_ROW, make_text
from studies.benchmarks.problems import markdown, read_rows, write_results, write_rows
from studies.benchmarks.text.__main__ import run, write_problem

RESULTS = Path(__file__).with_name("results.csv")
SIZES = ("rows", "labels", "columns")
BASE = {"rows": 4000, "labels": 500, "columns": 10_000}
SMALLEST = {"rows": 2000, "labels": 250, "columns": 5000}
# Doublings of the smallest size.
DOUBLINGS = 3
RBRL, NORM, PEER = METHODS = ("rbrl", "rbrl, nuclear=0.1", "LinearSVC")
FACTS = ("cpu", "passes", "evaluations", "gap", "average precision", "version")
COLUMNS = (*SIZES, "method", *FACTS)
KEY = COLUMNS[:4]
N_NEW_ROWS = 1000
# Seconds of a fit, above which it is measured only once.
LONG_FIT = 10
TEXT = f"""Synthetic text: rows of unit length with {TERMS_PER_ROW} terms and {LABELS_PER_ROW}
labels each, whatever the number of rows, labels and columns. Terms and labels follow Zipf laws,
and hidden topics explain them, so that labels can be learned: "AP" is the average precision of
rbrl on {N_NEW_ROWS:,} other rows. From {BASE["rows"]:,} rows, {BASE["labels"]:,} labels and
{BASE["columns"]:,} columns, one size at a time changes. "rbrl" is RBRLClassifier() with its
defaults, which has no nuclear norm for a linear model and is solved by dual ascent. The time of
the norm is that of `nuclear=0.1` less that of the default. LinearSVC is
OneVsRestClassifier(LinearSVC()). "s" is processor time of a fit in a process of its own with one
thread, the smaller of two times, or one time above {LONG_FIT} s. Versions: {{versions}}."""
EXPONENTS = """Exponents, from least squares of the logarithm of the time on the logarithm of the
size. In brackets: the exponent of the last doubling."""


def list_problems(doublings):
    """Return the sizes of all problems, for each size that is varied."""
    problems = {}
    for name in SIZES:
        values = [SMALLEST[name] * 2**power for power in range(doublings + 1)]
        problems[name] = [BASE | {name: value} for value in values]
    return problems


def key_of(sizes, method):
    """Return the key of a row of the results."""
    return (*(str(sizes[name]) for name in SIZES), method)


def measure_all(problems, file):
    """Measure every fit that the results file does not have."""
    for sizes in (sizes for of_size in problems.values() for sizes in of_size):
        known = read_rows(file, KEY)
        missing = [method for method in METHODS if key_of(sizes, method) not in known]
        if missing:
            measure_problem(sizes, missing, file)


def measure_problem(sizes, methods, file):
    """Fit the methods in turns, and write their rows."""
    n = sizes["rows"]
    X, Y = make_text(n + N_NEW_ROWS, sizes["labels"], sizes["columns"])
    with tempfile.TemporaryDirectory() as home:
        path = str(Path(home) / "problem.npz")
        write_problem(path, (X[:n], Y[:n], X[n:], Y[n:]))
        found = {method: run(path, method, sys.executable) for method in methods}
        for method, first in found.items():
            if first["cpu"] <= LONG_FIT:
                second = run(path, method, sys.executable)
                found[method] = min(first, second, key=lambda facts: facts["cpu"])
    for method, facts in found.items():
        row = sizes | {"method": method}
        write_rows(file, COLUMNS, [row | {name: facts[name] for name in FACTS}])
    times = {method: round(facts["cpu"], 2) for method, facts in found.items()}
    print(sizes, times, flush=True)


def seconds_of(known, sizes):
    """Return the times of one problem by name, that of the nuclear norm alone among them."""
    seconds = {method: float(known[key_of(sizes, method)]["cpu"]) for method in METHODS}
    return {RBRL: seconds[RBRL], PEER: seconds[PEER], "norm": seconds[NORM] - seconds[RBRL]}


def table_line(name, sizes, known):
    """Return the line of one problem."""
    ours = known[key_of(sizes, RBRL)]
    seconds = seconds_of(known, sizes)
    line = {"varied": name, **{size: f"{sizes[size]:,}" for size in SIZES}}
    line |= {"rbrl: s": f"{seconds[RBRL]:.2f}", "passes": ours["passes"]}
    line |= {"evaluations": f"{float(ours['evaluations']):.1f}", "gap": f"{float(ours['gap']):.0e}"}
    line["AP"] = f"{float(ours['average precision']):.3f}"
    line["LinearSVC: s"] = f"{seconds[PEER]:.2f}"
    line["norm: s"] = f"{seconds['norm']:.2f}"
    line["evaluations with norm"] = f"{float(known[key_of(sizes, NORM)]['evaluations']):.1f}"
    return line


def exponent_line(name, of_size, known):
    """Return the exponents of all times in one size."""
    times = [seconds_of(known, sizes) for sizes in of_size]
    size = np.log([sizes[name] for sizes in of_size])
    line = {"size": name}
    for method in times[0]:
        seconds = np.array([each[method] for each in times])
        # A norm that takes no time at all has no exponent.
        if seconds.min() <= 0:
            line[method] = ""
            continue
        slope = np.polyfit(size, np.log(seconds), 1)[0]
        last = np.diff(np.log(seconds[-2:]))[0] / np.diff(size[-2:])[0]
        line[method] = f"{slope:.2f} ({last:.2f})"
    return line


def main():
    """Measure the missing fits, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.growth")
    parser.add_argument("--doublings", type=int, default=DOUBLINGS, help="of the smallest size")
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    options = parser.parse_args()
    if options.doublings < 1:
        parser.error(f"--doublings must be at least 1, not {options.doublings}.")
    if options.again:
        options.results.unlink(missing_ok=True)
    problems = list_problems(options.doublings)
    measure_all(problems, options.results)
    known = read_rows(options.results, KEY)
    lines = []
    for name, of_size in problems.items():
        lines += [table_line(name, sizes, known) for sizes in of_size]
    exponents = [exponent_line(name, of_size, known) for name, of_size in problems.items()]
    after = f"{EXPONENTS}\n\n{markdown(exponents)}"
    if options.results != RESULTS:
        print(f"{markdown(lines)}\n\n{after}")
        return
    versions = ", ".join(sorted({row["version"] for row in known.values()}))
    text = TEXT.format(versions=versions)
    write_results(__file__, "Growth with rows, labels and columns", text, lines, after)


if __name__ == "__main__":
    main()
