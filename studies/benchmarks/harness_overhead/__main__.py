"""Compare the demo plan with a plain loop over the same fits: ``python -m studies.benchmarks.harness_overhead``.

Every side is a process of its own, from start to end, and the sides take turns. Processor seconds hardly depend on what
else the machine does; seconds of the wall clock do.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from rbrl.experiments import Plan, Store, execute
from studies.benchmarks.problems import write_results

ROUNDS = 5
ROOT = Path(__file__).resolve().parents[3]
PLAN = ROOT / "examples" / "demo.toml"
LOOP = "plain loop"
EXECUTE = "from rbrl.experiments import execute; execute({plan!r}, {store!r}, jobs={jobs})"
TEXT = """The plan `demo.toml`, {n_runs} runs of {methods}. {rounds} rounds: the least processor time, which is the one
that other work on the machine disturbed least, and the median of the wall clock. The loop is `plain.py`: the same splits,
grid points, folds, fits and metrics, the parameters given, nothing kept. `execute` chooses the parameters and keeps every
result in its store; `rbrl compare` also writes tables, figures and the page."""


def sides(folder, turn, jobs):
    """Commands by name; a new store for every one that needs it."""
    stores = [str(folder / f"{name}-{turn}-{jobs}") for name in ("execute", "compare")]
    code = EXECUTE.format(plan=str(PLAN), store=stores[0], jobs=jobs)
    return {
        LOOP: ["-m", "studies.benchmarks.harness_overhead.plain", str(PLAN), str(folder / "chosen.json"), str(jobs)],
        "`execute`": ["-c", code],
        "`rbrl compare`": ["-m", "rbrl.cli", "compare", str(PLAN), "-o", stores[1], "--jobs", str(jobs), "--quiet"],
    }


def seconds(arguments):
    """Processor and wall-clock seconds of a process with all its children."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, after.elapsed - before.elapsed


def prepare(folder):
    """Choose the parameters for the loop; this also compiles what is compiled once."""
    execute(PLAN, folder / "first")
    rows = Store(folder / "first").rows().drop_duplicates(["method", "split"])
    chosen = [((row.method, row.split), json.loads(row.params)) for row in rows.itertuples()]
    (folder / "chosen.json").write_text(json.dumps(chosen))


def main():
    plan = Plan.from_toml(PLAN)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        measured = {}
        for jobs in (1, 2):
            for turn in range(ROUNDS):
                for side, command in sides(folder, turn, jobs).items():
                    measured.setdefault((jobs, side), []).append(seconds(command))
                    print(jobs, side, measured[jobs, side][-1], file=sys.stderr, flush=True)
    rows = [row(jobs, side, found, measured[jobs, LOOP]) for (jobs, side), found in measured.items()]
    facts = {"n_runs": plan.n_runs, "methods": ", ".join(m.name for m in plan.methods), "rounds": ROUNDS}
    write_results(__file__, "Overhead of the harness", TEXT.format(**facts), rows)


def row(jobs, side, found, loop):
    """Processor and wall-clock seconds, and how they compare with those of the loop."""
    line = {"jobs": jobs, "": side}
    for i, (kind, middle) in enumerate({"processor": min, "wall clock": median}.items()):
        ours, theirs = (middle(one[i] for one in rounds) for rounds in (found, loop))
        line |= {f"{kind}, s": f"{ours:.1f}", f"{kind}, of the loop's": f"{ours / theirs:.3f}"}
    return line


if __name__ == "__main__":
    main()
