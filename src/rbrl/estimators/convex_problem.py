"""The problem that a convex classifier solves over given rows, whatever the form of the model."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from rbrl._common.linalg import squares
from rbrl._common.typing import FloatArray, IntArray, Matrix
from rbrl.estimators.forms import (
    ModelForm,
    is_precomputed,
)
from rbrl.estimators.training_scores import (
    LabelledRows,
    count_effective_parameters,
)
from rbrl.kernels import WITH_WIDTH
from rbrl.losses import Loss
from rbrl.losses.label_graph import label_counts
from rbrl.problem import Design, Objective
from rbrl.problem.design import AscentDesign
from rbrl.problem.memory import (
    FitSize,
    MemoryNeeds,
    check_memory,
)
from rbrl.scales import RIDGE_OF_KERNELS, ColumnScales, Strength, kernel_width
from rbrl.solvers import (
    SOLVERS,
    Certifier,
    DualAscent,
    LowRank,
    QuasiNewton,
    Solution,
    Solver,
    solve_and_certify,
)
from rbrl.solvers.solve import SolverRule

if TYPE_CHECKING:
    from rbrl.estimators.convex import ObjectiveClassifier


class ConvexProblem(ABC):
    """The objective of a classifier over given rows: a loss of labels and scores, plus penalties, over a design.

    :meth:`ObjectiveClassifier.problem` makes one. Nothing is computed before it is needed. The objectives of all
    parameters that do not change the design share it: such as the weights of losses and of the nuclear norm. The ridge
    changes the design where the intercept has a ridge of its own.

    Parameters
    ----------
    model : ObjectiveClassifier
        Classifier whose parameters are those of the problem.
    X : array or CSR matrix (n_samples, n_features)
        Checked rows.
    Y : array (n_samples, n_labels) of int8
        Labels in {-1, 0, +1}; 0 is a missing label.
    weights : array (n_samples,), of rows, or (n_samples, n_labels), of entries; or None
        Weights in the loss. A row of weight 0, or whose labels are all missing, is ignored.
    counted : array (n_samples,) or None
        Effective number of rows that each row stands for, in the scales of the data; None means 1.
    n_problems : int, default=1
        Number of objectives that will be minimised over the design. A larger number pays for better coordinates.

    Attributes
    ----------
    rows : array of int
        Indices of the rows that are not ignored. `Y`, `weights` and `counted` belong to them.
    present : array or CSR matrix
        Rows of X that are not ignored; all of a kernel matrix.
    form : ModelForm
        Form of the fitted model.
    on_gap : callable or None
        Function that is called with every certified gap; it returns True to stop.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> problem = RBRLClassifier(ridge=10).problem(X, Y)
    >>> solution = problem.solve()
    >>> solution.coefficients.shape, solution.proof.gap <= 1e-4
    ((9, 4), True)
    >>> W = problem.design.weights(solution.coefficients)
    >>> problem.objective(ridge=20).value(W) > problem.objective().value(W)
    True
    """

    form: ModelForm
    on_gap: Callable[[float], bool] | None = None

    def __init__(
        self,
        model: "ObjectiveClassifier",
        X: Matrix,
        Y: IntArray,
        weights: FloatArray | None = None,
        counted: FloatArray | None = None,
        n_problems: int = 1,
    ) -> None:
        self.model = model
        self.X = X
        self.n_problems = n_problems
        self._last_design: Design | None = None
        self.rows, self.weights = observed_rows(weights, len(Y), Y)
        has_all_rows = len(self.rows) == X.shape[0]
        self.Y = Y if has_all_rows else Y[self.rows]
        self.counted = None if counted is None else counted[self.rows]
        self.present = X if has_all_rows or is_precomputed(model) else X[self.rows]

    @cached_property
    def gamma(self) -> float | None:
        """The width of the kernel as a number; None for kernels without one."""
        return kernel_width(self.model.gamma, self.present, self.counted) if self.model.kernel in WITH_WIDTH else None

    @cached_property
    def scales(self) -> ColumnScales:
        """The spread of the features, in the rows that are not ignored."""
        return ColumnScales.from_rows(self.present, self.counted)

    @property
    def ridge(self) -> float:
        """The ridge of the model as a number."""
        return self._ridge(self.model.ridge)

    def _ridge(self, ridge: Strength) -> float:
        return self._automatic_ridge() if isinstance(ridge, str) else float(ridge)

    def _automatic_ridge(self) -> float:
        """Return the ridge that "auto" stands for."""
        return RIDGE_OF_KERNELS

    def _constant(self, model: "ObjectiveClassifier") -> float:
        """Return the value in the column of the intercept."""
        return 1.0

    @property
    def size(self) -> FitSize:
        """The sizes of the data."""
        return FitSize(self.X.shape[0], self.X.shape[1], self.Y.shape[1])

    @abstractmethod
    def estimate_memory(self) -> MemoryNeeds:
        """Estimate the memory that :meth:`solve` needs."""

    @property
    @abstractmethod
    def memory_remedy(self) -> str:
        """A change of the model that needs less memory."""

    @abstractmethod
    def _make_design(self, constant: float) -> Design:
        """Return the design in coordinates that suit a quasi-Newton solver."""

    @abstractmethod
    def _make_row_design(self) -> AscentDesign:
        """Return the design over the rows as they are, for a solver that visits them."""

    @abstractmethod
    def _certifier(self, objective: Objective) -> Certifier:
        """Return the proof of a solution, for an objective over these rows."""

    @abstractmethod
    def _basis(self, X: Matrix, constant: float) -> Any:
        """Return the matrix whose product with the model's own coefficients has the scores of other rows."""

    @abstractmethod
    def store(self, coefficients: FloatArray) -> None:
        """Store the coefficients of a solution in the model.

        Parameters
        ----------
        coefficients : array
        """

    @property
    def design(self) -> Design:
        """The linear map from weights to scores of the rows."""
        return self.design_of()

    def design_of(self, **parameters: Any) -> Design:
        """Return the design of the model with other parameters; the last design if it is the same.

        Parameters
        ----------
        **parameters
            Parameters of the model that replace its own, such as ``ridge``.

        Returns
        -------
        Design
        """
        constant = self._constant(self._with(parameters))
        if self._last_design is None or self._last_design.constant != constant:
            # Two decompositions at a time may need too much memory.
            self._last_design = None
            self._last_design = self._make_design(constant)
        return self._last_design

    def _with(self, parameters: dict[str, Any]) -> "ObjectiveClassifier":
        return clone(self.model).set_params(**parameters) if parameters else self.model

    def objective(self, design: Design | None = None, **parameters: Any) -> Objective:
        """Return the objective, over the problem's design or another design of the same rows.

        Parameters
        ----------
        design : Design, default=None
            None means :meth:`design_of` these parameters.
        **parameters
            Parameters of the model that replace its own, such as ``ridge``, ``ranking`` and ``nuclear``.

        Returns
        -------
        Objective
        """
        model = self._with(parameters)
        loss = model.loss(lambda: label_counts(self.Y, self.weights))
        design = self.design_of(**parameters) if design is None else design
        if design.constant != self._constant(model):
            raise ValueError(
                f"The design has an intercept's column of {design.constant:g}, ridge={model.ridge} and "
                f"intercept_ridge={model.intercept_ridge} need {self._constant(model):g}; take that of design_of."
            )
        objective = Objective(design, self.Y, loss, self._ridge(model.ridge), model.nuclear_, self.weights)
        objective.on_gap = self.on_gap
        return objective

    def score_matrix(self, X: Matrix, design: Design | None = None) -> FloatArray:
        """Return the matrix whose product with weights over a design has the scores of other rows.

        Parameters
        ----------
        X : array or CSR matrix (n_rows, n_features)
            Rows as for `predict`.
        design : Design, default=None
            Design of this problem; None means :attr:`design`.

        Returns
        -------
        array or CSR matrix (n_rows, n_columns)
        """
        design = self.design if design is None else design
        return design.transform(self._basis(X, design.constant))

    @property
    def has_row_design(self) -> bool:
        """True if a solver can visit the rows: the nuclear norm is that of the weights or of the function."""
        return self.model.low_rank == "function" or self.model.nuclear_ == 0

    @cached_property
    def solver(self) -> Solver:
        """The solver that the model names, or the faster one where it leaves the choice open."""
        model = self.model
        if model.solver != "auto" or model.max_rank is not None or not self.has_row_design:
            return solver_of(model)
        return SolverRule().choose(self._row_objective, model.max_iter)

    @cached_property
    def _row_objective(self) -> Objective:
        """The objective over the rows as they are."""
        return self.objective(self._make_row_design())

    def fit(self) -> Solution:
        """Solve the problem, if there is enough memory, and store the coefficients in the model.

        The solution starts from the last one if the model has ``warm_start=True``.
        """
        model = self.model
        with check_memory(self.estimate_memory(), self.size, type(model).__name__, self.memory_remedy):
            solution = self.solve(self._last_coefficients(), model._dual_scores) if model.warm_start else self.solve()
        self.store(solution.coefficients)
        return solution

    def training_rows(self) -> LabelledRows:
        """Return the rows that are not ignored, with their labels."""
        X = self.X[self.rows] if is_precomputed(self.model) else self.present
        return LabelledRows(X, self.Y, self.weights, self.counted)

    def loss(self) -> Loss:
        """Return the loss of the model."""
        return self.model.loss(lambda: label_counts(self.Y, self.weights))

    def count_parameters(self, design: Design | None = None, ridge: float | None = None) -> float:
        """Compute, or estimate, the effective number of parameters.

        Parameters
        ----------
        design : Design, default=None
            Design of a solution; None means the problem's own.
        ridge : float, default=None
            Ridge of a solution; None means that of the problem.

        Returns
        -------
        float
        """
        ridge = self.ridge if ridge is None else ridge
        design = self.design if design is None else design
        # Rows of weight 2 are worth as much as half the ridge.
        ridge *= len(self.rows) / self._n_counted
        row_squares = None if design.whitened else squares(self.present.astype(np.float64, copy=False), axis=1)
        return count_effective_parameters(design, ridge, row_squares)

    @property
    def _n_counted(self) -> float:
        """The effective number of rows."""
        return float(len(self.rows)) if self.counted is None else float(self.counted.sum())

    def _last_coefficients(self) -> FloatArray | None:
        """Return the coefficients of the model's last fit, if they fit this problem."""
        found = self.form.coefficients(self.model, self.rows)
        shape = self._n_coefficients, self.Y.shape[1]
        return None if found is None or found.shape != shape else found

    @property
    def _n_coefficients(self) -> int:
        """The number of coefficients of a label."""
        return len(self.rows)

    def solve(self, start: FloatArray | None = None, dual_scores: FloatArray | None = None) -> Solution:
        """Solve to the model's tolerance, with a proof.

        Parameters
        ----------
        start : array, default=None
            First coefficients, in the form in which the model stores them: of the features (n_columns, n_labels), with
            those of the intercept last, or of the rows that are not ignored (n_rows, n_labels).
        dual_scores : array (n_rows, n_labels), default=None
            Scores at which an earlier result found its lower bound, for dual ascent to start from.

        Returns
        -------
        Solution
        """
        model, solver = self.model, self.solver
        if not (isinstance(solver, DualAscent) and self.has_row_design):
            return self._solve_over_design(solver, start, model.max_iter)
        objective = self._row_objective
        weights = None if start is None else objective.design.weights(start)
        solver = replace(solver, dual_scores=dual_scores)
        solution = solve_and_certify(solver, objective, self._certifier(objective), weights, model.tol, model.max_iter)
        if not solution.result.gave_up:
            return solution
        # Both designs at a time may need too much memory.
        del objective, self._row_objective
        left = model.max_iter - solution.result.n_iter
        more = self._solve_over_design(QuasiNewton(), solution.coefficients.astype(np.float64), left)
        return more.after(solution)

    def _solve_over_design(self, solver: Solver, start: FloatArray | None, max_iter: int) -> Solution:
        """Solve over the problem's own design."""
        objective = self.objective()
        weights = None if start is None else objective.design.weights(start)
        return solve_and_certify(solver, objective, self._certifier(objective), weights, self.model.tol, max_iter)


def solver_of(model: "ObjectiveClassifier") -> Solver:
    """Return the solver that a classifier's parameters name.

    Parameters
    ----------
    model : ObjectiveClassifier

    Returns
    -------
    Solver
    """
    if model.max_rank is not None:
        return LowRank(model.max_rank)
    by_name: dict[str, Any] = SOLVERS
    return by_name[model.solver]() if isinstance(model.solver, str) else model.solver


def observed_rows(
    weights: FloatArray | None, n_samples: int, Y: IntArray | None = None
) -> tuple[IntArray, FloatArray | None]:
    """Return the indices of the rows with a weight and a known label, and their weights (None if all are 1).

    Parameters
    ----------
    weights : array (n_samples,) or (n_samples, n_labels), or None
    n_samples : int
    Y : array (n_samples, n_labels), default=None
        Labels in {-1, 0, +1}, where some may be missing.

    Returns
    -------
    rows : array of int
    weights : array (n_rows,) or (n_rows, n_labels), or None

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.estimators.convex_problem import observed_rows
    >>> observed_rows(np.array([1.0, 0.0, 1.0]), 3)
    (array([0, 2]), None)
    """
    is_known = np.ones(n_samples, dtype=bool) if Y is None else Y.any(axis=1)
    if weights is None:
        return np.flatnonzero(is_known), None
    has_weight = weights > 0 if weights.ndim == 1 else weights.any(axis=1)
    rows = np.flatnonzero(is_known & has_weight)
    weights = weights[rows]
    return rows, None if np.all(weights == 1) else weights
