"""One fit of imdb: rows, methods, figures."""

import json
import os
import resource
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from rbrl import datasets
from rbrl.metrics import ranking_loss
from rbrl.splits import random_split
from studies.benchmarks.problems import first_model, folder

BATCH = 5000
RBRL, STREAM, SVC, LML = (
    "rbrl, certified 1e-3",
    f"rbrl, partial_fit in batches of {BATCH}",
    "one-vs-rest LinearSVC",
    "LibMultiLabel one-vs-rest",
)


def parts(share):
    """Training rows and labels, and those to judge by."""
    data = datasets.load("imdb", data_home=folder("RBRL_DATA"))
    train, test = random_split(data.n_samples, 0, 0.8)
    train = train[: int(share * len(train))]
    return data.X[train], data.Y[train].astype(np.int64), data.X[test], np.asarray(data.Y[test])


def fit(method, X, Y):
    if method == STREAM:
        model = first_model()
        for a in range(0, len(Y), BATCH):
            model.partial_fit(X[a : a + BATCH], Y[a : a + BATCH])
        _ = model.coef_  # computed when asked for
        return model
    model = first_model(tol=1e-3) if method == RBRL else OneVsRestClassifier(LinearSVC(C=0.5))
    return model.fit(X, Y)


def measure(method, share):
    """Fit in this process; figures by name."""
    if method == LML:
        return measure_elsewhere(share)
    warnings.simplefilter("ignore")
    X, Y, X_test, Y_test = parts(share)
    with threadpool_limits(1):
        first_model().fit(X[:100], Y[:100])  # compiled loops are loaded once
        started, wall = time.process_time(), time.perf_counter()
        model = fit(method, X, Y)
        seconds, wall = time.process_time() - started, time.perf_counter() - wall
        started = time.process_time()
        scores = model.decision_function(X_test)
        predicted = time.process_time() - started
    return {
        "method": method,
        "rows": len(Y),
        "cpu seconds": seconds,
        "wall seconds": wall,
        "evaluations": getattr(model, "n_evaluations_", np.nan),
        "certified gap": getattr(model, "gap_", np.nan),
        "predict, cpu seconds": predicted,
        "ranking loss": ranking_loss(Y_test, scores),
        "GB peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def measure_elsewhere(share):
    """LibMultiLabel in its own Python, with the same rows."""
    X, Y, X_test, Y_test = parts(share)
    script = Path(__file__).with_name("libmultilabel_fit.py")
    with tempfile.TemporaryDirectory() as where:
        for name, matrix in {"X": X, "Y": Y, "X_test": X_test}.items():
            sparse.save_npz(Path(where, f"{name}.npz"), sparse.csr_array(matrix), compressed=False)
        command = [os.environ["LIBMULTILABEL_PYTHON"], str(script), where]
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=clean)
        scores = np.load(Path(where, "scores.npy"))
    found = json.loads(run.stdout.splitlines()[-1])
    return {
        "method": LML,
        "rows": len(Y),
        "cpu seconds": found["seconds"],
        "wall seconds": found["wall"],
        "evaluations": np.nan,
        "certified gap": np.nan,
        "predict, cpu seconds": found["predicted"],
        "ranking loss": ranking_loss(Y_test, scores),
        "GB peak": found["peak"],
    }
