"""The fit of every model with an objective: pose the problem, solve it, store the solution; or learn batch by batch."""

import sys
import time
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from rbrl._common.checks import check_choice, check_number, check_row_weights
from rbrl._common.typing import ArrayLike, FloatArray, IntArray, Matrix, MatrixLike
from rbrl.datasets import Columns
from rbrl.estimators.base import FLOATS, MultiLabelClassifier, Rows, remember_columns
from rbrl.estimators.convex_problem import ConvexProblem, enough_memory, mapped, present_rows, solver_of
from rbrl.exceptions import InvalidLabelsError
from rbrl.losses import Loss
from rbrl.out_of_core import Blocks, LabelCounts, as_blocks, fit_blocks, label_counts
from rbrl.out_of_core.fit import learn_batch, streamed_coefficients
from rbrl.out_of_core.sources import column_names
from rbrl.problem.kernel import APPROXIMATIONS, KERNELS, gram
from rbrl.solvers import SOLVERS, QuasiNewton, Solution, Solver
from rbrl.targets import SignedTargets, check_not_label_sets

__all__ = ["KernelModel", "ObjectiveClassifier", "StreamingClassifier", "present_rows"]

# Kernel values at a time: 128 MB.
BLOCK_ENTRIES = 2**24
# A singular value counts towards the rank above this share of the largest.
RANK_FLOOR = 1e-6


class KernelModel:
    """Classifiers with the parameters `kernel`, `gamma`, `degree` and `coef0`: their kernel, and scores by it.

    A linear model keeps `coef_` and `intercept_`, every other one `dual_coef_`, `X_fit_` and perhaps `intercept_`.
    """

    kernel: str | Callable[[Any, Any], Any]
    gamma: float | None
    degree: int
    coef0: float
    coef_: FloatArray
    intercept_: FloatArray
    dual_coef_: FloatArray
    X_fit_: Matrix | None

    def _gram(self, X: Matrix, Z: Matrix | None = None) -> FloatArray:
        return gram(X, Z, kernel=self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)

    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _raw_scores(self, X: Matrix) -> FloatArray:
        """Scores of checked rows, of the type of X."""
        if self._is_linear():
            return np.asarray(X @ self.coef_.T) + self.intercept_
        step = max(1, BLOCK_ENTRIES // len(self.dual_coef_))
        blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
        scores = np.vstack([self._gram(block, self.X_fit_) @ self.dual_coef_ for block in blocks])
        return (scores + getattr(self, "intercept_", 0.0)).astype(X.dtype, copy=False)

    def _check_kernel(self) -> None:
        owner = type(self).__name__
        if self.gamma is not None:
            check_number(owner, "gamma", self.gamma, strict=True)
        check_number(owner, "degree", self.degree, low=1, integer=True)
        check_number(owner, "coef0", self.coef0)
        if not callable(self.kernel):
            check_choice(owner, "kernel", self.kernel, KERNELS)


class ObjectiveClassifier(KernelModel, MultiLabelClassifier):
    """A classifier that minimises loss + ridge + nuclear norm, linear or with a kernel.

    A subclass names its loss in :meth:`loss`; everything else is here. Parameters are those of
    :class:`rbrl.BRLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.losses import SquaredHinge
    >>> class RidgeOnHinges(ObjectiveClassifier):
    ...     def loss(self, count_labels):
    ...         return SquaredHinge()
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> RidgeOnHinges(ridge=10, nuclear=0).fit(X, Y).gap_ <= 1e-4
    True
    """

    # Parameters that are numbers of 0 or more.
    non_negative: tuple[str, ...] = ("ridge", "nuclear")
    # What a subclass without these parameters has.
    max_rank: int | None = None
    approximation: str | None = None
    n_components: int
    low_rank: str
    feature_coef_: FloatArray
    feature_map_: Any
    objective_: float
    gap_: float
    rank_: int
    n_iter_: int
    n_evaluations_: float
    history_: FloatArray
    n_samples_seen_: int

    def __init__(
        self, ridge: float = 1.0, nuclear: float = 0.1, kernel: str | Callable[[Any, Any], Any] = "linear",
        gamma: float | None = None, degree: int = 3, coef0: float = 1.0, low_rank: str = "coefficients",
        max_rank: int | None = None, approximation: str | None = None, n_components: int = 500,
        random_state: int | np.random.RandomState | None = None, fit_intercept: bool = True, non_empty: bool = False,
        solver: str | Solver = "auto", tol: float = 1e-4, max_iter: int = 1000, warm_start: bool = False,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        self.ridge, self.nuclear = ridge, nuclear
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, degree, coef0
        self.low_rank, self.max_rank = low_rank, max_rank
        self.approximation, self.n_components, self.random_state = approximation, n_components, random_state
        self.fit_intercept, self.non_empty = fit_intercept, non_empty
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.warm_start, self.verbose = warm_start, verbose

    @abstractmethod
    def loss(self, count_labels: Callable[[], LabelCounts]) -> Loss:
        """The loss of labels and scores.

        Parameters
        ----------
        count_labels : callable
            Counts the labels of all rows, for a loss that depends on them; others need not call it.

        Returns
        -------
        Loss
        """

    def problem(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> ConvexProblem:
        """The problem that `fit` would solve: its design, its objective at any parameters, its solution.

        Nothing is stored in the classifier. `X`, `y` and `sample_weight` are arrays as for `fit`.

        Parameters
        ----------
        X, y, sample_weight : arrays
            As for `fit`; X may be a `Dataset`, which has its labels.

        Returns
        -------
        ConvexProblem

        Examples
        --------
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from rbrl import RBRLClassifier
        >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
        >>> objective = RBRLClassifier().problem(X, Y).objective(ridge=5, nuclear=0)
        >>> round(objective.value(objective.zeros()), 1)
        128.4
        """
        self._check_parameters()
        return ConvexProblem(self, *clone(self)._checked_data(X, y, sample_weight))

    def fit(self, X: Rows, y: MatrixLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
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
        self._check_parameters()
        blocks = as_blocks(X, y, sample_weight)
        if blocks is None:
            self._fit(*self._checked_data(X, y, sample_weight))
        else:
            self._fit_blocks(blocks)
        vars(self).pop("stream_", None)
        return self

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        started = time.perf_counter()
        problem = ConvexProblem(self, X, Y, weights)
        with enough_memory(problem):
            solution = problem.solve(self._previous(problem) if self.warm_start else None)
        if problem.kind == "linear":
            self._store_linear(solution.coefficients)
        elif problem.kind == "approximation":
            self.feature_map_, self.feature_coef_ = problem.feature_map, solution.coefficients
        else:
            self.dual_coef_ = np.zeros((len(Y), Y.shape[1]), dtype=solution.coefficients.dtype)
            self.dual_coef_[problem.rows] = solution.coefficients
            self.X_fit_ = None if self._is_precomputed() else X
        self._store_solution(solution, started)

    def _fit_blocks(self, blocks: Blocks) -> None:
        """Learn the linear model in passes over blocks of rows."""
        started, owner = time.perf_counter(), type(self).__name__
        if not self._is_linear():
            raise ValueError(
                f"{owner} learns a linear model from rows in blocks. Got kernel={self.kernel!r}; map the features of each "
                "block first, for example with sklearn.kernel_approximation.Nystroem, and use kernel='linear'."
            )
        if self.solver != "auto" and not isinstance(self.solver, QuasiNewton):
            raise ValueError(
                f"The solver parameter of {owner} must be 'auto' or a QuasiNewton for rows in blocks. "
                f"Got {self.solver!r} instead."
            )
        found, solution = fit_blocks(
            blocks, self.loss, self.ridge, self.nuclear, intercept=self.fit_intercept, solver=solver_of(self),
            start=self._linear_coefficients() if self.warm_start else None, tol=self.tol, max_iter=self.max_iter,
            verbose=self.verbose,
        )  # fmt: skip
        self.targets_ = SignedTargets.of_matrix(found.n_labels, found.low, found.label_type, found.sparse_labels)
        self.classes_ = self.targets_.classes_
        self.n_samples_seen_, self.n_features_in_ = found.n_samples, found.n_features
        vars(self).pop("feature_names_in_", None)
        remember_columns(self, blocks.columns or Columns())
        self._store_linear(solution.coefficients)
        self._store_solution(solution, started)

    def _linear_coefficients(self) -> FloatArray | None:
        """Of the features, those of the intercept last, if there was a fit."""
        if not hasattr(self, "coef_"):
            return None
        parts = [self.coef_, self.intercept_[:, None]] if self.fit_intercept else [self.coef_]
        return np.hstack(parts).T.astype(np.float64)

    def _previous(self, problem: ConvexProblem) -> FloatArray | None:
        """Coefficients of the last fit, if there was one of this shape; the features of an approximation are drawn anew."""
        found, n_columns = None, len(problem.rows)
        if problem.kind == "linear":
            found, n_columns = self._linear_coefficients(), problem.X.shape[1] + self.fit_intercept
        elif problem.kind != "approximation" and len(getattr(self, "dual_coef_", ())) > problem.rows[-1]:
            found = self.dual_coef_[problem.rows].astype(np.float64)
        return None if found is None or found.shape != (n_columns, problem.Y.shape[1]) else found

    def _store_linear(self, W: FloatArray) -> None:
        n_features = len(W) - self.fit_intercept
        self.coef_ = np.ascontiguousarray(W[:n_features].T)
        self.intercept_ = W[-1].copy() if self.fit_intercept else np.zeros(W.shape[1], dtype=W.dtype)

    def _store_solution(self, solution: Solution, started: float) -> None:
        proof, result = solution.proof, solution.result
        self.objective_, self.gap_ = proof.objective, proof.gap
        self.n_iter_, self.n_evaluations_ = result.n_iter, result.evaluations
        self.history_ = np.append(result.history[:-1], proof.objective)
        self.rank_ = int(np.count_nonzero(proof.sigma > RANK_FLOOR * proof.sigma.max(initial=0.0)))
        if self.verbose:
            sys.stderr.write(
                f"{type(self).__name__}: {self.n_iter_} iterations, {self.n_evaluations_:g} evaluations, objective "
                f"{self.objective_:.6g}, certified gap {self.gap_:.1e}, rank {self.rank_}, "
                f"{time.perf_counter() - started:.2f} s\n"
            )

    def _scores(self, X: Matrix) -> FloatArray:
        if self.approximation is None:
            return self._raw_scores(X)
        return (mapped(self.feature_map_, X) @ self.feature_coef_).astype(X.dtype, copy=False)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        for name in self.non_negative:
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
            check_number(owner, "max_rank", self.max_rank, low=1, integer=True)
            if not (isinstance(self.solver, str) and self.solver in ("auto", "low-rank")):
                raise ValueError(
                    f"With max_rank={self.max_rank}, {owner} is solved in factors. Got solver={self.solver!r}; leave it at "
                    "'auto', or set max_rank=None."
                )
        if self.approximation is not None:
            self._check_approximation(owner)
        if self.kernel == "precomputed" and self.fit_intercept:
            raise ValueError(
                f"{owner} cannot add an intercept to kernel='precomputed'. Got fit_intercept={self.fit_intercept}; "
                "pass fit_intercept=False, and add 1 to every kernel value if you want the paper's constant feature."
            )

    def _check_approximation(self, owner: str) -> None:
        check_choice(owner, "approximation", self.approximation, tuple(APPROXIMATIONS))
        check_number(owner, "n_components", self.n_components, low=1, integer=True)
        kernels = APPROXIMATIONS[str(self.approximation)]
        if not isinstance(self.kernel, str) or self.kernel not in kernels:
            raise ValueError(
                f"{owner} with approximation={self.approximation!r} needs kernel={' or '.join(map(repr, kernels))}. Got "
                f"kernel={self.kernel!r}; choose such a kernel, or approximation=None."
            )


# What does not hold after a further batch.
_OF_FIT = ("objective_", "gap_", "rank_", "n_iter_", "n_evaluations_", "history_", "coef_", "intercept_")
Method = TypeVar("Method", bound=Callable[..., Any])


def _of_linear_models(method: Method) -> Method:
    """Let a classifier have a method only where its kernel is linear; `available_if` has no types."""

    def check(model: KernelModel) -> bool:
        if not model._is_linear():
            raise AttributeError(
                f"{method.__name__} learns a linear model. Got kernel={model.kernel!r}; map the features of each batch "
                "first, for example with sklearn.kernel_approximation.RBFSampler, and use kernel='linear'."
            )
        return True

    return cast(Method, available_if(check)(method))


class StreamingClassifier(ObjectiveClassifier):
    """A classifier with an objective whose loss does not depend on the labels of other rows: it can learn in batches.

    Attributes
    ----------
    stream_ : dict
        After `partial_fit`: what is remembered of the rows; see :func:`rbrl.out_of_core.fit.learn_batch`.
    n_samples_seen_ : int
        After `partial_fit`, or a fit of rows in blocks.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import BRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = BRLClassifier(ridge=10).partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    >>> model.n_samples_seen_, model.coef_.shape
    (60, (4, 8))
    """

    stream_: dict[str, Any]

    @_of_linear_models
    def partial_fit(
        self, X: MatrixLike, y: MatrixLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        r"""Learn from further rows, which need not be kept.

        The model is the minimiser of the objective with the quadratic model of its loss at zero scores in place of the loss,
        over all rows seen since the first call. It follows from sums over rows alone, so it depends neither on their order
        nor on how they were cut into batches; there is no step to choose, and memory is that of :math:`X'X`.

        With more than 5000 features, whose :math:`X'X` would be too large, every batch is a step of a stochastic
        quasi-Newton method on the objective of the rows seen so far, and rows should come in random order. Memory is that
        of a few matrices like `coef_`.

        Neither is the optimum, nor has it a certificate: on the sets of ``benchmarks/passes`` its objective was 5 % to
        107 % higher. ``set_params(warm_start=True).fit(shards)`` goes on from it to the optimum.

        Parameters
        ----------
        X : array or sparse matrix (n_rows, n_features)
            With more than 5000 features, at least some hundred rows in the first call serve best: their leading directions
            are coordinates from then on.
        y : array or sparse matrix (n_rows, n_labels)
            As for `fit`.
        classes : array, default=None
            Of a 1-D y: all classes there will be. Needed in the first call, unless `fit` has seen them, and only there.
        sample_weight : array (n_rows,), default=None

        Returns
        -------
        self
            `coef_` and `intercept_` are computed when they are first asked for.
        """
        self._check_parameters()
        check_not_label_sets(y)
        first, names = "stream_" not in vars(self), column_names(y)
        known = list(getattr(self, "label_names_", names or ()))
        if not first and names is not None and known != names:
            raise InvalidLabelsError(
                f"Labels must come as in the first batch: {', '.join(known[:5])}. Got {', '.join(names[:5])}; put the "
                "columns in that order. A model cannot learn new labels: begin another for them."
            )
        X, y = validate_data(self, X, y, multi_output=True, accept_sparse="csr", dtype=FLOATS, reset=first)
        if first:
            classes = getattr(self, "classes_", None) if classes is None else classes
            if y.ndim == 1 and classes is None:
                raise ValueError(
                    f"classes must be passed on the first call to partial_fit with a 1-D y. Got {classes}."
                )
            self.targets_ = SignedTargets().fit(y if y.ndim == 2 else np.asarray(classes))
            self.classes_, self.stream_, self.n_samples_seen_ = self.targets_.classes_, {}, 0
            remember_columns(self, Columns(label_names=names))
        Y = self.targets_.encode_batch(y)
        weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
        loss, penalties = self.loss(lambda: label_counts(Y, weights)), (self.ridge, self.nuclear, self.fit_intercept)
        self.stream_ = learn_batch(self.stream_, X.astype(np.float64, copy=False), Y, weights, loss, *penalties)
        self.n_samples_seen_ = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        for name in _OF_FIT:
            vars(self).pop(name, None)
        return self

    @cached_property
    def coef_(self) -> FloatArray:  # type: ignore[override]
        """Of a stream, computed when it is first asked for; `fit` stores its own."""
        return self._streamed("coef_")

    @cached_property
    def intercept_(self) -> FloatArray:  # type: ignore[override]
        """As `coef_`."""
        return self._streamed("intercept_")

    def _streamed(self, name: str) -> FloatArray:
        if not vars(self).get("stream_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._store_linear(streamed_coefficients(self.stream_, self.n_samples_seen_, self.ridge, self.nuclear))
        return vars(self)[name]
