"""Time a fit with thousands of features and labels: ``python -m studies.benchmarks.thousands_of_labels``."""

import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier
from studies.benchmarks.problems import write_results

# Rows, features, labels, and the weight of the nuclear norm.
CASES = [(1500, 1000, 1250, 0.0), (1500, 1000, 1250, 0.1), (6000, 4000, 5000, 0.0)]
TOPICS, WORDS = 50, 40
TEXT = f"""Made texts: {TOPICS} topics, each with its own words and labels; a row has {WORDS} words and one to seven labels
of a mixture of few topics, and unit length. `RBRLClassifier(ridge=2, ranking=1, nuclear, tol=1e-3)`; seconds are processor
time of `fit`, one thread."""


def texts(n_samples, n_features, n_labels):
    """Sparse rows, and their labels."""
    rng = np.random.default_rng(0)
    words, labels = (rng.dirichlet(np.full(size, 0.02), TOPICS) for size in (n_features, n_labels))
    mixtures = rng.dirichlet(np.full(TOPICS, 0.05), n_samples)
    X = normalize(sparse.csr_array(np.vstack([rng.multinomial(WORDS, mixture @ words) for mixture in mixtures]) * 1.0))
    Y = np.zeros((n_samples, n_labels), dtype=np.int8)
    for y, mixture in zip(Y, mixtures):
        y[rng.choice(n_labels, rng.integers(1, 8), p=mixture @ labels)] = 1
    return X, Y


def row(n_samples, n_features, n_labels, nuclear):
    X, Y = texts(n_samples, n_features, n_labels)
    model, started = RBRLClassifier(ridge=2.0, ranking=1.0, nuclear=nuclear, tol=1e-3), time.process_time()
    model.fit(X, Y)
    seconds = time.process_time() - started
    line = {
        "rows": n_samples,
        "features": n_features,
        "labels": n_labels,
        "nuclear": nuclear,
        "seconds": f"{seconds:.1f}",
    }
    line |= {"gap": f"{model.gap_:.1e}", "iterations": model.n_iter_, "rank": model.rank_}
    print(line, flush=True)
    return line


def main():
    warnings.simplefilter("ignore")
    write_results(__file__, "Thousands of labels", TEXT, [row(*case) for case in CASES])


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
