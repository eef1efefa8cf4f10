"""The problem that a classifier with an objective poses over given rows, the memory that it needs, and its solution."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from rbrl._common.checks import users_level
from rbrl._common.memory import available_bytes
from rbrl._common.typing import FloatArray, IntArray, Matrix
from rbrl.exceptions import MemoryWarning
from rbrl.kernels import WITH_WIDTH, KernelRows, check_gram, fit_feature_map
from rbrl.losses.label_graph import label_counts
from rbrl.problem import (
    LARGEST_DECOMPOSITION,
    Design,
    FeatureMapDesign,
    KernelDesign,
    MatrixDesign,
    Objective,
    SpectralDesign,
)
from rbrl.problem.kernel import check_semidefinite, kernel_design, storage_type
from rbrl.problem.linear import linear_design, row_design, with_constant
from rbrl.scales import RIDGE_OF_KERNELS, ColumnScales, Strength, intercept_column, kernel_width
from rbrl.solvers import (
    SOLVERS,
    DualAscent,
    LowRank,
    Posed,
    QuasiNewton,
    Solution,
    Solver,
    choose_solver,
    solve_kernel,
    solve_posed,
)
from rbrl.solvers.proof import prove_function, prove_linear

if TYPE_CHECKING:
    from rbrl.estimators.convex import ObjectiveClassifier

# Bytes of a number.
DOUBLE = 8


class ConvexProblem:
    """What a classifier minimises over given rows: its loss of labels and scores, plus penalties, over a design.

    :meth:`ObjectiveClassifier.problem` makes one. Nothing is computed before it is asked for; the design is then shared by
    the objectives of all parameters that do not change it, such as the weights of losses and of the nuclear norm. The ridge
    changes it where the intercept has one of its own.

    Parameters
    ----------
    model : ObjectiveClassifier
        Its parameters are those of the problem.
    X : array or CSR matrix (n_samples, n_features)
        Checked.
    Y : array (n_samples, n_labels) of int8
        Labels in {-1, 0, +1}; 0 is an entry that nobody looked at.
    weights : array (n_samples,), of rows, or (n_samples, n_labels), of entries; or None
        A row of weight 0, or of which nobody looked at any label, is as if it were absent.
    counted : array (n_samples,) or None
        How many rows each is as good as, where the scales of the data are concerned; None: one.
    n_problems : int, default=1
        How many objectives will be minimised over the design: more of them pay for coordinates that suit it.

    Attributes
    ----------
    rows : array of int
        The rows that are present; `Y`, `weights` and `counted` are theirs.
    present : array or CSR matrix
        The rows of X that are present; all of a kernel matrix, which has them in its columns too.
    kind : {"linear", "kernel", "approximation"}
        What the model is over: features, a kernel matrix, or features that come near a kernel.
    reached : callable or None
        Told every gap that a solver certifies on the way; True asks it to stop.

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

    reached: Callable[[float], bool] | None = None

    def __init__(
        self,
        model: "ObjectiveClassifier",
        X: Matrix,
        Y: IntArray,
        weights: FloatArray | None = None,
        counted: FloatArray | None = None,
        n_problems: int = 1,
    ) -> None:
        self.model, self.X, self.n_problems = model, X, n_problems
        self._made: Design | None = None
        self.rows, self.weights = present_rows(weights, len(Y), Y)
        self.Y, self.counted = Y[self.rows], None if counted is None else counted[self.rows]
        whole = len(self.rows) == X.shape[0] or model.kernel == "precomputed"
        self.present = X if whole else X[self.rows]
        if model.kernel == "linear":
            self.kind = "linear"
        elif model.approximation is not None:
            self.kind = "approximation"
        else:
            self.kind = "kernel"

    @cached_property
    def feature_map(self) -> Any:
        """The fitted transformer to features that come near the kernel."""
        names = ("approximation", "n_components", "kernel", "degree", "coef0", "random_state")
        shape = {name: getattr(self.model, name) for name in names}
        return fit_feature_map(self.present, gamma=self.gamma, **shape)

    @cached_property
    def scales(self) -> ColumnScales:
        """How far the features of the rows that are present reach."""
        return ColumnScales.from_rows(self.present, self.counted)

    @cached_property
    def gamma(self) -> float | None:
        """Of the kernel, as a number; None for kernels without."""
        return kernel_width(self.model.gamma, self.present, self.counted) if self.model.kernel in WITH_WIDTH else None

    @property
    def ridge(self) -> float:
        """Of the model, as a number."""
        return self._ridge(self.model.ridge)

    @property
    def design(self) -> Design:
        """The linear map from weights to scores of the rows that are present."""
        return self.design_of()

    def design_of(self, **parameters: Any) -> Design:
        """The design of the model with other parameters.

        Parameters
        ----------
        **parameters
            Of the model, in place of its own: such as ``ridge``.

        Returns
        -------
        Design
            The last one that was asked for, if that is the same.
        """
        constant = self._constant(self._model(parameters))
        if self._made is None or self._made.constant != constant:
            self._made = None  # two decompositions may need more memory than there is
            self._made = self._design(constant)
        return self._made

    def _design(self, constant: float) -> Design:
        if self.kind == "linear":
            X = self.present.astype(np.float64, copy=False)
            X = with_constant(X, constant) if self.model.fit_intercept else X
            low_rank = self.model.nuclear_ > 0 or self.n_problems > 1
            return linear_design(X, self.Y.shape[1], self.n_problems, constant, low_rank)
        if self.kind == "approximation":
            return FeatureMapDesign(mapped(self.feature_map, self.present), self.model.low_rank)
        return SpectralDesign(self._kernel_matrix(), self.model.low_rank)

    def _model(self, parameters: dict[str, Any]) -> "ObjectiveClassifier":
        return clone(self.model).set_params(**parameters) if parameters else self.model

    def _ridge(self, ridge: Strength) -> float:
        if not isinstance(ridge, str):
            return float(ridge)
        return self.scales.ridge() if self.kind == "linear" else RIDGE_OF_KERNELS

    def _constant(self, model: "ObjectiveClassifier") -> float:
        """What the column of the intercept holds."""
        has_column = self.kind == "linear" and model.fit_intercept
        return intercept_column(self._ridge(model.ridge), model.intercept_ridge) if has_column else 1.0

    def objective(self, design: Design | None = None, **parameters: Any) -> Objective:
        """What is minimised, over the problem's design or another of the same rows.

        Parameters
        ----------
        design : Design, default=None
            None means that of these parameters, :meth:`design_of`.
        **parameters
            Of the model, in place of its own: such as ``ridge``, ``ranking`` and ``nuclear``.

        Returns
        -------
        Objective
        """
        model = self._model(parameters)
        loss = model.loss(lambda: label_counts(self.Y, self.weights))
        design = self.design_of(**parameters) if design is None else design
        if design.constant != self._constant(model):
            raise ValueError(
                f"The design has an intercept's column of {design.constant:g}, ridge={model.ridge} and "
                f"intercept_ridge={model.intercept_ridge} need {self._constant(model):g}; take that of design_of."
            )
        objective = Objective(design, self.Y, loss, self._ridge(model.ridge), model.nuclear_, self.weights)
        objective.reached = self.reached
        return objective

    def score_matrix(self, X: Matrix, design: Design | None = None) -> FloatArray:
        """The matrix that turns weights over a design into scores of other rows, given as to `predict`.

        Parameters
        ----------
        X : array or CSR matrix (n_rows, n_features)
        design : Design, default=None
            Of this problem; None means :attr:`design`.

        Returns
        -------
        array or CSR matrix (n_rows, n_columns)
        """
        design = self.design if design is None else design
        if self.kind == "linear":
            basis = with_constant(X, design.constant) if self.model.fit_intercept else X
        elif self.kind == "approximation":
            basis = mapped(self.feature_map, X)
        elif self.model.kernel == "precomputed":
            basis = self.model._gram(X[:, self.rows] if len(self.rows) < X.shape[1] else X)
        else:
            basis = self.model._gram(X, self.present, self.gamma)
        return design.transform(basis)

    def solve(self, start: FloatArray | None = None, dual_scores: FloatArray | None = None) -> Solution:
        """Solve to the model's tolerance, with a proof.

        Parameters
        ----------
        start : array, default=None
            Coefficients as the model stores them: of the features (n_columns, n_labels), those of the intercept last, or of
            the rows that are present (n_rows, n_labels).
        dual_scores : array (n_rows, n_labels), default=None
            Scores at which an earlier result found its lower bound, beside its coefficients: dual ascent goes on from them.

        Returns
        -------
        Solution
        """
        model, solver = self.model, self.solver
        if not (isinstance(solver, DualAscent) and self.has_rows):
            return self._solve_over_design(solver, start, model.max_iter)
        objective = self._row_objective
        weights = None if start is None else objective.design.weights(start)
        solver = replace(solver, dual_scores=dual_scores)
        solution = solve_posed(solver, objective, self._posed(objective), weights, model.tol, model.max_iter)
        if not solution.result.gave_up:
            return solution
        del self._row_objective
        left = model.max_iter - solution.result.n_iter
        more = self._solve_over_design(QuasiNewton(), solution.coefficients.astype(np.float64), left)
        return more.after(solution)

    def _solve_over_design(self, solver: Solver, start: FloatArray | None, max_iter: int) -> Solution:
        """Solve over the problem's own design, from coefficients as the model stores them."""
        model = self.model
        if self.kind == "kernel":
            limits = start, model.tol, max_iter
            K = self._kernel_matrix()
            return solve_kernel(solver, K, model.low_rank, self.ridge, self.objective, self.X.dtype, *limits)
        objective = self.objective()
        start = None if start is None else objective.design.weights(start)
        return solve_posed(solver, objective, self._posed(objective), start, model.tol, max_iter)

    def _posed(self, objective: Objective) -> Posed:
        """Return the proof of a solution, for an objective over this problem's rows."""
        if self.kind == "linear":
            return Posed(partial(prove_linear, objective, self.present), self.X.dtype)
        design = objective.design
        if isinstance(design, KernelDesign):
            stored = design.K if isinstance(design.K, np.ndarray) and design.K.dtype == np.float64 else None
            prove = partial(prove_function, objective, design.exact_product, design.exact_row_norms(), K=stored)
            return Posed(prove, self.X.dtype)
        features = mapped(self.feature_map, self.present)
        spectral = design if isinstance(design, FeatureMapDesign) and self.model.low_rank == "coefficients" else None
        return Posed(partial(prove_linear, objective, features, design=spectral), np.dtype(np.float64))

    @property
    def has_rows(self) -> bool:
        """Whether a solver may visit the rows one by one: the nuclear norm is that of the weights or of the function."""
        return self.kind == "linear" or self.model.low_rank == "function" or self.model.nuclear_ == 0

    @cached_property
    def solver(self) -> Solver:
        """The solver that the model names, or the faster one where it leaves the choice open."""
        model = self.model
        if model.solver != "auto" or model.max_rank is not None or not self.has_rows:
            return solver_of(model)
        return choose_solver(self._row_objective, model.max_iter)

    @cached_property
    def _row_objective(self) -> Objective:
        """The objective over the rows as they are, for a solver that visits them."""
        if self.kind == "approximation":
            return self.objective(MatrixDesign(mapped(self.feature_map, self.present)))
        if self.kind == "kernel":
            return self.objective(self._kernel_design())
        constant = self._constant(self.model)
        X = self.present.astype(np.float64, copy=False)
        return self.objective(row_design(with_constant(X, constant) if self.model.fit_intercept else X, constant))

    def _kernel_design(self) -> KernelDesign:
        """Return the design of the kernel matrix, which is not decomposed."""
        model = self.model
        if model.kernel == "precomputed" or callable(model.kernel):
            K = self._kernel_matrix()
            check_semidefinite(K)
            return KernelDesign(K)
        values = KernelRows(self.present, **model._kernel_shape() | {"gamma": self.gamma})
        return kernel_design(lambda rows: values.values(values.Z[rows]), len(self.rows), available_bytes())

    def _kernel_matrix(self) -> FloatArray:
        K = check_gram(self.model._gram(self.X, width=self.gamma))
        return K[np.ix_(self.rows, self.rows)] if len(self.rows) < len(K) else K


def solver_of(model: "ObjectiveClassifier") -> Solver:
    """The solver that a classifier's parameters name.

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


def present_rows(
    weights: FloatArray | None, n_samples: int, Y: IntArray | None = None
) -> tuple[IntArray, FloatArray | None]:
    """Indices of the rows with a weight and a known label, and their weights (None if all are 1).

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
    >>> from rbrl.estimators.convex_problem import present_rows
    >>> present_rows(np.array([1.0, 0.0, 1.0]), 3)
    (array([0, 2]), None)
    """
    known = np.ones(n_samples, dtype=bool) if Y is None else Y.any(axis=1)
    if weights is None:
        return np.flatnonzero(known), None
    rows = np.flatnonzero(known & (weights > 0 if weights.ndim == 1 else weights.any(axis=1)))
    weights = weights[rows]
    return rows, None if np.all(weights == 1) else weights


def mapped(feature_map: Any, X: Matrix) -> FloatArray:
    """The features of a fitted map, dense.

    Parameters
    ----------
    feature_map : fitted transformer
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    array (n_samples, n_components)
    """
    features = feature_map.transform(X)
    return np.asarray(features.toarray() if sparse.issparse(features) else features, dtype=np.float64)


class Needs(NamedTuple):
    """How much memory a fit will need, by the shapes alone: said before the work, not after it.

    Both count arrays of weights (n_features x n_labels), of scores (n_samples x n_labels) and of the decomposition, and
    were measured.

    Attributes
    ----------
    least : int
        Bytes that any fit of these shapes holds at one time, without whatever one that ends early does without: with less
        it is refused.
    usually : int
        Bytes that it usually holds: with less, a warning says what needs less.
    """

    least: int
    usually: int


@contextmanager
def enough_memory(problem: ConvexProblem) -> Iterator[None]:
    """Solve a problem inside this: what cannot do with the memory there is says so first.

    A MemoryError that comes all the same has the same words.

    Parameters
    ----------
    problem : ConvexProblem
    """
    needs, available = memory_needed(problem), available_bytes()
    if available is not None and needs.least > available:
        raise MemoryError(_words(problem, needs, available))
    if available is not None and needs.usually > available:
        warnings.warn(_words(problem, needs, available), MemoryWarning, stacklevel=users_level())
    try:
        yield
    except MemoryError as error:
        words = _words(problem, needs, available)
        raise MemoryError(f"{words} ({error})" if str(error) else words) from error


def memory_needed(problem: ConvexProblem) -> Needs:
    """The bytes that a solution holds at one time.

    Parameters
    ----------
    problem : ConvexProblem

    Returns
    -------
    Needs

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> memory_needed(RBRLClassifier().problem(np.ones((100, 5)), np.eye(100, 3))).least
    5088
    """
    (n, m), n_labels, model = problem.X.shape, problem.Y.shape[1], problem.model
    weights, scores = DOUBLE * (m + model.fit_intercept) * n_labels, DOUBLE * n * n_labels
    if problem.kind == "approximation":
        features = DOUBLE * n * min(model.n_components, n)
        return Needs(features + scores, 3 * features + 10 * scores)
    if problem.kind == "kernel" and problem.has_rows:
        return Needs(scores, (2 * DOUBLE * n**2 if storage_type(n) == np.float64 else 0) + 10 * scores)
    if problem.kind == "kernel":
        return Needs(DOUBLE * n**2 + scores, 4 * DOUBLE * n**2 + 10 * scores)
    if model.max_rank is not None:
        return Needs(weights + scores, 6 * weights + 10 * scores)
    if isinstance(problem.solver, DualAscent):
        # Weights of the solver and of the model, their gradient, and copies of them in the proof; scores of both sides.
        return Needs(2 * weights + 2 * scores, (7 if model.nuclear_ else 6) * weights + 4 * scores)
    if min(n, m) > LARGEST_DECOMPOSITION:
        return Needs(5 * weights + scores, 22 * weights + 10 * scores)
    square = DOUBLE * min(n, m) ** 2
    if n < m:
        least, usually = max(2 * square, square + 2 * weights), max(4 * square, square + 4 * weights)
    else:
        rotated = 0 if sparse.issparse(problem.X) else DOUBLE * n * m
        least, usually = square + rotated, 4 * square + rotated
    return Needs(least + scores, usually + 10 * scores)


def _words(problem: ConvexProblem, needs: Needs, available: int | None) -> str:
    (n, m), model = problem.X.shape, problem.model
    usually, least, there = (f"{size / 1e9:.3g} GB" for size in (needs.usually, needs.least, available or 0))
    # Short factors where weights are many, blocks where rows are.
    if problem.kind == "approximation":
        less = "a smaller n_components, or fewer rows"
    elif problem.kind != "linear":
        less = "approximation='nystroem', or fewer rows"
    elif m <= n:
        less = "rows in blocks, as in fit(rbrl.datasets.write_shards((X, y), folder)), or fewer labels"
    else:
        less = "max_rank, such as max_rank=50" if model.max_rank is None else "fewer features or labels"
    return (
        f"{type(model).__name__} usually needs about {usually} for {n} rows, {m} features and {problem.Y.shape[1]} labels, "
        f"at least {least}{'' if available is None else f', and {there} are available'}. What needs less: {less}."
    )
