"""Fit one method to one problem, in a process of its own: ``python worker.py FILE METHOD``.

FILE holds the rows and labels that the benchmark wrote. The facts of the fit are printed as JSON.
Memory is the peak of the process during the fit, less its memory before the fit. Each method
imports its own library only: the Python of LibMultiLabel needs no rbrl.
"""

import json
import os
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import label_ranking_average_precision_score


def read(path):
    """Return the matrices X, Y, X_test and Y_test that the benchmark wrote."""
    parts = np.load(path)
    return [read_matrix(parts, name) for name in ("X", "Y", "X_test", "Y_test")]


def read_matrix(parts, name):
    """Return one matrix as a CSR array with indices of 32 bits, which LIBLINEAR needs."""
    indices = parts[f"{name}_indices"].astype(np.int32)
    starts = parts[f"{name}_indptr"].astype(np.int32)
    return sparse.csr_array((parts[f"{name}_data"], indices, starts), tuple(parts[f"{name}_shape"]))


class LibMultiLabelOneVsRest:
    """LibMultiLabel's one-vs-rest, with the methods of a scikit-learn classifier."""

    # LibMultiLabel's own solver (dual coordinate descent) and C; the intercept of LinearSVC.
    OPTIONS = "-s 1 -c 1 -B 1 -m 1"

    def fit(self, X, Y):
        """Train one LIBLINEAR model for each label."""
        from libmultilabel.linear import train_1vsrest

        # Its threads, one for each core, share a single core here.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        Y = sparse.csr_matrix(Y)
        X = sparse.csr_matrix(X)
        self.model_ = train_1vsrest(Y, X, options=self.OPTIONS, verbose=False)
        return self

    def decision_function(self, X):
        """Return the scores of rows."""
        return self.model_.predict_values(sparse.csr_matrix(X))


def make_rbrl(**parameters):
    """Return an unfitted RBRLClassifier."""
    from rbrl import RBRLClassifier

    return RBRLClassifier(**parameters)


def make_linear_svc(C):
    """Return an unfitted one-vs-rest of LinearSVC."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    return OneVsRestClassifier(LinearSVC(C=C))


def same_ridge_C(X):
    """Return the C that corresponds to the ridge that rbrl chooses for these rows."""
    from rbrl.scales import ColumnScales

    return 1 / (2 * ColumnScales.from_rows(X).ridge())


# By method: the function that makes the unfitted model from X, and the distribution of its library.
METHODS = {
    "rbrl": (lambda X: make_rbrl(), "rbrl"),
    "rbrl, nuclear=0.1": (lambda X: make_rbrl(nuclear=0.1), "rbrl"),
    "LinearSVC": (lambda X: make_linear_svc(1.0), "scikit-learn"),
    "LinearSVC, same ridge": (lambda X: make_linear_svc(same_ridge_C(X)), "scikit-learn"),
    "LibMultiLabel": (lambda X: LibMultiLabelOneVsRest(), "libmultilabel"),
}


class PeakMemory:
    """Peak memory of this process from now on, less what it holds now; Linux only."""

    def __init__(self):
        # Loading the data has a peak of its own, and a child starts with the peak of its parent.
        Path("/proc/self/clear_refs").write_text("5")
        self._before = read_status("VmRSS")

    def megabytes(self):
        """Return the memory that was added at the peak."""
        return (read_status("VmHWM") - self._before) / 1024


def read_status(field):
    """Return a field of the memory of this process in kB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{field}:")))


def main(path, method):
    """Fit the method and print the facts of the fit."""
    X, Y, X_test, Y_test = read(path)
    Y = Y.toarray()
    make, distribution = METHODS[method]
    model = make(X)
    rng = np.random.default_rng(0)
    small = rng.random((40, 5))
    make(small).fit(small, rng.random((40, 3)) < 0.5)
    memory = PeakMemory()
    started = time.process_time()
    model.fit(X, Y)
    facts = {"cpu": time.process_time() - started, "megabytes": memory.megabytes()}
    scores = model.decision_function(X_test)
    facts["average precision"] = label_ranking_average_precision_score(Y_test.toarray(), scores)
    facts |= {"gap": getattr(model, "gap_", None), "passes": getattr(model, "n_iter_", None)}
    facts["evaluations"] = getattr(model, "n_evaluations_", None)
    entries = X.nnz * 1.5 + Y.size / 8 + Y.size + X.shape[1] * Y.shape[1]
    facts["sum of the data"] = 8 * entries / 2**20
    facts["version"] = f"{distribution} {version(distribution)}"
    print(json.dumps(facts))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
