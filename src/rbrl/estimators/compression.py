r"""Compression of linear models: unimportant weights become 0, or the weights become two factors.

The importance of the weight :math:`w` of feature j is :math:`|w| \sqrt{|x_j|^2 + \lambda_1}`, with the column
:math:`x_j` of the training rows and the ridge :math:`\lambda_1`. At the optimum, half of its square is an upper bound
on the rise of squared hinges and ridge if only this weight becomes 0. Other weights are not fitted again.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rbrl._common.checks import check_choice, check_number
from rbrl._common.environment import block_size
from rbrl._common.linalg import leading_singular, squares
from rbrl._common.matrices import LowRankMatrix
from rbrl._common.typing import FloatArray, Matrix, MatrixLike
from rbrl.estimators.coefficients import store_weights, stored_weights
from rbrl.problem import Objective
from rbrl.solvers.factor_proof import prove_value
from rbrl.solvers.proof import Proof

FORMS = ("sparse", "factors")
# A model is compressed over the rows of its fit. Over other rows, its objective differs by a larger share.
SAME_OBJECTIVE = 1e-6
# The search for a threshold ends at a rise of at least this share of the largest permitted rise.
CLOSE_ENOUGH = 0.9
# Number of thresholds that are tried, unless none of them has a permitted rise.
MAX_TRIALS = 6
# Number of columns of the first factors that are tried.
FIRST_RANK = 16
# Number of thresholds in each octave of importance, and the largest octave. Numbers in single precision have fewer.
BINS_PER_OCTAVE = 16
LARGEST_OCTAVE = 150


def compress(
    model: Any, X: MatrixLike, y: MatrixLike | None = None, sample_weight: Any = None, *, tol: float = 0.01,
    form: str = "sparse",
) -> Any:  # fmt: skip
    """Return a smaller copy of a fitted linear model, with a certificate for the weights that are left.

    The objective of the copy is at most ``1 + tol`` times the objective of the model, besides rounding.
    `objective_` and `gap_` of the copy hold for its own weights. They are stored in single precision.

    Parameters
    ----------
    model : fitted RBRLClassifier, BRLClassifier or CPNL with kernel="linear"; or a pipeline that ends in one
        It is not changed.
    X, y, sample_weight : arrays
        The data of the fit, in the forms that `fit` accepts. Other data are rejected.
    tol : float, default=0.01
        Largest relative rise of the objective. With 0, only weights that are 0 are removed.
    form : {"sparse", "factors"}, default="sparse"
        "sparse" sets unimportant weights to 0: `coef_` becomes a sparse matrix. "factors" replaces the weights by
        their largest singular values: `label_factors_` and `feature_factors_`, whose product is `coef_`. Factors are
        small if the model has a low rank, for example because of its nuclear norm.

    Returns
    -------
    model of the same class

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier, compress
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=30, n_classes=4, random_state=0)
    >>> model = RBRLClassifier().fit(X, Y)
    >>> small = compress(model, X, Y, tol=0.05)
    >>> small.coef_.format, small.coef_.nnz < model.coef_.size, small.objective_ <= 1.05 * model.objective_
    ('csc', True, True)
    """
    check_number("compress", "tol", tol)
    check_choice("compress", "form", form, FORMS)
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        *steps, (name, last) = model.steps
        rows = model[:-1].transform(X) if steps else X
        compressed = copy(model)
        compressed.steps = [*steps, (name, compress(last, rows, y, sample_weight, tol=tol, form=form))]
        return compressed
    _check_model(model)
    problem = model.problem(X, y, sample_weight)
    objective = problem.row_objective
    weights = Compression(objective, problem.form.observed, tol)
    W = stored_weights(model)
    value = weights.value(W)
    if not abs(value - model.objective_) <= SAME_OBJECTIVE * model.objective_:
        raise ValueError(
            f"compress needs the data of the fit, over which {type(model).__name__} has the objective "
            f"{model.objective_:.6g}. Got data over which it is {value:.6g}; pass the X, y and sample_weight of fit."
        )
    # The factor exceeds the rounding errors of the division.
    lower = (1 - 1e-15) * model.objective_ / (1 + model.gap_)
    found, proof = weights.compress(W, value, lower, form)
    small = copy(model)
    store_weights(small, found)
    small.objective_ = proof.objective
    small.gap_ = proof.gap
    vars(small).pop("rank_", None)
    return small


def check_compress(model: Any) -> None:
    """Raise ValueError for an invalid parameter `compress` of a classifier, which is not None.

    Parameters
    ----------
    model : ConvexClassifier
    """
    owner = type(model).__name__
    check_number(owner, "compress", model.compress, words=(None,))
    if model.kernel != "linear" or model.max_rank is not None:
        raise ValueError(
            f"{owner} compresses linear models without max_rank. Got compress={model.compress} with "
            f"kernel={model.kernel!r} and max_rank={model.max_rank}; set compress=None."
        )


def _check_model(model: Any) -> None:
    """Raise ValueError for a model that has no certified weights of features."""
    owner = type(model).__name__
    rule = "compress needs a linear model with a certified gap: RBRLClassifier, BRLClassifier or CPNL"
    if not hasattr(model, "problem"):
        raise ValueError(f"{rule}, or a Pipeline that ends in one. Got {owner}.")
    if model.kernel != "linear":
        raise ValueError(
            f"{rule}, with kernel='linear'. Got kernel={model.kernel!r}; a model file of a kernel model is smaller if it "
            "has fewer training rows, or approximation='nystroem'."
        )
    if not hasattr(model, "gap_"):
        raise ValueError(f"{rule}. Got a {owner} after partial_fit, which has no gap_; use fit.")


@dataclass(frozen=True)
class Compression:
    """A search for small weights whose objective exceeds the objective of given weights by a permitted share.

    Parameters
    ----------
    objective : Objective
        Objective over the rows as they are.
    X : array or CSR matrix (n_samples, n_features)
        The rows of the objective, without the column of the intercept.
    tol : float
        Largest relative rise of the objective.
    """

    objective: Objective
    X: Matrix
    tol: float

    def compress(self, W: Any, value: float, lower: float, form: str = "sparse") -> tuple[Any, Proof]:
        """Return the compressed weights, in single precision, with their proof.

        Parameters
        ----------
        W : array, CSR matrix or LowRankMatrix (n_columns, n_labels)
            Weights as :func:`~rbrl.estimators.coefficients.store_weights` stores them.
        value : float
            Their objective.
        lower : float
            Lower bound on the optimum.
        form : {"sparse", "factors"}

        Returns
        -------
        weights : CSR matrix or LowRankMatrix (n_columns, n_labels)
        proof : Proof
        """
        search = self._prune if form == "sparse" else self._truncate
        found = search(W.to_dense() if isinstance(W, LowRankMatrix) else W, value)
        return found, prove_value(self.objective, self.X, found, lower)

    def value(self, W: Any) -> float:
        """Return the objective of weights in any form."""
        return prove_value(self.objective, self.X, W, 0.0).objective

    def _prune(self, W: Any, value: float) -> Any:
        """Return the weights above the largest importance that is found to be permitted, as a CSR matrix."""
        scales = np.sqrt(squares(self.X.astype(np.float64, copy=False)) + self.objective.ridge.weight)
        ranked = RankedWeights(W, scales)
        best = ranked.keep(0.0)
        # Predicted rises: the largest one that was permitted, the next one, and the smallest one that was not.
        low, target, high = 0.0, self.tol * value, np.inf
        n_trials = 0
        while n_trials < MAX_TRIALS or not low:
            threshold = ranked.find_threshold(target)
            if threshold == 0:
                break
            candidate = ranked.keep(threshold)
            rise = max(self.value(candidate) / value - 1, 0.0)
            n_trials += 1
            if rise <= self.tol:
                low = target
                best = candidate
                if rise >= CLOSE_ENOUGH * self.tol:
                    break
            else:
                high = target
            # The rise is nearly proportional to its prediction. A small surplus keeps it permitted.
            target *= (0.5 + 0.5 * CLOSE_ENOUGH) * self.tol / max(rise, 1e-3 * self.tol)
            if not low < target < high:
                target = np.sqrt(low * high) if low else 0.5 * high
        return best

    def _truncate(self, W: Any, value: float) -> LowRankMatrix:
        """Return the factors of the smallest rank that is found to be permitted."""
        dense = W.toarray() if sparse.issparse(W) else W
        n_features = self.X.shape[1]
        features = dense[:n_features]
        most = FIRST_RANK
        while True:
            factors = leading_singular(features, most)
            rank = len(factors[1])
            join = partial(_join_factors, *factors, dense[n_features:])
            is_permitted = self.value(join(rank)) <= (1 + self.tol) * value
            if is_permitted:
                break
            if rank < most or most * sum(features.shape) >= features.size:
                raise ValueError(
                    f"compress found no factors that are smaller than coef_ within tol={self.tol:g}: with {rank} columns, "
                    "the objective rises by more. Use form='sparse', or a larger tol."
                )
            most *= 2
        return join(_find_smallest(lambda rank: self.value(join(rank)) <= (1 + self.tol) * value, rank))


class RankedWeights:
    """Weights with a histogram of their importance. They are read in blocks of rows, and not copied.

    Parameters
    ----------
    W : array or CSR matrix (n_columns, n_labels)
        Weights. Those of the intercept may follow the weights of the features.
    scales : array (n_features,)
        Importance of a weight of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.estimators.compression import RankedWeights
    >>> ranked = RankedWeights(np.array([[1.0, 0.2], [0.1, 0.0]]), np.array([1.0, 8.0]))
    >>> (ranked.keep(0.5).toarray() > 0).tolist()
    [[True, False], [True, False]]
    >>> 0.2 < ranked.find_threshold(rise=0.03) < 0.8
    True
    """

    def __init__(self, W: Any, scales: FloatArray) -> None:
        self._weights = W
        # Intercepts are always kept.
        self._scales = np.append(scales, np.full(W.shape[0] - len(scales), np.inf))
        sums = np.zeros(2 * LARGEST_OCTAVE * BINS_PER_OCTAVE)
        for _, sizes in self._blocks():
            sizes = sizes[np.isfinite(sizes)]
            octaves = np.clip(np.log2(sizes), -LARGEST_OCTAVE, np.nextafter(LARGEST_OCTAVE, 0))
            bins = (BINS_PER_OCTAVE * (octaves + LARGEST_OCTAVE)).astype(np.int64)
            sums += np.bincount(bins, weights=sizes**2, minlength=len(sums))
        # Half of the squared importance of the weights up to each bin.
        self._rises = 0.5 * np.cumsum(sums)

    def find_threshold(self, rise: float) -> float:
        """Return the largest importance below which weights are predicted to raise the objective by at most `rise`."""
        n_removed = int(np.searchsorted(self._rises, rise, side="right"))
        if n_removed == 0 or self._rises[n_removed - 1] == 0:
            return 0.0
        return float(2.0 ** (n_removed / BINS_PER_OCTAVE - LARGEST_OCTAVE))

    def keep(self, threshold: float) -> Any:
        """Return the weights whose importance is at least a threshold, as a new CSR matrix in single precision."""
        blocks = []
        for block, sizes in self._blocks():
            is_kept = sizes >= threshold
            ends = np.append(0, np.cumsum(is_kept))[block.indptr]
            values = block.data[is_kept].astype(np.float32)
            blocks.append(sparse.csr_array((values, block.indices[is_kept], ends), shape=block.shape))
        return sparse.vstack(blocks, format="csr")

    def _blocks(self) -> Iterator[tuple[Any, FloatArray]]:
        """Yield blocks of rows as CSR matrices without zeros, with the importance of every stored weight."""
        W = self._weights
        step = max(1, block_size(W.shape[0] * W.shape[1]) // max(W.shape[1], 1))
        for start in range(0, W.shape[0], step):
            block = sparse.csr_array(W[start : start + step])
            block.eliminate_zeros()
            scales = np.repeat(self._scales[start : start + step], np.diff(block.indptr))
            yield block, np.abs(block.data) * scales


def _join_factors(
    P: FloatArray, sigma: FloatArray, Q: FloatArray, intercepts: FloatArray, rank: int
) -> LowRankMatrix:  # fmt: skip
    """Return the first `rank` singular vectors as factors in single precision; the intercepts are a further column."""
    roots = np.sqrt(sigma[:rank])
    left = P[:, :rank] * roots
    right = Q[:, :rank] * roots
    if len(intercepts):
        left = np.pad(left, ((0, 1), (0, 1)))
        left[-1, -1] = 1.0
        right = np.column_stack([right, intercepts[0]])
    return LowRankMatrix(left.astype(np.float32), right.astype(np.float32))


def _find_smallest(is_permitted: Callable[[int], bool], high: int) -> int:
    """Return the smallest number for which a monotone condition holds, by bisection; it holds for `high`."""
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if is_permitted(middle):
            high = middle
        else:
            low = middle
    return high
