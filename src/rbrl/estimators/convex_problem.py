"""The problem that a classifier with an objective poses over given rows, and its solution."""

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from rbrl._common.typing import FloatArray, IntArray, Matrix
from rbrl.problem import LARGEST_DECOMPOSITION, BlockKernel, Design, FeatureMapDesign, Objective, SpectralDesign
from rbrl.problem.features import linear_design, with_ones
from rbrl.problem.kernel import check_gram, fit_feature_map, gram
from rbrl.rows import label_counts
from rbrl.solvers import SOLVERS, KernelBlocks, LowRank, Posed, Solution, Solver, solve_kernel, solve_posed
from rbrl.solvers.certificate import prove_feature_map, prove_function, prove_linear

if TYPE_CHECKING:
    from rbrl.estimators.convex import ObjectiveClassifier


class ConvexProblem:
    """What a classifier minimises over given rows: its loss of labels and scores, plus penalties, over a design.

    :meth:`ObjectiveClassifier.problem` makes one. Nothing is computed before it is asked for; the design is then shared by
    the objectives of all parameters that do not change it, such as the weights of losses and penalties.

    Parameters
    ----------
    model : ObjectiveClassifier
        Its parameters are those of the problem.
    X : array or CSR matrix (n_samples, n_features)
        Checked.
    Y : array (n_samples, n_labels) of int8
        Labels in {-1, +1}.
    weights : array (n_samples,) or None
        A row of weight 0 is as if it were absent.

    Attributes
    ----------
    rows : array of int
        The rows that are present; `Y` and `weights` are theirs.
    kind : {"linear", "kernel", "blocks", "approximation"}
        How it is solved: over features; over the spectrum of a kernel matrix; over one that is too large to decompose; over
        features that come near a kernel.

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

    def __init__(self, model: "ObjectiveClassifier", X: Matrix, Y: IntArray, weights: FloatArray | None = None) -> None:
        self.model, self.X = model, X
        self.rows, self.weights = present_rows(weights, len(Y))
        self.Y = Y[self.rows]
        if model.kernel == "linear":
            self.kind = "linear"
        elif model.approximation is not None:
            self.kind = "approximation"
        else:
            # The penalty of the function alone can do without a decomposition.
            free = isinstance(model.solver, str) and model.solver == "auto" and model.max_rank is None
            large = model.low_rank == "function" and len(self.rows) > LARGEST_DECOMPOSITION
            self.kind = "blocks" if free and large and model.kernel != "precomputed" else "kernel"

    @cached_property
    def present(self) -> Matrix:
        """The rows of X that have a weight."""
        return self.X[self.rows] if len(self.rows) < self.X.shape[0] else self.X

    @cached_property
    def feature_map(self) -> Any:
        """The fitted transformer to features that come near the kernel."""
        names = ("approximation", "n_components", "kernel", "gamma", "degree", "coef0", "random_state")
        return fit_feature_map(self.present, **{name: getattr(self.model, name) for name in names})

    @cached_property
    def design(self) -> Design:
        """The linear map from weights to scores of the rows that are present."""
        if self.kind == "linear":
            X = self.present.astype(np.float64, copy=False)
            return linear_design(with_ones(X) if self.model.fit_intercept else X)
        if self.kind == "approximation":
            return FeatureMapDesign(mapped(self.feature_map, self.present), self.model.low_rank)
        return SpectralDesign(self._kernel_matrix(), self.model.low_rank)

    def objective(self, design: Design | None = None, **parameters: Any) -> Objective:
        """What is minimised, over the problem's design or another of the same rows.

        Parameters
        ----------
        design : Design, default=None
            None means :attr:`design`.
        **parameters
            Of the model, in place of its own: such as ``ridge``, ``ranking`` and ``nuclear``.
        """
        model = clone(self.model).set_params(**parameters) if parameters else self.model
        loss = model.loss(lambda: label_counts(self.Y, self.weights))
        design = self.design if design is None else design
        return Objective(design, self.Y, loss, model.ridge, model.nuclear, self.weights)

    def score_matrix(self, X: Matrix) -> FloatArray:
        """The matrix that turns weights over :attr:`design` into scores of other rows, given as to `predict`."""
        if self.kind == "linear":
            basis = with_ones(X) if self.model.fit_intercept else X
        elif self.kind == "approximation":
            basis = mapped(self.feature_map, X)
        elif self.model.kernel == "precomputed":
            basis = self._gram(X[:, self.rows] if len(self.rows) < X.shape[1] else X)
        else:
            basis = self._gram(X, self.present)
        return self.design.transform(basis)

    def solve(self, start: FloatArray | None = None) -> Solution:
        """Solve to the model's tolerance, with a proof.

        Parameters
        ----------
        start : array, default=None
            Coefficients as the model stores them: of the features (n_columns, n_labels), those of the intercept last, or of
            the rows that are present (n_rows, n_labels).
        """
        model, dtype = self.model, self.X.dtype
        if self.kind == "blocks":
            X = self.present
            kernel = BlockKernel(lambda rows: self._gram(X[rows], X), len(self.rows))
            objective = self.objective(kernel)
            posed = Posed(partial(prove_function, objective, kernel.product_as_posed), dtype)
            return solve_posed(KernelBlocks(), objective, posed, start, model.tol, model.max_iter)
        solver = solver_of(model)
        if self.kind == "kernel":
            K = self._kernel_matrix()
            limits = start, model.tol, model.max_iter
            return solve_kernel(solver, K, model.low_rank, model.ridge, self.objective, dtype, *limits)
        objective = self.objective()
        start = None if start is None else objective.design.weights(start)
        if self.kind == "linear":
            posed = Posed(partial(prove_linear, objective, self.present), dtype)
        else:
            prove = prove_linear if model.low_rank == "function" else prove_feature_map
            features = mapped(self.feature_map, self.present)
            posed = Posed(partial(prove, objective, features), np.dtype(np.float64))
        return solve_posed(solver, objective, posed, start, model.tol, model.max_iter)

    def _kernel_matrix(self) -> FloatArray:
        K = check_gram(self._gram(self.X))
        return K[np.ix_(self.rows, self.rows)] if len(self.rows) < len(K) else K

    def _gram(self, X: Matrix, Z: Matrix | None = None) -> FloatArray:
        model = self.model
        return gram(X, Z, kernel=model.kernel, gamma=model.gamma, degree=model.degree, coef0=model.coef0)


def solver_of(model: "ObjectiveClassifier") -> Solver:
    """The solver that a classifier's parameters name."""
    if model.max_rank is not None:
        return LowRank(model.max_rank)
    by_name: dict[str, Any] = SOLVERS
    return by_name[model.solver]() if isinstance(model.solver, str) else model.solver


def present_rows(weights: FloatArray | None, n_samples: int) -> tuple[IntArray, FloatArray | None]:
    """Indices of the rows with a weight, and their weights (None if all are 1)."""
    if weights is None:
        return np.arange(n_samples), None
    rows = np.flatnonzero(weights)
    weights = weights[rows]
    return rows, None if np.all(weights == 1) else weights


def mapped(feature_map: Any, X: Matrix) -> FloatArray:
    """The features of a fitted map, dense."""
    features = feature_map.transform(X)
    return np.asarray(features.toarray() if sparse.issparse(features) else features, dtype=np.float64)
