"""Fit one method to one problem, in a process of its own: ``python worker.py FILE METHOD``. Prints facts as JSON.

FILE has the rows and labels that the benchmark wrote. Memory is that of the fit: the peak of the process, less what Python,
its libraries and the data take.
"""

import json
import resource
import sys
import time
import warnings

import numpy as np
from scipy import sparse


def read(path):
    parts = np.load(path)
    # LIBLINEAR takes indices of 32 bits.
    return [
        sparse.csr_array(
            (parts[f"{name}_data"], *(parts[f"{name}_{part}"].astype(np.int32) for part in ("indices", "indptr"))),
            shape=tuple(shape),
        )
        for name, shape in ((name, parts[f"{name}_shape"]) for name in ("X", "Y", "X_test", "Y_test"))
    ]


def make(method, X):
    """The unfitted model, and what it is called by the table."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    from rbrl import RBRLClassifier
    from rbrl.scales import ColumnScales

    if method == "rbrl":
        return RBRLClassifier()
    if method == "rbrl, nuclear=0.1":
        return RBRLClassifier(nuclear=0.1)
    C = 1.0 if method == "LinearSVC" else 1 / (2 * ColumnScales.of(X).ridge())
    return OneVsRestClassifier(LinearSVC(C=C))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(path, method):
    X, Y, X_test, Y_test = read(path)
    Y = Y.toarray()
    model = make(method, X)
    rng = np.random.default_rng(0)
    small = rng.random((40, 5))
    make(method, small).fit(small, rng.random((40, 3)) < 0.5)
    before, started = peak(), time.process_time()
    model.fit(X, Y)
    facts = {"cpu": time.process_time() - started, "megabytes": peak() - before}
    from sklearn.metrics import label_ranking_average_precision_score

    scores = model.decision_function(X_test)
    facts["average precision"] = label_ranking_average_precision_score(Y_test.toarray(), scores)
    facts |= {"gap": getattr(model, "gap_", None), "passes": getattr(model, "n_iter_", None)}
    entries = X.nnz * 1.5 + Y.size / 8 + Y.size + X.shape[1] * Y.shape[1]
    facts["sum of the data"] = 8 * entries / 2**20
    print(json.dumps(facts))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
