"""The problem that a convex classifier solves over rows in memory."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import hstack
from sklearn.base import clone

from rbrl._common.checks import check_choice, check_number
from rbrl._common.matrices import take_columns, take_labels
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.estimators.coefficients import find_nuclear
from rbrl.estimators.compression import Compression
from rbrl.estimators.entries import observed_rows
from rbrl.estimators.forms import LinearForm, MakeObjective, form_of
from rbrl.estimators.training_scores import LabelledRows
from rbrl.losses import Loss
from rbrl.losses.label_graph import label_counts
from rbrl.problem import Design, Objective
from rbrl.problem.memory import (
    BYTES_OF_DOUBLE,
    AscentSize,
    FitSize,
    MemoryNeeds,
    check_memory,
    estimate_dual_ascent,
)
from rbrl.solvers import SOLVERS, DualAscent, LowRank, QuasiNewton, Solution, Solver, solve_and_certify
from rbrl.solvers.proximal_points import choose_proximal_ridge
from rbrl.solvers.solve import SolverRule

if TYPE_CHECKING:
    from rbrl.estimators.convex import ConvexClassifier


# Number of bytes of the dual scores and weights of a group of labels: 1 GB.
LARGEST_GROUP = 2**30


class ConvexProblem:
    """The objective of a classifier over given rows: a loss of labels and scores, plus penalties, over a design.

    :meth:`ConvexClassifier.problem` makes one. Nothing is computed before it is needed. Objectives with other
    weights of losses or of the nuclear norm share the design. Another ridge changes the design only if the intercept
    has a ridge of its own.

    Parameters
    ----------
    model : ConvexClassifier
        Classifier whose parameters are those of the problem.
    X : array or CSR matrix (n_samples, n_features)
        Checked rows.
    Y : array (n_samples, n_labels) of int8, or SparseLabels
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
        Indices of the rows that are not ignored. `labels`, `Y`, `weights` and `counted` belong to them.
    labels : array (n_rows, n_labels) of int8, or SparseLabels
        Labels in the form in which they were given.
    form : ModelForm
        Form of the model over these rows.
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

    on_gap: Callable[[float], bool] | None = None

    def __init__(
        self,
        model: "ConvexClassifier",
        X: Matrix,
        Y: IntArray,
        weights: FloatArray | None = None,
        counted: FloatArray | None = None,
        n_problems: int = 1,
    ) -> None:
        self.model = model
        self.rows, self.weights = observed_rows(weights, len(Y), Y)
        self.labels = Y if len(self.rows) == len(Y) else take_labels(Y, self.rows)
        self.counted = None if counted is None else counted[self.rows]
        is_whole = len(self.rows) == X.shape[0] or model.kernel == "precomputed"
        observed = X if is_whole else X[self.rows]
        self.form = form_of(model)(model, X, self.rows, observed, self.counted, Y.shape[1], n_problems)

    @cached_property
    def Y(self) -> IntArray:
        """The labels as a dense array (n_rows, n_labels) of int8."""
        return np.asarray(self.labels)

    @property
    def ridge(self) -> float:
        """The ridge of the model as a number."""
        return self.form.find_ridge(self.model)[0]

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
        """
        _, constant = self.form.find_ridge(self._with(parameters))
        return self.form.design_at(constant)

    def _with(self, parameters: dict[str, Any]) -> "ConvexClassifier":
        """Return a copy of the model with other parameters; the model itself if there are none."""
        return clone(self.model).set_params(**parameters) if parameters else self.model

    def loss(self) -> Loss:
        """Return the loss of the model."""
        return self.model.loss(partial(label_counts, self.labels, self.weights))

    def _bind_objective(self, model: "ConvexClassifier", ridge: float, Y: Any = None) -> MakeObjective:
        """Return the function from a design to the objective of a model over it.

        Y are the labels in the form that the solver reads; None means a dense array.
        """
        return partial(
            Objective,
            Y=self.Y if Y is None else Y,
            loss=model.loss(partial(label_counts, self.labels, self.weights)),
            ridge=ridge,
            nuclear=find_nuclear(model),
            sample_weight=self.weights,
            on_gap=self.on_gap,
        )

    def objective(self, design: Design | None = None, **parameters: Any) -> Objective:
        """Return the objective, over the problem's design or another design of the same rows.

        Parameters
        ----------
        design : Design, default=None
            None means :meth:`design_of` these parameters.
        **parameters
            Parameters of the model that replace its own, such as ``ridge``, ``ranking`` and ``nuclear``.
        """
        model = self._with(parameters)
        ridge, constant = self.form.find_ridge(model)
        design = self.form.design_at(constant) if design is None else design
        if design.constant != constant:
            raise ValueError(
                f"The intercept column of this design is {design.constant:g}, but ridge={model.ridge} and "
                f"intercept_ridge={model.intercept_ridge} require {constant:g}; get the design from design_of."
            )
        return self._bind_objective(model, ridge)(design)

    def matrix_of_rows(self, X: Matrix, design: Design | None = None) -> Any:
        """Return new rows in the coordinates of a design: their scores are ``result @ weights``.

        Parameters
        ----------
        X : array or CSR matrix (n_rows, n_features)
            Rows as for `predict`.
        design : Design, default=None
            Design of this problem; None means :attr:`design`.

        Returns
        -------
        array, sparse matrix or LinearOperator (n_rows, n_columns)
        """
        design = self.design if design is None else design
        return design.transform(self.form.basis(X, design.constant))

    @cached_property
    def solver(self) -> Solver:
        """The solver that the model names, or the faster one if it leaves the choice open."""
        model = self.model
        if model.solver != "auto" or model.max_rank is not None or not self.form.has_row_design:
            solver = solver_of(model)
            return replace(solver, in_blocks=self.form.stays_factored) if isinstance(solver, LowRank) else solver
        return SolverRule().choose(self.row_objective, model.max_iter)

    @cached_property
    def row_objective(self) -> Objective:
        """The objective over the rows as they are."""
        ridge, constant = self.form.find_ridge(self.model)
        labels = self.labels if self.form.is_linear else None
        return self._bind_objective(self.model, ridge, labels)(self.form.make_row_design(constant))

    def solve(self, start: Any = None, dual_scores: FloatArray | None = None) -> Solution:
        """Solve to the model's tolerance, with a proof.

        Parameters
        ----------
        start : array or LowRankMatrix, default=None
            First coefficients, in the form in which the model stores them: of the features (n_columns, n_labels), with
            those of the intercept last, or of the rows that are not ignored (n_rows, n_labels).
        dual_scores : array (n_rows, n_labels), default=None
            Scores at which an earlier result found its lower bound. Dual ascent starts from them; other
            solvers ignore them.
        """
        model = self.model
        solver = self.solver
        form = self.form
        if not (isinstance(solver, DualAscent) and form.has_row_design):
            labels = self.labels if form.stays_factored else None
            return form.solve(self._bind_objective(model, self.ridge, labels), solver, start, model.max_iter)
        objective = self.row_objective
        groups = split_labels(objective)
        if len(groups) > 1:
            del objective, self.row_objective
            return self._solve_groups(groups, start)
        weights = None if start is None else objective.design.weights(start)
        solver = replace(solver, dual_scores=dual_scores)
        certifier = form.make_certifier(objective)
        solution = solve_and_certify(solver, objective, certifier, weights, model.tol, model.max_iter)
        if not solution.result.gave_up:
            return solution
        # Both designs at a time may need too much memory.
        del objective, certifier, self.row_objective
        left = model.max_iter - solution.result.n_iter
        start = solution.coefficients.astype(np.float64)
        return form.solve(self._bind_objective(model, self.ridge), QuasiNewton(), start, left).after(solution)

    def _solve_groups(self, groups: Sequence[slice], start: FloatArray | None) -> Solution:
        """Solve for one group of labels after the other, where the labels are independent.

        Parameters
        ----------
        groups : sequence of slice
            Slices that together contain every label once.
        start : array (n_columns, n_labels) or None
            First coefficients.
        """
        coefficients: Any = None
        compressed: list[Any] = []
        solutions: list[Any] = []
        n_labels = self.labels.shape[1]
        for labels in groups:
            part = copy(self)
            for name in ("Y", "row_objective"):
                vars(part).pop(name, None)
            part.labels = take_columns(self.labels, labels)
            if self.weights is not None and self.weights.ndim == 2:
                part.weights = np.ascontiguousarray(self.weights[:, labels])
            solution = part.solve(None if start is None else start[:, labels])
            if self.model.compress is not None:
                solution = part.compress(solution, self.model.compress)
            found = solution.coefficients
            if issparse(found):
                compressed.append(found)
            else:
                if coefficients is None:
                    coefficients = np.empty((len(found), n_labels), dtype=found.dtype)
                coefficients[:, labels] = found
            # Only the numbers are kept: the arrays of a group are as large as memory allows.
            result = replace(solution.result, weights=None, scores=None, dual_scores=None)
            result.evaluations *= part.labels.shape[1] / n_labels
            solutions.append(replace(solution, coefficients=found[:0].copy(), result=result))
            # Otherwise the arrays of this group would remain in memory during the next one.
            del solution, found
        if compressed:
            coefficients = hstack(compressed, format="csr")
        return Solution.of_groups(coefficients, solutions)

    def compress(self, solution: Solution, tol: float) -> Solution:
        """Return a solution with sparse coefficients and their proof.

        The solution itself is returned if its coefficients are compressed already. `tol` is the
        parameter `compress` of the model.
        """
        W = solution.coefficients
        if not isinstance(W, np.ndarray):
            return solution
        proof = solution.proof
        compression = Compression(self.row_objective, self.form.observed, tol)
        coefficients, proof = compression.compress(W, proof.objective, proof.lower)
        return replace(solution, coefficients=coefficients, proof=proof)

    def estimate_memory(self) -> MemoryNeeds:
        """Estimate the memory that :meth:`solve` needs."""
        solver = self.solver
        form = self.form
        if not (isinstance(solver, DualAscent) and form.is_linear):
            return form.estimate_memory(solver)
        objective = self.row_objective
        labels = split_labels(objective)[0]
        has_centre = choose_proximal_ridge(objective, solver.proximal_share) > objective.ridge.weight
        X = objective.design.X
        ascent = AscentSize(
            design=X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
            n_columns=objective.shape[0],
            n_grouped=labels.stop - labels.start,
            # With a centre: the weights, the centre, the last minimiser, and a gradient.
            n_copies=4 if has_centre else 1,
            itemsize=form.X.dtype.itemsize,
            has_nuclear_norm=objective.nuclear.weight > 0,
            is_compressed=self.model.compress is not None,
        )
        return estimate_dual_ascent(FitSize(form.X.shape[0], form.X.shape[1], objective.shape[1]), ascent)

    def fit(self) -> Solution:
        """Solve the problem, if there is enough memory, and store the coefficients in the model.

        The solution starts from the last one if the model has ``warm_start=True``.
        """
        model = self.model
        form = self.form
        owner = type(model).__name__
        if isinstance(form, LinearForm) and not issparse(form.X):
            form.scales.warn_of_spread(owner)
        with check_memory(self.estimate_memory(), owner):
            solution = self.solve(form.find_start(), model._dual_scores) if model.warm_start else self.solve()
            if model.compress is not None:
                solution = self.compress(solution, model.compress)
        form.store(solution.coefficients)
        model.ridge_, _ = form.find_ridge(model)
        if form.gamma is not None:
            model.gamma_ = form.gamma
        return solution

    def training_rows(self) -> LabelledRows:
        """Return the rows that are not ignored, with their labels."""
        form = self.form
        X = form.X[self.rows] if self.model.kernel == "precomputed" else form.observed
        return LabelledRows(X, self.labels, self.weights, self.counted)

    def count_parameters(self, design: Design | None = None, ridge: float | None = None) -> float:
        """Return the effective number of parameters of ridge regression on the rows, or an upper bound on it.

        Without `design`, kernel models estimate it from some rows.

        Parameters
        ----------
        design : Design, default=None
            Design of a solution. None means the problem's own, or the sample of rows for kernels.
        ridge : float, default=None
            Ridge of a solution; None means that of the problem.
        """
        return self.form.count_parameters(self.ridge if ridge is None else ridge, design)


def split_labels(objective: Objective) -> list[slice]:
    """Split the labels into groups that dual ascent solves one after the other, within a limit of memory.

    The groups depend only on the sizes of the data, not on the machine. There is one group if the
    labels are coupled, by pairs, by a graph or by the nuclear norm.

    Parameters
    ----------
    objective : Objective
        Objective over the rows as they are.

    Returns
    -------
    list of slice

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.losses import SquaredHinge
    >>> from rbrl.problem import MatrixDesign
    >>> X, Y = np.ones((2, 1)), np.ones((2, 3), dtype=np.int8)
    >>> split_labels(Objective(MatrixDesign(X), Y, SquaredHinge(), ridge=1.0, nuclear=0.0))
    [slice(0, 3, None)]
    """
    n_labels = objective.shape[1]
    terms = objective.loss.row_terms(n_labels)
    if objective.nuclear.weight or terms.pairs or terms.graph.nnz:
        return [slice(0, n_labels)]
    # Dual scores and weights of a label.
    bytes_per_label = BYTES_OF_DOUBLE * sum(objective.design.shape)
    n_groups = int(np.ceil(n_labels * bytes_per_label / LARGEST_GROUP))
    ends = np.linspace(0, n_labels, max(1, min(n_groups, n_labels)) + 1).round().astype(int).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def solver_of(model: "ConvexClassifier") -> Solver:
    """Return the solver that the parameters `solver` and `max_rank` of a classifier name, after their checks.

    Parameters
    ----------
    model : ConvexClassifier
    """
    owner = type(model).__name__
    solver = model.solver
    if isinstance(solver, str):
        check_choice(owner, "solver", solver, tuple(SOLVERS))
    elif not hasattr(solver, "solve"):
        raise ValueError(f"The solver parameter of {owner} must be a name or a solver object. Got {solver!r} instead.")
    if model.max_rank is None:
        by_name: dict[str, Any] = SOLVERS
        return by_name[solver]() if isinstance(solver, str) else solver
    check_number(owner, "max_rank", model.max_rank, low=1, integer=True)
    if not (isinstance(solver, str) and solver in ("auto", "low-rank")):
        raise ValueError(
            f"With max_rank={model.max_rank}, {owner} is solved in factors. Got solver={solver!r}; leave it at 'auto', or "
            "set max_rank=None."
        )
    return LowRank(model.max_rank)
