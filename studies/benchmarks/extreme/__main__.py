"""Measure fits of tens of thousands of labels: ``python -m studies.benchmarks.extreme [--only TEXT]``.

RBRL_DATA names the folder of data sets. The peers run in Pythons of their own, which ``--omikuji``,
``--napkinxc``, ``--libmultilabel`` and ``--libpecos`` name; without an option, that peer keeps the
rows that it has. Every row is written to ``results.csv`` as soon as it is known, and the same
command continues where it was interrupted. ``results.md`` is made from the rows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from studies.benchmarks.extreme import data, forms, page, shortlists
from studies.benchmarks.extreme.page import COLUMNS, RESULTS
from studies.benchmarks.problems import read_rows, write_rows

HERE = Path(__file__).parent
# First four ridges, or values of C, which is the weight of the losses in the peers. If the best one is
# the first or the last, the next value of the ladder is tried, too.
RIDGES = (0.1, 0.3, 1, 3)
CS = (0.3, 1, 3, 10)
LADDER = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
OURS = ("rbrl, ranking=0", "rbrl, ranking=1")
COMPRESSED = ", compress=0.01"
# Method, and the option that names its Python.
PEERS = {
    "Omikuji": "omikuji",
    "PECOS": "libpecos",
    "napkinXC, PLT": "napkinxc",
    "LibMultiLabel, tree": "libmultilabel",
    "LibMultiLabel, one-vs-rest": "libmultilabel",
    "napkinXC, BR": "napkinxc",
}
GROWTH = (500, 1000, 2000, 4000, 8000, 11_969)
GROWTH_ROWS = 5_000
# Numbers of labels of fits with all training rows, besides all labels.
RECIPE = (100, 1000)
KEY = ("part", "method", "setting", "labels")


class Study:
    """The rows that are known, and the options of the command."""

    def __init__(self, options):
        self.options = options
        self.known = read_rows(RESULTS, KEY)
        self.scratch = options.scratch

    def key(self, part, method, setting, labels):
        """Return the key of a row, as the file spells it."""
        return part, method, f"{setting:g}", str(labels)

    def wants(self, key):
        """Return whether a row is chosen and not known."""
        return key not in self.known and self.options.only in ", ".join(key)

    def python_of(self, method):
        """Return the Python of a method; None if its option is missing."""
        return getattr(self.options, PEERS[method]) if method in PEERS else sys.executable

    def add(self, key, facts):
        """Write a row."""
        row = dict(zip(KEY, key, strict=True)) | {name: format_fact(facts[name]) for name in facts}
        row["date"] = f"{datetime.now(UTC):%Y-%m-%d}"
        write_rows(RESULTS, COLUMNS, [row])
        self.known[key] = dict.fromkeys(COLUMNS, "") | row
        print(json.dumps(row), flush=True)

    def fit(self, part, method, setting, labels, make_problem):
        """Fit one method in a process of its own, unless the row is known."""
        key = self.key(part, method, setting, labels)
        python = self.python_of(method)
        if python is None or not self.wants(key):
            return
        path = self.scratch / f"{part}-{labels}.npz"
        if not path.exists():
            data.write_problem(path, make_problem())
        with tempfile.TemporaryDirectory(dir=self.scratch) as home:
            facts = run_worker(python, method, setting, path, home)
            self.finish(key, facts, Path(home), path)

    def finish(self, key, facts, home, path):
        """Add the metrics to the facts of a fit, write the row, and keep our model for later parts."""
        best = home / "best.npy"
        if best.exists():
            Y, Y_test = (data.read_matrix(path, name) for name in ("Y", "Y_test"))
            facts |= data.measure_ranking(np.load(best), Y, Y_test)
        part, method, *_ = key
        if part == "whole" and method in OURS:
            os.replace(home / "model.rbrl", self.model_path(method))
        self.add(key, facts)

    def model_path(self, method):
        """Return the path of our model of all training rows, which the later parts read."""
        return self.scratch / f"{method}.rbrl"


def run_worker(python, method, setting, path, home):
    """Return the facts that the worker prints."""
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(threads, "1")
    if python != sys.executable:
        # Packages of this Python may not fit the other one.
        environment.pop("PYTHONPATH", None)
    command = [python, str(HERE / "worker.py"), method, f"{setting:g}", str(path), home]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def format_fact(value):
    """Return a number with six digits, and text as it is."""
    return value if isinstance(value, str) else f"{value:.6g}"


def compare(study, method):
    """Choose the parameter of a method, and fit it to all training rows."""
    for setting in RIDGES if method in OURS else CS:
        study.fit("choice", method, setting, 11_969, lambda: data.split(data.CHOICE))
    chosen = page.chosen_setting(study.known.values(), method)
    while chosen is not None:
        place = LADDER.index(chosen)
        for neighbour in LADDER[place - 1], LADDER[place + 1]:
            study.fit("choice", method, neighbour, 11_969, lambda: data.split(data.CHOICE))
        found = page.chosen_setting(study.known.values(), method)
        if found == chosen:
            break
        chosen = found
    if chosen is not None:
        study.fit("whole", method, chosen, 11_969, lambda: data.split(data.WHOLE))


def measure_compressed(study):
    """Fit all training rows with unimportant weights set to 0, and the chosen ridge."""
    for method in OURS:
        chosen = page.chosen_setting(study.known.values(), method)
        if chosen is not None:
            study.fit("whole", method + COMPRESSED, chosen, 11_969, lambda: data.split(data.WHOLE))


def measure_growth(study):
    """Fit nested random subsets of the labels on the same rows."""
    for method in OURS:
        for n_labels in GROWTH:
            study.fit("growth", method, 1, n_labels, lambda n=n_labels: growth_problem(n))


def growth_problem(n_labels):
    """Return the rows and labels of a fit of the growth, with no rows to measure."""
    X, Y, X_test, Y_test = data.split((GROWTH_ROWS, 0))
    return X, data.nested_labels(Y, n_labels), X_test, data.nested_labels(Y_test, n_labels)


def measure_recipe(study):
    """Fit all training rows with fewer labels, for the sizes that the documentation names."""
    for method in OURS:
        for n_labels in RECIPE:
            study.fit("fewer", method + COMPRESSED, 1, n_labels, lambda n=n_labels: fewer_labels(n))


def fewer_labels(n_labels):
    """Return all training rows and the rows to measure with a random subset of the labels."""
    X, Y, X_test, Y_test = data.split(data.WHOLE)
    return X, data.nested_labels(Y, n_labels), X_test, data.nested_labels(Y_test, n_labels)


def measure_wiki(study):
    """Fit the made data of the shape of Wiki10-31K: first a few of its labels, then all."""
    for n_labels in page.WIKI_LABELS:
        for method in (OURS[0] + COMPRESSED, OURS[0]):
            study.fit("wiki", method, page.WIKI_RIDGE, n_labels, lambda n=n_labels: wiki_problem(n))


def wiki_problem(n_labels):
    """Return the made rows and labels, with no rows to measure."""
    X, Y = data.make_wiki()
    Y = Y if n_labels == Y.shape[1] else data.nested_labels(Y, n_labels)
    return X, Y, X[:0], Y[:0]


def parse_arguments():
    """Return the options of the command."""
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.extreme", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose keys contain this")
    scratch = Path(tempfile.gettempdir()) / "extreme"
    parser.add_argument("--scratch", type=Path, default=scratch, metavar="FOLDER", help="for data and models")
    for option in sorted(set(PEERS.values())):
        parser.add_argument(f"--{option}", metavar="PYTHON", help=f"a Python that has {option}")
    return parser.parse_args()


def main():
    """Measure the missing rows, and write the page."""
    options = parse_arguments()
    options.scratch.mkdir(parents=True, exist_ok=True)
    study = Study(options)
    for method in (*OURS, *PEERS):
        compare(study, method)
    measure_growth(study)
    measure_compressed(study)
    measure_recipe(study)
    forms.measure(study)
    shortlists.measure(study)
    measure_wiki(study)
    page.write(study.known.values())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
