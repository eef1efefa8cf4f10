"""Fit one case in a process of its own, and print its cost: ``python worker.py CASE``, where CASE is JSON.

The peak is the largest resident memory of the process after the data were loaded, minus the memory at that moment.
"""

import json
import re
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from rbrl import RBRLClassifier
from rbrl._common.matrices import LowRankMatrix
from rbrl.problem.design import scores
from studies.benchmarks.problems import folder

# Largest address space of the process in bytes.
LARGEST_SPACE = 16 * 10**9
# Rows of debdepends for training; the others are test rows.
TRAINING_ROWS = 45_000
# Shapes of random data: rows, features, nonzero features of a row, labels, relevant labels of a row.
SHAPES = {
    "wiki10-shape": (14_146, 101_938, 670, 30_938, 19),
    "small-shape": (6_000, 20_000, 60, 5_000, 5),
    "tall-shape": (60_000, 2_000, 30, 4_000, 4),
    "wide-shape": (3_000, 200_000, 100, 10_000, 10),
    "dense-shape": (20_000, 400, 0, 3_000, 5),
}


def debdepends(n_labels):
    """Return training and test rows of debdepends, with its `n_labels` most frequent labels."""
    data = np.load(folder("RBRL_DATA") / "debdepends.npz", allow_pickle=False)
    X = sparse.csr_array((data["X_data"], data["X_indices"], data["X_indptr"]), shape=data["X_shape"])
    entries = np.ones(len(data["Y_indices"]), dtype=np.int8)
    Y = sparse.csr_array((entries, data["Y_indices"], data["Y_indptr"]), shape=data["Y_shape"])
    most = np.sort(np.argsort(-np.asarray(Y.sum(axis=0)), kind="stable")[:n_labels])
    Y = Y[:, most]
    order = np.random.default_rng(0).permutation(X.shape[0])
    parts = np.sort(order[:TRAINING_ROWS]), np.sort(order[TRAINING_ROWS:])
    return [(X[part].astype(np.float64), Y[part]) for part in parts]


def random_texts(n_samples, n_features, n_words, n_labels, cardinality, n_topics=200):
    """Return training and test rows: words and labels with Zipf frequencies, some of which belong to topics."""
    rng = np.random.default_rng(0)
    n_all = n_samples + n_samples // 5
    topics = rng.integers(n_topics, size=(n_all, 2))

    def draw(size, mean):
        """Draw for each row entries of two kinds: by frequency, and by frequency among those of a topic of the row."""
        shares = 1.0 / np.arange(1, size + 1)
        counts = np.maximum(rng.poisson(mean, n_all), 1)
        rows = np.repeat(np.arange(n_all), counts)
        chosen = rng.choice(size, size=len(rows), p=shares / shares.sum())
        by_topic = rng.random(len(rows)) < 0.5
        of_topic = topics[rows, rng.integers(2, size=len(rows))]
        # The entries of a topic are those whose index has its remainder.
        moved = np.minimum(chosen - chosen % n_topics + of_topic, size - 1)
        columns = np.where(by_topic, moved, chosen)
        A = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_all, size))
        A.sum_duplicates()
        return A

    Y = draw(n_labels, cardinality)
    Y.data[:] = 1
    if n_words:
        X = draw(n_features, 1.6 * n_words)
        X.data = np.log1p(X.data)
        X = sparse.csr_array(normalize(X))
    else:
        X = np.eye(n_topics)[topics].sum(axis=1) @ rng.standard_normal((n_topics, n_features))
        X += rng.standard_normal(X.shape)
    return (X[:n_samples], Y[:n_samples].astype(np.int8)), (X[n_samples:], Y[n_samples:].astype(np.int8))


def memory(field):
    """Return a field of the memory of this process in bytes: VmRSS is its present size, VmHWM the largest one."""
    found = re.search(rf"{field}:\s*(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    return 1024 * int(found.group(1))


def precisions(W, X, Y, ks=(1, 3, 5)):
    """Return the precision of the best labels, from the scores of some rows at a time."""
    hits = np.zeros(max(ks))
    for start in range(0, X.shape[0], 64):
        rows = X[start : start + 64]
        F = scores(rows, W.left.astype(np.float64)) @ W.right.T if isinstance(W, LowRankMatrix) else scores(rows, W)
        best = np.argpartition(-F, max(ks), axis=1)[:, : max(ks)]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(F, best, axis=1), axis=1), axis=1)
        hits += np.take_along_axis(Y[start : start + 64].toarray(), best, axis=1).sum(axis=0)
    return {f"P@{k}": float(hits[:k].sum() / k / X.shape[0]) for k in ks}


def main():
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST_SPACE, LARGEST_SPACE))
    case = json.loads(sys.argv[1])
    name = case["data"]
    train, test = debdepends(case.get("n_labels", 11_969)) if name == "debdepends" else random_texts(*SHAPES[name])
    model = RBRLClassifier(**case["model"])
    # Imports of a first fit are not part of the memory.
    RBRLClassifier(max_rank=2).fit(np.eye(4), np.eye(4, dtype=np.int8))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory("VmRSS")
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = model.problem(*train)
        estimate = problem.estimate_memory()
        solution = problem.solve()
    facts = {"fit": time.process_time() - started, "peak": memory("VmHWM") - before, "estimate": estimate.usual}
    proof = solution.proof
    facts |= {"gap": proof.gap, "objective": proof.objective, "bound": proof.lower, "rank": solution.coefficients.rank}
    facts |= {"n_iter": solution.result.n_iter, "converged": solution.result.converged}
    facts |= {"nonzeros": int(getattr(train[0], "nnz", train[0].shape[0] * train[0].shape[1]))}
    facts |= {"shape": [*train[0].shape, train[1].shape[1]], "cardinality": float(train[1].sum() / train[1].shape[0])}
    facts |= precisions(solution.coefficients, *test)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
