"""ML-kNN: a Bayesian decision for each label, from the number of nearest neighbours that have it."""

from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from rbrl._common.checks import check_choice, check_number
from rbrl._common.typing import BoolArray, FloatArray, IntArray, LabelNames, Matrix
from rbrl.estimators.base import ProbabilityClassifier
from rbrl.estimators.neighbours import NeighbourSearch


class MLkNN(ProbabilityClassifier):
    r"""Multi-label k nearest neighbours.

    Let c be the number of the k nearest neighbours of a row that have a label. The label is relevant if

    .. math:: P(\text{relevant}) \, P(c \mid \text{relevant}) > P(\text{irrelevant}) \, P(c \mid \text{irrelevant}),

    The prior and both distributions of c are relative frequencies in the training rows, with `smoothing`
    added to every count. A training row is not its own neighbour. The rule and the counts are those of
    Mulan. If both sides are equal, Mulan decides at random, and this class predicts irrelevant. Of rows at
    equal distance, those that come first in the training rows are the neighbours. Distances and ties are
    the same on every processor, and for dense and sparse rows.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbours. With fewer than k + 1 training rows, all other rows are neighbours.
    smoothing : float, default=1.0
        Number that is added to every count (Laplace smoothing).
    scale : {"none", "minmax"}, default="none"
        "minmax" divides every feature by its range in the training rows before distances are computed, as
        in Weka. A constant feature is ignored. Sparse rows stay sparse.
    non_empty : bool, default=False
        If True, a row without a relevant label gets its best label.
    n_jobs : int, default=None
        Number of threads of the neighbour search.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame.

    Attributes
    ----------
    prior_ : array (n_labels,)
        Smoothed share of the training rows for which the label is relevant.
    likelihood_relevant_, likelihood_irrelevant_ : array (n_labels, n_counts)
        Smoothed distribution of the number of neighbours with the label.
    X_fit_ : array or sparse matrix (n_samples, n_features)
        Scaled training rows.
    feature_scale_ : array (n_features,) or None
        Factors of the features.
    Y_fit_ : array (n_samples, n_labels) of bool
        Labels of the training rows.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Notes
    -----
    `predict_proba` returns P(relevant given c), and `decision_function` this probability less 1/2.

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

    prior_: FloatArray
    likelihood_relevant_: FloatArray
    likelihood_irrelevant_: FloatArray
    X_fit_: Matrix
    Y_fit_: BoolArray
    feature_scale_: FloatArray | None
    n_neighbors_: int

    def __init__(
        self, n_neighbors: int = 10, smoothing: float = 1.0, scale: str = "none", non_empty: bool = False,
        n_jobs: int | None = None, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.scale = scale
        self.non_empty = non_empty
        self.n_jobs = n_jobs
        self.label_names = label_names

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        """Count the neighbours with each label, and store the prior and both distributions of the counts."""
        self.feature_scale_ = _invert_range(X) if self.scale == "minmax" else None
        self.Y_fit_ = Y > 0
        self.X_fit_ = self._scale_features(X)
        self.n_neighbors_ = min(self.n_neighbors, len(Y) - 1)
        self._index: NeighbourSearch | None = None
        s = self.smoothing
        k = self.n_neighbors_
        n, n_labels = Y.shape
        bins = (self._count_neighbours() + (k + 1) * np.arange(n_labels)).ravel()
        seen, with_label = (
            np.bincount(bins, counted, minlength=n_labels * (k + 1)).reshape(n_labels, k + 1)
            for counted in (None, self.Y_fit_.ravel())
        )
        n_relevant = self.Y_fit_.sum(axis=0)
        self.prior_ = (s + n_relevant) / (2 * s + n)
        self.likelihood_relevant_ = (s + with_label) / (s * (k + 1) + n_relevant)[:, None]
        self.likelihood_irrelevant_ = (s + seen - with_label) / (s * (k + 1) + n - n_relevant)[:, None]

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the probability of each label less 1/2, so that equal sides give 0, not relevant."""
        counts = self._count_neighbours(X)
        labels = np.arange(len(self.prior_))
        relevant = self.prior_ * self.likelihood_relevant_[labels, counts]
        irrelevant = (1 - self.prior_) * self.likelihood_irrelevant_[labels, counts]
        return 0.5 * (relevant - irrelevant) / (relevant + irrelevant)

    def _probabilities(self, X: Matrix) -> FloatArray:
        """Return P(relevant given the number of neighbours with the label)."""
        return self._scores(X) + 0.5

    def _count_neighbours(self, X: Matrix | None = None) -> IntArray:
        """Return the number of neighbours that have each label: (n_rows, n_labels).

        X are checked rows that are not scaled yet. None means the training rows, without
        themselves.
        """
        n_rows = len(self.Y_fit_) if X is None else X.shape[0]
        counts = np.zeros((n_rows, self.Y_fit_.shape[1]), dtype=np.intp)
        if self.n_neighbors_:
            search = self._get_search()
            nearest = search.find_among_rows() if X is None else search.find(self._scale_features(X))
            for neighbour in nearest.T:
                counts += self.Y_fit_[neighbour]
        return counts

    def _get_search(self) -> NeighbourSearch:
        """Return the index of the training rows, which is built at its first use.

        No model file and no pickle has it.
        """
        if self._index is None:
            self._index = NeighbourSearch(self.X_fit_, self.n_neighbors_, self.n_jobs)
        return self._index

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the index, which is large and can be built again."""
        return {**cast("dict[str, Any]", super().__getstate__()), "_index": None}

    def _scale_features(self, X: Matrix) -> Matrix:
        """Return X with each feature divided by its range, as a new matrix; X itself without scaling."""
        # A shift of the features changes no distance, so that min-max scaling is a division by the range.
        if self.feature_scale_ is None:
            return X
        if isinstance(X, np.ndarray):
            return X * self.feature_scale_
        scaled = X.astype(np.result_type(X, self.feature_scale_))  # astype copies
        scaled.data *= self.feature_scale_[scaled.indices]
        return scaled

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        check_number(owner, "n_neighbors", self.n_neighbors, low=1, integer=True)
        check_number(owner, "smoothing", self.smoothing, strict=True)
        check_choice(owner, "scale", self.scale, ("none", "minmax"))


def _invert_range(X: Matrix) -> FloatArray:
    """Return 1 / the range of every feature, or 0 for a constant feature: (n_features,)."""
    low, high = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    span = np.asarray(high - low, dtype=X.dtype)
    return np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
