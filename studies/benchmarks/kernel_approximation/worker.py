"""One kernel model in a process of its own: ``python -m studies.benchmarks.kernel_approximation.worker ROWS PARAMETERS``."""

import json
import resource
import sys
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from rbrl import datasets, kernels
from rbrl.metrics import ranking_loss
from studies.benchmarks.problems import first_model, folder

# The rows that every model is tested on.
N_TEST_ROWS = 4000


def rows(n_train):
    """Training and test rows of tmc2007_500 in one fixed random order, the test rows the last of it."""
    data = datasets.load("tmc2007_500", data_home=folder("RBRL_DATA"))
    order = np.random.default_rng(0).permutation(data.X.shape[0])
    train, test = order[:n_train], order[-N_TEST_ROWS:]
    return (data.X[train], data.Y[train]), (data.X[test], data.Y[test])


def main(n_train, parameters):
    (X, Y), (X_test, Y_test) = rows(int(n_train))
    parameters = json.loads(parameters)
    if parameters.pop("landmarks", "kmeans") == "uniform":
        kernels._cluster_centres = uniform_rows
    started = time.process_time()
    model = first_model(kernel="rbf", random_state=0, **parameters).fit(X, Y)
    fitted = time.process_time()
    loss = ranking_loss(Y_test, model.decision_function(X_test))
    facts = {"fit": fitted - started, "predict": time.process_time() - fitted, "ranking loss": loss}
    facts |= {"gap": model.gap_, "evaluations": model.n_evaluations_, "objective": model.objective_}
    facts["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(facts))


def uniform_rows(X, n_clusters, random_state):
    return X[np.random.default_rng(random_state).choice(X.shape[0], n_clusters, replace=False)]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main(*sys.argv[1:])
