"""Figures that describe a data set."""

import numpy as np
from scipy import sparse

from rbrl.datasets.canonical import row_digests


def summarise(X, Y):
    """Return the sizes, label statistics and oddities of (X, Y) as a dict of plain numbers.

    `imbalance_mean` and `imbalance_max` are over the labels that occur: the count of the most frequent label divided by
    the label's own. `duplicate_rows` counts rows whose features equal those of an earlier row, `conflicting_duplicates`
    the feature vectors that occur with more than one label set.
    """
    n_samples, n_labels = Y.shape
    counts, per_row = _sums(Y, 0), _sums(Y, 1)
    nonzero = X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)
    imbalance = counts.max(initial=0) / counts[counts > 0]
    duplicates, conflicts = _duplicates(X, Y)
    return {
        "n_samples": n_samples,
        "n_features": X.shape[1],
        "n_labels": n_labels,
        "feature_density": _ratio(nonzero, X.shape[0] * X.shape[1]),
        "cardinality": _ratio(counts.sum(), n_samples),
        "density": _ratio(counts.sum(), n_samples * n_labels),
        "distinct_label_sets": _distinct(row_digests(sparse.csr_array((n_samples, 0)), Y)),
        "imbalance_mean": float(imbalance.mean()) if imbalance.size else 0.0,
        "imbalance_max": float(imbalance.max(initial=0.0)),
        "rarest_label": int(counts.min(initial=n_samples)),
        "rows_without_labels": int((per_row == 0).sum()),
        "labels_without_rows": int((counts == 0).sum()),
        "rows_without_features": int((_sums(X != 0, 1) == 0).sum()),
        "missing_values": int(np.isnan(X.data if sparse.issparse(X) else X).sum()),
        "duplicate_rows": duplicates,
        "conflicting_duplicates": conflicts,
    }


def _sums(A, axis):
    return np.asarray(A.sum(axis=axis, dtype=np.int64)).ravel()


def _ratio(part, whole):
    return float(part / whole) if whole else 0.0


def _distinct(digests):
    return len(np.unique(digests, axis=0))


def _duplicates(X, Y):
    _, first = np.unique(row_digests(X, Y), axis=0, return_index=True)
    _, label_sets = np.unique(row_digests(X)[first], axis=0, return_counts=True)
    return X.shape[0] - len(label_sets), int((label_sets > 1).sum())
