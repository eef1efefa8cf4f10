"""Fit one method in a process of its own, score the test rows, and print the cost.

``python worker.py FOLDER METHOD PARAMETERS``: FOLDER holds what `write_problem` of the benchmark wrote; PARAMETERS are JSON.
It imports no more than the method needs, so that another interpreter can run it.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse


def read(folder, name):
    parts = np.load(Path(folder) / f"{name}.npz")
    return sparse.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=parts["shape"])


def rbrl(X, Y, parameters):
    from rbrl import RBRLClassifier

    first = {"ranking": 0.1, "intercept_ridge": None}  # as the figures were measured
    model = RBRLClassifier(**first | parameters).fit(X, Y)
    facts = {"gap": model.gap_, "evaluations": model.n_evaluations_, "rank": model.rank_, "objective": model.objective_}
    return model.decision_function, facts


def one_vs_rest(X, Y, parameters):
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    # Label matrices of small integers are scrambled beyond 128 or 256 columns.
    model = OneVsRestClassifier(LinearSVC(**parameters)).fit(X, Y.toarray().astype(np.int64))
    return model.decision_function, {}


def libmultilabel(X, Y, parameters):
    from libmultilabel import linear

    model = linear.train_1vsrest(Y, X, options=parameters["options"], verbose=False)
    return lambda rows: linear.predict_values(model, rows), {}


METHODS = {"rbrl": rbrl, "one_vs_rest": one_vs_rest, "libmultilabel": libmultilabel}


def main(folder, method, parameters):
    X, Y, X_test = (read(folder, name) for name in ("X", "Y", "X_test"))
    started = time.process_time()
    scores_of, facts = METHODS[method](X, Y, json.loads(parameters))
    fitted = time.process_time()
    scores = scores_of(X_test)
    facts |= {"fit": fitted - started, "predict": time.process_time() - fitted}
    facts["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    np.save(Path(folder) / "scores.npy", np.asarray(scores))
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
