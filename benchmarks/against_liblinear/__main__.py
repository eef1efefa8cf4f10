"""Compare with LIBLINEAR on its own problem: ``python -m benchmarks.against_liblinear``.

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
from benchmarks.problems import first_model, markdown, part, read_rows, write_results, write_rows
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

DATA = ("emotions", "arts", "enron", "slashdot", "langlog", "20ng", "human3106")
RIDGES = (0.01, 0.1, 1, 10, 100)
GAPS = (1e-3, 1e-4)
TOLERANCES = 10.0 ** -np.arange(0.5, 8.1, 0.5)
REPEATS = 3
# Seconds of processor time: after which a run is stopped; after which a solver tries no finer tolerance; for the optimum; of
# all solvers together, above which a cell is timed once.
RUN, SEARCH, OPTIMUM, LONG = 20, 20, 60, 3
# Processor time is counted in steps of some milliseconds: shorter runs than this are repeated.
COUNTED = 0.1
COLUMNS = (
    "data", "ridge", "gap", "ours", "ours_tol", "certified", "liblinear", "setting", "liblinear_tol", "optimum_gap",
    "solver",
)  # fmt: skip
# Rows are read by child processes as they are in this one.
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
    """Rows, labels that have both values, and a ridge: what every solver here is given."""

    def __init__(self, X, Y, ridge):
        self.X, self.Y, self.ridge = X, Y, ridge

    def value(self, W):
        slack = np.maximum(1 - self.Y * (self.X @ W), 0)
        return 0.5 * np.sum(slack**2) + 0.5 * self.ridge * np.sum(W**2)

    def solve(self, solver, tol):
        """Weights of all labels, from nothing."""
        return self.ours(tol).coefficients if solver == "ours" else self.liblinear(solver == "dual=True", tol)

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
        parameters = {"C": 1 / (2 * self.ridge), "dual": dual, "tol": tol, "fit_intercept": False, "random_state": 0}
        models = [LinearSVC(**parameters, max_iter=5_000).fit(self.X, y) for y in self.Y.T]
        return np.vstack([model.coef_ for model in models]).T


def in_child(function, *arguments):
    """What a generator function yields in a process of its own, until it ends or its limit of processor time ends it."""
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
    for found in function(*arguments):
        sender.send(found)


def end_after(seconds):
    """Let this process end when it has used so many more seconds of processor time."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def optima(problem):
    """(objective, certified gap) of ever finer solutions."""
    end_after(OPTIMUM)
    for tol in (1e-5, 1e-6):
        solution = problem.ours(tol, max_iter=100_000)
        yield solution.proof.objective, solution.proof.gap


def search(problem, solver, target, patience):
    """(tol, objective, seconds) with ever finer tolerances, until the objective is below the target."""
    longest_run, longest_search = patience
    for tol in TOLERANCES:
        started = time.process_time()
        end_after(longest_run)
        value = problem.value(problem.solve(solver, tol))
        yield tol, value, time.process_time() - started
        if value <= target or time.process_time() > longest_search:
            break


def searches(problem, target):
    """What `search` finds of every solver."""
    paths = {solver: in_child(search, problem, solver, target, (RUN, SEARCH)) for solver in ("ours", "dual=False")}
    # Only the faster setting counts: the second need not be waited for much longer than the first took.
    enough = [took for _, value, took in paths["dual=False"] if value <= target]
    patience = (max(1, min(RUN, 2 * enough[0])), max(3, min(SEARCH, 6 * enough[0]))) if enough else (RUN, SEARCH)
    return paths | {"dual=True": in_child(search, problem, "dual=True", target, patience)}


def timed(problem, runs):
    """(place in `runs`, seconds), alternating; `runs` are pairs (solver, tol)."""
    for _ in range(REPEATS):
        for place, (solver, tol) in enumerate(runs):
            end_after(RUN)
            started, count = time.process_time(), 0
            while count == 0 or time.process_time() - started < COUNTED:
                problem.solve(solver, tol)
                count += 1
            yield place, (time.process_time() - started) / count
        if time.process_time() > LONG:
            break


def cells(name, problem):
    """A row of the results for each gap."""
    found = in_child(optima, problem)
    if not found:
        # Nothing can be said of how near a solver is to an optimum that is not known.
        return [dict.fromkeys(COLUMNS, "") | key(name, problem.ridge, gap) for gap in GAPS]
    optimum, optimum_gap = found[-1]
    paths = searches(problem, optimum * (1 + min(GAPS)))
    optimum = min([optimum, *(value for path in paths.values() for _, value, _ in path)])
    rows = []
    for gap in GAPS:
        reached = {
            solver: [tol for tol, value, _ in path if value <= optimum * (1 + gap)] for solver, path in paths.items()
        }
        tols = {solver: path[0] for solver, path in reached.items() if path}
        rows.append(one_cell(problem, gap, tols) | key(name, problem.ridge, gap) | {"optimum_gap": optimum_gap})
    return rows


def key(name, ridge, gap):
    return {"data": name, "ridge": f"{ridge:g}", "gap": f"{gap:.0e}"}


def one_cell(problem, gap, tols):
    """Seconds of every solver that got there, at the tolerance that it needs; inf of the others."""
    # The certified run comes last: should it be stopped, the others are known.
    runs = [*tols.items(), ("ours", gap)]
    times = in_child(timed, problem, runs)
    seconds = [float(np.median([took for at, took in times if at == place] or [np.inf])) for place in range(len(runs))]
    by_solver = dict(zip(tols, seconds, strict=False))
    theirs = {solver: took for solver, took in by_solver.items() if solver != "ours"} | {"neither": np.inf}
    best = min(theirs, key=theirs.__getitem__)
    row = {"ours": by_solver.get("ours", np.inf), "ours_tol": tols.get("ours", "")}
    row |= {"certified": seconds[-1], "solver": problem.solver_name()}
    return row | {"liblinear": theirs[best], "setting": best, "liblinear_tol": tols.get(best, "")}


def run_all(wanted, file):
    known = read_rows(file, COLUMNS[:3])
    for name in DATA:
        missing = [
            r for r in RIDGES if (name, r) in wanted and any(tuple(key(name, r, g).values()) not in known for g in GAPS)
        ]
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


def shown(row):
    """A row of the table."""
    if not row["ours"]:
        said = {"ours": "", "certified": "", "LIBLINEAR": "the optimum is not known", "ratio": ""}
    else:
        ours, certified, theirs = (float(row[name]) for name in ("ours", "certified", "liblinear"))
        said = {"ours": seconds_shown(ours), "certified": seconds_shown(certified)}
        said |= {"LIBLINEAR": f"{seconds_shown(theirs)} ({row['setting']})", "ratio": ratio_shown(ours, theirs)}
    return {name: row[name] for name in ("data", "ridge", "gap", "solver")} | said


def seconds_shown(seconds):
    return f"{seconds:.3f}" if np.isfinite(seconds) else "given up"


def ratio_shown(ours, theirs):
    if np.isinf(ours) and np.isinf(theirs):
        return ""
    return f"{theirs / ours:.2f}"


def lost(rows):
    """The cells that LIBLINEAR wins, in words."""
    names = [
        f"{row['data']} {row['ridge']} {row['gap']} ({row['ratio']})"
        for row in rows
        if row["ratio"] and float(row["ratio"]) < 1
    ]
    return f"{len(names)} of {len(rows)} cells are lost: {', '.join(names)}." if names else "No cell is lost."


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against_liblinear", description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=re.compile, default="", metavar="REGEX", help="such as '^enron 0.1$'")
    parser.add_argument("--again", action="store_true", help="forget what the results file has of these cells")
    parser.add_argument("--results", type=Path, default=Path(__file__).with_name("results.csv"), metavar="FILE")
    said = parser.parse_args()
    wanted = {(name, ridge) for name in DATA for ridge in RIDGES if said.only.search(f"{name} {ridge:g}")}
    if not wanted:
        sys.exit(f"No cell matches {said.only.pattern!r}.")
    if said.again and said.results.exists():
        known = read_rows(said.results, COLUMNS[:3]).values()
        kept = [row for row in known if (row["data"], float(row["ridge"])) not in wanted]
        write_rows(said.results, COLUMNS, kept, "w")
    run_all(wanted, said.results)
    known = read_rows(said.results, COLUMNS[:3])
    order = [tuple(key(name, ridge, gap).values()) for name in DATA for ridge in RIDGES for gap in GAPS]
    rows = [shown(known[place]) for place in order if place in known]
    if len(rows) == len(order):
        write_results(__file__, "Against LIBLINEAR", TEXT, rows, lost(rows))
    else:
        print(
            f"{markdown(rows)}\n\n{lost(rows)}\n{len(order) - len(rows)} cells are not known yet: results.md is as it was."
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
