"""The one sentence that every model here is: a loss of labels and scores, plus penalties on the weights, over a design.

The penalties are two, and part of the objective: a ridge and the nuclear norm. Solvers know both by what makes them easy,
the one's second derivatives and the other's singular values, so neither can be exchanged for another function.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.linalg import gram_eigh, gram_singular_values, threshold_singular_values
from rbrl._common.typing import Array, BoolArray, FloatArray
from rbrl.losses.base import Loss, Terms, Weights
from rbrl.problem.design import Design

# Number of entries in a block of scores or weights. At most 2 MB stay in the cache of the processor. At most a share of
# all entries makes everything that is computed from a block small beside the whole. Blocks below 128 kB waste time.
LARGEST_BLOCK = 2**18
SMALLEST_BLOCK = 2**14
LARGEST_SHARE = 1 / 64


def block_size(n_entries: int) -> int:
    """Return the number of entries of a block, for an array of so many entries that is computed in blocks.

    Parameters
    ----------
    n_entries : int

    Returns
    -------
    int

    Examples
    --------
    >>> block_size(100), block_size(10**6), block_size(10**9)
    (16384, 16384, 262144)
    """
    return min(max(int(LARGEST_SHARE * n_entries), SMALLEST_BLOCK), LARGEST_BLOCK)


@dataclass(frozen=True)
class Ridge:
    r"""Weighted squared Frobenius norm.

    .. math:: \tfrac{\lambda}{2} \sum_k r_k \|w_k\|^2, \qquad w_k \text{ the rows of } W

    Parameters
    ----------
    weight : float
        :math:`\lambda`.
    row_weights : float or array (n_rows, 1), default=1.0
        :math:`r`: ones in feature coordinates, the kernel's eigenvalues in its spectral coordinates.

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
        """The penalty of W.

        Parameters
        ----------
        W : array (n_columns, n_labels)

        Returns
        -------
        float
        """
        return 0.5 * self.weight * float(np.sum(self.row_weights * W**2))

    def gradient(self, W: FloatArray) -> FloatArray:
        """Its derivatives in the entries of W.

        Parameters
        ----------
        W : array (n_columns, n_labels)

        Returns
        -------
        array (n_columns, n_labels)
        """
        return self.weight * self.row_weights * W

    @property
    def curvature(self) -> float:
        """Largest second derivative."""
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
        """The penalty of W.

        Parameters
        ----------
        W : array (n_columns, n_labels)

        Returns
        -------
        float
        """
        return self.weight * float(np.linalg.svd(W, compute_uv=False).sum()) if self.weight and W.any() else 0.0

    def prox(self, W: FloatArray, step: float) -> FloatArray:
        """Minimiser of step * value(V) + ||V - W||^2 / 2: the singular values shrink by step * weight.

        Parameters
        ----------
        W : array (n_columns, n_labels)
        step : float

        Returns
        -------
        array (n_columns, n_labels)
        """
        return threshold_singular_values(W, step * self.weight)


class SmoothedNuclear:
    r"""Smoothed nuclear norm at weights W, given by the smaller of their Gram matrices.

    .. math:: \lambda \sum_j \sqrt{\sigma_j^2 + \varepsilon^2}, \qquad
              \text{gradient } W H, \quad H = \lambda V \operatorname{diag}((\sigma^2 + \varepsilon^2)^{-1/2}) V'

    with V from W'W. Where labels outnumber the columns of the design, the same gradient is H W, with V from WW': then H is
    the better model of how the norm curves, because weights of full row rank may turn to any labels.

    Parameters
    ----------
    gram : array
        W'W, or WW' where that is smaller.
    left : bool
        Whether it is WW'; H then stands on the left of the weights.
    weight : float
        :math:`\lambda`.
    width : float, default=None
        :math:`\varepsilon`; None leaves it to :meth:`smooth`.

    Attributes
    ----------
    exact, value : float
        The norm and its smoothed form, times the weight.
    sigma : array
        Singular values, ascending.
    hessian : array
        The reweighted ridge H that has the same gradient, as wide as the smaller Gram matrix.

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
        """Set eps; it is never below what squaring leaves of the singular values."""
        self.width = max(width, 1e-13 * self.sigma[-1] + 1e-150)
        root = np.sqrt(self._squares + self.width**2)
        self.value = self.weight * float(root.sum())
        self.hessian = (self.V * (self.weight / root)) @ self.V.T

    def reweigh(self, W: FloatArray) -> FloatArray:
        """W H, or H W if H stands on the left: the gradient at W."""
        return self.hessian @ W if self.left else W @ self.hessian


class EvaluatedRows(NamedTuple):
    """The loss of a block of rows.

    Attributes
    ----------
    rows : slice
    scores : array (n_rows, n_labels)
    weights : array (n_rows,) or (n_rows, n_labels), or None
        Weights of the rows or of their entries.
    loss : Terms
    gradient : array (n_rows, n_labels)
        Gradient of the loss in the scores.
    """

    rows: slice
    scores: FloatArray
    weights: Weights
    loss: Terms
    gradient: FloatArray


def sum_terms(losses: Sequence[Terms]) -> Terms:
    """Return the terms of a sum of losses, from the terms of each of them.

    Parameters
    ----------
    losses : sequence of Terms

    Returns
    -------
    Terms

    Examples
    --------
    >>> from rbrl.losses import Terms
    >>> sum_terms([Terms(1.0, 2.0, 3.0), Terms(1.0, 1.0, 1.0, reach=2.0)]) == (2.0, 3.0, 4.0, 2.0)
    True
    """
    if len(losses) == 1:
        return losses[0]
    value, linear, quadratic = np.sum([loss[:3] for loss in losses], axis=0).tolist()
    return Terms(value, linear, quadratic, min(loss.reach for loss in losses))


class Point(NamedTuple):
    """Weights with everything one evaluation of the objective there gives.

    Attributes
    ----------
    W : array (n_columns, n_labels)
    scores : array (n_samples, n_labels)
        Or what the design has for them, as has `residual`.
    loss : Terms
    residual : array (n_samples, n_labels)
        Gradient of the loss in the scores.
    value : float
        The objective.

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
    r"""loss(Y, Z W) + ridge(W) + nuclear(W).

    Parameters
    ----------
    design : Design
    Y : array (n_samples, n_labels) of int8
        Labels in {-1, 0, +1}; 0 is an entry that nobody looked at.
    loss : Loss
    ridge, nuclear : float
        :math:`\lambda_1` and :math:`\lambda_3`.
    sample_weight : array (n_samples,), of rows, or (n_samples, n_labels), of entries; or None

    Attributes
    ----------
    shape : tuple (n_columns, n_labels)
        Of the weights.
    known : bool array (n_labels,)
        Labels that somebody looked at in some row.
    reached : callable or None
        Told every gap that a solver certifies; True asks it to stop.
    lines_are_exact : bool
        Whether ``loss.line`` is known from all rows; a step found with an estimate has to be confirmed.

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

    reached: Callable[[float], bool] | None = None
    lines_are_exact: bool = True

    def __init__(
        self, design: Design, Y: Array, loss: Loss, ridge: float, nuclear: float, sample_weight: Weights = None
    ) -> None:
        if design.shape[0] != len(Y):
            raise ValueError(f"The design has {design.shape[0]} rows, but Y has {len(Y)}.")
        # Of rows that are elsewhere, what stands for labels, loss and scores has the same methods, not the same types.
        self.design: Any = design
        self.Y: Any = np.ascontiguousarray(Y, np.int8)
        self.loss: Any = loss
        self.sample_weight, self.shape = sample_weight, (design.shape[1], self.Y.shape[1])
        self.known: BoolArray = np.any(self.Y, axis=0)
        self.ridge = Ridge(float(ridge), design.ridge_weights)
        self.nuclear = NuclearNorm(float(nuclear))

    @property
    def evaluations(self) -> float:
        """Products so far, in pairs of full width: one with the design and one with its transpose."""
        return self.design.columns / (2 * self.Y.shape[1])

    def zeros(self) -> FloatArray:
        """The zero weights, where every method may start."""
        return np.zeros(self.shape)

    def zero_scores(self) -> Any:
        """The scores of the zero weights."""
        return np.zeros(self.Y.shape)

    def at(self, W: FloatArray, scores: Any = None) -> Point:
        """Evaluate at W; half an evaluation, none if the scores are known."""
        scores = self.design.scores(W) if scores is None else scores
        loss, residual = self.loss.evaluate(self.Y, scores, self.sample_weight)
        return Point(W, scores, loss, residual, loss.value + self.ridge.value(W) + self.nuclear.value(W))

    def evaluate_rows(self, scores_of: Callable[[slice], FloatArray]) -> Iterator[EvaluatedRows]:
        """Evaluate the loss of one block of rows after the other.

        A loss is a sum over rows. So no more than the scores and the gradients of a block are in memory.

        Parameters
        ----------
        scores_of : callable
            Called with a slice of rows; returns their scores.

        Yields
        ------
        EvaluatedRows
        """
        n_samples, n_labels = self.Y.shape
        step = max(1, block_size(n_samples * n_labels) // max(n_labels, 1))
        for start in range(0, max(n_samples, 1), step):
            rows = slice(start, start + step)
            weights = None if self.sample_weight is None else self.sample_weight[rows]
            scores = scores_of(rows)
            loss, gradient = self.loss.evaluate(self.Y[rows], scores, weights)
            yield EvaluatedRows(rows, scores, weights, loss, gradient)

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
        return sum_terms([block.loss for block in self.evaluate_rows(scores_of)])

    def value(self, W: FloatArray) -> float:
        """The objective at W.

        Parameters
        ----------
        W : array (n_columns, n_labels)

        Returns
        -------
        float
        """
        return self.at(W).value

    def value_at(self, W: FloatArray, scores: Any) -> float:
        """The objective where scores are known, to the eight digits that the Gram matrix of W leaves: for comparisons."""
        nuclear = self.nuclear.weight * float(gram_singular_values(W).sum()) if self.nuclear.weight else 0.0
        if self.lines_are_exact:
            loss = self.loss.evaluate(self.Y, scores, self.sample_weight)[0].value
        else:
            loss = self.loss.estimate(scores)
        return loss + self.ridge.value(W) + nuclear

    def idle_labels(self) -> BoolArray:
        """Labels that nobody looked at, and that no other label's scores pull at: their best weights are 0, (n_labels,)."""
        idle = ~self.known
        if idle.any():
            idle &= ~self.loss.label_hessian(self.Y, self.zero_scores(), self.sample_weight).any(axis=1)
        return idle

    def smooth_gradient(self, W: FloatArray, residual: Any) -> FloatArray:
        """Gradient of loss and ridge, from the loss gradient in the scores: half an evaluation."""
        return self.design.adjoint(residual) + self.ridge.gradient(W)
