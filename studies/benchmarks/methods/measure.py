"""One case in its own process: processor seconds of fit and predict, and the rise of memory above data and imports.

Processor time, because all run in one thread and the machine may be shared. The peak of the resident memory is reset
before `fit`, which needs Linux.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from rbrl import datasets
from studies.benchmarks.methods.cases import CASES, MULTILEARN


def measure(number, dataset, max_rows):
    case = CASES[number]
    train, test = datasets.load(dataset).split(seed=0)
    X, Y, X_test = train.X[:max_rows], np.asarray(_dense(train.Y))[:max_rows], test.X
    # The other packages refuse a label without a relevant row, and scikit-multilearn-ng refuses sparse arrays.
    Y = Y[:, Y.any(axis=0) & ~Y.all(axis=0)].astype(np.int64)
    if case.package == MULTILEARN and sparse.issparse(X):
        X, X_test = sparse.csr_matrix(X), sparse.csr_matrix(X_test)
    model = case.make()
    before = _reset_peak()
    started = time.process_time()
    model.fit(X, Y)
    fitted = time.process_time()
    labels = model.predict(X_test)
    ended = time.process_time()
    return {
        "fit": fitted - started,
        "predict": ended - fitted,
        "memory": _peak() - before,
        "rows": X.shape[0],
        "labels": Y.shape[1],
        "relevant": float(_dense(labels).sum()) / labels.shape[0],
    }


def _dense(A):
    return A.toarray() if sparse.issparse(A) else A


def _reset_peak():
    """Forget the peak so far; the resident size in MB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak():
    return _status("VmHWM")


def _status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    number, dataset, max_rows = sys.argv[1:]
    print(json.dumps(measure(int(number), dataset, int(max_rows))))
