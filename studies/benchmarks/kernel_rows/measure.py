"""Problems and methods of the benchmark, and the measurement of one fit."""

import time
import warnings
from importlib.metadata import version

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier, datasets
from studies.benchmarks.problems import folder
from studies.benchmarks.text.worker import PeakMemory

N_LABELS = 20
N_TEST = 2000
# Data set of at least 10,000 rows whose rows are not nearly separable by linear models.
REAL = "tmc2007_500"
SYNTHETIC = "synthetic"
N_FEATURES = 10
EXACT = "rbrl"
NYSTROEM = "rbrl, Nystroem"
PEER = "SVC"
METHODS = (EXACT, NYSTROEM, PEER)


def load(data, n_rows):
    """Return X, Y, X_test and Y_test; the test rows are the same for every number of rows."""
    X, Y = read_real() if data == REAL else make_synthetic(12_000)
    order = np.random.default_rng(0).permutation(X.shape[0])
    train = order[N_TEST : N_TEST + n_rows]
    test = order[:N_TEST]
    return X[train], Y[train], X[test], Y[test]


def read_real():
    """Return the rows of the real data set, with its most frequent labels."""
    found = datasets.load(REAL, data_home=folder("RBRL_DATA"))
    Y = np.asarray(found.Y)
    return found.X, Y[:, np.argsort(-Y.sum(axis=0), kind="stable")[:N_LABELS]].astype(np.int64)


def make_synthetic(n_rows):
    """Draw rows whose labels are smooth functions of the features, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_FEATURES))
    features = RBFSampler(gamma=1 / N_FEATURES, n_components=500, random_state=0).fit_transform(X)
    scores = features @ rng.standard_normal((features.shape[1], N_LABELS))
    scores += 0.3 * scores.std() * rng.standard_normal(scores.shape)
    # Labels are relevant to 5 to 40 % of the rows.
    shares = np.linspace(0.05, 0.4, N_LABELS)
    thresholds = [np.quantile(score, 1 - share) for score, share in zip(scores.T, shares)]
    return X, (scores > thresholds).astype(np.int64)


def make(method, X, Y):
    """Return the unfitted model of a method."""
    exact = RBRLClassifier(kernel="rbf")
    if method == EXACT:
        return exact
    if method == NYSTROEM:
        return RBRLClassifier(kernel="rbf", approximation="nystroem", random_state=0)
    problem = exact.problem(X, Y)
    return OneVsRestClassifier(SVC(gamma=problem.form.gamma, C=1 / problem.ridge))


def measure(method, data, n_rows):
    """Fit one method in this process and return its facts by name."""
    warnings.simplefilter("ignore")
    X, Y, X_test, Y_test = load(data, n_rows)
    with threadpool_limits(1):
        model = make(method, X, Y)
        # Loads the libraries, so that the fit is all that is measured.
        make(method, X[:100], Y[:100]).fit(X[:100], Y[:100])
        memory = PeakMemory()
        started = time.process_time()
        model.fit(X, Y)
        facts = {"cpu": time.process_time() - started, "megabytes": memory.megabytes()}
        scores = model.decision_function(X_test)
    facts["average precision"] = label_ranking_average_precision_score(Y_test, scores)
    facts["gap"] = getattr(model, "gap_", "")
    facts["evaluations"] = getattr(model, "n_evaluations_", "")
    facts["C"] = model.estimator.C if method == PEER else ""
    library = "rbrl" if isinstance(model, RBRLClassifier) else "scikit-learn"
    facts["version"] = f"{library} {version(library)}"
    return facts
