r"""A step for every batch, for rows that come once and have more features than a Gram matrix can be kept for.

The objective of the rows seen so far has, nearly, the Hessian :math:`P = c \otimes \bar H + \lambda_1 I + S`: the model of
:mod:`rbrl.solvers.preconditioner` in coordinates turned towards the leading directions of the first batch. A batch with
gradient g moves the weights by :math:`-P^{-1} g`: as P grows with the rows, steps fall as one over their number, and there
is none to choose.
"""

from dataclasses import dataclass

import numpy as np

from rbrl._common.linalg import leading_eigenvectors
from rbrl._common.typing import Array, FloatArray, Matrix, issparse
from rbrl.losses import Loss
from rbrl.losses.base import Weights, mean_weights
from rbrl.problem.design import adjoint, last_row_times, scores
from rbrl.problem.linear import DIRECTIONS, Rotation, with_constant
from rbrl.problem.objective import SmoothedNuclear
from rbrl.solvers.preconditioner import PencilSolver

# More rows than this are cut into several batches.
BATCH_ROWS = 2000
# The nuclear norm is smooth at this share of its largest singular value.
SMOOTH = 1e-3
# The excess is the mean over about this many batches.
REMEMBERED = 10
# Averages over batches forget early ones as this power of their number.
DECAY = 5
# The curvature is taken to be as if this many rows had come before the first: small batches alone know little.
PRIOR = 20
# What the leading directions leave of a column's curvature is kept above this share.
REST = 0.1


@dataclass
class BatchSteps:
    """Weights that learn from batches, and what they need to go on.

    Attributes
    ----------
    directions : array (n_columns, n_directions)
        Leading directions of the first batch.
    squares, spread : arrays (n_columns,), (n_directions,)
        Sums of squares of the columns, and of the rows along the directions.
    label_hessian : array (n_labels, n_labels)
        Mean over recent rows of the loss's Hessian.
    weights, average : arrays (n_columns, n_labels)
        In turned coordinates; the model is the average of the weights after each step, the later the heavier.
    last_step : array (n_columns, n_labels)
    expected : float
        The curvature along it that P promised, for one row.
    excess : float
        How much larger it is, as later batches show: steps are shorter by it.
    n_samples : float
        Sum of the weights of the rows.
    n_batches : int
    constant : float
        What the column of the intercept holds, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.solvers.minibatch import BatchSteps
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]], dtype=np.int8)
    >>> steps = BatchSteps.begin(X, n_labels=1, intercept=False)
    >>> steps.learn(X, Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> steps.n_samples, steps.coefficients().shape
    (2.0, (1, 1))
    """

    directions: FloatArray
    squares: FloatArray
    spread: FloatArray
    label_hessian: FloatArray
    weights: FloatArray
    average: FloatArray
    last_step: FloatArray
    expected: float = 0.0
    excess: float = 1.0
    n_samples: float = 0.0
    n_batches: int = 0
    constant: float = 1.0

    @classmethod
    def begin(cls, X: Matrix, n_labels: int, intercept: bool, constant: float = 1.0) -> "BatchSteps":
        """No rows yet; directions are those of X."""
        m, k, constant = X.shape[1] + intercept, min(DIRECTIONS, *X.shape), constant if intercept else 1.0
        X = _with_column(X, m, constant)
        V, zeros = leading_eigenvectors(lambda V: adjoint(X, scores(X, V)), m, k)[0], np.zeros((m, n_labels))
        known = V, np.zeros(m), np.zeros(k), np.zeros((n_labels, n_labels)), zeros, zeros, zeros
        return cls(*known, constant=constant)

    def coefficients(self) -> FloatArray:
        """Of the features, and of the intercept below them."""
        return last_row_times(Rotation(self.directions) @ self.average, self.constant)

    def learn(
        self, X: Matrix, Y: Array, loss: Loss, ridge: float, nuclear: float, sample_weight: Weights = None
    ) -> None:
        """Take the step of one batch."""
        turn, w = Rotation(self.directions), mean_weights(Y, sample_weight)
        X = _with_column(X, len(self.weights), self.constant)
        F = scores(X, turn @ self.weights)
        self._see(X, Y, F, loss, w, sample_weight)
        share = w.sum() / self.n_samples
        S = self._nuclear_hessian(nuclear)
        G = turn.T @ adjoint(X, loss.evaluate(Y, F, sample_weight)[1])
        G = G + share * (ridge * self.weights + self.weights @ S)

        def curvature(D: FloatArray) -> float:
            """Along D, as this batch has it, for one row."""
            line = loss.line(Y, F, scores(X, turn @ D), np.zeros(Y.shape[1]), sample_weight)
            return (line.joint_curvature / share + ridge * np.vdot(D, D) + np.vdot(D, D @ S)) / self.n_samples

        if self.expected > 0:
            new = curvature(self.last_step) / self.expected
            self.excess += (max(new, 0.0) - self.excess) / min(self.n_batches, REMEMBERED)
        D = PencilSolver(self._curvature(turn), self.label_hessian, S, ridge)(G)
        self.last_step, self.expected = D, float(np.vdot(G, D)) / self.n_samples
        length = 1.0 / max(self.excess, 1.0)
        if self.n_batches == 0 and self.expected > 0:
            length = min(1.0, self.expected / curvature(D))
        self.weights = self.weights - length * D
        self.average = self._recent(self.average, self.weights)
        self.n_batches += 1

    def _recent(self, average: FloatArray, new: FloatArray) -> FloatArray:
        """An average over batches, the later the heavier, after one more."""
        return average + (new - average) * (1 + DECAY) / (self.n_batches + 1 + DECAY)

    def _see(self, X: Matrix, Y: Array, F: FloatArray, loss: Loss, w: FloatArray, weights: Weights) -> None:
        """Take a batch into the sums and averages."""
        squared = X.power(2) if issparse(X) else X**2
        self.squares = self.squares + adjoint(squared, w[:, None])[:, 0]
        self.spread = self.spread + w @ scores(X, self.directions) ** 2
        self.n_samples += float(w.sum())
        self.label_hessian = self._recent(self.label_hessian, loss.label_hessian(Y, F, weights) / w.sum())

    def _curvature(self, turn: Rotation) -> FloatArray:
        """Sums of squares along the turned coordinates: what the directions leave is taken for diagonal."""
        rest = np.maximum(self.squares - self.directions**2 @ self.spread, REST * self.squares)
        c = turn.diagonal_of(rest)
        c[: len(self.spread)] = self.spread
        return c * (1.0 + PRIOR / self.n_samples)

    def _nuclear_hessian(self, nuclear: float) -> FloatArray:
        """The nuclear norm as a reweighted ridge."""
        if not nuclear or not self.weights.any():
            return np.zeros_like(self.label_hessian)
        norm = SmoothedNuclear(self.weights.T @ self.weights, False, nuclear)
        norm.smooth(SMOOTH * norm.sigma[-1])
        return norm.hessian


def _with_column(X: Matrix, n_columns: int, constant: float) -> Matrix:
    """X, with the column of the intercept where there is one."""
    return with_constant(X, constant) if n_columns > X.shape[1] else X
