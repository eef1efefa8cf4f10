"""Functions for the commands of this folder, which answer for one split after the other. Needs NumPy and SciPy only.

The other side is `rbrl.experiments.CommandClassifier`, whose documentation says what lies in the folder of a split.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
from scipy import sparse

# Fits a model to X and Y with parameters, and gives the function that predicts: X -> (scores, labels or None).
Fit = Callable[[Any, Any, dict[str, Any]], Callable[[Any], tuple[Any, Any]]]


def serve(fit: Fit) -> None:
    """Answer questions until there are no more."""
    at_start = peak_megabytes()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    for line in sys.stdin:
        try:
            reply = answer(Path(line.strip()), fit) | {"megabytes": peak_megabytes() - at_start}
        except Exception as error:  # noqa: BLE001  # the caller gets every error
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=answers, flush=True)


def answer(folder: Path, fit: Fit) -> dict[str, float]:
    """Read a split, write scores, and say what it took."""
    X, X_test = (read_rows(folder / f"{name}.npz") for name in ("X_train", "X_test"))
    parameters = json.loads((folder / "parameters.json").read_text(encoding="utf-8"))
    started = time.process_time()
    predict = fit(X, np.load(folder / "Y_train.npy"), parameters)
    fitted = time.process_time()
    scores, labels = predict(X_test)
    predicted = time.process_time()
    np.save(folder / "scores.npy", np.asarray(scores, dtype=np.float64))
    if labels is not None:
        np.save(folder / "labels.npy", np.asarray(labels, dtype=np.int64))
    return {"fit_seconds": fitted - started, "predict_seconds": predicted - fitted}


def peak_megabytes() -> float:
    """The most memory that this process had so far."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


def read_rows(path: Path) -> Any:
    """A matrix of features, dense or sparse."""
    with np.load(path) as file:
        if "dense" in file:
            return file["dense"]
    return sparse.csr_matrix(sparse.load_npz(path))
