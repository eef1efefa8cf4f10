r"""Defaults of the ridge, the intercept and the kernel that depend on the scales of the features.

They are meant for features that were scaled sensibly. Rows may be dense or sparse, and a row of weight 2 counts
as two equal rows.
"""

import warnings
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from rbrl._common.checks import users_level
from rbrl._common.linalg import sum_duplicates
from rbrl._common.typing import FloatArray, Matrix, issparse
from rbrl.exceptions import ScalingWarning

# Ridge penalty: a number, or "auto" for a value that is computed from the data.
Strength: TypeAlias = float | Literal["auto"]
# Ridge penalty of the intercept: a number, or "ridge" or None for the penalty of the other columns.
InterceptStrength: TypeAlias = float | Literal["ridge"] | None
# Width of a kernel: a number, or the name of a rule; None means "paper".
Width: TypeAlias = float | Literal["median", "scale", "paper"] | None
WIDTHS = ("median", "scale", "paper", None)
# Ridge penalty of a kernel model, whose kernel values have their own scale, and of features that are all constant.
RIDGE_OF_KERNELS = RIDGE_OF_CONSTANTS = 1.0
# The nuclear norm of a model with a bounded rank. For other models it is 0: `studies.benchmarks.nuclear` and
# `studies.benchmarks.nuclear.kernels` show what a norm gains there.
NUCLEAR_WITH_MAX_RANK = 0.1
# The factor was chosen on ten data sets and checked on twelve others: docs/defaults.md.
RIDGE_FACTOR = 3.0
# A variance below this share of the mean square is a rounding error of a constant column.
CONSTANT_COLUMN_SHARE = 1e-12
# A squared distance below this share of the squares of two rows is a rounding error of equal rows.
EQUAL_ROWS_SHARE = 1e-13
# Number of rows between which distances are computed.
DISTANCE_ROWS = 1000
# Number of entries of X that are centred at a time: 32 MB.
CENTRED_ENTRIES = 2**22
# Largest ratio of the largest standard deviation to the median one without a warning.
LARGEST_SPREAD = 1e4


class ColumnScales(NamedTuple):
    r"""Variances of the features.

    Attributes
    ----------
    n_samples : float
        Sum of the weights of the rows.
    variances : array
        Variances of the columns that are not constant.

    Examples
    --------
    >>> import numpy as np
    >>> scales = ColumnScales.from_rows(np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 4.0]]))
    >>> scales.variances.tolist(), scales.ridge()
    ([1.0, 4.0], 15.0)
    """

    n_samples: float
    variances: FloatArray

    @classmethod
    def from_rows(cls, X: Matrix, weights: FloatArray | None = None) -> "ColumnScales":
        """Return the variances of rows in memory.

        Parameters
        ----------
        X : array or CSR matrix (n_samples, n_features)
        weights : array (n_samples,), default=None
        """
        # The first row; zeros without rows.
        shift = np.zeros(X.shape[1]) if issparse(X) else X[:1].sum(axis=0, dtype=np.float64)
        return cls.from_sums(X.shape[0] if weights is None else float(weights.sum()), *shifted_sums(X, shift, weights))

    @classmethod
    def from_sums(cls, n_samples: float, sums: FloatArray, squares: FloatArray) -> "ColumnScales":
        """Return the variances of all rows from the sums of :func:`shifted_sums`.

        Parameters
        ----------
        n_samples : float
        sums, squares : arrays (n_features,)
        """
        with np.errstate(over="ignore", invalid="ignore"):
            mean_squares = squares / n_samples
            variances = mean_squares - (sums / n_samples) ** 2
            # The negation keeps columns whose squares overflow.
            varies = ~(variances <= CONSTANT_COLUMN_SHARE * mean_squares)
            return cls(n_samples, np.nan_to_num(variances[varies], nan=np.inf, posinf=np.inf))

    def ridge(self) -> float:
        r"""Return the default ridge penalty of a linear model.

        .. math:: 3\, m \operatorname{median}_j \operatorname{var}(x_j) \sqrt{n / \min(n, m + 1)}

        over the m columns that are not constant; 1 if all columns are constant.
        """
        m = len(self.variances)
        if m == 0:
            return RIDGE_OF_CONSTANTS
        with np.errstate(over="ignore"):
            ridge = RIDGE_FACTOR * m * float(np.median(self.variances)) * max(1.0, self.n_samples / (m + 1)) ** 0.5
        if not np.isfinite(ridge):
            raise ValueError(
                f"ridge='auto' needs a finite median of the variances of the columns. Got {np.median(self.variances):g}; "
                "scale X, for example with sklearn.preprocessing.MaxAbsScaler, or pass ridge as a number."
            )
        return ridge

    def warn_of_spread(self, owner: str) -> None:
        """Warn if one column is much larger than most columns.

        Parameters
        ----------
        owner : str
            Class that warns.
        """
        if not len(self.variances):
            return
        largest, median = np.sqrt([self.variances.max(), np.median(self.variances)])
        if largest > LARGEST_SPREAD * median:
            warnings.warn(
                f"{owner}: columns of X differ in scale. The largest standard deviation is {largest:.2g}, the median "
                f"{median:.2g}. A ridge penalty suits columns of similar scale: scale X, for example with "
                "sklearn.preprocessing.StandardScaler or MaxAbsScaler.",
                ScalingWarning,
                stacklevel=users_level(),
            )


def shifted_sums(X: Matrix, shift: FloatArray, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the sums of x - shift over the rows, and the sums of its squares.

    Parameters
    ----------
    X : array or CSR matrix (n_rows, n_features)
    shift : array (n_features,)
        Any numbers. The first row makes rounding errors small; zeros leave a sparse X sparse.
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
        sums, squares = np.zeros((2, m))
        step = max(1, CENTRED_ENTRIES // max(m, 1))
        for start in range(0, n, step):
            centred = np.asarray(X[start : start + step]) - shift
            part_weights = w[start : start + step]
            sums += part_weights @ centred
            squares += part_weights @ np.square(centred, out=centred)
        return sums, squares


def intercept_column(ridge: float, intercept_ridge: InterceptStrength) -> float:
    r"""Return the constant c of the column whose weight gives the intercept its own ridge penalty.

    With the weight v of this column, the intercept is :math:`b = cv`, and :math:`\lambda_1 v^2 = \lambda_b b^2` for
    :math:`c = \sqrt{\lambda_1 / \lambda_b}`.

    Parameters
    ----------
    ridge : float
    intercept_ridge : float, "ridge" or None
        Penalty of the intercept; None and "ridge" mean the penalty of the other columns.

    Returns
    -------
    float
        Constant of the column. It is 1 if the ridge is 0, because the intercept then has no penalty either.

    Examples
    --------
    >>> intercept_column(9.0, 1.0), intercept_column(9.0, None)
    (3.0, 1.0)
    """
    if intercept_ridge is None or isinstance(intercept_ridge, str) or ridge == 0:
        return 1.0
    return float(np.sqrt(ridge / intercept_ridge))


def kernel_width(gamma: Width, X: Matrix, weights: FloatArray | None = None) -> float:
    """Return the gamma of the "rbf" and "poly" kernels as a number.

    Parameters
    ----------
    gamma : {"median", "scale", "paper"}, float or None
        Rule of the width, or the width itself. "median" is 1 / the median squared distance between different
        rows, of at most 1,000 rows. "scale" is 1 / (n_features x variance of all entries), as in scikit-learn.
        "paper" and None are 1 / n_features. "median" is 1 if all rows are equal, "scale" if all entries are.
    X : array or CSR matrix (n_samples, n_features)
    weights : array (n_samples,), default=None
        Positive weights of the rows.

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
    """Return the variance of all entries of X, weighted by rows.

    The first entry of a dense X is subtracted before the sums, which reduces rounding errors.
    """
    n, m = X.shape
    sums, squares = shifted_sums(X, np.full(m, 0.0 if issparse(X) or not n else float(X[0, 0])), weights)
    total = m * (n if weights is None else float(weights.sum()))
    return float(squares.sum() / total - (sums.sum() / total) ** 2)


def _median_squared_distance(X: Any, weights: FloatArray | None) -> float:
    """Return the median squared distance between different rows; 0 if all rows are equal.

    At most `DISTANCE_ROWS` rows are drawn, with a fixed seed. X and the weights (n_samples,) are
    not changed.
    """
    n = X.shape[0]
    rng = np.random.default_rng(0)
    if n > DISTANCE_ROWS and weights is not None:
        # A row of weight 2 is drawn as often as two equal rows together.
        ends = np.cumsum(weights)
        rows = np.searchsorted(ends, rng.random(DISTANCE_ROWS) * ends[-1], side="right")
        X = X[np.sort(np.minimum(rows, n - 1))]
        weights = None
    elif n > DISTANCE_ROWS:
        X = X[np.sort(rng.choice(n, DISTANCE_ROWS, replace=False))]
    X = X.astype(np.float64)
    if not issparse(X):
        X -= X.mean(axis=0)  # reduces the rounding errors of the distances
    squares = np.asarray((X.multiply(X) if issparse(X) else X * X).sum(axis=1)).ravel()
    i, j = np.triu_indices(X.shape[0], 1)
    distances = euclidean_distances(X, squared=True)[i, j]
    is_different = distances > EQUAL_ROWS_SHARE * (squares[i] + squares[j])
    if not is_different.any():
        return 0.0
    if weights is None:
        return float(np.median(distances[is_different]))
    return _weighted_median(distances[is_different], (weights[i] * weights[j])[is_different])


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the median of values that are repeated as often as their weights.

    Of two middle values it is the mean. Both arrays have the shape (n,), with n and the weights
    above 0. Rounding of the weights' sum may decide which values are in the middle, so a share of
    1e-12 counts as none.
    """
    order = np.argsort(values)
    ends = np.cumsum(weights[order])
    half = np.searchsorted(ends, [ends[-1] * (0.5 - 1e-12), ends[-1] * (0.5 + 1e-12)], side="left")
    return float(values[order][np.minimum(half, len(values) - 1)].mean())
