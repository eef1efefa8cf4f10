"""Time the first fit of a new process: ``python -m studies.benchmarks.first_fit [--python PYTHON]``

Import and first fit, each in a process of its own, beside scikit-learn's. PYTHON is the interpreter of an environment with
`pip install .` alone; by default the one that runs this.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rbrl import datasets
from studies.benchmarks.problems import write_results

ROUNDS = 5
TEXT = """Processor seconds of a new process that imports a classifier and fits it to yeast (1,450 rows, standardised, 14
labels), all in one run, taking turns; the least of {} processes each, and the median. The ratio is to scikit-learn's.{}"""
ENVIRONMENT = "\nThe environment has what `pip install .` brings."
READ = "import numpy as np; data = np.load('yeast.npz'); X, Y = data['X'], data['Y'];"
PROGRAMS = {
    "arrays alone": "",
    "OneVsRestClassifier(LinearSVC())": "from sklearn.multiclass import OneVsRestClassifier; "
    "from sklearn.svm import LinearSVC; OneVsRestClassifier(LinearSVC()).fit(X, Y);",
    "RBRLClassifier()": "from rbrl import RBRLClassifier; RBRLClassifier().fit(X, Y);",
    "RBRLClassifier(kernel='rbf')": "from rbrl import RBRLClassifier; RBRLClassifier(kernel='rbf').fit(X, Y);",
}


def seconds(python, program, folder):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    code = f"{READ} {program} import time; print(time.process_time())"
    done = subprocess.run([python, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, type=lambda path: str(Path(path).absolute()))
    python = parser.parse_args(arguments).python
    (X, Y), _ = datasets.load("yeast").split(seed=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with TemporaryDirectory() as folder:
        np.savez(Path(folder, "yeast.npz"), X=X, Y=Y.astype(np.int64))
        times = {name: [] for name in PROGRAMS}
        for _ in range(ROUNDS):
            for name, program in PROGRAMS.items():
                times[name].append(seconds(python, program, folder))
    reference = min(times["OneVsRestClassifier(LinearSVC())"])
    found = []
    for name, t in times.items():
        figures = {"least": min(t), "median": np.median(t), "ratio": min(t) / reference}
        found.append({"import and fit": f"`{name}`"} | {key: f"{value:.2f}" for key, value in figures.items()})
    text = TEXT.format(ROUNDS, "" if python == sys.executable else ENVIRONMENT)
    write_results(__file__, "From nothing to a fitted model", text, found)


if __name__ == "__main__":
    main(sys.argv[1:])
