"""Measure the cost of certifying a fit: ``python -m studies.benchmarks.proof SOURCES``, with RBRL_DATA.

SOURCES is the folder `src` of an older rbrl, 42de6aa or before, which reports what its solver found in coordinates of its
own. Both are run in processes of their own, in turn: ``git worktree add /tmp/before 42de6aa`` makes such a folder.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

from rbrl import RBRLClassifierCV
from rbrl.registry import WEIGHTS
from studies.benchmarks.problems import first_model, part, write_results

KERNEL = {"emotions": "rbf", "yeast": "rbf", "arts": "linear"}
RUNS_OF_EACH = 2
TEXT = """With the sources of 42de6aa as the argument.
Processor seconds, without and with the proof, the least of two runs each: a fit with all three weights 1,
set-up included, and one fold of the search of `studies.benchmarks.search_time` (343 points), whose points are
not proved and whose coordinates are now whole. Evaluations are those of the fit."""


def fit(name):
    X, Y = part(name)
    model = first_model(ridge=1.0, ranking=1.0, nuclear=1.0, kernel=KERNEL[name])
    started = time.process_time()
    model.fit(X, Y > 0)
    return {"seconds": time.process_time() - started, "evaluations": model.n_evaluations_}


def search(name):
    X, Y = part(name)
    fold = [next(KFold(5, shuffle=True, random_state=0).split(X))]
    # The refit is of the same order in both, and small.
    # Older sources have this grid as their default, and no name for it.
    weights = dict.fromkeys(("ridges", "rankings", "nuclears"), WEIGHTS)
    estimator = first_model(kernel=KERNEL[name])
    model = RBRLClassifierCV(**weights, estimator=estimator, cv=fold, refit="average_precision")
    started = time.process_time()
    model.fit(X, Y > 0)
    return {"seconds": time.process_time() - started}


def measured(sources, what, name):
    environment = os.environ | {"PYTHONPATH": str(sources), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "studies.benchmarks.proof", what, name]
    root = Path(__file__).parents[3]
    return json.loads(subprocess.run(command, env=environment, cwd=root, capture_output=True, check=True).stdout)


def row(name, sources):
    least, evaluations = {}, {}
    for _ in range(RUNS_OF_EACH):
        for what in ("fit", "search"):
            for which, folder in sources.items():
                found = measured(folder, what, name)
                least[what, which] = min(found["seconds"], least.get((what, which), np.inf))
                evaluations[which] = found.get("evaluations", evaluations.get(which))
    out = {"data": name, "evaluations": f"{evaluations['before']:g} and {evaluations['now']:g}"}
    for what in ("fit", "search"):
        before, now = least[what, "before"], least[what, "now"]
        out |= {what: f"{before:.2f} and {now:.2f}", f"ratio of the {what}": f"{now / before:.3f}"}
    print(out, flush=True)
    return out


def main(before):
    sources = {"before": before, "now": Path(__file__).parents[3] / "src"}
    write_results(__file__, "What the proof of a fit costs", TEXT, [row(name, sources) for name in KERNEL])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) == 3:
        print(json.dumps({"fit": fit, "search": search}[sys.argv[1]](sys.argv[2])))
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
