"""Run every case and write the table: ``python -m studies.benchmarks.methods [DATASET ...]``.

Needs scikit-multilearn-ng beside this package; without it, its rows say so.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from studies.benchmarks.methods.cases import CASES, DATASETS, OURS, TASKS

RESULTS = Path(__file__).with_name("results.md")
REPEATS, LONG, TIME_LIMIT = 3, 10, 900
# Thousands of label sets make hours of the label powerset on all rows of bibtex.
MAX_ROWS = {("bibtex", "label powerset"): 1000}
ALL_ROWS = 10**9


def compare(task, dataset):
    """The best of a few runs of each package, taken in turn; an error is a dict with its last line."""
    numbers = {case.package: i for i, case in enumerate(CASES) if case.task == task}
    best = {package: {} for package in numbers}
    for _ in range(REPEATS):
        for package, number in numbers.items():
            if "error" not in best[package]:
                best[package] = _better(best[package], run(number, dataset))
        if any(found.get("fit", 0) > LONG for found in best.values()):
            break
    return best


def run(number, dataset):
    """Run one measurement in a process of its own and return its result."""
    rows = MAX_ROWS.get((dataset, CASES[number].task), ALL_ROWS)
    command = [sys.executable, "-m", "studies.benchmarks.methods.measure", str(number), dataset, str(rows)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return {"error": f"more than {TIME_LIMIT} s"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:90]}
    return json.loads(done.stdout)


def _better(first, second):
    return second if "error" in second else {k: min(v, first.get(k, v)) for k, v in second.items()}


def line(dataset, task, package, ours, other):
    if "error" in other or "error" in ours:
        return f"| {dataset} | {task} | {package} | {other.get('error') or ours['error']} | | | | | |"
    ratios = [f"{other[k] / max(ours[k], 1e-9):.2f}" for k in ("fit", "predict")]
    fit = f"{ours['fit']:.2f} / {other['fit']:.2f} | {ratios[0]}"
    predict = f"{ours['predict']:.3f} / {other['predict']:.3f} | {ratios[1]}"
    memory = f"{ours['memory']:.0f} / {other['memory']:.0f} | {other['memory'] / max(ours['memory'], 1):.1f}"
    return f"| {dataset} | {task} | {package} | {fit} | {predict} | {memory} |"


def heading():
    names = ("rbrl", "scikit-learn", "scikit-multilearn-ng", "numpy", "scipy")
    versions = ", ".join(f"{name} {_version(name)}" for name in names)
    return [
        "# Speed and memory beside other packages",
        "",
        f"`python -m studies.benchmarks.methods`, {datetime.date.today()}, Python {platform.python_version()}, {versions}; "
        f"{os.cpu_count()} cores ({platform.machine()}), one thread each.",
        "",
        "60 % of the rows train, 40 % are predicted (split 0). Processor seconds, the best of three runs (one, if it takes",
        "over 10 s); peak memory above data and imports in MB. Ours / theirs; a ratio above 1 means that ours is faster or",
        "smaller. The base learner is `LinearSVC(dual=False)` for all, and nearly all of a fit except ML-kNN's. Label",
        "powerset on bibtex: the first 1,000 training rows.",
        "",
        "| data | task | beside | fit | ratio | predict | ratio | memory | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "(source)" if name == "rbrl" else "(absent)"


def main(chosen):
    lines = heading()
    for dataset in chosen:
        for task in TASKS:
            found = compare(task, dataset)
            ours = found.pop(OURS)
            for package, other in found.items():
                lines.append(line(dataset, task, package, ours, other))
                print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:] or DATASETS)
