"""A small comparison that touches everything: a user's file, tuning, a random method, a method that fails."""

import os
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "src"
METHODS = """
import sys

from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.multioutput import MultiOutputClassifier


class Forest(RandomForestClassifier):
    pass


class Broken(BaseEstimator):
    def __init__(self, sense=0):
        self.sense = sense

    def fit(self, X, y):
        raise RuntimeError(f"no sense in {self.sense}")


class Odd(BaseEstimator):
    def __init__(self):
        sys.exit()
"""
PLAN = {
    "datasets": [{"file": "mine.csv", "labels": -4}],
    "splits": {"number": 3},
    "tuning": {"folds": 2},
    "methods": {
        "rbrl": {"non_empty": True, "params": {"nuclear": 0.1}, "grid": {"ridge": [0.1, 1.0], "ranking": [0.1, 1.0]}},
        "brl": {"params": {"kernel": "rbf", "nuclear": 0.01}, "grid": {"ridge": [0.1, 1.0]}},
        "forest": {"use": "own.py:Forest", "non_empty": True, "params": {"n_estimators": 5}},
        "broken": {"use": "own.py:Broken"},
    },
}
TIMES = ["tune_seconds", "train_seconds", "test_seconds", "processor_seconds"]


def timeless(frame):
    """A table without the columns that differ from run to run."""
    return frame.drop(columns=[*TIMES, "fit_seconds"], errors="ignore")


def start(plan_file, store, jobs=1):
    """A process that does a plan; what it says goes into a file, since workers may outlive it and hold a pipe open."""
    code = f"from rbrl.experiments import execute; execute({str(plan_file)!r}, {str(store)!r}, jobs={jobs})"
    with open(f"{store}.log", "a") as log:
        return subprocess.Popen([sys.executable, "-c", code], env=environment(), stdout=log, stderr=log)


def environment():
    """For processes: the package under test, one thread."""
    return os.environ | {"PYTHONPATH": str(SRC), "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
