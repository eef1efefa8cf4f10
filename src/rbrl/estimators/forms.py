"""The forms of a model: weights of features, coefficients of training rows, or weights of mapped features.

A form has the design of a fit, the proof of its solution, and the attributes in which a fitted model keeps its
coefficients. :func:`form_of` is the one place that chooses a form, by the parameters `kernel` and `approximation`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from rbrl._common.environment import available_bytes
from rbrl._common.linalg import squares
from rbrl._common.matrices import LowRankMatrix
from rbrl._common.typing import FloatArray, IntArray, Matrix, issparse
from rbrl.estimators.coefficients import (
    apply_feature_map,
    dense_weights,
    find_nuclear,
    kernel_parameters,
    kernel_values,
    score_by_kernel,
    score_linear,
    score_mapped_features,
    store_row_coefficients,
    store_weights,
    stored_weights,
)
from rbrl.estimators.training_scores import (
    choose_spectrum_rows,
    count_effective_parameters,
    estimate_kernel_parameters,
)
from rbrl.kernels import WITH_WIDTH, KernelRows, check_gram, fit_feature_map
from rbrl.problem import Design, FeatureMapDesign, KernelDesign, MatrixDesign, Objective, SpectralDesign
from rbrl.problem.design import AscentDesign
from rbrl.problem.kernel import check_semidefinite, kernel_design, storage_type
from rbrl.problem.linear import PresentColumns, linear_design, with_constant
from rbrl.problem.memory import (
    FactorSize,
    FitSize,
    MemoryNeeds,
    estimate_factors,
    estimate_factors_in_blocks,
    estimate_feature_map,
    estimate_kernel,
    estimate_quasi_newton,
)
from rbrl.scales import (
    RIDGE_OF_KERNELS,
    ColumnScales,
    intercept_column,
    kernel_width,
)
from rbrl.solvers import Certifier, LowRank, Solution, Solver, solve_and_certify, solve_kernel
from rbrl.solvers.factor_proof import prove_factors
from rbrl.solvers.proof import prove_function, prove_linear
from rbrl.solvers.solve import to_weights

# Largest number of weights, or of scores, that a model of low rank computes as a dense array. The solver holds up to ten
# arrays of this size, which are 1.3 GB. Larger models stay in factors.
LARGEST_DENSE = 2**24
# A function from a design to the objective over it.
MakeObjective: TypeAlias = Callable[[Design], Objective]


@dataclass(eq=False)
class ModelForm(ABC):
    """The form of a model over the rows of a fit.

    Parameters
    ----------
    model : ConvexClassifier
    X : array or CSR matrix (n_samples, n_features)
        Checked rows.
    rows : array of int
        Rows that are not ignored.
    observed : array or CSR matrix
        Rows of X that are not ignored; all of a kernel matrix.
    counted : array (n_rows,) or None
        Effective number of rows that each of them stands for; None means 1.
    n_labels : int
    n_problems : int, default=1
        Number of objectives that will be minimised over the design.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.estimators.forms import form_of
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = RBRLClassifier().fit(X, Y)
    >>> form_of(model).scores(model, X).shape, form_of(RBRLClassifier(kernel="rbf")).__name__
    ((60, 4), 'KernelForm')
    """

    is_linear: ClassVar[bool] = False

    model: Any
    X: Matrix
    rows: IntArray
    observed: Matrix
    counted: FloatArray | None
    n_labels: int
    n_problems: int = 1
    _last_design: Design | None = field(default=None, init=False)

    @staticmethod
    @abstractmethod
    def scores(model: Any, X: Matrix) -> FloatArray:
        """Return the scores of checked rows by a fitted model, as a new array."""

    @abstractmethod
    def find_start(self) -> FloatArray | None:
        """Return the coefficients of the last fit, from which the next one may start; None if they do not fit."""

    @abstractmethod
    def store(self, coefficients: FloatArray) -> None:
        """Store the coefficients of a solution in the model.

        Parameters
        ----------
        coefficients : array
        """

    @cached_property
    def gamma(self) -> float | None:
        """The width of the kernel as a number; None for kernels without one."""
        return kernel_width(self.model.gamma, self.observed, self.counted) if self.model.kernel in WITH_WIDTH else None

    def find_ridge(self, model: Any) -> tuple[float, float]:
        """Return the ridge of a model as a number, and the constant in the column of the intercept.

        Parameters
        ----------
        model : ConvexClassifier
            The model of this form, perhaps with another ridge.

        Returns
        -------
        ridge, constant : float
        """
        return RIDGE_OF_KERNELS if isinstance(model.ridge, str) else float(model.ridge), 1.0

    @property
    def stays_factored(self) -> bool:
        """True if the weights are kept as factors, and scores are computed in blocks of rows."""
        return False

    @property
    def has_row_design(self) -> bool:
        """True if a solver can visit the rows: the nuclear norm is that of the weights or of the function."""
        return self.model.low_rank == "function" or find_nuclear(self.model) == 0

    @abstractmethod
    def basis(self, X: Matrix, constant: float) -> Any:
        """Return the matrix by which the coefficients are multiplied.

        The scores of X are ``result @ coefficients``. `constant` is the value in the column of the
        intercept. The result may be X itself.
        """

    @abstractmethod
    def make_row_design(self, constant: float) -> AscentDesign:
        """Return the design over the rows as they are, for a solver that visits them."""

    @abstractmethod
    def _make_design(self, constant: float) -> Design:
        """Return the design in coordinates that suit a quasi-Newton solver."""

    def design_at(self, constant: float) -> Design:
        """Return the design in coordinates that suit a quasi-Newton solver; the last design if it is the same.

        Parameters
        ----------
        constant : float
            Constant in the column of the intercept.
        """
        if self._last_design is None or self._last_design.constant != constant:
            # Two decompositions at a time may need too much memory.
            self._last_design = None
            self._last_design = self._make_design(constant)
        return self._last_design

    @abstractmethod
    def make_certifier(self, objective: Objective) -> Certifier:
        """Return the certifier of a solution, for an objective over these rows.

        The objective is over a design of :meth:`make_row_design` or :meth:`design_at`.
        """

    def solve(self, make_objective: MakeObjective, solver: Solver, start: Any, max_iter: int) -> Solution:
        """Solve over the design of :meth:`design_at`, with a proof.

        Parameters
        ----------
        make_objective : callable
            Function from a design to the objective over it.
        solver : Solver
        start : array or LowRankMatrix, or None
            First coefficients.
        max_iter : int
        """
        objective = make_objective(self.design_at(self.find_ridge(self.model)[1]))
        weights = None if start is None else to_weights(objective.design, start)
        return solve_and_certify(solver, objective, self.make_certifier(objective), weights, self.model.tol, max_iter)

    @abstractmethod
    def estimate_memory(self, solver: Solver) -> MemoryNeeds:
        """Estimate the memory that a solver needs."""

    @property
    def n_counted(self) -> float:
        """The effective number of rows."""
        return float(len(self.rows)) if self.counted is None else float(self.counted.sum())

    def count_parameters(self, ridge: float, design: Design | None = None) -> float:
        """Compute, or estimate, the effective number of parameters.

        Parameters
        ----------
        ridge : float
        design : Design, default=None
            Design of a solution; None means that of :meth:`design_at`.
        """
        design = self.design_at(self.find_ridge(self.model)[1]) if design is None else design
        row_squares = None if design.whitened else squares(self.observed.astype(np.float64, copy=False), axis=1)
        # Doubling the weights of all rows has the same effect as half the ridge.
        return count_effective_parameters(design, ridge * len(self.rows) / self.n_counted, row_squares)


class LinearForm(ModelForm):
    """Weights of the features in `coef_`, and `intercept_`."""

    is_linear = True
    gamma = None
    # The nuclear norm is that of the weights.
    has_row_design = True

    scores = staticmethod(score_linear)

    def find_start(self) -> Any:
        """Return the weights of the last fit, as factors if they stay factored."""
        shape = self.X.shape[1] + self.model.fit_intercept, self.n_labels
        W = stored_weights(self.model) if self.stays_factored else None
        return W if isinstance(W, LowRankMatrix) and W.shape == shape else _of_shape(dense_weights(self.model), shape)

    def store(self, coefficients: FloatArray) -> None:
        """Store the weights in the model."""
        store_weights(self.model, coefficients)

    @property
    def stays_factored(self) -> bool:
        """True for a model of low rank whose weights or scores have more than `LARGEST_DENSE` entries."""
        model = self.model
        is_low_rank = model.max_rank is not None or model.solver == "low-rank" or isinstance(model.solver, LowRank)
        return is_low_rank and max(len(self.rows), self.X.shape[1]) * self.n_labels > LARGEST_DENSE

    @property
    def _rank(self) -> int:
        """The largest rank; without one, the number of columns that the factors start with."""
        return int(min(self.model.max_rank or LowRank.first_rank, self.X.shape[1] + 1, self.n_labels))

    @cached_property
    def scales(self) -> ColumnScales:
        """The spread of the features, in the rows that are not ignored."""
        return ColumnScales.from_rows(self.observed, self.counted)

    def find_ridge(self, model: Any) -> tuple[float, float]:
        """Return the ridge, by "auto" that of the spread of the features, and the constant of the intercept."""
        ridge = self.scales.ridge() if isinstance(model.ridge, str) else float(model.ridge)
        return ridge, intercept_column(ridge, model.intercept_ridge) if model.fit_intercept else 1.0

    def basis(self, X: Matrix, constant: float) -> Any:
        """Return the rows with the column of the intercept."""
        return with_constant(X, constant) if self.model.fit_intercept else X

    def make_row_design(self, constant: float) -> AscentDesign:
        """Return the design over the rows and the column of the intercept."""
        X = self.basis(self.observed.astype(np.float64, copy=False), constant)
        design = PresentColumns(X.tocsr()) if issparse(X) else MatrixDesign(X)
        design.constant = constant
        return design

    def _make_design(self, constant: float) -> Design:
        """Return the design of the features, with the column of the intercept."""
        X = self.basis(self.observed.astype(np.float64, copy=False), constant)
        is_low_rank = find_nuclear(self.model) > 0 or self.n_problems > 1
        n_multiplied = self._rank if self.stays_factored else self.n_labels
        return linear_design(X, n_multiplied, self.n_problems, constant, is_low_rank)

    def make_certifier(self, objective: Objective) -> Certifier:
        """Return the certifier by the rows as they are, for coefficients as an array or as factors."""
        prove: Any = prove_factors if self.stays_factored else prove_linear
        prove = partial(prove, objective, self.observed)
        return Certifier(prove, self.X.dtype, has_intercept=self.model.fit_intercept)

    def estimate_memory(self, solver: Solver) -> MemoryNeeds:
        """Estimate the memory that a solver needs."""
        size = FitSize(self.X.shape[0], self.X.shape[1], self.n_labels)
        if isinstance(solver, LowRank) and solver.in_blocks:
            n_steps = solver.count_steps(self._rank * (sum(size[1:]) + 1))
            return estimate_factors_in_blocks(size, self.X, FactorSize(self._rank, n_steps))
        if self.model.max_rank is not None:
            return estimate_factors(size)
        # Without a nuclear norm, this solver is chosen for weak ridges, which need Newton's direction.
        newton = getattr(solver, "newton", None) if find_nuclear(self.model) == 0 else None
        largest_blocks = 0 if newton is None else newton.largest_blocks
        return estimate_quasi_newton(size, self.X, getattr(solver, "memory", 0), largest_blocks)


class KernelForm(ModelForm):
    """Coefficients of the training rows in `dual_coef_`, with the rows in `X_fit_`, and perhaps `intercept_`."""

    scores = staticmethod(score_by_kernel)

    def find_start(self) -> FloatArray | None:
        """Return the coefficients of the rows in the last fit."""
        known = getattr(self.model, "dual_coef_", ())
        found = known[self.rows].astype(np.float64) if len(known) > self.rows[-1] else None
        return _of_shape(found, (len(self.rows), self.n_labels))

    def store(self, coefficients: FloatArray) -> None:
        """Store the coefficients of the rows in the model."""
        store_row_coefficients(self.model, self.X, self.rows, coefficients)

    def basis(self, X: Matrix, constant: float) -> Any:
        """Return the kernel values between X and the training rows that are not ignored."""
        if self.model.kernel == "precomputed":
            return kernel_values(self.model, X[:, self.rows] if len(self.rows) < X.shape[1] else X)
        return kernel_values(self.model, X, self.observed, self.gamma)

    def make_row_design(self, constant: float) -> AscentDesign:
        """Return the design over the kernel matrix, which is not decomposed."""
        model = self.model
        if model.kernel == "precomputed" or callable(model.kernel):
            K = self._kernel_matrix()
            check_semidefinite(K)
            return KernelDesign(K)
        values = KernelRows(self.observed, **kernel_parameters(model, self.gamma))
        n_rows = len(self.rows)
        memory = None if storage_type(n_rows) == np.float64 else available_bytes()
        return kernel_design(values.of_rows, n_rows, memory)

    def _make_design(self, constant: float) -> Design:
        """Return the design in the eigenvectors of the kernel matrix."""
        return SpectralDesign(self._kernel_matrix(), self.model.low_rank)

    def _kernel_matrix(self) -> FloatArray:
        """Return the checked kernel matrix of the rows that are not ignored, as a new array."""
        K = check_gram(kernel_values(self.model, self.X, gamma=self.gamma))
        return K[np.ix_(self.rows, self.rows)] if len(self.rows) < len(K) else K

    def make_certifier(self, objective: Objective) -> Certifier:
        """Return the certifier by the kernel values in double precision."""
        design = objective.design
        stored = design.K if isinstance(design.K, np.ndarray) and design.K.dtype == np.float64 else None
        prove = partial(prove_function, objective, design.exact_product, design.exact_row_norms(), K=stored)
        return Certifier(prove, self.X.dtype)

    def solve(self, make_objective: MakeObjective, solver: Solver, start: Any, max_iter: int) -> Solution:
        """Solve over the eigenvectors of the kernel matrix, with a proof."""
        model = self.model
        ridge, _ = self.find_ridge(model)
        limits = start, model.tol, max_iter
        return solve_kernel(solver, self._kernel_matrix(), model.low_rank, ridge, make_objective, self.X.dtype, *limits)

    def estimate_memory(self, solver: Solver) -> MemoryNeeds:
        """Estimate the memory that a solver needs."""
        size = FitSize(self.X.shape[0], self.X.shape[1], self.n_labels)
        # A kernel matrix that the caller computed is copied.
        n_copies = 2 if self.model.kernel == "precomputed" else 1
        return estimate_kernel(size, is_decomposed=not self.has_row_design, n_copies=n_copies)

    def count_parameters(self, ridge: float, design: Design | None = None) -> float:
        """Estimate the effective number of parameters from a sample of the rows, unless there is a design."""
        if design is not None:
            return super().count_parameters(ridge, design)
        rows = self.rows[choose_spectrum_rows(len(self.rows))]
        X = self.X[np.ix_(rows, rows)] if self.model.kernel == "precomputed" else self.X[rows]
        return estimate_kernel_parameters(kernel_values(self.model, X, gamma=self.gamma), ridge, self.n_counted)


class FeatureMapForm(ModelForm):
    """Weights of mapped features in `feature_coef_`, with the fitted transformer in `feature_map_`."""

    scores = staticmethod(score_mapped_features)

    def find_start(self) -> FloatArray | None:
        """Return None: every fit draws other features."""
        return None

    def store(self, coefficients: FloatArray) -> None:
        """Store the transformer and the weights of its features in the model."""
        self.model.feature_map_ = self.feature_map
        self.model.feature_coef_ = coefficients

    @cached_property
    def feature_map(self) -> Any:
        """The fitted transformer to the features."""
        names = ("approximation", "n_components", "kernel", "degree", "coef0", "random_state")
        parameters = {name: getattr(self.model, name) for name in names}
        return fit_feature_map(self.observed, gamma=self.gamma, **parameters)

    def basis(self, X: Matrix, constant: float) -> Any:
        """Return the mapped features."""
        return apply_feature_map(self.feature_map, X)

    def make_row_design(self, constant: float) -> AscentDesign:
        """Return the design over the mapped features."""
        return MatrixDesign(self.basis(self.observed, 1.0))

    def _make_design(self, constant: float) -> Design:
        """Return the design in the eigenvectors of the kernel that the mapped features have."""
        return FeatureMapDesign(self.basis(self.observed, constant), self.model.low_rank)

    def make_certifier(self, objective: Objective) -> Certifier:
        """Return the certifier by the mapped features."""
        design = objective.design
        # Dual ascent has the mapped features in its design.
        features = design.X if isinstance(design, MatrixDesign) else self.basis(self.observed, 1.0)
        is_spectral = isinstance(design, FeatureMapDesign) and self.model.low_rank == "coefficients"
        prove = partial(prove_linear, objective, features, design=design if is_spectral else None)
        return Certifier(prove, np.dtype(np.float64))

    def estimate_memory(self, solver: Solver) -> MemoryNeeds:
        """Estimate the memory that a solver needs."""
        return estimate_feature_map(FitSize(self.X.shape[0], self.X.shape[1], self.n_labels), self.model.n_components)


def form_of(model: Any) -> type[ModelForm]:
    """Return the form of a classifier, by its parameters `kernel` and `approximation`."""
    if isinstance(model.kernel, str) and model.kernel == "linear":
        return LinearForm
    return KernelForm if getattr(model, "approximation", None) is None else FeatureMapForm


def _of_shape(found: FloatArray | None, shape: tuple[int, int]) -> FloatArray | None:
    """Return an array if it has the shape, and None otherwise."""
    return None if found is None or found.shape != shape else found
