"""ML-kNN: a Bayesian decision per label on how many neighbours carry it."""

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from rbrl._validation import check_choice, check_number
from rbrl.estimators._neighbours import NeighbourSearch
from rbrl.estimators.base import MultiLabelClassifier


class MLkNN(MultiLabelClassifier):
    r"""Multi-label k nearest neighbours.

    A label is relevant where, given the number c of the row's k nearest neighbours that carry it,

    .. math:: P(\text{relevant}) \, P(c \mid \text{relevant}) > P(\text{irrelevant}) \, P(c \mid \text{irrelevant}),

    with the prior and both distributions of c counted on the training rows, every count raised by `smoothing`.
    A training row is not a neighbour of itself. The rule and the counts are those of Mulan, where equal sides are
    decided by a coin: here they are always irrelevant. Of neighbours at equal distance those that come first in the
    training rows are taken; distances, and so ties, are the same on every processor, and for dense and sparse rows.

    Parameters
    ----------
    n_neighbors : int, default=10
        k. With fewer than k + 1 training rows, all other rows are neighbours.
    smoothing : float, default=1.0
        What every count is raised by (Laplace).
    scale : {"none", "minmax"}, default="none"
        "minmax" divides every feature by its range in the training rows before distances are taken, as Weka does; a
        constant feature is ignored. Sparse rows stay sparse.
    non_empty : bool, default=False
        Give a row without a relevant label its best one.
    n_jobs : int, default=None
        Threads of the neighbour search.

    Attributes
    ----------
    prior_ : array (n_labels,)
        Smoothed share of relevant training rows.
    likelihood_relevant_, likelihood_irrelevant_ : array (n_labels, n_counts)
        Smoothed distribution of the number of neighbours with the label.
    X_fit_ : array or sparse matrix (n_samples, n_features)
        Training rows, scaled.
    feature_scale_ : array (n_features,) or None
        Factors of the features.
    Y_fit_ : array (n_samples, n_labels) of bool
        Labels of the training rows.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Notes
    -----
    `decision_function` is P(relevant given c) - 1/2.

    References
    ----------
    M.-L. Zhang, Z.-H. Zhou: ML-KNN: A lazy learning approach to multi-label learning. Pattern Recognition 40, 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import MLkNN
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> MLkNN(n_neighbors=5).fit(X, Y).predict(X[:2])
    array([[0, 1, 1, 1],
           [1, 0, 1, 1]])
    """

    def __init__(self, n_neighbors=10, smoothing=1.0, scale="none", non_empty=False, n_jobs=None):
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.scale = scale
        self.non_empty = non_empty
        self.n_jobs = n_jobs

    def _fit(self, X, Y, weights):
        self.feature_scale_ = _inverse_range(X) if self.scale == "minmax" else None
        self.Y_fit_ = Y > 0
        k = min(self.n_neighbors, len(Y) - 1)
        self.X_fit_, self.n_neighbors_, self._index = self._scaled(X), k, None
        self._estimate(self._neighbour_counts())

    def _estimate(self, counts):
        s, k, (n, n_labels) = self.smoothing, self.n_neighbors_, counts.shape
        bins = (counts + (k + 1) * np.arange(n_labels)).ravel()
        shape, relevant = (n_labels, k + 1), self.Y_fit_
        seen = np.bincount(bins, minlength=n_labels * (k + 1)).reshape(shape)
        with_label = np.bincount(bins, relevant.ravel(), minlength=n_labels * (k + 1)).reshape(shape)
        n_relevant = relevant.sum(axis=0)
        self.prior_ = (s + n_relevant) / (2 * s + n)
        self.likelihood_relevant_ = (s + with_label) / (s * (k + 1) + n_relevant)[:, None]
        self.likelihood_irrelevant_ = (s + seen - with_label) / (s * (k + 1) + n - n_relevant)[:, None]

    def _scores(self, X):
        counts, labels = self._neighbour_counts(X), np.arange(len(self.prior_))
        relevant = self.prior_ * self.likelihood_relevant_[labels, counts]
        irrelevant = (1 - self.prior_) * self.likelihood_irrelevant_[labels, counts]
        return 0.5 * (relevant - irrelevant) / (relevant + irrelevant)

    def _neighbour_counts(self, X=None):
        """How many neighbours carry each label; of the training rows themselves without X."""
        n_rows = len(self.Y_fit_) if X is None else X.shape[0]
        counts = np.zeros((n_rows, self.Y_fit_.shape[1]), dtype=np.intp)
        if self.n_neighbors_:
            search = self._search()
            for neighbour in (search.among_themselves() if X is None else search.of(self._scaled(X))).T:
                counts += self.Y_fit_[neighbour]
        return counts

    def _search(self):
        """The index of the training rows, built once; a model file holds the rows only."""
        if self._index is None:
            self._index = NeighbourSearch(self.X_fit_, self.n_neighbors_, self.n_jobs)
        return self._index

    def __getstate__(self):
        return {**super().__getstate__(), "_index": None}

    def _scaled(self, X):
        # Distances do not see a shift of the features: division by the range is all of min-max scaling.
        if self.feature_scale_ is None:
            return X
        if not sparse.issparse(X):
            return X * self.feature_scale_
        scaled = X.astype(np.result_type(X, self.feature_scale_))  # a copy
        scaled.data *= self.feature_scale_[scaled.indices]
        return scaled

    def _check_parameters(self):
        owner = type(self).__name__
        check_number(owner, "n_neighbors", self.n_neighbors, low=1, integer=True)
        check_number(owner, "smoothing", self.smoothing, strict=True)
        check_choice(owner, "scale", self.scale, ("none", "minmax"))


def _inverse_range(X):
    """One over the range of every feature; 0 for a constant one."""
    low, high = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    span = np.asarray(high - low, dtype=X.dtype)
    return np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
