"""Measure whether clusters of labels make prediction faster, with a prototype outside the package.

The labels are clustered by their weights. A cluster is relevant to a row if one of its labels is, and
a compressed linear model scores the clusters. Only the labels of the best clusters are scored
exactly. The comparison is exact prediction with the same pruned weights in sparse form. Both sides
are SciPy products of sparse matrices.
"""

import time

import numpy as np
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize

from rbrl import RBRLClassifier
from rbrl.persistence import load
from studies.benchmarks.extreme import data

METHOD = "rbrl, ranking=0"
N_CLUSTERS = (64, 128, 256)
N_SEARCHED = (1, 2, 4, 8, 16, 32)
# Weights below this share of the largest weight of their label are pruned.
SHARE = 0.05
REPEATS = 3
BLOCK = 500


def measure(study):
    """Measure exact prediction and every number of clusters."""
    path = study.model_path(METHOD)
    keys = [study.key("shortlists", "exact", 0, 11_969)]
    for n_clusters in N_CLUSTERS:
        keys += [study.key("shortlists", f"{n_clusters} clusters", b, 11_969) for b in N_SEARCHED]
    if not path.exists() or not any(study.wants(key) for key in keys):
        return
    X, Y, X_test, Y_test = data.split(data.WHOLE)
    W, intercept = pruned_weights(load(path, max_bytes=16 << 30))
    X_test = sparse.csr_array(sparse.hstack([X_test, np.ones((X_test.shape[0], 1), np.float32)]))
    W = sparse.csr_array(sparse.vstack([W, sparse.csr_array(intercept[None])]))
    first = first_labels(exact, X_test, W)
    add(study, keys[0], first, Y_test, timed(exact, X_test, W), count(X_test, W))
    for n_clusters in N_CLUSTERS:
        parts = cluster(X, Y, W, n_clusters)
        for n_searched in N_SEARCHED:
            key = study.key("shortlists", f"{n_clusters} clusters", n_searched, 11_969)
            best, adds = through_clusters(X_test, parts, n_searched)
            add(study, key, best, Y_test, timed(through_clusters, X_test, parts, n_searched), adds)


def add(study, key, best, Y_test, seconds, adds):
    """Write the row of one way to predict, unless it is known."""
    hits = np.asarray(Y_test[np.arange(len(best)), best]).ravel()
    facts = {"all_rows": seconds, "multiply_adds": adds / len(best), "P@1": float(np.mean(hits > 0))}
    if study.wants(key):
        study.add(key, facts)


def pruned_weights(model):
    """Return the large weights (n_features, n_labels) of a model in sparse form, and its intercepts."""
    parts = []
    for start in range(0, len(model.coef_), BLOCK):
        part = model.coef_[start : start + BLOCK]
        limits = SHARE * np.abs(part).max(axis=1, keepdims=True)
        parts.append(sparse.csr_array(np.where(np.abs(part) > limits, part, 0)))
    return sparse.csr_array(sparse.vstack(parts).T), np.asarray(model.intercept_, dtype=np.float32)


def count(X, W):
    """Return the number of multiplications with additions of a product of sparse matrices."""
    return int(np.diff(W.indptr)[X.indices].sum())


def first_labels(function, *arguments):
    """Return the best labels alone."""
    return function(*arguments)[0]


def exact(X, W):
    """Return the best label of each row from all scores, block by block, and the number of products."""
    best = np.zeros(X.shape[0], dtype=int)
    for start in range(0, X.shape[0], BLOCK):
        scores = (X[start : start + BLOCK] @ W).toarray()
        best[start : start + BLOCK] = scores.argmax(axis=1)
    return best, 0


class Clusters:
    """Weights that score the clusters, and the labels and weights of each cluster."""

    def __init__(self, model, W, assigned):
        # The intercepts are the last row, as in W.
        intercepts = sparse.csr_array(model.intercept_[None])
        self.scorer = sparse.csr_array(sparse.vstack([sparse.csr_array(model.coef_.T), intercepts]))
        self.labels = [np.flatnonzero(assigned == c) for c in range(self.scorer.shape[1])]
        by_label = W.tocsc()
        self.weights = [sparse.csr_array(by_label[:, labels]) for labels in self.labels]


def cluster(X, Y, W, n_clusters):
    """Return clusters of the labels by the directions of their weights, with a model of the clusters."""
    directions = normalize(sparse.csr_matrix(W[:-1].T))
    means = MiniBatchKMeans(n_clusters, batch_size=4096, max_iter=10, n_init=1, random_state=0)
    assigned = means.fit(directions).labels_
    n_labels = len(assigned)
    of_label = sparse.csr_array((np.ones(n_labels, int), (np.arange(n_labels), assigned)), (n_labels, n_clusters))
    relevant = sparse.csr_array(Y.astype(int) @ of_label)
    relevant.data[:] = 1
    model = RBRLClassifier(ranking=0, nuclear=0, ridge=1, tol=1e-3, compress=0.01)
    return Clusters(model.fit(X, relevant), W, assigned)


def through_clusters(X, clusters, n_searched):
    """Return the best label of each row in its best clusters, and the number of multiply-adds."""
    adds = count(X, clusters.scorer)
    scores = (X @ clusters.scorer).toarray()
    searched = np.argpartition(-scores, n_searched - 1, axis=1)[:, :n_searched]
    best = np.zeros(X.shape[0], dtype=int)
    highest = np.full(X.shape[0], -np.inf)
    order = np.argsort(searched, axis=None, kind="stable")
    ends = np.cumsum(np.bincount(searched.ravel(), minlength=len(clusters.labels)))
    for c, part in enumerate(np.split(order // n_searched, ends[:-1])):
        if not len(part) or not len(clusters.labels[c]):
            continue
        own = X[part]
        adds += count(own, clusters.weights[c])
        found = (own @ clusters.weights[c]).toarray()
        place = found.argmax(axis=1)
        value = found[np.arange(len(part)), place]
        better = value > highest[part]
        best[part[better]] = clusters.labels[c][place[better]]
        highest[part[better]] = value[better]
    return best, adds


def timed(function, *arguments):
    """Return the smallest processor time of several calls."""
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        function(*arguments)
        seconds.append(time.process_time() - started)
    return min(seconds)
