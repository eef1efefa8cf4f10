"""The rows and labels of the study, real and made, and the metrics of the best labels of rows."""

import numpy as np
from scipy import sparse

from rbrl.metrics import ndcg_at_k, precision_at_k, propensities, psp_at_k
from studies.benchmarks.problems import folder

# Numbers of rows to fit and to measure: for the choice of a parameter, and for the result. The rows
# of the choice are part of the training rows.
CHOICE = 5_000, 2_500
WHOLE = 45_000, 8_416
# Numbers of rows, features and labels of Wiki10-31K.
WIKI = 14_146, 101_938, 30_938
# Numbers of entries to draw for each row. Entries that are drawn twice count once, so that about 670
# features and 19 labels remain, as in Wiki10-31K.
DRAWN_FEATURES = 1_570
DRAWN_LABELS = 27
TOPICS = 200


def load():
    """Return the rows of debdepends and their labels as CSR arrays, in a fixed random order."""
    parts = np.load(folder("RBRL_DATA") / "debdepends.npz", allow_pickle=False)
    starts = parts["X_indptr"].astype(np.int32)
    indices = parts["X_indices"].astype(np.int32)
    X = sparse.csr_array((parts["X_data"].astype(np.float32), indices, starts), tuple(parts["X_shape"]))
    starts = parts["Y_indptr"].astype(np.int32)
    indices = parts["Y_indices"].astype(np.int32)
    Y = sparse.csr_array((np.ones(len(indices), np.int8), indices, starts), tuple(parts["Y_shape"]))
    order = np.random.default_rng(0).permutation(X.shape[0])
    return X[order], Y[order]


def split(sizes):
    """Return X, Y, X_test and Y_test of the numbers of rows to fit and to measure."""
    X, Y = load()
    n_fit, n_measured = sizes
    end = n_fit + n_measured
    return X[:n_fit], Y[:n_fit], X[n_fit:end], Y[n_fit:end]


def nested_labels(Y, n_labels, seed=0):
    """Return the columns of a random subset of labels; a smaller subset is part of a larger one."""
    order = np.random.default_rng(seed).permutation(Y.shape[1])
    return sparse.csr_array(Y[:, np.sort(order[:n_labels])])


def make_wiki(seed=0):
    """Return made rows and labels of the shape of Wiki10-31K; both depend on the topics of a row.

    The frequencies of features and labels follow Zipf's law. Half of the entries of a row come from
    its topic, which has features and labels of its own, and half from all features and labels.
    """
    n_rows, n_features, n_labels = WIKI
    rng = np.random.default_rng(seed)
    topics = rng.integers(TOPICS, size=n_rows)
    X = draw_entries(rng, topics, n_features, DRAWN_FEATURES).astype(np.float32)
    X.data *= rng.gamma(2.0, size=X.nnz).astype(np.float32)
    lengths = np.sqrt(X.power(2).sum(axis=1))
    X.data /= np.repeat(lengths, np.diff(X.indptr)).astype(np.float32)
    return X, draw_entries(rng, topics, n_labels, DRAWN_LABELS).astype(np.int8)


def draw_entries(rng, topics, n_columns, n_drawn):
    """Return a matrix of zeros and ones, with the distinct ones of `n_drawn` entries in each row."""
    frequencies = 1 / np.arange(1, n_columns + 1)
    shape = len(topics), n_drawn
    ranks = rng.choice(n_columns, size=shape, p=frequencies / frequencies.sum())
    # A topic has every TOPICS-th column: rank r of a topic is column r * TOPICS + topic.
    own = ranks[:, ::2] // TOPICS * TOPICS + topics[:, None]
    ranks[:, ::2] = np.minimum(own, n_columns - 1)
    starts = np.arange(len(topics) + 1) * n_drawn
    M = sparse.csr_array((np.ones(ranks.size), ranks.ravel(), starts), (len(topics), n_columns))
    M.sum_duplicates()
    M.data[:] = 1
    M.indices = M.indices.astype(np.int32)
    M.indptr = M.indptr.astype(np.int32)
    return M


def write_problem(path, matrices):
    """Write X, Y, X_test and Y_test for the worker."""
    arrays = {}
    for name, M in zip(("X", "Y", "X_test", "Y_test"), matrices, strict=True):
        arrays[f"{name}_data"] = M.data
        arrays[f"{name}_indices"] = M.indices
        arrays[f"{name}_indptr"] = M.indptr
        arrays[f"{name}_shape"] = M.shape
    np.savez(path, **arrays)


def read_matrix(path, name):
    """Return one matrix of a problem file."""
    parts = np.load(path)
    entries = parts[f"{name}_data"], parts[f"{name}_indices"], parts[f"{name}_indptr"]
    return sparse.csr_array(entries, tuple(parts[f"{name}_shape"]))


def measure_ranking(best, Y, Y_test):
    """Return the metrics of the best columns of the rows, the best column first; -1 means no column.

    The propensities of the labels are those of the training labels Y.
    """
    row, rank = np.nonzero(best >= 0)
    # Sparse scores in the order of the ranks; a label that is not predicted has the score 0.
    values = (best.shape[1] - rank).astype(float)
    scores = sparse.csr_array((values, (row, best[row, rank])), Y_test.shape)
    weights = propensities(Y)
    facts = {f"P@{i}": precision_at_k(Y_test, scores, i) for i in (1, 3, 5)}
    facts["nDCG@5"] = ndcg_at_k(Y_test, scores, 5)
    return facts | {f"PSP@{i}": psp_at_k(Y_test, scores, i, propensities=weights) for i in (1, 5)}
