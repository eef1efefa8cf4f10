"""The fit of every model with an objective: build, solve, store."""

import sys
import time
from abc import abstractmethod

import numpy as np
from scipy import sparse

from rbrl._common.checks import check_choice, check_number
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.in_blocks import LearnsFromBlocks, as_blocks
from rbrl.estimators.memory import says_memory_needed
from rbrl.problem import LARGEST_DECOMPOSITION, BlockKernel, FeatureMapDesign, SpectralDesign, linear_design, with_ones
from rbrl.problem.kernel import APPROXIMATIONS, KERNELS, check_gram, fit_feature_map, gram
from rbrl.problem.objective import Objective
from rbrl.solvers import SOLVERS, KernelBlocks, LowRank, Posed, solve_kernel, solve_posed
from rbrl.solvers.certificate import Features, prove_feature_map, prove_function, prove_linear

# Kernel values at a time: 128 MB.
BLOCK_ENTRIES = 2**24


class KernelModel:
    """Mixin of classifiers with the parameters `kernel`, `gamma`, `degree` and `coef0`.

    A linear model keeps `coef_` and `intercept_`, every other one `dual_coef_`, `X_fit_` and perhaps `intercept_`.
    """

    def _gram(self, X, Z=None):
        return gram(X, Z, kernel=self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)

    def _is_linear(self):
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _raw_scores(self, X):
        """Scores of checked rows, of the type of X."""
        if self._is_linear():
            return np.asarray(X @ self.coef_.T) + self.intercept_
        step = max(1, BLOCK_ENTRIES // len(self.dual_coef_))
        blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
        scores = np.vstack([self._gram(block, self.X_fit_) @ self.dual_coef_ for block in blocks])
        return (scores + getattr(self, "intercept_", 0.0)).astype(X.dtype, copy=False)

    def _check_kernel(self):
        owner = type(self).__name__
        if self.gamma is not None:
            check_number(owner, "gamma", self.gamma, strict=True)
        check_number(owner, "degree", self.degree, low=1, integer=True)
        check_number(owner, "coef0", self.coef0)
        if not callable(self.kernel):
            check_choice(owner, "kernel", self.kernel, KERNELS)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags


# A singular value counts towards the rank above this share of the largest.
RANK_FLOOR = 1e-6


class ObjectiveClassifier(LearnsFromBlocks, KernelModel, MultiLabelClassifier):
    """A classifier that minimises loss + ridge + nuclear norm, linear or with a kernel.

    A subclass names its loss in :meth:`_loss`; everything else is here.
    """

    max_rank = approximation = None

    def __init__(
        self,
        ridge=1.0,
        nuclear=0.1,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1.0,
        low_rank="coefficients",
        max_rank=None,
        approximation=None,
        n_components=500,
        random_state=None,
        fit_intercept=True,
        non_empty=False,
        solver="auto",
        tol=1e-4,
        max_iter=1000,
        warm_start=False,
        verbose=0,
    ):
        self.ridge = ridge
        self.nuclear = nuclear
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.low_rank = low_rank
        self.max_rank = max_rank
        self.approximation = approximation
        self.n_components = n_components
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.non_empty = non_empty
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    @abstractmethod
    def _loss(self):
        """The loss of labels and scores."""

    def _loss_of(self, Y, weights):
        """The loss for the labels of the rows that have a weight: :meth:`_loss`, unless it depends on them."""
        return self._loss()

    def fit(self, X, y=None, sample_weight=None):
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features); or :class:`rbrl.datasets.Dataset`, which has its labels; or
            :class:`rbrl.datasets.Shards`, a list of parts (X, Y), a Dask array or data frame, or a list of delayed parts
            With ``kernel="precomputed"``, the kernel matrix (n_samples, n_samples). What comes in blocks stays where it is:
            the linear model is learned in passes over it, with bounded memory.
        y : array or sparse matrix (n_samples, n_labels)
            0/1 or -1/+1; `predict` answers in the same coding. A 1-D y of classes works too. With a Dask array X, a Dask
            array with the same rows in each block; with shards and parts, which have their labels, none.
        sample_weight : array (n_samples,), default=None
            Weights of the rows in the loss; a row of weight 0 is as if it were absent. Of arrays only.

        Returns
        -------
        self
        """
        blocks = as_blocks(X, y, sample_weight)
        learned = self._learn(X, y, sample_weight) if blocks is None else self._learn_blocks(blocks)
        self.__dict__.pop("stream_", None)
        return learned

    @says_memory_needed
    def _fit(self, X, Y, weights):
        started = time.perf_counter()
        rows, weights = present_rows(weights, len(Y))
        solution = self._solve(X, Y[rows], weights, rows)
        self._store(X, len(Y), rows, solution.coefficients)
        self._store_solution(solution)
        self._report(time.perf_counter() - started)

    def _solve(self, X, Y, weights, rows):
        """The :class:`rbrl.solvers.Solution` for the rows that have a weight."""
        solver = self._solver()
        limits = {"tol": self.tol, "max_iter": self.max_iter}

        def objective_of(design):
            return self._objective(design, Y, weights)

        start = self._previous(X.shape[1], Y.shape[1], rows) if self.warm_start else None
        if self._too_large_to_decompose(len(rows)):
            design = BlockKernel(self._kernel_blocks(X[rows]), len(rows))
            objective = objective_of(design)
            posed = Posed(lambda A, duals: prove_function(objective, design.product_as_posed, A, duals), X.dtype)
            return solve_posed(KernelBlocks(), objective, posed, start, **limits)
        if not self._is_linear() and self.approximation is None:
            K = self._kernel_matrix(X, rows)
            return solve_kernel(solver, K, self.low_rank, self.ridge, objective_of, X.dtype, start, **limits)
        objective = objective_of(self._design(X, rows))
        start = None if start is None else objective.design.weights(start)
        return solve_posed(solver, objective, self._posed(objective, X, rows), start, **limits)

    def _posed(self, objective, X, rows):
        """The proof of a model over features."""
        X = X[rows] if len(rows) < X.shape[0] else X
        if self._is_linear():
            features = Features(X, self.fit_intercept)
            return Posed(lambda W, duals: prove_linear(objective, features, W, duals), X.dtype)
        features = Features(self._features(X))
        prove = prove_linear if self.low_rank == "function" else prove_feature_map
        return Posed(lambda W, duals: prove(objective, features, W, duals), np.dtype(np.float64))

    def _too_large_to_decompose(self, n_samples):
        """Whether a kernel model is solved block by block: the penalty of the function alone allows it."""
        exact = not self._is_linear() and not self._is_precomputed() and self.approximation is None
        free = isinstance(self.solver, str) and self.solver == "auto" and self.max_rank is None
        return exact and free and self.low_rank == "function" and n_samples > LARGEST_DECOMPOSITION

    def _kernel_blocks(self, X):
        return lambda rows: self._gram(X[rows], X)

    def _solver(self):
        if self.max_rank is not None:
            return LowRank(self.max_rank)
        return SOLVERS[self.solver]() if isinstance(self.solver, str) else self.solver

    def _objective(self, design, Y, weights=None):
        """What `fit` minimises, over a design of the training rows."""
        return Objective(design, Y, self._loss_of(Y, weights), self.ridge, self.nuclear, weights)

    def _design(self, X, rows):
        """The design of the rows that have a weight."""
        if self._is_linear():
            X = (X[rows] if len(rows) < X.shape[0] else X).astype(np.float64, copy=False)
            return linear_design(with_ones(X) if self.fit_intercept else X)
        if self.approximation is None:
            return SpectralDesign(self._kernel_matrix(X, rows), self.low_rank)
        self.feature_map_ = self._fit_feature_map(X[rows])
        return FeatureMapDesign(self._features(X[rows]), self.low_rank)

    def _fit_feature_map(self, X):
        names = ("approximation", "n_components", "kernel", "gamma", "degree", "coef0", "random_state")
        return fit_feature_map(X, **{name: getattr(self, name) for name in names})

    def _features(self, X):
        features = self.feature_map_.transform(X)
        return np.asarray(features.toarray() if sparse.issparse(features) else features, dtype=np.float64)

    def _kernel_matrix(self, X, rows):
        K = check_gram(self._gram(X))
        return K[np.ix_(rows, rows)] if len(rows) < len(K) else K

    def _basis_rows(self, X, X_fit):
        """What the model's own coefficients are multiplied with: features, or kernel values to the training rows."""
        if self._is_linear():
            return with_ones(X) if self.fit_intercept else X
        return self._gram(X, X_fit) if self.approximation is None else self._features(X)

    def _store(self, X, n_samples, rows, coefficients):
        if self._is_linear():
            self._store_linear(X.shape[1], coefficients)
            return
        if self.approximation is not None:
            self.feature_coef_ = coefficients
            return
        self.dual_coef_ = np.zeros((n_samples, coefficients.shape[1]), dtype=coefficients.dtype)
        self.dual_coef_[rows] = coefficients
        self.X_fit_ = None if self._is_precomputed() else X

    def _store_linear(self, n_features, W):
        self.coef_ = np.ascontiguousarray(W[:n_features].T)
        self.intercept_ = W[-1].copy() if self.fit_intercept else np.zeros(W.shape[1], dtype=W.dtype)

    def _store_solution(self, solution):
        proof, result = solution.proof, solution.result
        self.objective_, self.gap_ = proof.objective, proof.gap
        self.n_iter_, self.n_evaluations_ = result.n_iter, result.evaluations
        self.history_ = np.append(result.history[:-1], proof.objective)
        self.rank_ = int(np.count_nonzero(proof.sigma > RANK_FLOOR * proof.sigma.max(initial=0.0)))

    def _previous(self, n_features, n_labels, rows=None):
        """Coefficients of the last fit, if there was one of this shape."""
        if self._is_linear() and hasattr(self, "coef_"):
            coefficients = np.hstack([self.coef_, self.intercept_[:, None]] if self.fit_intercept else [self.coef_]).T
            shape = (n_features + self.fit_intercept, n_labels)
        elif self.approximation is None and not self._is_linear() and len(getattr(self, "dual_coef_", ())) > rows[-1]:
            coefficients, shape = self.dual_coef_[rows], (len(rows), n_labels)
        else:
            return None
        return coefficients.astype(np.float64) if coefficients.shape == shape else None

    def _scores(self, X):
        if self.approximation is None:
            return self._raw_scores(X)
        return (self._features(X) @ self.feature_coef_).astype(X.dtype, copy=False)

    def _report(self, seconds):
        if self.verbose:
            sys.stderr.write(
                f"{type(self).__name__}: {self.n_iter_} iterations, {self.n_evaluations_:g} evaluations, objective "
                f"{self.objective_:.6g}, certified gap {self.gap_:.1e}, rank {self.rank_}, {seconds:.2f} s\n"
            )

    def _check_parameters(self):
        owner = type(self).__name__
        for name in ("ridge", "nuclear"):
            check_number(owner, name, getattr(self, name))
        check_number(owner, "tol", self.tol, strict=True)
        check_number(owner, "max_iter", self.max_iter, low=1, integer=True)
        check_choice(owner, "low_rank", self.low_rank, ("coefficients", "function"))
        self._check_kernel()
        if isinstance(self.solver, str):
            check_choice(owner, "solver", self.solver, tuple(SOLVERS))
        elif not hasattr(self.solver, "solve"):
            raise ValueError(
                f"The solver parameter of {owner} must be a name or a solver object. Got {self.solver!r} instead."
            )
        if self.max_rank is not None:
            self._check_max_rank(owner)
        if self.approximation is not None:
            self._check_approximation(owner)
        if self._is_precomputed() and self.fit_intercept:
            raise ValueError(
                f"{owner} cannot add an intercept to kernel='precomputed'. Got fit_intercept={self.fit_intercept}; "
                "pass fit_intercept=False, and add 1 to every kernel value if you want the paper's constant feature."
            )

    def _check_max_rank(self, owner):
        check_number(owner, "max_rank", self.max_rank, low=1, integer=True)
        if not (isinstance(self.solver, str) and self.solver in ("auto", "low-rank")):
            raise ValueError(
                f"With max_rank={self.max_rank}, {owner} is solved in factors. Got solver={self.solver!r}; leave it at "
                "'auto', or set max_rank=None."
            )

    def _check_approximation(self, owner):
        check_choice(owner, "approximation", self.approximation, tuple(APPROXIMATIONS))
        check_number(owner, "n_components", self.n_components, low=1, integer=True)
        kernels = APPROXIMATIONS[self.approximation]
        if not isinstance(self.kernel, str) or self.kernel not in kernels:
            raise ValueError(
                f"{owner} with approximation={self.approximation!r} needs kernel={' or '.join(map(repr, kernels))}. Got "
                f"kernel={self.kernel!r}; choose such a kernel, or approximation=None."
            )


def present_rows(weights, n_samples):
    """Indices of the rows with a weight, and their weights (None if all are 1)."""
    if weights is None:
        return np.arange(n_samples), None
    rows = np.flatnonzero(weights)
    weights = weights[rows]
    return rows, None if np.all(weights == 1) else weights
