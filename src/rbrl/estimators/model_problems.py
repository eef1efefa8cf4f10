"""The problems of linear models, kernel models and models with an approximated kernel.

:func:`pose_problem` is the one place that chooses between them.
"""

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rbrl._common.environment import available_bytes
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.estimators.convex_problem import ConvexProblem
from rbrl.estimators.forms import (
    FEATURE_MAP,
    KERNEL,
    LINEAR,
    ModelForm,
    apply_feature_map,
    form_of,
    is_precomputed,
    kernel_parameters,
    kernel_values,
)
from rbrl.estimators.training_scores import choose_spectrum_rows, estimate_kernel_parameters
from rbrl.kernels import KernelRows, check_gram, fit_feature_map
from rbrl.problem import Design, FeatureMapDesign, KernelDesign, MatrixDesign, Objective, SpectralDesign
from rbrl.problem.design import AscentDesign
from rbrl.problem.kernel import check_semidefinite, kernel_design
from rbrl.problem.linear import linear_design, row_design, with_constant
from rbrl.problem.memory import (
    MemoryNeeds,
    estimate_dual_ascent,
    estimate_factors,
    estimate_feature_map,
    estimate_kernel,
    estimate_quasi_newton,
)
from rbrl.scales import intercept_column
from rbrl.solvers import Certifier, DualAscent, Solution, Solver, solve_kernel
from rbrl.solvers.proof import prove_function, prove_linear

if TYPE_CHECKING:
    from rbrl.estimators.convex import ObjectiveClassifier


class LinearProblem(ConvexProblem):
    """The problem of a linear model, over features and the column of the intercept."""

    form = LINEAR
    # The nuclear norm is that of the weights.
    has_row_design = True

    def estimate_memory(self) -> MemoryNeeds:
        """Estimate the memory that :meth:`solve` needs."""
        if self.model.max_rank is not None:
            return estimate_factors(self.size)
        if isinstance(self.solver, DualAscent):
            return estimate_dual_ascent(self.size, self.model.nuclear_ > 0)
        return estimate_quasi_newton(self.size, self.X)

    @property
    def memory_remedy(self) -> str:
        """Blocks of rows where there are many rows, and short factors where there are many weights."""
        if self.X.shape[1] <= self.X.shape[0]:
            return "use rows in blocks, as in fit(rbrl.datasets.write_shards((X, y), folder)), or fewer labels"
        return "set max_rank, such as max_rank=50" if self.model.max_rank is None else "use fewer features or labels"

    def _automatic_ridge(self) -> float:
        return self.scales.ridge()

    def _constant(self, model: "ObjectiveClassifier") -> float:
        return intercept_column(self._ridge(model.ridge), model.intercept_ridge) if model.fit_intercept else 1.0

    def _basis(self, X: Matrix, constant: float) -> Any:
        return with_constant(X, constant) if self.model.fit_intercept else X

    def _make_design(self, constant: float) -> Design:
        X = self._basis(self.present.astype(np.float64, copy=False), constant)
        is_low_rank = self.model.nuclear_ > 0 or self.n_problems > 1
        return linear_design(X, self.Y.shape[1], self.n_problems, constant, is_low_rank)

    def _make_row_design(self) -> AscentDesign:
        constant = self._constant(self.model)
        return row_design(self._basis(self.present.astype(np.float64, copy=False), constant), constant)

    def _certifier(self, objective: Objective) -> Certifier:
        return Certifier(partial(prove_linear, objective, self.present), self.X.dtype)

    @property
    def _n_coefficients(self) -> int:
        return self.X.shape[1] + self.model.fit_intercept

    def fit(self) -> Solution:
        """Solve the problem and store the weights; warn of features whose spreads differ too much."""
        if not issparse(self.X):
            self.scales.warn_of_spread(type(self.model).__name__)
        return super().fit()

    def store(self, coefficients: FloatArray) -> None:
        """Store the weights in the model."""
        LINEAR.store(self.model, coefficients)


class KernelProblem(ConvexProblem):
    """The problem of a kernel model, over the kernel matrix of the rows."""

    form = KERNEL

    def estimate_memory(self) -> MemoryNeeds:
        """Estimate the memory that :meth:`solve` needs."""
        return estimate_kernel(self.size, is_decomposed=not self.has_row_design)

    memory_remedy = "set approximation='nystroem', or use fewer rows"

    def _basis(self, X: Matrix, constant: float) -> Any:
        if is_precomputed(self.model):
            return kernel_values(self.model, X[:, self.rows] if len(self.rows) < X.shape[1] else X)
        return kernel_values(self.model, X, self.present, self.gamma)

    def _make_design(self, constant: float) -> Design:
        return SpectralDesign(self._kernel_matrix(), self.model.low_rank)

    def _make_row_design(self) -> AscentDesign:
        model = self.model
        if is_precomputed(model) or callable(model.kernel):
            K = self._kernel_matrix()
            check_semidefinite(K)
            return KernelDesign(K)
        values = KernelRows(self.present, **kernel_parameters(model, self.gamma))
        return kernel_design(lambda rows: values.values(values.Z[rows]), len(self.rows), available_bytes())

    def _kernel_matrix(self) -> FloatArray:
        K = check_gram(kernel_values(self.model, self.X, gamma=self.gamma))
        return K[np.ix_(self.rows, self.rows)] if len(self.rows) < len(K) else K

    def _certifier(self, objective: Objective) -> Certifier:
        design = objective.design
        stored = design.K if isinstance(design.K, np.ndarray) and design.K.dtype == np.float64 else None
        prove = partial(prove_function, objective, design.exact_product, design.exact_row_norms(), K=stored)
        return Certifier(prove, self.X.dtype)

    def _solve_over_design(self, solver: Solver, start: FloatArray | None, max_iter: int) -> Solution:
        model = self.model
        limits = start, model.tol, max_iter
        K = self._kernel_matrix()
        return solve_kernel(solver, K, model.low_rank, self.ridge, self.objective, self.X.dtype, *limits)

    def count_parameters(self, design: Design | None = None, ridge: float | None = None) -> float:
        """Estimate the effective number of parameters from a sample of the rows, unless there is a design."""
        if design is not None:
            return super().count_parameters(design, ridge)
        rows = self.rows[choose_spectrum_rows(len(self.rows))]
        X = self.X[np.ix_(rows, rows)] if is_precomputed(self.model) else self.X[rows]
        K = kernel_values(self.model, X, gamma=self.gamma)
        return estimate_kernel_parameters(K, self.ridge if ridge is None else ridge, self._n_counted)

    def store(self, coefficients: FloatArray) -> None:
        """Store the coefficients of the rows in the model."""
        KERNEL.store(self.model, self.X, self.rows, coefficients)


class FeatureMapProblem(ConvexProblem):
    """The problem of a kernel model whose kernel is approximated by the inner products of few features."""

    form = FEATURE_MAP

    @cached_property
    def feature_map(self) -> Any:
        """The fitted transformer to the features."""
        names = ("approximation", "n_components", "kernel", "degree", "coef0", "random_state")
        parameters = {name: getattr(self.model, name) for name in names}
        return fit_feature_map(self.present, gamma=self.gamma, **parameters)

    def estimate_memory(self) -> MemoryNeeds:
        """Estimate the memory that :meth:`solve` needs."""
        return estimate_feature_map(self.size, self.model.n_components)

    memory_remedy = "set a smaller n_components, or use fewer rows"

    def _basis(self, X: Matrix, constant: float) -> Any:
        return apply_feature_map(self.feature_map, X)

    def _make_design(self, constant: float) -> Design:
        return FeatureMapDesign(self._basis(self.present, constant), self.model.low_rank)

    def _make_row_design(self) -> AscentDesign:
        return MatrixDesign(self._basis(self.present, 1.0))

    def _certifier(self, objective: Objective) -> Certifier:
        design = objective.design
        # Dual ascent has the mapped features in its design.
        features = design.X if isinstance(design, MatrixDesign) else self._basis(self.present, 1.0)
        is_spectral = isinstance(design, FeatureMapDesign) and self.model.low_rank == "coefficients"
        prove = partial(prove_linear, objective, features, design=design if is_spectral else None)
        return Certifier(prove, np.dtype(np.float64))

    def store(self, coefficients: FloatArray) -> None:
        """Store the transformer and the weights of its features in the model."""
        self.model.feature_map_ = self.feature_map
        self.model.feature_coef_ = coefficients


PROBLEMS: dict[ModelForm, type[ConvexProblem]] = {
    problem.form: problem for problem in (LinearProblem, KernelProblem, FeatureMapProblem)
}


def pose_problem(
    model: "ObjectiveClassifier",
    X: Matrix,
    Y: IntArray,
    weights: FloatArray | None = None,
    counted: FloatArray | None = None,
    n_problems: int = 1,
) -> ConvexProblem:
    """Return the problem of a classifier over given rows.

    Parameters
    ----------
    model, X, Y, weights, counted, n_problems
        Parameters of :class:`ConvexProblem`.

    Returns
    -------
    ConvexProblem
    """
    return PROBLEMS[form_of(model)](model, X, Y, weights, counted, n_problems)
