r"""Defaults that fit the data: what the scale of the features says of the ridge, of the intercept and of the kernel.

All of it is meant for data that somebody has scaled sensibly, and holds with rows of any storage and any weights: a weight
is as good as a repetition of the row.
"""

import warnings
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from rbrl._common.checks import users_level
from rbrl._common.linalg import sum_duplicates
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl.exceptions import ScalingWarning

# Of the ridge: a number, or what follows from the data.
Strength: TypeAlias = float | Literal["auto"]
# Of the intercept's ridge: a number, or the same as all columns have, for which None stands, too.
InterceptStrength: TypeAlias = float | Literal["ridge"] | None
# Of a kernel: a number, or one of the words; None is "paper".
Width: TypeAlias = float | Literal["median", "scale", "paper"] | None
WIDTHS = ("median", "scale", "paper", None)
# The ridge of a model with a kernel, whose values have a scale of their own; and of features that are all constant.
RIDGE_OF_KERNELS = RIDGE_OF_CONSTANTS = 1.0
# The nuclear norm of a model with a bounded rank. For other models it is 0: `benchmarks.nuclear` and
# `benchmarks.nuclear.kernels` show what a norm gains there.
NUCLEAR_WITH_MAX_RANK = 0.1
# Chosen on ten data sets, and reported on twelve others: docs/defaults.md.
RIDGE_FACTOR = 3.0
# A variance below this share of the mean square is the rounding of a constant column.
CONSTANT = 1e-12
# A squared distance below this share of the rows' squares is the rounding of equal rows.
EQUAL = 1e-13
# Rows that distances are taken of.
SAMPLE_ROWS = 1000
# Entries of X that are centred at a time: 32 MB.
SLICE_ENTRIES = 2**22
# A largest standard deviation this many times the median one asks for a scaler.
LARGEST_SPREAD = 1e4


class ColumnScales(NamedTuple):
    r"""How far the features reach.

    Attributes
    ----------
    n_samples : float
        Rows, counted by their weights.
    variances : array
        Of the columns that are not constant.

    Examples
    --------
    >>> import numpy as np
    >>> scales = ColumnScales.of(np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 4.0]]))
    >>> scales.variances.tolist(), scales.ridge()
    ([1.0, 4.0], 15.0)
    """

    n_samples: float
    variances: FloatArray

    @classmethod
    def of(cls, X: Matrix, weights: FloatArray | None = None) -> "ColumnScales":
        """Those of rows in memory.

        Parameters
        ----------
        X : array or CSR matrix (n_samples, n_features)
        weights : array (n_samples,), default=None

        Returns
        -------
        ColumnScales
        """
        shift = first_row(X)
        return cls.of_sums(X.shape[0] if weights is None else float(weights.sum()), *shifted_sums(X, shift, weights))

    @classmethod
    def of_sums(cls, n_samples: float, sums: FloatArray, squares: FloatArray) -> "ColumnScales":
        """Those of all rows together, from the sums of :func:`shifted_sums`.

        Parameters
        ----------
        n_samples : float
        sums, squares : arrays (n_features,)

        Returns
        -------
        ColumnScales
        """
        with np.errstate(over="ignore", invalid="ignore"):
            mean_squares = squares / n_samples
            variances = mean_squares - (sums / n_samples) ** 2
            varies = ~(variances <= CONSTANT * mean_squares)  # also where squares are beyond all numbers
            return cls(n_samples, np.nan_to_num(variances[varies], nan=np.inf, posinf=np.inf))

    def ridge(self) -> float:
        r"""The ridge of a linear model.

        .. math:: 3\, m \operatorname{median}_j \operatorname{var}(x_j) \sqrt{n / \min(n, m + 1)}

        over the m columns that are not constant; 1 where all are.

        Returns
        -------
        float
        """
        m = len(self.variances)
        if m == 0:
            return RIDGE_OF_CONSTANTS
        with np.errstate(over="ignore"):
            ridge = RIDGE_FACTOR * m * float(np.median(self.variances)) * max(1.0, self.n_samples / (m + 1)) ** 0.5
        if not np.isfinite(ridge):
            raise ValueError(
                f"ridge='auto' follows from the variances of the columns, whose median is {np.median(self.variances):g}; "
                "scale X, for example with sklearn.preprocessing.StandardScaler, or give ridge as a number."
            )
        return ridge

    def warn_of_spread(self, owner: str) -> None:
        """Name a scaler where one column is far larger than most.

        Parameters
        ----------
        owner : str
            The class that warns.
        """
        if not len(self.variances):
            return
        largest, median = np.sqrt([self.variances.max(), np.median(self.variances)])
        if largest > LARGEST_SPREAD * median:
            warnings.warn(
                f"{owner}: columns of X differ in scale, the largest standard deviation is {largest:.2g} and the median one "
                f"{median:.2g}. Weights of one ridge suit columns of one scale: scale X, for example with "
                "sklearn.preprocessing.StandardScaler or MaxAbsScaler.",
                ScalingWarning,
                stacklevel=users_level(),
            )


def first_row(X: Matrix) -> FloatArray:
    """What sums over the rows of X are shifted by, so that columns far from 0 keep their digits; 0 for a sparse X.

    Parameters
    ----------
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    array (n_features,)
    """
    if issparse(X) or not X.shape[0]:
        return np.zeros(X.shape[1])
    return np.asarray(X[0], dtype=np.float64)


def shifted_sums(X: Matrix, shift: FloatArray, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Sums over rows of x - shift, and of its squares.

    Parameters
    ----------
    X : array or CSR matrix (n_rows, n_features)
    shift : array (n_features,)
    weights : array (n_rows,), default=None

    Returns
    -------
    sums, squares : arrays (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> shifted_sums(np.array([[1.0], [4.0]]), np.array([1.0]))
    (array([3.]), array([9.]))
    """
    n, m = X.shape
    w = np.ones(n) if weights is None else weights
    with np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            values = sum_duplicates(X).astype(np.float64, copy=False)
            squared = type(values)((np.square(values.data), values.indices, values.indptr), shape=values.shape)
            sums = np.asarray(values.T @ w)
            total = w.sum()
            squares = np.asarray(squared.T @ w) - 2 * shift * sums + total * shift**2
            return sums - total * shift, squares
        sums, squares = np.zeros(m), np.zeros(m)
        step = max(1, SLICE_ENTRIES // max(m, 1))
        for start in range(0, n, step):
            part, of_part = np.asarray(X[start : start + step]) - shift, w[start : start + step]
            sums += of_part @ part
            squares += of_part @ np.square(part, out=part)
        return sums, squares


def intercept_column(ridge: float, intercept_ridge: InterceptStrength) -> float:
    r"""The constant c that is appended to every row, so that the ridge of all columns is that of the intercept, too.

    With the weight v of that column the intercept is :math:`b = cv`, and :math:`\lambda_1 v^2 = \lambda_b b^2` for
    :math:`c = \sqrt{\lambda_1 / \lambda_b}`.

    Parameters
    ----------
    ridge : float
    intercept_ridge : float, "ridge" or None
        None, and "ridge", mean that of all columns.

    Returns
    -------
    float
        1 also for a ridge of 0, which leaves the intercept as free as all the rest.

    Examples
    --------
    >>> intercept_column(9.0, 1.0), intercept_column(9.0, None)
    (3.0, 1.0)
    """
    if intercept_ridge is None or isinstance(intercept_ridge, str) or ridge == 0:
        return 1.0
    return float(np.sqrt(ridge / intercept_ridge))


def kernel_width(gamma: Width, X: Matrix, weights: FloatArray | None = None) -> float:
    """The gamma of the "rbf" and "poly" kernels as a number.

    Parameters
    ----------
    gamma : {"median", "scale", "paper"}, float or None
        1 / the median squared distance between rows that differ, over all of up to 1,000 rows and a sample of more; 1 /
        (n_features x variance of all entries), as scikit-learn has it; 1 / n_features, also for None; or the number itself.
        1 where no rows differ.
    X : array or CSR matrix (n_samples, n_features)
    weights : array (n_samples,), default=None
        All above 0.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> [kernel_width(gamma, X) for gamma in ("median", "paper", 3)]
    [0.25, 0.5, 3.0]
    """
    if gamma is None or gamma == "paper":
        return 1.0 / X.shape[1]
    if not isinstance(gamma, str):
        return float(gamma)
    size = _median_squared_distance(X, weights) if gamma == "median" else X.shape[1] * _variance(X, weights)
    return 1.0 / size if 0 < size < np.inf else 1.0


def _variance(X: Any, weights: FloatArray | None) -> float:
    """Of all entries."""
    n, m = X.shape
    sums, squares = shifted_sums(X, np.full(m, 0.0 if issparse(X) or not n else float(X[0, 0])), weights)
    total = m * (n if weights is None else float(weights.sum()))
    return float(squares.sum() / total - (sums.sum() / total) ** 2)


def _median_squared_distance(X: Any, weights: FloatArray | None) -> float:
    """Between rows that differ; 0 if there are none."""
    n, rng = X.shape[0], np.random.default_rng(0)
    if n > SAMPLE_ROWS and weights is not None:
        # A row of weight 2 is drawn wherever one of two equal rows would be.
        ends = np.cumsum(weights)
        rows, weights = np.searchsorted(ends, rng.random(SAMPLE_ROWS) * ends[-1], side="right"), None
        X = X[np.sort(np.minimum(rows, n - 1))]
    elif n > SAMPLE_ROWS:
        X = X[np.sort(rng.choice(n, SAMPLE_ROWS, replace=False))]
    X = X.astype(np.float64)
    if not issparse(X):
        X -= X.mean(axis=0)  # distances do not notice a shift, their rounding does
    squares = np.asarray((X.multiply(X) if issparse(X) else X * X).sum(axis=1)).ravel()
    i, j = np.triu_indices(X.shape[0], 1)
    distances = euclidean_distances(X, squared=True)[i, j]
    apart = distances > EQUAL * (squares[i] + squares[j])
    if not apart.any():
        return 0.0
    if weights is None:
        return float(np.median(distances[apart]))
    return _weighted_median(distances[apart], (weights[i] * weights[j])[apart])


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """The median of values that are repeated as their weights say."""
    order = np.argsort(values)
    values, below = values[order], np.cumsum(weights[order])
    half = np.searchsorted(below, [below[-1] * (0.5 - 1e-12), below[-1] * (0.5 + 1e-12)], side="left")
    return float(values[np.minimum(half, len(values) - 1)].mean())
