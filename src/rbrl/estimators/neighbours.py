"""Search for nearest rows, which finds the same rows on every processor.

The neighbours are ordered by their distance number and, if two numbers are equal, by their index.
The number is the squared distance, *defined* as the sum of (x_j - z_j)² over the features in their
order, in double precision, with each operation rounded. It has the same bits on every machine, for
dense and sparse rows.

Matrix products compute all distances faster, but their rounding depends on the BLAS kernel of the
processor. The rounding of a k-d tree depends on the compiler. Therefore both give only *bounds* of
the numbers. The numbers themselves are computed only if the bounds do not determine the nearest rows.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from rbrl._common.typing import FloatArray, IntArray, Matrix

if TYPE_CHECKING:
    from sklearn.neighbors import KDTree

EPSILON = np.finfo(np.float64).eps
# Squares below this value may have lost digits by underflow.
UNDERFLOW = 1e-300
# Sums of squares above this value may overflow when they are added.
OVERFLOW = 1e300
# Below this value, all sums of squares and products of integers are integers that a double represents exactly.
EXACT = 2.0**50
# With more features, matrix products are faster than a tree, which then visits most of the rows.
TREE_FEATURES = 8
# Number of rows in a block of the tree search.
TREE_ROWS = 1024
# Number of distances in a block: 4 MB.
BLOCK_DISTANCES = 2**19
# Bounds of the number of rows in a block: few rows fit into the cache, and many make the product fast.
MIN_ROWS = 32
MAX_ROWS = 256
MAX_SPARSE_ROWS = 64
# Share of nonzero entries below which the product of two sparse matrices is faster than that with a dense matrix.
SPARSE_BELOW = 0.02
# Number of entries of rows in a block in which numbers are computed: 8 MB.
NUMBER_ENTRIES = 2**20
# A function from rows, and the index that each row excludes, to the indices of their nearest rows.
Search: TypeAlias = Callable[[Matrix, IntArray], IntArray]


class NeighbourSearch:
    """Search for the k nearest rows of X, for each row of X or for new rows.

    Examples
    --------
    >>> search = NeighbourSearch(np.array([[0.0], [1.0], [3.0], [7.0]]), k=2)
    >>> search.find(np.array([[2.0]]))
    array([[1, 2]])
    >>> search.find_among_rows()[0]
    array([1, 2])
    """

    def __init__(self, X: Matrix, k: int, n_jobs: int | None = None) -> None:
        self.X = _sum_duplicates(X)
        self.k = k
        self.n_jobs = n_jobs
        with np.errstate(over="ignore", invalid="ignore"):
            self.filter = ProductFilter(self.X, k)
            has_tree = not sparse.issparse(X) and X.shape[1] <= TREE_FEATURES and 2 * k < X.shape[0]
            self.tree = _build_tree(self.X) if has_tree else None

    def find_among_rows(self) -> IntArray:
        """Return the indices (n_samples, k) of the nearest other rows of every row of X, ascending."""
        return self._search_rows(self.X, np.arange(self.X.shape[0]))

    def find(self, rows: Matrix) -> IntArray:
        """Return the indices (n_rows, k) of the nearest rows of new rows, ascending in each row."""
        if sparse.issparse(self.X):
            rows = _sum_duplicates(sparse.csr_array(rows))
        return self._search_rows(rows, np.full(rows.shape[0], -1))

    def _search_rows(self, rows: Matrix, own: IntArray) -> IntArray:
        """Return the nearest rows (n_rows, k) of all rows, as ascending indices.

        `own` (n_rows,) is the index that each row excludes, or -1. The tree answers first, if there
        is one.
        """
        nearest = np.full((rows.shape[0], self.k), -1, dtype=np.intp)
        if self.tree is not None:
            self._fill_missing(nearest, TREE_ROWS, partial(self._search_tree, self.tree), rows, own)
        self._fill_missing(nearest, self.filter.block_size, self._search_bounds, rows, own)
        return nearest

    def _fill_missing(self, nearest: IntArray, step: int, search: Search, rows: Matrix, own: IntArray) -> None:
        """Fill `nearest` in place for the rows whose entries are -1, in blocks of `step` rows.

        A search may leave entries of -1.
        """
        wanted = np.flatnonzero(nearest[:, 0] < 0)
        blocks = [wanted[start : start + step] for start in range(0, len(wanted), step)]
        jobs = (delayed(self._search_block)(search, rows[block], own[block]) for block in blocks)
        for block, indices in zip(blocks, Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)):
            nearest[block] = indices

    def _search_block(self, search: Search, rows: Matrix, own: IntArray) -> IntArray:
        """Search for one block of rows, which become dense if X is dense."""
        if isinstance(self.X, np.ndarray) and not isinstance(rows, np.ndarray):
            rows = rows.toarray()
        with np.errstate(over="ignore", invalid="ignore"):
            return search(rows, own)

    def _search_tree(self, tree: "KDTree", rows: FloatArray, own: IntArray) -> IntArray:
        """Return neighbours of a k-d tree for rows whose k-th is clearly nearer than the next.

        The result (n_rows, k) has ascending indices, and -1 for all other rows. Distances of the
        tree are roots of sums of squared differences. They, and the bounds by which the tree
        excludes rows, have an error of at most m + 4 roundings.
        """
        n_wanted = self.k + int((own >= 0).any())
        distances, columns = tree.query(rows, k=n_wanted + 1)
        last = distances[:, -2]
        following = distances[:, -1]
        # No row beyond the wanted rows is as near as the last of them, so that they include the row itself.
        is_settled = following > last * (1 + self.filter.slack) + np.sqrt(UNDERFLOW)
        wanted = columns[is_settled, :n_wanted]
        others = wanted != own[is_settled, None]
        nearest = np.full((len(rows), self.k), -1, dtype=np.intp)
        nearest[is_settled] = np.sort(wanted[others].reshape(-1, self.k), axis=1)
        return nearest

    def _search_bounds(self, rows: Matrix, own: IntArray) -> IntArray:
        """Return the k first candidates (n_rows, k) of every row, as ascending indices.

        `own` (n_rows,) are the indices of the rows in X if they are training rows, which are not
        their own neighbours. The candidates must be grouped by row, with ascending columns.
        Numbers are computed only if the bounds overlap. Of equal numbers, the first row of X comes
        first.
        """
        row, column, low, high, are_exact = self.filter.find_candidates(rows, own)
        n_rows = rows.shape[0]
        k = self.k
        # The k-th number of a row lies between the k-th lower and the k-th upper bound.
        low_k = _find_kth(row, low, n_rows, k)
        high_k = _find_kth(row, high, n_rows, k)
        chosen = high < low_k[row]
        is_open = ~chosen & ~(low > high_k[row])
        places = k - np.bincount(row[chosen], minlength=n_rows)
        is_disputed = np.bincount(row[is_open], minlength=n_rows) > places
        chosen |= is_open & ~is_disputed[row]
        disputed = np.flatnonzero(is_open & is_disputed[row])
        row_d = row[disputed]
        column_d = column[disputed]
        number = low[disputed] if are_exact else compute_squared_distances(rows, row_d, self.X, column_d)
        order = np.lexsort((column_d, number, row_d))
        chosen[disputed[order[_count_equal_before(row_d) < places[row_d]]]] = True
        return column[chosen].reshape(n_rows, k)


class Candidates(NamedTuple):
    """Pairs of rows that may be neighbours, ordered by row and then by column, with bounds of their
    numbers.

    All arrays have the shape (n_pairs,). The bounds are equal to the numbers if they are exact.
    """

    row: IntArray
    column: IntArray
    low: FloatArray
    high: FloatArray
    exact: bool


class ProductFilter:
    r"""Bounds from :math:`\|x - z\|^2 = \|x\|^2 + \|z\|^2 - 2 x'z`, with one matrix product.

    Let m be the number of features, u half of EPSILON, :math:`\gamma_m \approx m u` and
    :math:`N = \|x\|^2 + \|z\|^2`. The two sums of squares and twice the product have an error of at most
    :math:`2 \gamma_m N`, in any order of summation, with or without fused operations. The number itself
    differs from its exact value by at most :math:`2 \gamma_{m+2} N`. The additions and the shift by
    `centre` have an error of at most :math:`10 u N`. The total is less than :math:`4 (m + 8) u N`. Products
    of small integers are exact.
    """

    def __init__(self, X: Matrix, k: int) -> None:
        self.k = k
        self.centre = None
        if isinstance(X, np.ndarray):
            # A shift changes no distance. Without it, differences in a column far from 0 lose digits.
            mean = X.mean(axis=0, dtype=np.float64)
            self.centre = np.rint(mean) if _are_integers(X) else mean
        self.slack = 2 * (X.shape[1] + 8) * EPSILON
        self.X, self.squares, self.are_exact = self._prepare(X)
        self.low = (1 - self.slack) * self.squares
        most = MAX_SPARSE_ROWS if sparse.issparse(X) else MAX_ROWS
        self.block_size = int(np.clip(BLOCK_DISTANCES // X.shape[0], MIN_ROWS, most))
        # The smallest distance of each group bounds the k-th distance, and there are few to sort.
        self.group = max(1, min(16, X.shape[0] // (4 * k)))

    def _prepare(self, rows: Matrix) -> tuple[Matrix, FloatArray, bool]:
        """Return shifted rows, their sums of squares (n_rows,), and whether they are small integers.

        Products of small integers are exact. The check uses the rows before the shift: 1e-16
        becomes an integer after a shift by 5.
        """
        shifted = rows.astype(np.float64, copy=False) if self.centre is None else rows - self.centre
        if isinstance(shifted, np.ndarray):
            squares = np.einsum("ij,ij->i", shifted, shifted)
        else:
            squares = np.asarray(shifted.multiply(shifted).sum(axis=1)).ravel()
        return shifted, squares, bool(squares.max(initial=0.0) < EXACT and _are_integers(rows))

    def find_candidates(self, rows: Matrix, own: IntArray) -> Candidates:
        """Return at least k candidates of every row; `own` is the index each row excludes, or -1."""
        rows, squares, are_exact = self._prepare(rows)
        exact = are_exact and self.are_exact
        largest = squares[:, None] + self.squares.max()
        slack = 0.0 if exact else self.slack
        low = self._multiply(rows)
        low *= -2.0
        low += (squares if exact else (1 - slack) * squares - UNDERFLOW)[:, None]
        low += self.squares if exact else self.low
        low[(largest > OVERFLOW).ravel()] = -np.inf
        is_known = own >= 0
        low[is_known, own[is_known]] = np.inf
        limit = self._bound_kth(low) + (0.0 if exact else 2 * slack * largest + 2 * UNDERFLOW)
        # Written in this way, a limit that is NaN excludes no candidate.
        row, column = np.divmod(np.flatnonzero(~(low > limit)), low.shape[1])
        others = column != own[row]
        row = row[others]
        column = column[others]
        bound = low[row, column]
        high = bound if exact else bound + 2 * slack * (squares[row] + self.squares[column]) + 2 * UNDERFLOW
        return Candidates(row, column, bound, np.where(bound == -np.inf, np.inf, high), exact)

    def _multiply(self, rows: Matrix) -> FloatArray:
        """Return all products (n_rows, n_samples) with the rows X, as a new dense array in C order.

        Very sparse rows are multiplied as sparse matrices.
        """
        if isinstance(self.X, np.ndarray) or isinstance(rows, np.ndarray):
            return rows @ self.X.T
        if self.X.nnz < SPARSE_BELOW * self.X.shape[0] * self.X.shape[1]:
            return (rows @ self.X.T).toarray()
        return np.ascontiguousarray((self.X @ rows.T.toarray(order="C")).T)

    def _bound_kth(self, low: FloatArray) -> FloatArray:
        """Return an upper bound on the k-th smallest value of every row, as a column."""
        n = low.shape[1]
        group = self.group
        least = low[:, : n - n % group].reshape(len(low), group, n // group).min(axis=1)
        return np.partition(least, self.k - 1, axis=1)[:, self.k - 1, None]


def compute_squared_distances(A: Matrix, i: IntArray, B: Matrix, j: IntArray) -> FloatArray:
    """Compute the squared distances of the pairs A[i], B[j], the same bits on every processor.

    i and j are indices of the same length. The code calls such a distance the number of the pair.
    """
    numbers = np.empty(len(i))
    # The `size` of a sparse matrix is the number of its stored entries.
    step = max(1, NUMBER_ENTRIES // (A.size // max(A.shape[0], 1) + B.size // B.shape[0] + 1))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        difference = A[i[part]].astype(np.float64) - B[j[part]]
        if isinstance(difference, np.ndarray):
            difference *= difference
            # A cumulative sum adds in the order of the features. The order of np.sum depends on the processor.
            numbers[part] = np.cumsum(difference, axis=1, out=difference)[:, -1]
        else:
            row = np.repeat(np.arange(difference.shape[0]), np.diff(difference.indptr))
            numbers[part] = np.bincount(row, difference.data**2, minlength=difference.shape[0])
    return numbers


def _find_kth(row: IntArray, values: FloatArray, n_rows: int, k: int) -> FloatArray:
    """Return the k-th smallest value of every row: (n_rows,). `row`, the row of each value, is sorted.

    A row with fewer than k values has infinity.
    """
    place = _count_equal_before(row)
    table = np.full((n_rows, place.max(initial=0) + 1), np.inf)
    table[row, place] = values
    return np.partition(table, k - 1, axis=1)[:, k - 1]


def _count_equal_before(row: IntArray) -> IntArray:
    """Return the number of equal entries before each entry of `row` (n_pairs,), which is sorted."""
    sizes = np.bincount(row)
    return np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _are_integers(X: Matrix) -> bool:
    """Return whether all stored entries are whole numbers; True for an empty matrix."""
    values = X if isinstance(X, np.ndarray) else X.data
    return bool((values == np.rint(values)).all())


def _build_tree(X: Matrix) -> "KDTree":
    """Return a k-d tree of dense rows."""
    # Imported here, because the import takes long and only this function needs it.
    from sklearn.neighbors import KDTree

    return KDTree(X)


def _sum_duplicates(X: Matrix) -> Matrix:
    """Return sparse rows with sorted entries without duplicates; X itself if it is dense or so.

    Then sums follow the order of the features. X is not changed.
    """
    if not isinstance(X, np.ndarray) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
