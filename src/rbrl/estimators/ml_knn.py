"""ML-kNN: a Bayesian decision per label on how many neighbours carry it; neighbours the same on every processor.

Neighbours are ordered by a number and, where it is equal, by their index. The number is the squared distance, *defined*
as the sum of (x_j - z_j)² over the features in their order, in double precision, each operation rounded by itself. It
has the same bits on every machine, for dense and sparse rows, and for equal rows.

Matrix products give all distances faster, but round as the BLAS kernel of the processor does, and a tree as its compiler
chose. They only *bound* the numbers. Where the bounds leave open who is among the nearest,
and only there, the numbers decide.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from rbrl._common.checks import check_choice, check_number
from rbrl._common.typing import BoolArray, FloatArray, IntArray, LabelNames, Matrix
from rbrl.estimators.probabilities import ProbabilityClassifier

if TYPE_CHECKING:
    from sklearn.neighbors import KDTree

EPSILON = np.finfo(np.float64).eps
# Squares below it may have lost their digits to underflow.
UNDERFLOW = 1e-300
# Sums of squares above it may overflow when they are added up.
OVERFLOW = 1e300
# Up to here all sums of squares and products of integers, in any order, are integers that a double holds.
EXACT = 2.0**50
# With more features products are faster than a tree, which then visits most of the rows.
TREE_FEATURES, TREE_ROWS = 8, 1024
# Distances at a time, 4 MB, and rows: few enough for the cache, enough for a fast product.
BLOCK_DISTANCES, MIN_ROWS, MAX_ROWS, MAX_SPARSE_ROWS = 2**19, 32, 256, 64
# Share of entries that are not 0, below which the product of sparse rows with sparse rows is the faster one.
SPARSE_BELOW = 0.02
# Entries of rows at a time, where numbers are computed: 8 MB.
NUMBER_ENTRIES = 2**20
# From rows, and what each leaves out, to their nearest.
Search: TypeAlias = Callable[[Matrix, IntArray], IntArray]


class NeighbourSearch:
    """The k nearest of the rows X, of each of them among the others or of new rows.

    Parameters
    ----------
    X : array or sparse matrix (n_samples, n_features)
    k : int
        At least 1, and less than n_samples.
    n_jobs : int, optional
        Threads.

    Examples
    --------
    >>> search = NeighbourSearch(np.array([[0.0], [1.0], [3.0], [7.0]]), k=2)
    >>> search.of(np.array([[2.0]]))
    array([[1, 2]])
    >>> search.among_themselves()[0]
    array([1, 2])
    """

    def __init__(self, X: Matrix, k: int, n_jobs: int | None = None) -> None:
        self.X, self.k, self.n_jobs = _canonical(X), k, n_jobs
        with np.errstate(over="ignore", invalid="ignore"):
            self.filter = ProductFilter(self.X, k)
            has_tree = not sparse.issparse(X) and X.shape[1] <= TREE_FEATURES and 2 * k < X.shape[0]
            self.tree = _tree(self.X) if has_tree else None

    def among_themselves(self) -> IntArray:
        """Nearest of every row, itself left out.

        Returns
        -------
        array (n_samples, k) of int
            Indices, ascending in every row.
        """
        return self._nearest(self.X, np.arange(self.X.shape[0]))

    def of(self, rows: Matrix) -> IntArray:
        """Nearest of each of other rows.

        Parameters
        ----------
        rows : array or sparse matrix (n_rows, n_features)

        Returns
        -------
        array (n_rows, k) of int
            Indices, ascending in every row.
        """
        if sparse.issparse(self.X):
            rows = _canonical(sparse.csr_array(rows))
        return self._nearest(rows, np.full(rows.shape[0], -1))

    def _nearest(self, rows: Matrix, own: IntArray) -> IntArray:
        """The nearest of all rows; `own` is the index that each of them leaves out, -1 for none."""
        nearest = np.full((rows.shape[0], self.k), -1, dtype=np.intp)
        if self.tree is not None:
            self._fill(nearest, TREE_ROWS, partial(self._settled_by_tree, self.tree), rows, own)
        self._fill(nearest, self.filter.block_size, self._settled_by_bounds, rows, own)
        return nearest

    def _fill(self, nearest: IntArray, step: int, search: Search, rows: Matrix, own: IntArray) -> None:
        """Search for the rows that are not settled, block by block."""
        wanted = np.flatnonzero(nearest[:, 0] < 0)
        blocks = [wanted[start : start + step] for start in range(0, len(wanted), step)]
        jobs = (delayed(self._search_block)(search, rows[block], own[block]) for block in blocks)
        for block, found in zip(blocks, Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)):
            nearest[block] = found

    def _search_block(self, search: Search, rows: Matrix, own: IntArray) -> IntArray:
        if isinstance(self.X, np.ndarray) and not isinstance(rows, np.ndarray):
            rows = rows.toarray()
        with np.errstate(over="ignore", invalid="ignore"):
            return search(rows, own)

    def _settled_by_tree(self, tree: "KDTree", rows: FloatArray, own: IntArray) -> IntArray:
        """Neighbours from a k-d tree, where the k-th is clearly nearer than the next; -1 in the other rows.

        Its distances are roots of sums of squared differences, wrong by no more than m + 4 roundings, as are the bounds
        by which it leaves rows out.
        """
        n_wanted = self.k + int((own >= 0).any())
        distances, columns = tree.query(rows, k=n_wanted + 1)
        last, following = distances[:, -2], distances[:, -1]
        # Beyond the wanted ones there is no row as near as the last: so they hold the row itself, too.
        is_settled = following > last * (1 + self.filter.slack) + np.sqrt(UNDERFLOW)
        wanted = columns[is_settled, :n_wanted]
        others = wanted != own[is_settled, None]
        nearest = np.full((len(rows), self.k), -1, dtype=np.intp)
        nearest[is_settled] = np.sort(wanted[others].reshape(-1, self.k), axis=1)
        return nearest

    def _settled_by_bounds(self, rows: Matrix, own: IntArray) -> IntArray:
        """The k first candidates of every row; numbers are computed where the bounds leave it open."""
        row, column, low, high, are_exact = self.filter.candidates(rows, own)
        n_rows, k = rows.shape[0], self.k
        # The k-th number of a row lies between the k-th lower and the k-th upper bound.
        low_k, high_k = _kth(row, low, n_rows, k), _kth(row, high, n_rows, k)
        chosen = high < low_k[row]
        is_open = ~chosen & ~(low > high_k[row])
        places = k - np.bincount(row[chosen], minlength=n_rows)
        is_disputed = np.bincount(row[is_open], minlength=n_rows) > places
        chosen |= is_open & ~is_disputed[row]
        disputed = np.flatnonzero(is_open & is_disputed[row])
        row_d, column_d = row[disputed], column[disputed]
        number = low[disputed] if are_exact else squared_distances(rows, row_d, self.X, column_d)
        order = np.lexsort((column_d, number, row_d))
        chosen[disputed[order[_place_in_run(row_d) < places[row_d]]]] = True
        return column[chosen].reshape(n_rows, k)


class Candidates(NamedTuple):
    """Pairs of rows that may be neighbours, by row and then by column, with bounds of their numbers.

    Attributes
    ----------
    row, column : array (n_pairs,) of int
        Row of the block, and its candidate's index.
    low, high : array (n_pairs,)
        Bounds.
    exact : bool
        Whether both are the number itself.
    """

    row: IntArray
    column: IntArray
    low: FloatArray
    high: FloatArray
    exact: bool


class ProductFilter:
    r"""Bounds from :math:`\|x - z\|^2 = \|x\|^2 + \|z\|^2 - 2 x'z`, all products at once.

    With m features, the two sums of squares and twice the product are wrong by at most :math:`2 \gamma_m N`, where
    :math:`N = \|x\|^2 + \|z\|^2`, :math:`\gamma_m \approx m u` and u is half of EPSILON: in whatever order they are
    summed, with or without fused operations. The number itself differs from its exact value by :math:`2 \gamma_{m+2} N`.
    Adding up and the shift by `centre` are worth :math:`10 u N`. Together less than :math:`4 (m + 8) u N`.
    Products of small integers are exact.
    """

    def __init__(self, X: Matrix, k: int) -> None:
        self.k, self.centre = k, None
        if isinstance(X, np.ndarray):
            # A shift changes no distance, and a column far from 0 leaves no digits to its differences.
            mean = X.mean(axis=0, dtype=np.float64)
            self.centre = np.rint(mean) if _are_integers(X) else mean
        self.slack = 2 * (X.shape[1] + 8) * EPSILON
        self.X, self.squares, self.are_exact = self._prepared(X)
        self.low = (1 - self.slack) * self.squares
        most = MAX_SPARSE_ROWS if sparse.issparse(X) else MAX_ROWS
        self.block_size = int(np.clip(BLOCK_DISTANCES // X.shape[0], MIN_ROWS, most))
        # A row's least distances of each group bound its k-th distance, and are quicker to sort than all.
        self.group = max(1, min(16, X.shape[0] // (4 * k)))

    def _prepared(self, rows: Matrix) -> tuple[Matrix, FloatArray, bool]:
        """The rows as they are multiplied, their sums of squares, and whether products with integers are exact.

        The rows themselves must be integers: what is left of 1e-16 after a shift by 5 is one, too.
        """
        shifted = rows.astype(np.float64, copy=False) if self.centre is None else rows - self.centre
        if isinstance(shifted, np.ndarray):
            squares = np.einsum("ij,ij->i", shifted, shifted)
        else:
            squares = np.asarray(shifted.multiply(shifted).sum(axis=1)).ravel()
        return shifted, squares, bool(squares.max(initial=0.0) < EXACT and _are_integers(rows))

    def candidates(self, rows: Matrix, own: IntArray) -> Candidates:
        """Every row's candidates, at least k; `own` is what to leave out."""
        rows, squares, are_exact = self._prepared(rows)
        exact, largest = are_exact and self.are_exact, squares[:, None] + self.squares.max()
        slack = 0.0 if exact else self.slack
        low = self._products(rows)
        low *= -2.0
        low += (squares if exact else (1 - slack) * squares - UNDERFLOW)[:, None]
        low += self.squares if exact else self.low
        low[(largest > OVERFLOW).ravel()] = -np.inf
        is_known = own >= 0
        low[is_known, own[is_known]] = np.inf
        limit = self._kth_at_most(low) + (0.0 if exact else 2 * slack * largest + 2 * UNDERFLOW)
        # So written, a limit that is not a number leaves nothing out.
        row, column = np.divmod(np.flatnonzero(~(low > limit)), low.shape[1])
        others = column != own[row]
        row, column = row[others], column[others]
        bound = low[row, column]
        high = bound if exact else bound + 2 * slack * (squares[row] + self.squares[column]) + 2 * UNDERFLOW
        return Candidates(row, column, bound, np.where(bound == -np.inf, np.inf, high), exact)

    def _products(self, rows: Matrix) -> FloatArray:
        """All products with the rows X; sparse ones with dense rows, unless so few entries meet that it does not pay."""
        if isinstance(self.X, np.ndarray) or isinstance(rows, np.ndarray):
            return rows @ self.X.T
        if self.X.nnz < SPARSE_BELOW * self.X.shape[0] * self.X.shape[1]:
            return (rows @ self.X.T).toarray()
        return np.ascontiguousarray((self.X @ rows.T.toarray(order="C")).T)

    def _kth_at_most(self, low: FloatArray) -> FloatArray:
        """An upper bound of the k-th value of every row, as a column."""
        n, group = low.shape[1], self.group
        least = low[:, : n - n % group].reshape(len(low), group, n // group).min(axis=1)
        return np.partition(least, self.k - 1, axis=1)[:, self.k - 1, None]


def squared_distances(A: Matrix, i: IntArray, B: Matrix, j: IntArray) -> FloatArray:
    """The numbers of the pairs of rows A[i], B[j]: a sum in the order of the features, whatever the processor.

    Parameters
    ----------
    A, B : array or sparse matrix
        Rows.
    i, j : array (n_pairs,) of int

    Returns
    -------
    array (n_pairs,)
    """
    numbers = np.empty(len(i))
    # Of sparse rows, `size` counts the stored entries.
    step = max(1, NUMBER_ENTRIES // (A.size // max(A.shape[0], 1) + B.size // B.shape[0] + 1))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        difference = A[i[part]].astype(np.float64) - B[j[part]]
        if isinstance(difference, np.ndarray):
            difference *= difference
            # A cumulative sum has one order of additions; that of np.sum depends on the width of the vector registers.
            numbers[part] = np.cumsum(difference, axis=1, out=difference)[:, -1]
        else:
            row = np.repeat(np.arange(difference.shape[0]), np.diff(difference.indptr))
            numbers[part] = np.bincount(row, difference.data**2, minlength=difference.shape[0])
    return numbers


def _kth(row: IntArray, values: FloatArray, n_rows: int, k: int) -> FloatArray:
    """The k-th smallest value of every row; `row` is sorted."""
    place = _place_in_run(row)
    table = np.full((n_rows, place.max(initial=0) + 1), np.inf)
    table[row, place] = values
    return np.partition(table, k - 1, axis=1)[:, k - 1]


def _place_in_run(row: IntArray) -> IntArray:
    """How many equal entries are before each one; `row` is sorted."""
    sizes = np.bincount(row)
    return np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _are_integers(X: Matrix) -> bool:
    values = X if isinstance(X, np.ndarray) else X.data
    return bool((values == np.rint(values)).all())


def _tree(X: Matrix) -> "KDTree":
    # Not above: it takes long to import, and every estimator would wait for it.
    from sklearn.neighbors import KDTree

    return KDTree(X)


def _canonical(X: Matrix) -> Matrix:
    """Sparse rows with each entry once and in order, so that sums are taken in the order of the features."""
    if not isinstance(X, np.ndarray) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


class MLkNN(ProbabilityClassifier):
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
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

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
    `predict_proba` is P(relevant given c), and `decision_function` that less 1/2.

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
        self.non_empty, self.n_jobs = non_empty, n_jobs
        self.label_names = label_names

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        self.feature_scale_ = _inverse_range(X) if self.scale == "minmax" else None
        self.Y_fit_ = Y > 0
        self.X_fit_, self.n_neighbors_ = self._scaled(X), min(self.n_neighbors, len(Y) - 1)
        self._index: NeighbourSearch | None = None
        s, k, (n, n_labels) = self.smoothing, self.n_neighbors_, Y.shape
        bins = (self._neighbour_counts() + (k + 1) * np.arange(n_labels)).ravel()
        seen, with_label = (
            np.bincount(bins, counted, minlength=n_labels * (k + 1)).reshape(n_labels, k + 1)
            for counted in (None, self.Y_fit_.ravel())
        )
        n_relevant = self.Y_fit_.sum(axis=0)
        self.prior_ = (s + n_relevant) / (2 * s + n)
        self.likelihood_relevant_ = (s + with_label) / (s * (k + 1) + n_relevant)[:, None]
        self.likelihood_irrelevant_ = (s + seen - with_label) / (s * (k + 1) + n - n_relevant)[:, None]

    def _scores(self, X: Matrix) -> FloatArray:
        counts, labels = self._neighbour_counts(X), np.arange(len(self.prior_))
        relevant = self.prior_ * self.likelihood_relevant_[labels, counts]
        irrelevant = (1 - self.prior_) * self.likelihood_irrelevant_[labels, counts]
        return 0.5 * (relevant - irrelevant) / (relevant + irrelevant)

    def _probabilities(self, X: Matrix) -> FloatArray:
        return self._scores(X) + 0.5

    def _neighbour_counts(self, X: Matrix | None = None) -> IntArray:
        """How many neighbours carry each label; of the training rows themselves without X."""
        n_rows = len(self.Y_fit_) if X is None else X.shape[0]
        counts = np.zeros((n_rows, self.Y_fit_.shape[1]), dtype=np.intp)
        if self.n_neighbors_:
            search = self._search()
            for neighbour in (search.among_themselves() if X is None else search.of(self._scaled(X))).T:
                counts += self.Y_fit_[neighbour]
        return counts

    def _search(self) -> NeighbourSearch:
        """The index of the training rows, built once; a model file holds the rows only."""
        if self._index is None:
            self._index = NeighbourSearch(self.X_fit_, self.n_neighbors_, self.n_jobs)
        return self._index

    def __getstate__(self) -> dict[str, Any]:
        return {**cast("dict[str, Any]", super().__getstate__()), "_index": None}

    def _scaled(self, X: Matrix) -> Matrix:
        # Distances do not see a shift of the features: division by the range is all of min-max scaling.
        if self.feature_scale_ is None:
            return X
        if isinstance(X, np.ndarray):
            return X * self.feature_scale_
        scaled = X.astype(np.result_type(X, self.feature_scale_))  # a copy
        scaled.data *= self.feature_scale_[scaled.indices]
        return scaled

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        check_number(owner, "n_neighbors", self.n_neighbors, low=1, integer=True)
        check_number(owner, "smoothing", self.smoothing, strict=True)
        check_choice(owner, "scale", self.scale, ("none", "minmax"))


def _inverse_range(X: Matrix) -> FloatArray:
    """One over the range of every feature; 0 for a constant one."""
    low, high = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    span = np.asarray(high - low, dtype=X.dtype)
    return np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
