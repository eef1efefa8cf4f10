"""Choose a solver, solve a problem, and certify the coefficients as they are stored.

The certificate is computed with the original X or K, not with the coordinates in which the solver
works.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rbrl._common.linalg import squares
from rbrl._common.matrices import LowRankMatrix
from rbrl._common.typing import FloatArray, issparse
from rbrl._loops import COMPILED
from rbrl.problem import LARGEST_DECOMPOSITION, Design, KernelDesign, MatrixDesign, Objective, SpectralDesign
from rbrl.solvers.base import Solver, SolverResult, Start
from rbrl.solvers.dual_ascent import DualAscent, explain_unsuitable
from rbrl.solvers.proof import Proof, prove_function, prove_kernel
from rbrl.solvers.proximal_points import choose_proximal_ridge
from rbrl.solvers.quasi_newton import QuasiNewton

# Smallest number of rows of a kernel matrix that is decomposed in single precision. For fewer rows
# it saves too little time.
SMALLEST_SINGLE_KERNEL = 200
# Smallest tol * ridge / trace(K) for which single precision is tried. The coefficients grow as 1 /
# ridge, and the rounding errors of the scores with the coefficients.
FINEST_SINGLE_TOL = 5e-9
# Share of the tolerance to which the problem in single precision is solved. The rest is left for
# its rounding errors.
SINGLE_TOL_SHARE = 0.9
# Largest gap that double precision may leave for a problem whose columns are scaled well.
DOUBLE_PRECISION_GAP = 1e-9
AT_LIMIT = "Double precision allows no smaller gap: raise tol."
SCALE = (
    "Columns of X, or values of the kernel, differ too much in size: scale X, for example with "
    "sklearn.preprocessing.StandardScaler."
)


@dataclass(frozen=True)
class SolverRule:
    r"""The rule that chooses between dual ascent and the quasi-Newton solver.

    It uses only what is known before the fit. Dual ascent is possible if

    - the design has rows that it can visit, and its loop is compiled;
    - the loss of a row consists of squared hinges and quadratic forms;
    - there is a ridge. With the ridge R of its proximal problems, momentum needs about
      :math:`\sqrt{R / \lambda_1}` of them.

    The quasi-Newton solver serves all other objectives. It also serves dense data with no more
    columns than rows and a weak ridge, because the eigenvectors of the columns then give a good
    model of the loss. A kernel matrix that is too large to be decomposed is always left to dual
    ascent. A wrong choice costs time, but the gap is certified in any case.

    `python -m studies.benchmarks.text` prints the times of dual ascent on text,
    `python -m studies.benchmarks.kernel_rows` the times with kernels, and
    `python -m studies.benchmarks.solver` the times on problems of all kinds.

    Parameters
    ----------
    passes_per_problem : float, default=8
        Expected number of passes over the rows for each proximal problem.
    quasi_newton_evaluations : float, default=30
        Expected number of evaluations of the quasi-Newton solver on dense data with few columns.
    give_up : float, default=0.25
        Share of `max_iter` after which dual ascent gives up if it expects not to reach the
        tolerance. The quasi-Newton solver then continues.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign, Objective
    >>> from rbrl.solvers.solve import SolverRule
    >>> X, Y = np.array([[1.0], [-2.0]]), np.array([[1], [-1]])
    >>> SolverRule().choose(Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=0.0, nuclear=0.0))
    QuasiNewton(memory=20)
    """

    passes_per_problem: float = 8.0
    quasi_newton_evaluations: float = 30.0
    give_up: float = 0.25

    def choose(self, objective: Objective, max_iter: int = 1000) -> Solver:
        """Return the solver that is faster on problems of this kind.

        Parameters
        ----------
        objective : Objective
            Objective over the original rows, with a design of
            :class:`rbrl.problem.MatrixDesign` or :class:`rbrl.problem.KernelDesign`.
        max_iter : int, default=1000
            Largest number of iterations.
        """
        design = objective.design
        n_samples, n_columns = design.shape
        if explain_unsuitable(objective):
            return QuasiNewton()
        if isinstance(design, KernelDesign) and n_samples > LARGEST_DECOMPOSITION:
            return DualAscent()
        ascent = DualAscent(give_up=self.give_up)
        n_problems = np.sqrt(choose_proximal_ridge(objective, ascent.proximal_share) / objective.ridge.weight)
        evaluations = np.inf
        if isinstance(design, MatrixDesign) and not issparse(design.X) and n_columns <= n_samples:
            # A decomposition takes n m^2 operations, and an evaluation 4 n m l.
            evaluations = self.quasi_newton_evaluations + n_columns / (4 * objective.Y.shape[1])
        is_hopeless = ascent.passes * n_problems > max_iter
        if not COMPILED or is_hopeless or self.passes_per_problem * n_problems > evaluations:
            return QuasiNewton()
        return ascent


@dataclass
class Solution:
    """Coefficients as they are stored, with their proof and the result of the solver.

    Attributes
    ----------
    coefficients : array or LowRankMatrix (n_features, n_labels), or array (n_samples, n_labels) for a kernel model
    proof : Proof
        Objective and gap of the coefficients.
    result : SolverResult
        Result of the solver. Its messages do not take the proof into account.
    messages : tuple of str
        Reasons why the gap of the proof is above the tolerance, with the remedy. It is empty if the
        gap is small enough, or if the solver has a stopping rule of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective
    >>> from rbrl.solvers import QuasiNewton, solve_kernel
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> solution = solve_kernel(QuasiNewton(), K, "coefficients", 1.0, lambda design: Objective(
    ...     design, Y, SquaredHinge(), ridge=1.0, nuclear=0.0), np.dtype(np.float64))
    >>> solution.proof.objective > 0, solution.result.converged, solution.messages
    (True, True, ())
    """

    coefficients: Any
    proof: Proof
    result: SolverResult
    messages: tuple[str, ...] = ()

    def after(self, first: "Solution") -> "Solution":
        """Return this solution with the iterations of the solution from which it started.

        The coefficients, proof and messages do not change.
        """
        return replace(self, result=_join_results(first.result, self.result))

    @classmethod
    def of_groups(cls, coefficients: FloatArray, parts: "Sequence[Solution]") -> "Solution":
        """Return the solution for all labels from the solutions for groups of independent labels.

        Parameters
        ----------
        coefficients : array (n_features, n_labels)
            Coefficients of all labels.
        parts : sequence of Solution
            Solutions of the groups. Their numbers of evaluations are shares of the evaluations of
            all labels.

        Returns
        -------
        Solution
            Its gap is at most the largest gap of a group.
        """
        results = [part.result for part in parts]
        proof = Proof.of_sum([part.proof for part in parts])
        n_iter = max(result.n_iter for result in results)
        # A group that has ended keeps its last objective.
        histories = [np.pad(result.history, (0, n_iter - len(result.history)), "edge") for result in results]
        result = SolverResult(
            weights=None, objective=proof.objective, gap=proof.gap, n_iter=n_iter, history=np.sum(histories, axis=0),
            evaluations=sum(result.evaluations for result in results),
            converged=all(result.converged for result in results),
        )  # fmt: skip
        return cls(coefficients, proof, result, tuple(dict.fromkeys(text for part in parts for text in part.messages)))


@dataclass(frozen=True)
class Certifier:
    """Certifies the result of a solver for the coefficients as they are stored.

    Parameters
    ----------
    prove : callable
        Function of the stored coefficients, which may be in single precision, and of the scores at
        which the solver found its best bound. It computes in double precision, and returns a
        :class:`~rbrl.solvers.proof.Proof`. Both are factors if the solver returns factors.
    dtype : dtype
        Type of the stored coefficients.
    evaluations : float, default=1.0
        Number of evaluations that a proof costs.
    has_intercept : bool, default=False
        Whether the last coefficients are the intercepts, which are stored as numbers beside the factors.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective, SpectralDesign
    >>> from rbrl.solvers import Certifier, QuasiNewton
    >>> from rbrl.solvers.proof import prove_kernel
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(SpectralDesign(K.copy()), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> certifier = Certifier(partial(prove_kernel, objective, K), np.dtype(np.float64))
    >>> solution = certifier.certify(objective, QuasiNewton().solve(objective))
    >>> solution.coefficients.shape, solution.proof.gap <= 1e-4
    ((2, 1), True)
    """

    prove: Callable[[Any, Any], Proof]
    dtype: np.dtype[Any]
    evaluations: float = 1.0
    has_intercept: bool = False

    def certify(self, objective: Objective, result: SolverResult) -> Solution:
        """Return the coefficients of a solver's result, with their proof.

        Parameters
        ----------
        objective : Objective
        result : SolverResult
            It is changed: its weights become None if they can be computed from the coefficients.
        """
        design = objective.design
        if isinstance(result.weights, LowRankMatrix):
            return self._certify_factors(objective, result)
        coefficients = design.coefficients(result.weights, self.dtype)
        idle = ~objective.known
        if idle.any():
            # A label that is missing in every row, and not coupled to another label, has an optimum
            # of 0. Rounding errors in its weights have a sign, which would count as a prediction.
            hessian = objective.loss.label_hessian(objective.Y, objective.zero_scores(), objective.sample_weight)
            coefficients[:, idle & ~hessian.any(axis=1)] = 0.0
        duals = result.scores if result.dual_scores is None else result.dual_scores
        duals = design.scores(result.weights) if duals is None else duals
        if isinstance(design, MatrixDesign) and design.turn is None:
            # The weights can be computed from the coefficients. They are the largest arrays of a fit,
            # and the proof needs memory.
            result.weights = None
        proof = self.prove(coefficients, duals)
        return Solution(coefficients, proof, replace(result, evaluations=result.evaluations + self.evaluations))

    def _certify_factors(self, objective: Objective, result: SolverResult) -> Solution:
        """Return the coefficients of a result in factors, with their proof."""
        left = objective.design.coefficients(result.weights.left, self.dtype)
        right = result.weights.right.astype(self.dtype)
        if not objective.known.all():
            # A row of the Hessian without a diagonal entry is 0. Such a label has an optimum of 0.
            diagonal = np.zeros(len(right))
            for _, Y, weights in objective.row_blocks(of_factors=True):
                diagonal += objective.loss.hessian_diagonal(Y, np.zeros(Y.shape), weights).sum(axis=0)
            right[~objective.known & (diagonal == 0)] = 0.0
        if self.has_intercept:
            # The intercepts are rounded when they are stored. So they are a factor of their own.
            right = np.column_stack([right, left[-1] @ right.T])
            left = np.pad(left, ((0, 0), (0, 1)))
            left[-1] = 0.0
            left[-1, -1] = 1.0
        coefficients = LowRankMatrix(left, right)
        proof = self.prove(coefficients, result.scores)
        # The scores of the rows are as large as the coefficients, and can be computed from them.
        result = replace(result, weights=None, scores=None, evaluations=result.evaluations + self.evaluations)
        return Solution(coefficients, proof, result)


def to_weights(design: Design, coefficients: Any) -> Any:
    """Return the weights of coefficients in the coordinates of a design, as an array or as factors."""
    if isinstance(coefficients, LowRankMatrix):
        return LowRankMatrix(design.weights(coefficients.left), coefficients.right)
    return design.weights(coefficients)


def solve_and_certify(
    solver: Solver, objective: Objective, certifier: Certifier, start: Start = None, tol: float = 1e-4,
    max_iter: int = 1000,
) -> Solution:  # fmt: skip
    """Solve a problem and certify the coefficients.

    If the proof is above the tolerance because of rounding, the solver continues with a smaller
    tolerance.

    Parameters
    ----------
    solver : Solver
    objective : Objective
    certifier : Certifier
    start : array (n_columns, n_labels), default=None
        First weights, in the coordinates of the objective's design.
    tol : float, default=1e-4
        Largest certified relative gap at which the solver stops.
    max_iter : int, default=1000
        Largest number of iterations.

    Returns
    -------
    Solution
        Its messages say why the gap is above `tol`. The caller decides whether to warn.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective, SpectralDesign
    >>> from rbrl.solvers import Certifier, QuasiNewton, solve_and_certify
    >>> from rbrl.solvers.proof import prove_kernel
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> objective = Objective(SpectralDesign(K.copy()), Y, SquaredHinge(), ridge=1.0, nuclear=0.0)
    >>> certifier = Certifier(partial(prove_kernel, objective, K), np.dtype(np.float64))
    >>> solve_and_certify(QuasiNewton(), objective, certifier).proof.gap <= 1e-4
    True
    """
    solution = certifier.certify(objective, solver.solve(objective, start=start, tol=tol, max_iter=max_iter))
    result = solution.result
    # The rounding errors of the next solution may be half as large again.
    left = tol - 1.5 * (solution.proof.gap - result.gap)
    if result.gap <= tol < solution.proof.gap and left > 0 and result.n_iter < max_iter:
        again = to_weights(objective.design, solution.coefficients) if result.weights is None else result.weights
        more = solver.solve(objective, start=again, tol=left, max_iter=max_iter - result.n_iter)
        solution = certifier.certify(objective, _join_results(result, more))
    gap = solution.proof.gap
    result = solution.result
    stopped_by_own_rule = result.converged and result.gap > tol
    if gap <= tol or stopped_by_own_rule:
        return solution
    if gap <= 2 * result.gap and result.messages:
        return replace(solution, messages=result.messages)
    certified = f"Its certified relative gap is {gap:.1e}" if np.isfinite(gap) else "It has no certified relative gap"
    remedy = AT_LIMIT if gap < DOUBLE_PRECISION_GAP else SCALE
    message = f"The solution could not be certified to tol={tol:g} in double precision. {certified}. {remedy}"
    return replace(solution, messages=(message,))


def solve_kernel(
    solver: Solver, K: FloatArray, low_rank: str, ridge: float, objective_of: Callable[[SpectralDesign], Objective],
    dtype: np.dtype[Any], start: Start = None, tol: float = 1e-4, max_iter: int = 1000,
) -> Solution:  # fmt: skip
    """Decompose a kernel matrix, solve the problem, and certify the coefficients.

    The decomposition is first computed in single precision, which takes half the time. If the
    certificate shows that this is not exact enough, it is computed in double precision.

    Parameters
    ----------
    solver : Solver
    K : array (n_samples, n_samples)
        Kernel matrix. It is not changed.
    low_rank : {"coefficients", "function"}
        Matrix that the nuclear norm applies to.
    ridge : float
        Weight of the ridge.
    objective_of : callable
        Function from a design to its objective, with this ridge.
    dtype : dtype
        Type of the stored coefficients.
    start : array (n_samples, n_labels), default=None
        First coefficients.
    tol : float, default=1e-4
        Largest certified relative gap at which the solver stops.
    max_iter : int, default=1000
        Largest number of iterations.

    Returns
    -------
    Solution
        Solution whose result has weights in the coordinates of a design that is not kept.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import Objective
    >>> from rbrl.solvers import QuasiNewton, solve_kernel
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1], [-1]])
    >>> solution = solve_kernel(QuasiNewton(), K, "coefficients", 1.0, lambda design: Objective(
    ...     design, Y, SquaredHinge(), ridge=1.0, nuclear=0.0), np.dtype(np.float64))
    >>> solution.coefficients.shape, solution.proof.gap <= 1e-4
    ((2, 1), True)
    """

    def prepare(K_of_design: FloatArray) -> tuple[Objective, Certifier, Start]:
        """Return the objective over the decomposition of a matrix, its certifier by K itself, and the first weights."""
        objective = objective_of(SpectralDesign(K_of_design, low_rank))
        weights = None if start is None else objective.design.weights(start.astype(np.float64, copy=False))
        if low_rank == "function":
            prove = partial(prove_function, objective, K.dot, np.sqrt(squares(K)), K=K)
            return objective, Certifier(prove, dtype), weights
        # With a nuclear norm, the proof multiplies K by three matrices instead of two.
        evaluations = 1.5 if objective.nuclear.weight else 1.0
        return objective, Certifier(partial(prove_kernel, objective, K), dtype, evaluations), weights

    first = None
    may_be_single = len(K) >= SMALLEST_SINGLE_KERNEL and tol * ridge >= FINEST_SINGLE_TOL * np.trace(K)
    if may_be_single and low_rank == "coefficients" and isinstance(solver, QuasiNewton):
        objective, certifier, weights = prepare(K.astype(np.float32))
        result = solver.solve(objective, start=weights, tol=SINGLE_TOL_SHARE * tol, max_iter=max_iter)
        first = certifier.certify(objective, result)
        if first.proof.gap <= tol:
            return first
        start = first.coefficients
        max_iter = max(max_iter - first.result.n_iter, 1)
    solution = solve_and_certify(solver, *prepare(K.copy()), tol, max_iter)
    return solution if first is None else solution.after(first)


def _join_results(first: SolverResult, second: SolverResult) -> SolverResult:
    """Return one result of two runs, of which the second one started where the first one ended.

    Weights, gap and messages are those of the second run. Evaluations, iterations and histories are
    those of both.
    """
    return replace(
        second,
        history=np.concatenate([first.history, second.history]),
        costs=np.concatenate([first.costs, first.evaluations + second.costs]),
        evaluations=first.evaluations + second.evaluations,
        n_iter=first.n_iter + second.n_iter,
    )
