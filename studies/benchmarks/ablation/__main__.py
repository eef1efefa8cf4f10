"""Switch off one feature of the quasi-Newton solver at a time: ``python -m studies.benchmarks.ablation``, with RBRL_DATA.

Every result is written to ``results.csv`` at once, and the same command continues where it was interrupted.
``removed.csv.gz`` has the results of features that were removed since, and of the solver before that.
"""

import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from rbrl.solvers import QuasiNewton
from studies.benchmarks.ablation.held_out import held_out_problems
from studies.benchmarks.problems import markdown, read_rows, write_results, write_rows

RESULTS = Path(__file__).with_name("results.csv")
REMOVED = Path(__file__).with_name("removed.csv.gz")
COLUMNS = ("feature", "problem", "evaluations", "cpu", "gap", "certified")
KEY = ("feature", "problem")
SOLVER_TOL = 1e-4
# Short runs are repeated for this many seconds, and the shortest time counts.
REPEAT = 0.3
ALL = "nothing"
DEFAULT = QuasiNewton()
# The settings that switch each feature off.
FEATURES = {
    ALL: {},
    "weak_coupling: a memory for each label": {"weak_coupling": -1.0},
    "weak_coupling: a joint memory": {"weak_coupling": np.inf},
    "diagonal_coupling": {"diagonal_coupling": -1.0},
    "smoothing_share": {"smoothing_share": 0.0},
    "low_rank: rounds in factors": {"low_rank": 0.0},
    "low_rank: the rank test of rounds": {"low_rank": 0.999},
    "newton": {"newton": None},
    "newton.enough": {"newton": replace(DEFAULT.newton, enough=0.0)},
    "line_search.max_corrections": {"line_search": replace(DEFAULT.line_search, max_corrections=0)},
    "memory": {"memory": 5},
}
TEXT = """What each setting of `QuasiNewton` is worth, on a list of problems that only this solver serves: kernels with a
nuclear norm on the coefficients, Nyström features, rows in blocks, CPNL with a label graph, linear models without a ridge,
and linear models whose user names the solver. Each line has one feature switched off. "evaluations" and "CPU" are geometric
means over the list, relative to the first line of the table; "worst" is the largest ratio of CPU; a problem is certified if
its gap is at most 1e-4 within 1,000 iterations. Processor time in one thread, measured beside other work on the machine.

This list, of seed 2027, was drawn after all settings had been chosen. Its last line is the solver before it was pruned, at
commit 5d83316."""
AFTER = """Features of the solver before it was pruned, at commit 5d83316, relative to that solver, on the list of seed 2026.
The choice which features to remove was made by this table. The settings that remain were compared on this list as well, so
that its last line, the pruned solver, is too favourable: the last line of the table above is the fair comparison.

"""


def measure(make, settings):
    """Return what a solution costs with these settings."""
    times = []
    while sum(times) < REPEAT:
        objective = make()
        started = time.process_time()
        result = replace(DEFAULT, **settings).solve(objective, tol=SOLVER_TOL)
        times.append(time.process_time() - started)
    return {
        "evaluations": result.evaluations,
        "cpu": min(times),
        "gap": result.gap,
        "certified": result.gap <= SOLVER_TOL,
    }


def measure_all(problems):
    """Write the results that are missing."""
    known = read_rows(RESULTS, KEY)
    for problem in problems:
        missing = [feature for feature in FEATURES if (feature, problem.name) not in known]
        make = problem.objective_maker() if missing else None
        for feature in missing:
            row = {"feature": feature, "problem": problem.name} | measure(make, FEATURES[feature])
            write_rows(RESULTS, COLUMNS, [row])
            print(*row.values(), flush=True)


def table_row(feature, found, reference):
    """Return the geometric means of one feature's results, relative to the reference."""
    ratios = {
        column: np.array(
            [float(row[column]) / float(other[column]) for row, other in zip(found, reference, strict=True)]
        )
        for column in ("evaluations", "cpu")
    }
    means = {column: np.exp(np.mean(np.log(values))) for column, values in ratios.items()}
    worst = int(np.argmax(ratios["cpu"]))
    return {
        "without": feature,
        "certified": f"{sum(row['certified'] == 'True' for row in found)} of {len(found)}",
        "evaluations": f"{means['evaluations']:.3f}",
        "CPU": f"{means['cpu']:.3f}",
        "worst": f"{ratios['cpu'][worst]:.2f}, {found[worst]['problem']}",
    }


def table(rows, reference):
    features = dict.fromkeys(feature for feature, _ in rows)
    problems = [problem for feature, problem in rows if feature == reference]
    base = [rows[reference, problem] for problem in problems]
    return [table_row(feature, [rows[feature, problem] for problem in problems], base) for feature in features]


def main():
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        measure_all(held_out_problems())
    now = read_rows(RESULTS, KEY)
    before = read_rows(REMOVED, KEY)
    after = AFTER + markdown(table(before, ALL))
    write_results(__file__, "Ablation of the quasi-Newton solver", TEXT, table(now, ALL), after)


if __name__ == "__main__":
    main()
