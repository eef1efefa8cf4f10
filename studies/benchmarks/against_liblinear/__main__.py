"""Compare with LIBLINEAR on its own problem: ``python -m studies.benchmarks.against_liblinear``.

RBRL_DATA names the folder of data sets. Every cell is written to ``results.csv`` as soon as it is
known. The same command continues where it was interrupted, and ``--again`` measures the chosen
cells anew. ``results.md`` is written once all cells are there.
"""

import argparse
import math
import multiprocessing
import re
import resource
import signal
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from studies.benchmarks.problems import first_model, markdown, part, read_rows, write_results, write_rows

RESULTS = Path(__file__).with_name("results.csv")
DATA = ("emotions", "arts", "enron", "slashdot", "langlog", "20ng", "human3106")
RIDGES = (0.01, 0.1, 1, 10, 100)
GAPS = (1e-3, 1e-4)
TOLERANCES = 10.0 ** -np.arange(0.5, 8.1, 0.5)
REPEATS = 3
# Seconds of processor time after which a run is stopped.
RUN = 20
# Seconds after which a solver tries no finer tolerance.
SEARCH = 20
# Seconds for the optimum.
OPTIMUM = 60
# Seconds of all solvers together, above which a cell is timed once.
LONG = 3
# Processor time is counted in steps of some milliseconds: runs shorter than this are repeated.
COUNTED = 0.1
COLUMNS = (
    "data", "ridge", "gap", "ours", "ours_tol", "certified", "liblinear", "setting", "liblinear_tol", "optimum_gap",
    "solver",
)  # fmt: skip
# Child processes share the rows of this one.
FORK = multiprocessing.get_context("fork")
TEXT = f"""Squared hinge and ridge, all labels, no intercept, C = 1 / (2 ridge); 60 % parts, seed
0. Seconds are processor time with one thread.

"ours" is RBRLClassifier(ridge=ridge, ranking=0, nuclear=0, fit_intercept=False) with the solver
that it chooses, which the column "solver" names: dual ascent over rows, or quasi-Newton where the
ridge is too weak for the length of the rows. Its time includes the set-up of the design.
LIBLINEAR is scikit-learn's LinearSVC, with the faster of dual=True and dual=False. Both times are
those of the loosest tolerance whose objective is within the gap of the optimum. The optimum is
the lowest objective of all runs, one of ours with tol=1e-6 among them. "certified" is ours with
tol = gap, which needs no knowledge of the optimum.

The solvers alternate. A time is the median of {REPEATS} runs, or one run where all solvers
together take more than {LONG} seconds. A ratio above 1 means that ours is faster. A solver is
given up when one run takes more than {RUN} seconds, or when coarser tolerances that were not
enough took {SEARCH} seconds. dual=True, which is tried last, is also given up when it takes much
longer than dual=False."""


class Problem:
    """Rows, labels that have both values, and a ridge: the problem that every solver gets."""

    def __init__(self, X, Y, ridge):
        self.X = X
        self.Y = Y
        self.ridge = ridge

    def value(self, W):
        """Return the objective."""
        slack = np.maximum(1 - self.Y * (self.X @ W), 0)
        return 0.5 * np.sum(slack**2) + 0.5 * self.ridge * np.sum(W**2)

    def solve(self, solver, tol):
        """Return the weights of all labels, from a start at zero."""
        if solver == "ours":
            return self.ours(tol).coefficients
        return self.liblinear(solver == "dual=True", tol)

    def ours(self, tol, max_iter=1000):
        """Return our solution."""
        return self._posed(tol, max_iter).solve()

    def solver_name(self):
        """Return the name of the solver that we choose."""
        return type(self._posed(1e-4, 1000).solver).__name__

    def _posed(self, tol, max_iter):
        parameters = {"ridge": self.ridge, "ranking": 0, "nuclear": 0, "fit_intercept": False}
        return first_model(**parameters, tol=tol, max_iter=max_iter).problem(self.X, self.Y)

    def liblinear(self, dual, tol):
        """Return the weights of LinearSVC."""
        parameters = {"C": 1 / (2 * self.ridge), "dual": dual, "tol": tol, "max_iter": 5_000}
        parameters |= {"fit_intercept": False, "random_state": 0}
        models = [LinearSVC(**parameters).fit(self.X, y) for y in self.Y.T]
        return np.vstack([model.coef_ for model in models]).T


def in_child(function, *arguments):
    """Run a generator function in a process of its own, and return what it yields.

    The limit of processor time may end the process early.
    """
    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=send_all, args=(sender, function, arguments))
    child.start()
    sender.close()
    found = []
    with suppress(EOFError):
        while True:
            found.append(receiver.recv())
    child.join()
    if child.exitcode not in (0, -signal.SIGXCPU):
        raise RuntimeError(f"{function.__name__} failed with exit code {child.exitcode}")
    return found


def send_all(sender, function, arguments):
    """Send everything that a generator function yields."""
    for found in function(*arguments):
        sender.send(found)


def end_after(seconds):
    """End this process after so many more seconds of processor time."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def optima(problem):
    """Yield (objective, certified gap) of ever finer solutions."""
    end_after(OPTIMUM)
    for tol in (1e-5, 1e-6):
        solution = problem.ours(tol, max_iter=100_000)
        yield solution.proof.objective, solution.proof.gap


def search(problem, solver, target, patience):
    """Yield (tol, objective, seconds) of ever finer tolerances, until the target is reached."""
    longest_run, longest_search = patience
    for tol in TOLERANCES:
        started = time.process_time()
        end_after(longest_run)
        value = problem.value(problem.solve(solver, tol))
        yield tol, value, time.process_time() - started
        if value <= target or time.process_time() > longest_search:
            break


def searches(problem, target):
    """Return what `search` yields for every solver."""
    patience = (RUN, SEARCH)
    first_two = ("ours", "dual=False")
    paths = {solver: in_child(search, problem, solver, target, patience) for solver in first_two}
    # Only the faster setting counts: the second one gets not much more time than the first took.
    enough = [took for _, value, took in paths["dual=False"] if value <= target]
    if enough:
        patience = (max(1, min(RUN, 2 * enough[0])), max(3, min(SEARCH, 6 * enough[0])))
    return paths | {"dual=True": in_child(search, problem, "dual=True", target, patience)}


def timed(problem, runs):
    """Yield (place in `runs`, seconds), alternating; `runs` are pairs (solver, tol)."""
    for _ in range(REPEATS):
        for place, (solver, tol) in enumerate(runs):
            end_after(RUN)
            started = time.process_time()
            count = 0
            while count == 0 or time.process_time() - started < COUNTED:
                problem.solve(solver, tol)
                count += 1
            yield place, (time.process_time() - started) / count
        if time.process_time() > LONG:
            break


def cells(name, problem):
    """Return a row of the results for each gap."""
    found = in_child(optima, problem)
    if not found:
        # Without the optimum, the distance of a solver from it is not known.
        return [dict.fromkeys(COLUMNS, "") | key(name, problem.ridge, gap) for gap in GAPS]
    optimum, optimum_gap = found[-1]
    paths = searches(problem, optimum * (1 + min(GAPS)))
    optimum = min([optimum, *(value for path in paths.values() for _, value, _ in path)])
    rows = []
    for gap in GAPS:
        tols = {}
        for solver, path in paths.items():
            enough = [tol for tol, value, _ in path if value <= optimum * (1 + gap)]
            if enough:
                tols[solver] = enough[0]
        row = one_cell(problem, gap, tols) | key(name, problem.ridge, gap)
        rows.append(row | {"optimum_gap": optimum_gap})
    return rows


def key(name, ridge, gap):
    """Return the key of a cell."""
    return {"data": name, "ridge": f"{ridge:g}", "gap": f"{gap:.0e}"}


def one_cell(problem, gap, tols):
    """Time every solver at the tolerance that it needs; the time of a solver without one is inf."""
    # The certified run comes last: should it be stopped, the others are known.
    runs = [*tols.items(), ("ours", gap)]
    times = in_child(timed, problem, runs)
    of_runs = [[took for at, took in times if at == place] for place in range(len(runs))]
    seconds = [float(np.median(of_run or [np.inf])) for of_run in of_runs]
    by_solver = dict(zip(tols, seconds, strict=False))
    theirs = {solver: took for solver, took in by_solver.items() if solver != "ours"}
    theirs["neither"] = np.inf
    best = min(theirs, key=theirs.__getitem__)
    row = {"ours": by_solver.get("ours", np.inf), "ours_tol": tols.get("ours", "")}
    row |= {"certified": seconds[-1], "solver": problem.solver_name()}
    return row | {"liblinear": theirs[best], "setting": best, "liblinear_tol": tols.get(best, "")}


def run_all(wanted, file):
    """Measure every cell that the results file does not have."""
    known = read_rows(file, COLUMNS[:3])
    for name in DATA:
        of_set = [ridge for ridge in RIDGES if (name, ridge) in wanted]
        missing = [ridge for ridge in of_set if not is_known(name, ridge, known)]
        if not missing:
            continue
        X, Y = part(name)
        Y = np.ascontiguousarray(Y[:, (Y > 0).any(axis=0) & (Y < 0).any(axis=0)])
        # Loads the compiled loops, which the children then have.
        Problem(X[:50], Y[:50], 1.0).ours(1e-4)
        for ridge in missing:
            for row in cells(name, Problem(X, Y, ridge)):
                write_rows(file, COLUMNS, [row])
                print(", ".join(str(row[column]) for column in COLUMNS), flush=True)


def is_known(name, ridge, known):
    """Return whether all gaps of a ridge are known."""
    return all(tuple(key(name, ridge, gap).values()) in known for gap in GAPS)


def table_line(row):
    """Return the line of a cell."""
    line = {name: row[name] for name in ("data", "ridge", "gap", "solver")}
    if not row["ours"]:
        unknown = "the optimum is not known"
        return line | {"ours": "", "certified": "", "LIBLINEAR": unknown, "ratio": ""}
    ours, certified, theirs = (float(row[name]) for name in ("ours", "certified", "liblinear"))
    line |= {"ours": format_seconds(ours), "certified": format_seconds(certified)}
    line["LIBLINEAR"] = f"{format_seconds(theirs)} ({row['setting']})"
    return line | {"ratio": format_ratio(ours, theirs)}


def format_seconds(seconds):
    """Return a time as text."""
    return f"{seconds:.3f}" if np.isfinite(seconds) else "given up"


def format_ratio(ours, theirs):
    """Return the ratio of two times as text; empty if both solvers were given up."""
    if np.isinf(ours) and np.isinf(theirs):
        return ""
    return f"{theirs / ours:.2f}"


def list_lost(lines):
    """Return the cells that LIBLINEAR wins, as text."""
    lost = [line for line in lines if line["ratio"] and float(line["ratio"]) < 1]
    if not lost:
        return "No cell is lost."
    names = [f"{line['data']} {line['ridge']} {line['gap']} ({line['ratio']})" for line in lost]
    return f"{len(lost)} of {len(lines)} cells are lost: {', '.join(names)}."


def parse_arguments():
    """Return the options of the command."""
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.against_liblinear")
    parser.add_argument("--only", type=re.compile, default="", metavar="REGEX", help="of cells")
    parser.add_argument("--again", action="store_true", help="measure these cells anew")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    return parser.parse_args()


def main():
    """Measure the missing cells, and write the page if all cells are known."""
    options = parse_arguments()
    cells_of_all = [(name, ridge) for name in DATA for ridge in RIDGES]
    wanted = {cell for cell in cells_of_all if options.only.search(f"{cell[0]} {cell[1]:g}")}
    if not wanted:
        sys.exit(f"No cell matches {options.only.pattern!r}.")
    if options.again and options.results.exists():
        known = read_rows(options.results, COLUMNS[:3]).values()
        kept = [row for row in known if (row["data"], float(row["ridge"])) not in wanted]
        write_rows(options.results, COLUMNS, kept, "w")
    run_all(wanted, options.results)
    known = read_rows(options.results, COLUMNS[:3])
    order = [tuple(key(*cell, gap).values()) for cell in cells_of_all for gap in GAPS]
    lines = [table_line(known[place]) for place in order if place in known]
    if len(lines) == len(order) and options.results == RESULTS:
        write_results(__file__, "Against LIBLINEAR", TEXT, lines, list_lost(lines))
        return
    print(f"{markdown(lines)}\n\n{list_lost(lines)}")
    print(f"{len(order) - len(lines)} cells are not known yet: results.md is as it was.")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
