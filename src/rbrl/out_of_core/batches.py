r"""Fit of a linear model to batches of rows that are seen only once.

A fit keeps a state, which is a dict of arrays and numbers, so that a model file can store it. An empty dict is
the state before the first batch. With few features, the state holds sums over all rows. With too many features
for a Gram matrix, every batch is a step:

The Hessian of the objective of all rows so far is nearly
:math:`P = c \otimes \bar H + \lambda_1 I + S`. This is the model of
:mod:`rbrl.solvers.preconditioner`, in coordinates rotated to the leading directions of the first
batch. A batch with gradient g changes the weights by :math:`-P^{-1} g`. P grows with the number of
rows. So the steps fall in proportion to one over this number, and there is no step length to
choose.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from rbrl._common.linalg import leading_eigenvectors, whiten
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix, issparse
from rbrl.losses import Loss, Terms
from rbrl.losses.weights import Weights, mean_weights
from rbrl.out_of_core.design import LARGEST_GRAM, BlockResidual, BlockScores, SummedDesign
from rbrl.out_of_core.objective import SummedObjective
from rbrl.problem.design import adjoint, last_row_times, scores
from rbrl.problem.linear import DIRECTIONS, Rotation, with_constant
from rbrl.problem.objective import SmoothedNuclear
from rbrl.scales import InterceptStrength, intercept_column
from rbrl.solvers.preconditioner import PencilSolver, model_start

# Largest number of rows in a batch. More rows are split into several batches.
BATCH_ROWS = 2000


class Sums(NamedTuple):
    """Sums over rows, for the loss and its gradient R at zero scores. Sums of two batches can be added.

    Attributes
    ----------
    n_samples : float
        Sum of the weights of the rows.
    gram : array (n_columns, n_columns)
        Weighted product X'X.
    adjoint : array (n_columns, n_labels)
        Product X'R.
    label_hessian : array (n_labels, n_labels)
        Sum of the generalised Hessians of the rows.
    value : float
        Value of the loss.
    """

    n_samples: float
    gram: FloatArray
    adjoint: FloatArray
    label_hessian: FloatArray
    value: float


def sum_rows(loss: Loss, X: Matrix, Y: IntArray, weights: FloatArray | None = None) -> Sums:
    """Return the sums of a batch of rows.

    Parameters
    ----------
    loss : Loss
    X : array or CSR matrix (n_rows, n_columns)
    Y : array (n_rows, n_labels)
        Labels in {-1, 0, +1}.
    weights : array (n_rows,) or (n_rows, n_labels), or None

    Examples
    --------
    >>> from rbrl.losses import SquaredHinge
    >>> sum_rows(SquaredHinge(), np.eye(2), np.array([[1], [-1]])).value
    1.0
    """
    zero = np.zeros(Y.shape)
    w = mean_weights(Y, weights)
    terms, R = loss.evaluate(Y, zero, weights)
    gram = X.T @ (sparse.diags_array(w) @ X if issparse(X) else w[:, None] * X)
    gram = gram.toarray() if issparse(gram) else gram
    return Sums(float(w.sum()), gram, np.asarray(X.T @ R), loss.label_hessian(Y, zero, weights), terms.value)


class LossAtZero:
    """Loss of earlier batches, known only at zero scores; Y and weights are ignored.

    Parameters
    ----------
    sums : Sums
    design : SummedDesign
    """

    def __init__(self, sums: Sums, design: SummedDesign) -> None:
        self._sums = sums
        self._design = design

    def evaluate(self, Y: Any, at: BlockScores, weights: None = None) -> tuple[Terms, BlockResidual]:
        """Return the terms and the residual at zero scores."""
        adjoint = self._design.to_weight_gradient(last_row_times(self._sums.adjoint, self._design.constant))
        return Terms(self._sums.value, 0.0, 0.0), BlockResidual(adjoint)

    def label_hessian(self, Y: Any, at: BlockScores, weights: None = None) -> FloatArray:
        """Return the sum of the generalised Hessians at zero scores, scaled to the number of rows of the design."""
        return self._sums.label_hessian * (len(at) / self._sums.n_samples)


@dataclass
class BatchSteps:
    """Weights that are updated by batches of rows, with the state that further updates need.

    Attributes
    ----------
    directions : array (n_columns, n_directions)
        Leading directions of the first batch.
    squares, spread : arrays (n_columns,), (n_directions,)
        Sums of squares of the columns, and of the rows along the directions.
    label_hessian : array (n_labels, n_labels)
        Mean of the Hessian of the loss over recent rows.
    weights, average : arrays (n_columns, n_labels)
        Weights after the last step, and the average of the weights after each step, in rotated
        coordinates. Later weights count more in the average, which is the model.
    last_step : array (n_columns, n_labels)
        Direction of the last step.
    expected : float
        Curvature along the last step according to P, for one row.
    excess : float
        Curvature along the steps in later batches, relative to the expected one. It makes the steps
        shorter.
    n_samples : float
        Sum of the weights of the rows.
    n_batches : int
        Number of batches so far.
    constant : float
        Value of the constant column, if there is an intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.out_of_core.batches import BatchSteps
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]], dtype=np.int8)
    >>> steps = BatchSteps.begin(X, n_labels=1, intercept=False)
    >>> steps.learn(X, Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> steps.n_samples, steps.coefficients().shape
    (2.0, (1, 1))
    """

    # Width of the smoothing of the nuclear norm, as a share of its largest singular value.
    SMOOTHING_SHARE: ClassVar[float] = 1e-3
    # Number of batches over which the excess is averaged.
    EXCESS_BATCHES: ClassVar[int] = 10
    # Power of the number of batches by which an average forgets early batches.
    DECAY: ClassVar[int] = 5
    # The curvature is estimated as if this number of average rows preceded the first one, because a
    # small batch does not determine it.
    PRIOR_ROWS: ClassVar[int] = 20
    # Smallest share of the curvature of a column that is left beside the leading directions.
    SMALLEST_REST: ClassVar[float] = 0.1

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
        """Return weights of zero with the leading directions of X. The rows of X are not learned from.

        Without an intercept, `constant` has no effect.
        """
        m = X.shape[1] + intercept
        k = min(DIRECTIONS, *X.shape)
        constant = constant if intercept else 1.0
        X = _with_column(X, m, constant)
        V = leading_eigenvectors(lambda V: adjoint(X, scores(X, V)), m, k)[0]
        zeros = np.zeros((m, n_labels))
        sums = np.zeros(m), np.zeros(k), np.zeros((n_labels, n_labels))
        return cls(V, *sums, weights=zeros, average=zeros, last_step=zeros, constant=constant)

    def coefficients(self) -> FloatArray:
        """Return the coefficients of the features, with the intercept in the last row: a new array."""
        return last_row_times(Rotation(self.directions) @ self.average, self.constant)

    def learn(
        self, X: Matrix, Y: Array, loss: Loss, ridge: float, nuclear: float, sample_weight: Weights = None
    ) -> None:
        """Update the weights by the step of one batch.

        X (n_rows, n_features) has no constant column. No row has weight 0. ridge and nuclear are
        penalties of the objective over all rows so far. Arrays are replaced and not changed, so
        that an earlier state stays valid.
        """
        turn = Rotation(self.directions)
        w = mean_weights(Y, sample_weight)
        X = _with_column(X, len(self.weights), self.constant)
        F = scores(X, turn @ self.weights)
        self._add_batch(X, Y, F, loss, w, sample_weight)
        share = w.sum() / self.n_samples
        # Matrix of the quadratic penalty (reweighted ridge) that replaces the nuclear norm in this step.
        S = np.zeros_like(self.label_hessian)
        if nuclear and self.weights.any():
            norm = SmoothedNuclear(self.weights.T @ self.weights, False, nuclear)
            norm.smooth(self.SMOOTHING_SHARE * norm.sigma[-1])
            S = norm.hessian
        G = turn.T @ adjoint(X, loss.evaluate(Y, F, sample_weight)[1])
        G = G + share * (ridge * self.weights + self.weights @ S)

        def curvature(D: FloatArray) -> float:
            """Return the curvature of the objective along D at the weights, by this batch, divided by the number of rows."""
            line = loss.line(Y, F, scores(X, turn @ D), np.zeros(Y.shape[1]), sample_weight)
            return (line.joint_curvature / share + ridge * np.vdot(D, D) + np.vdot(D, D @ S)) / self.n_samples

        if self.expected > 0:
            new = curvature(self.last_step) / self.expected
            self.excess += (max(new, 0.0) - self.excess) / min(self.n_batches, self.EXCESS_BATCHES)
        D = PencilSolver(self._curvature(turn), self.label_hessian, S, ridge)(G)
        self.last_step = D
        self.expected = float(np.vdot(G, D)) / self.n_samples
        length = 1.0 / max(self.excess, 1.0)
        if self.n_batches == 0 and self.expected > 0:
            length = min(1.0, self.expected / curvature(D))
        self.weights = self.weights - length * D
        self.average = self._update_average(self.average, self.weights)
        self.n_batches += 1

    def _update_average(self, average: FloatArray, new: FloatArray) -> FloatArray:
        """Return an average over batches after one more batch: a new array.

        It is called before `n_batches` counts this batch. Later batches count more.
        """
        return average + (new - average) * (1 + self.DECAY) / (self.n_batches + 1 + self.DECAY)

    def _add_batch(self, X: Matrix, Y: Array, F: FloatArray, loss: Loss, w: FloatArray, weights: Weights) -> None:
        """Add a batch to the sums and averages, with scores F at the weights before its step.

        X has the constant column. `w` (n_rows,) are mean weights of the rows, and `weights` those
        of the loss.
        """
        squared = X.power(2) if issparse(X) else X**2
        self.squares = self.squares + adjoint(squared, w[:, None])[:, 0]
        self.spread = self.spread + w @ scores(X, self.directions) ** 2
        self.n_samples += float(w.sum())
        self.label_hessian = self._update_average(self.label_hessian, loss.label_hessian(Y, F, weights) / w.sum())

    def _curvature(self, turn: Rotation) -> FloatArray:
        """Return the sums of squares along the rotated coordinates: (n_columns,), a new array.

        Outside the span of the directions, the Gram matrix is assumed to be diagonal.
        """
        rest = np.maximum(self.squares - self.directions**2 @ self.spread, self.SMALLEST_REST * self.squares)
        c = turn.diagonal_of(rest)
        c[: len(self.spread)] = self.spread
        return c * (1.0 + self.PRIOR_ROWS / self.n_samples)


def _with_column(X: Matrix, n_columns: int, constant: float) -> Matrix:
    """Return X, with a constant column if it has one column less than `n_columns`."""
    return with_constant(X, constant) if n_columns > X.shape[1] else X


def learn_batch(
    state: dict[str, Any], X: Matrix, Y: IntArray, weights: FloatArray | None, loss: Loss, ridge: float,
    nuclear: float, intercept: bool = True, intercept_ridge: InterceptStrength = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the state after a further batch of rows. The given state is not changed.

    With up to `LARGEST_GRAM` columns, the state holds sums over all rows. With more columns, every `BATCH_ROWS`
    rows are one step of a stochastic quasi-Newton method.

    Parameters
    ----------
    state : dict
        State before the batch.
    X : array or CSR matrix (n_rows, n_features), float64
    Y : array (n_rows, n_labels)
        Labels in {-1, 0, +1}.
    weights : array (n_rows,) or (n_rows, n_labels), or None
    loss : Loss
    ridge, nuclear : float
        Penalties of the objective over all rows seen so far.
    intercept : bool, default=True
        Whether a constant column is appended. Sums use a column of ones, which serves any penalty of the
        intercept. Steps use the value that follows from the ridge penalties of the first call.
    intercept_ridge : float, "ridge" or None, default=None
        Ridge penalty of the intercept; see :func:`fit_blocks`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.out_of_core.batches import learn_batch, streamed_coefficients
    >>> X, Y = np.array([[1.0], [-1.0]]), np.array([[1], [-1]], dtype=np.int8)
    >>> state = learn_batch({}, X, Y, None, SquaredHinge(), ridge=2.0, nuclear=0.0, intercept=False)
    >>> state = learn_batch(state, X, Y, None, SquaredHinge(), ridge=2.0, nuclear=0.0, intercept=False)
    >>> streamed_coefficients(state, 4, ridge=2.0, nuclear=0.0).round(3)
    array([[0.667]])
    """
    if not Y.any():
        return state
    if X.shape[1] + intercept <= LARGEST_GRAM:
        new = sum_rows(loss, with_constant(X) if intercept else X, Y, weights)
        return {name: value + state.get(name, 0.0) for name, value in new._asdict().items()}
    if weights is not None or not Y.any(axis=1).all():
        rows = np.flatnonzero(mean_weights(Y, weights))
        X = X[rows]
        Y = Y[rows]
        weights = None if weights is None else weights[rows]
    constant = intercept_column(ridge, intercept_ridge)
    steps = BatchSteps(**state) if state else BatchSteps.begin(X, Y.shape[1], intercept, constant)
    for start in range(0, len(Y), BATCH_ROWS):
        batch = slice(start, start + BATCH_ROWS)
        steps.learn(X[batch], Y[batch], loss, ridge, nuclear, None if weights is None else weights[batch])
    return vars(steps)


def streamed_coefficients(
    state: dict[str, Any], n_samples: int, ridge: float, nuclear: float, constant: float = 1.0
) -> FloatArray:
    """Return the coefficients of a state.

    If the state holds sums, the loss is replaced by its quadratic model at zero scores, and the result
    minimises this objective. If the state holds steps, the result is their average.

    Parameters
    ----------
    state : dict
        State that :func:`learn_batch` returned.
    n_samples : int
        Number of rows seen so far.
    ridge, nuclear : float
        Penalties of the objective.
    constant : float, default=1.0
        Value of the constant column. It is ignored if the state holds steps.

    Returns
    -------
    array (n_columns, n_labels)
        Coefficients, with those of the intercept in the last row.
    """
    # A label that is missing in all rows only has rounding errors.
    is_known = state["label_hessian"].any(axis=1)
    if "directions" in state:
        return BatchSteps(**state).coefficients() * is_known
    sums = Sums(**state)
    gram = last_row_times(last_row_times(sums.gram, constant).T, constant).copy()
    design = SummedDesign(n_samples, *whiten(gram), constant=constant)
    objective = SummedObjective(design, sums.adjoint.shape[1], LossAtZero(sums, design), ridge, nuclear)
    # No solver continues from this point, so that the nuclear norm is reweighted more often than at a start.
    return design.coefficients(model_start(objective, rounds=20, settled=2e-8)) * is_known
