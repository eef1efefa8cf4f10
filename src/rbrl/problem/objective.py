"""The objective of every convex model: a loss of labels and scores, plus penalties on the weights, over a design.

There are two penalties: a ridge and the nuclear norm. Solvers use the second derivatives of the
ridge and the singular values of the nuclear norm. So neither penalty can be replaced by another
function.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator

from rbrl._common.environment import block_size
from rbrl._common.linalg import gram_eigh, gram_singular_values, threshold_singular_values
from rbrl._common.matrices import PRODUCT_BLOCK, LowRankMatrix, SparseLabels, make_operator
from rbrl._common.typing import Array, BoolArray, FloatArray
from rbrl.losses.base import Loss, Terms, sum_terms
from rbrl.losses.weights import Weights
from rbrl.problem.design import Design


@dataclass(frozen=True)
class Ridge:
    r"""Weighted squared Frobenius norm.

    .. math:: \tfrac{\lambda}{2} \sum_k r_k \|w_k\|^2, \qquad w_k \text{ the rows of } W

    Parameters
    ----------
    weight : float
        :math:`\lambda`.
    row_weights : float or array (n_rows, 1), default=1.0
        :math:`r`. It is 1 in feature coordinates, and has the eigenvalues of the kernel in spectral
        coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import Ridge
    >>> Ridge(0.5).value(np.array([[3.0, 4.0]]))
    6.25
    """

    weight: float
    row_weights: float | FloatArray = 1.0

    def value(self, W: FloatArray) -> float:
        """Return the penalty at W (n_columns, n_labels)."""
        return 0.5 * self.weight * float(np.sum(self.row_weights * W**2))

    def gradient(self, W: FloatArray) -> FloatArray:
        """Return the gradient of the penalty at W: (n_columns, n_labels), a new array."""
        return self.weight * self.row_weights * W

    @property
    def curvature(self) -> float:
        """The largest second derivative."""
        return self.weight * float(np.max(self.row_weights, initial=0.0))


@dataclass(frozen=True)
class NuclearNorm:
    r"""Sum of singular values, :math:`\lambda \|W\|_*`.

    Parameters
    ----------
    weight : float
        :math:`\lambda`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem import NuclearNorm
    >>> NuclearNorm(1.0).value(np.diag([3.0, 4.0]))
    7.0
    >>> NuclearNorm(1.0).prox(np.diag([3.0, 4.0]), 3.5).round(9).tolist()
    [[0.0, 0.0], [0.0, 0.5]]
    """

    weight: float

    def value(self, W: FloatArray) -> float:
        """Return the penalty at W (n_columns, n_labels), by an exact decomposition."""
        return self.weight * float(np.linalg.svd(W, compute_uv=False).sum()) if self.weight and W.any() else 0.0

    def prox(self, W: FloatArray, step: float) -> FloatArray:
        """Return the minimiser of step * value(V) + ||V - W||^2 / 2 over V, as a new array.

        It has the singular values of W, shrunk by step * weight.
        """
        return threshold_singular_values(W, step * self.weight)


class SmoothedNuclear:
    r"""Smoothed nuclear norm at weights W, given by the smaller of their Gram matrices.

    .. math:: \lambda \sum_j \sqrt{\sigma_j^2 + \varepsilon^2}, \qquad
              \text{gradient } W H, \quad H = \lambda V \operatorname{diag}((\sigma^2 + \varepsilon^2)^{-1/2}) V'

    with V from W'W. If there are more labels than columns of the design, the same gradient is H W,
    with V from WW'. H is then the better model of the curvature of the norm, because the rows of W
    need not stay in the span of the present ones.

    Parameters
    ----------
    gram : array
        The smaller one of W'W and WW'.
    left : bool
        Whether `gram` is WW', so that H multiplies the weights from the left.
    weight : float
        :math:`\lambda`.
    width : float, default=None
        :math:`\varepsilon`. None means that :meth:`smooth` is called later.

    Attributes
    ----------
    exact, value : float
        Nuclear norm and smoothed nuclear norm, times the weight.
    sigma : array
        Singular values in ascending order.
    hessian : array
        Reweighted ridge H, which has the same gradient. Its shape is the shape of `gram`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl._common.linalg import small_gram
    >>> from rbrl.problem.objective import SmoothedNuclear
    >>> norm = SmoothedNuclear(*small_gram(np.diag([3.0, 0.0])), weight=1.0, width=4.0)
    >>> norm.exact, norm.value
    (3.0, 9.0)
    """

    def __init__(self, gram: FloatArray, left: bool, weight: float, width: float | None = None) -> None:
        self.gram = gram
        self.weight = weight
        self.left = left
        self._squares, self.V = gram_eigh(gram)
        self.sigma = np.sqrt(self._squares)
        self.exact = weight * float(self.sigma.sum())
        if width is not None:
            self.smooth(width)

    def smooth(self, width: float) -> None:
        """Set the width eps, and compute `value` and `hessian`. It may be called again.

        The width is at least 1e-13 times the largest singular value, so that H is finite.
        """
        # The second term is for weights of zero.
        self.width = max(width, 1e-13 * self.sigma[-1] + 1e-150)
        root = np.sqrt(self._squares + self.width**2)
        self.value = self.weight * float(root.sum())
        self.hessian = (self.V * (self.weight / root)) @ self.V.T

    def reweigh(self, W: FloatArray) -> FloatArray:
        """Return W H, or H W if H multiplies from the left, as a new array.

        At the weights themselves it is the gradient.
        """
        return self.hessian @ W if self.left else W @ self.hessian


class Point(NamedTuple):
    """Weights with the result of an evaluation of the objective at these weights.

    Attributes
    ----------
    W : array (n_columns, n_labels)
    scores : array (n_samples, n_labels)
        Scores of W. A design whose rows are not in memory has another type for `scores` and
        `residual`.
    loss : Terms
    residual : array (n_samples, n_labels)
        Gradient of the loss with respect to the scores.
    value : float
        Value of the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.5)
    >>> point = objective.at(np.array([[0.5]]))
    >>> point.value, point.scores.ravel().tolist(), point.loss.value
    (0.5, [0.5, -1.0], 0.125)
    """

    W: FloatArray
    scores: Any
    loss: Terms
    residual: Any
    value: float


class Objective:
    r"""The function loss(Y, Z W) + ridge(W) + nuclear(W) of the weights W.

    Parameters
    ----------
    design : Design
    Y : array (n_samples, n_labels) of int8, or SparseLabels
        Labels in {-1, 0, +1}; 0 is a missing label. Dual ascent and factors in blocks read sparse
        labels.
    loss : Loss
    ridge, nuclear : float
        Weights of the penalties, :math:`\lambda_1` and :math:`\lambda_3`.
    sample_weight : array (n_samples,) or (n_samples, n_labels), or None
        Weights of rows or of single labels.

    Attributes
    ----------
    shape : tuple (n_columns, n_labels)
        Shape of the weights.
    known : bool array (n_labels,)
        Labels that are not missing in every row.
    on_gap : callable or None
        Called with every certified gap; returns True to stop the solver.
    lines_are_exact : bool
        Whether ``loss.line`` uses all rows. If not, it is an estimate, and a solver must confirm a
        step that it suggests.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.5)
    >>> objective.value(np.array([[0.5]]))
    0.5
    """

    on_gap: Callable[[float], bool] | None = None
    lines_are_exact: bool = True

    def __init__(
        self, design: Design, Y: Array, loss: Loss, ridge: float, nuclear: float, sample_weight: Weights = None,
        on_gap: Callable[[float], bool] | None = None,
    ) -> None:  # fmt: skip
        if design.shape[0] != len(Y):
            raise ValueError(f"The design has {design.shape[0]} rows, but Y has {len(Y)}.")
        # For rows in files or on other machines, these objects have the same methods but other
        # types.
        self.design: Any = design
        self.Y: Any = Y if isinstance(Y, SparseLabels) else np.ascontiguousarray(Y, np.int8)
        self.loss: Any = loss
        self.sample_weight = sample_weight
        self.on_gap = on_gap
        self.shape = (design.shape[1], self.Y.shape[1])
        self.known: BoolArray = np.any(self.Y, axis=0)
        self.ridge = Ridge(float(ridge), design.ridge_weights)
        self.nuclear = NuclearNorm(float(nuclear))

    @property
    def evaluations(self) -> float:
        """Number of evaluations so far. One evaluation is a product with the design and one with its transpose."""
        return self.design.columns_multiplied / (2 * self.Y.shape[1])

    def zeros(self) -> FloatArray:
        """Return weights of zero: a new array (n_columns, n_labels)."""
        return np.zeros(self.shape)

    def zero_scores(self) -> Any:
        """Return the scores of weights of zero, in the form that `design.scores` returns."""
        return np.zeros(self.Y.shape)

    def at(self, W: FloatArray, scores: Any = None) -> Point:
        """Evaluate the objective at W. It costs half an evaluation, or nothing if the scores are given.

        The point keeps W and the given scores without a copy.
        """
        scores = self.design.scores(W) if scores is None else scores
        loss, residual = self.loss.evaluate(self.Y, scores, self.sample_weight)
        return Point(W, scores, loss, residual, loss.value + self.ridge.value(W) + self.nuclear.value(W))

    def evaluate_rows(
        self, scores_of: Callable[[slice], FloatArray] | LowRankMatrix
    ) -> Iterator[tuple[slice, FloatArray, Weights, Terms, FloatArray]]:
        """Evaluate the loss of one block of rows after the other.

        A loss is a sum over rows. So only the scores and the gradients of one block are in memory.

        Parameters
        ----------
        scores_of : callable or LowRankMatrix (n_samples, n_labels)
            Function that is called with a slice of rows and returns their scores; or the scores as factors.

        Yields
        ------
        rows : slice
        scores : array (n_rows, n_labels)
        weights : array (n_rows,) or (n_rows, n_labels), or None
            Weights of the rows or of their entries.
        loss : Terms
        gradient : array (n_rows, n_labels)
            Gradient of the loss with respect to the scores.
        """
        of_factors = isinstance(scores_of, LowRankMatrix)
        read_scores = scores_of.rows if isinstance(scores_of, LowRankMatrix) else scores_of
        for rows, Y, weights in self.row_blocks(of_factors):
            scores = read_scores(rows)
            loss, gradient = self.loss.evaluate(Y, scores, weights)
            yield rows, scores, weights, loss, gradient

    def row_blocks(self, of_factors: bool = False) -> Iterator[tuple[slice, Array, Weights]]:
        """Yield blocks of rows: their slice, their labels as a dense array, and their weights.

        The blocks are in the order of the rows. The last slice may end beyond the rows. Without rows,
        there is one empty block. Labels and weights may be views and must not be changed.

        Parameters
        ----------
        of_factors : bool, default=False
            Whether the scores of a block are a product of factors, for which larger blocks take less time.
        """
        n_samples, n_labels = self.Y.shape
        n_entries = PRODUCT_BLOCK if of_factors else block_size(n_samples * n_labels)
        step = max(1, n_entries // max(n_labels, 1))
        for start in range(0, max(n_samples, 1), step):
            rows = slice(start, start + step)
            yield rows, self.Y[rows], None if self.sample_weight is None else self.sample_weight[rows]

    def residual_operator(self, scores: LowRankMatrix) -> LinearOperator:
        """Return the gradient of the loss in scores that are factors, as an operator (n_samples, n_labels).

        Every product computes the scores once more, in blocks of rows.
        """

        def product(Q: FloatArray) -> FloatArray:
            out = np.empty((len(self.Y), Q.shape[1]))
            for rows, _, _, _, R in self.evaluate_rows(scores):
                out[rows] = R @ Q
            return out

        def transposed_product(S: FloatArray) -> FloatArray:
            out = np.zeros((self.Y.shape[1], S.shape[1]))
            for rows, _, _, _, R in self.evaluate_rows(scores):
                out += R.T @ S[rows]
            return out

        return make_operator(self.Y.shape, product, transposed_product)

    def sum_loss(self, scores_of: Callable[[slice], FloatArray]) -> Terms:
        """Return the terms of the loss at scores that are given one block of rows at a time.

        Parameters
        ----------
        scores_of : callable
            Called with a slice of rows; returns their scores.

        Returns
        -------
        Terms

        Examples
        --------
        >>> import numpy as np
        >>> from rbrl.losses import SquaredHinge
        >>> from rbrl.problem import MatrixDesign, Objective
        >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
        >>> objective = Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
        >>> objective.sum_loss(lambda rows: X[rows] * 0.5).value
        0.125
        """
        return sum_terms([self.loss.evaluate(Y, scores_of(rows), weights)[0] for rows, Y, weights in self.row_blocks()])

    def value(self, W: FloatArray) -> float:
        """Return the objective at W (n_columns, n_labels). It costs half an evaluation."""
        return self.at(W).value

    def value_at(self, W: FloatArray, scores: Any) -> float:
        """Return the objective at W, whose scores are given, for comparisons.

        The nuclear norm comes from a Gram matrix, so that the value has about eight correct digits.
        """
        nuclear = self.nuclear.weight * float(gram_singular_values(W).sum()) if self.nuclear.weight else 0.0
        if self.lines_are_exact:
            loss = self.loss.evaluate(self.Y, scores, self.sample_weight)[0].value
        else:
            loss = self.loss.estimate(scores)
        return loss + self.ridge.value(W) + nuclear

    def smooth_gradient(self, W: FloatArray, residual: Any) -> FloatArray:
        """Return the gradient of loss and ridge at W, from the residual there: a new array.

        It costs half an evaluation.
        """
        return self.design.adjoint(residual) + self.ridge.gradient(W)
