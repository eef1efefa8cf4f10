"""The base class of the convex classifiers: pose the problem, solve it, store the solution."""

import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from sklearn.base import clone

from rbrl._common.checks import check_choice, check_number, users_level
from rbrl._common.frames import check_same_columns, check_same_rows
from rbrl._common.linalg import singular_values
from rbrl._common.typing import ArrayLike, FloatArray, IntArray, LabelNames, Matrix, MatrixLike, issparse
from rbrl.datasets import Dataset
from rbrl.decision import empty_share
from rbrl.estimators.base import Filling, MultiLabelClassifier, Rows
from rbrl.estimators.block_problem import BlockProblem
from rbrl.estimators.convex_problem import ConvexProblem
from rbrl.estimators.display import FitTask, TakesCallbacks, show_certificate, with_callbacks
from rbrl.estimators.entries import (
    ClassWeight,
    apply_label_mask,
    check_class_weight,
    check_classes,
    check_entry_weights,
    warn_of_missing_labels,
    weigh_entries,
)
from rbrl.estimators.forms import LINEAR, check_kernel, form_of, is_precomputed
from rbrl.estimators.model_problems import pose_problem
from rbrl.estimators.training_scores import (
    THRESHOLD_METRICS,
    THRESHOLD_SET_LATER,
    Threshold,
    TrainingRows,
    learn_threshold,
    warn_of_empty_rows,
)
from rbrl.exceptions import ConvergenceWarning
from rbrl.kernels import APPROXIMATIONS
from rbrl.losses import Loss
from rbrl.losses.label_graph import LabelCounts
from rbrl.losses.weights import mean_weights
from rbrl.out_of_core import as_blocks
from rbrl.problem.objective import LARGEST_BLOCK
from rbrl.scales import NUCLEAR_WITH_MAX_RANK, InterceptStrength, Strength, Width, intercept_column
from rbrl.solvers import SOLVERS, Solution, Solver

# A singular value counts towards the rank above this share of the largest.
RANK_FLOOR = 1e-6


# Packages whose data frames are in memory.
FRAME_PACKAGES = ("pandas", "polars", "pyarrow")


def is_in_memory(X: Any) -> bool:
    """Return whether X is certainly an object in memory, and not in blocks: by its type alone.

    Parameters
    ----------
    X : Any

    Returns
    -------
    bool
    """
    return isinstance(X, np.ndarray | Dataset) or issparse(X) or type(X).__module__.partition(".")[0] in FRAME_PACKAGES


class ObjectiveClassifier(TakesCallbacks, MultiLabelClassifier):
    """A classifier that minimises loss + ridge + nuclear norm, linear or with a kernel.

    A subclass defines its loss in :meth:`loss`; everything else is here. Parameters are those of
    :class:`rbrl.RBRLClassifier` without `ranking`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators.convex import ObjectiveClassifier
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
    # Values for a subclass without these parameters.
    max_rank: int | None = None
    approximation: str | None = None
    class_weight: ClassWeight = None
    takes_missing = True
    # Value for a model file of an earlier version.
    intercept_ridge: InterceptStrength = None
    # Value for a model file of an earlier version.
    threshold: Threshold = 0.0
    threshold_: float | FloatArray
    ridge: Strength
    ridge_: float
    n_components: int
    low_rank: str
    kernel: str | Callable[[Any, Any], Any]
    gamma: Width
    gamma_: float
    degree: int
    coef0: float
    coef_: FloatArray
    intercept_: FloatArray
    dual_coef_: FloatArray
    X_fit_: Matrix | None
    feature_coef_: FloatArray
    feature_map_: Any
    objective_: float
    gap_: float
    n_iter_: int
    n_evaluations_: float
    history_: FloatArray
    n_samples_seen_: int
    pass_seconds_: tuple[float, float]

    def __init__(
        self, ridge: Strength = "auto", nuclear: Strength = "auto", kernel: str | Callable[[Any, Any], Any] = "linear",
        gamma: Width = "median", degree: int = 3, coef0: float = 1.0, low_rank: str = "coefficients",
        max_rank: int | None = None, approximation: str | None = None, n_components: int = 500,
        random_state: int | np.random.RandomState | None = None, fit_intercept: bool = True,
        intercept_ridge: InterceptStrength = 1.0, non_empty: Filling = "auto", class_weight: ClassWeight = None,
        solver: str | Solver = "auto", tol: float = 1e-4, max_iter: int = 1000, warm_start: bool = False,
        verbose: int = 0, label_names: LabelNames = None, threshold: Threshold = 0.0,
    ) -> None:  # fmt: skip
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
        self.intercept_ridge = intercept_ridge
        self.non_empty = non_empty
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.label_names = label_names
        self.threshold = threshold

    @abstractmethod
    def loss(self, count_labels: Callable[[], LabelCounts]) -> Loss:
        """Return the loss of labels and scores.

        Parameters
        ----------
        count_labels : callable
            Function that counts the labels of all rows, for a loss that depends on them.

        Returns
        -------
        Loss
        """

    def problem(
        self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None, n_problems: int = 1
    ) -> ConvexProblem:
        """Return the problem that `fit` would solve: its design, its objective at any parameters, its solution.

        Nothing is stored in the classifier.

        Parameters
        ----------
        X, y, sample_weight : arrays
            Arrays in the forms that `fit` accepts; X may be a `Dataset`, which has its labels.
        n_problems : int, default=1
            Number of objectives that will be minimised over the design. With more objectives, better coordinates
            are worth their cost.

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
        204.0
        """
        self._check_parameters()
        X, Y, weights, counted = clone(self)._check_entries(X, y, sample_weight)
        return pose_problem(self, X, Y, weights, counted, n_problems)

    @with_callbacks
    def fit(
        self, X: Rows, y: MatrixLike | None = None, sample_weight: ArrayLike | None = None, *,
        label_mask: MatrixLike | None = None,
    ) -> Self:  # fmt: skip
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), Dataset, Shards, list of parts, Dask array or data frame
            A :class:`rbrl.datasets.Dataset` has its labels, and so have parts: :class:`rbrl.datasets.Shards`, a list of
            (X, Y) or (X, Y, weights), or of delayed ones. What comes in parts stays where it is: the linear model is learned
            in passes over it, with bounded memory. With ``kernel="precomputed"``, the kernel matrix (n_samples, n_samples).
        y : array or sparse matrix (n_samples, n_labels)
            Labels, 0/1 or -1/+1; `predict` returns the same coding. NaN is a missing label, which is in no
            loss and no pair. A 1-D y of classes is also accepted. With a Dask array X, a Dask array with the
            same rows in each block; with shards and parts, which have their labels, none.
        sample_weight : array (n_samples,) or (n_samples, n_labels), default=None
            Weights of the rows in the loss, or of the entries of y; what has weight 0 is as if it were absent. The hinge of
            an entry counts its weight, a pair of labels the product of theirs, as a share of all pairs of the row, times
            the mean weight of the row's entries. With a Dask array X, a Dask array; parts have their weights with them.
        label_mask : bool array or sparse matrix (n_samples, n_labels), default=None
            True where a label is known: missing ones of a sparse y, in which nothing else can say so. With a Dask array X,
            a Dask array; in parts, a weight of 0 says the same.

        Returns
        -------
        self
        """
        self._check_parameters()
        task = FitTask(self, X, y, "certified step")
        vars(self).pop("pass_seconds_", None)
        problem = self._pose(X, y, sample_weight, label_mask)
        problem.on_gap = task.callback
        self._fit_problem(problem)
        vars(self).pop("stream_", None)
        task.end()
        return self

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        self._fit_problem(pose_problem(self, X, Y, weights))

    def _fit_problem(self, problem: ConvexProblem | BlockProblem) -> None:
        """Solve a problem, and store its solution and the numbers that the parameters stand for."""
        started = time.perf_counter()
        solution = problem.fit()
        self.ridge_ = problem.ridge
        vars(self).pop("gamma_", None)
        if problem.gamma is not None:
            self.gamma_ = problem.gamma
        self._set_threshold(problem)
        self._store_solution(solution, started)

    def _pose(
        self, X: Rows, y: MatrixLike | None, sample_weight: ArrayLike | None, label_mask: MatrixLike | None
    ) -> ConvexProblem | BlockProblem:
        """Return the problem over rows in memory or in blocks."""
        blocks = None if is_in_memory(X) else as_blocks(X, y, sample_weight, label_mask)
        if blocks is not None:
            return BlockProblem(self, blocks)
        return pose_problem(self, *self._check_entries(X, y, sample_weight, label_mask))

    def _check_entries(
        self,
        X: Rows,
        y: MatrixLike | None,
        sample_weight: ArrayLike | None = None,
        label_mask: MatrixLike | None = None,
    ) -> tuple[Matrix, IntArray, FloatArray | None, FloatArray | None]:
        """Return checked rows, labels (0 is missing), weights of rows or entries, and weights of whole rows."""
        check_same_rows(X=X, y=y, sample_weight=sample_weight, label_mask=label_mask)
        check_same_columns(y=y, sample_weight=sample_weight, label_mask=label_mask)
        X, Y, _ = self._check_data(X, y)
        check_classes(type(self).__name__, self.threshold, self.targets_.kind)
        Y, weights, counted = self._entries(Y, sample_weight, label_mask)
        # Weights of classes do not change the number of rows.
        self.empty_share_ = empty_share(Y, mean_weights(Y, None) if counted is None else counted)
        warn_of_missing_labels(Y, getattr(self, "label_names_", None))
        return X, Y, weights, counted

    def _entries(
        self, Y: IntArray, sample_weight: ArrayLike | None, label_mask: MatrixLike | None
    ) -> tuple[IntArray, FloatArray | None, FloatArray | None]:
        if label_mask is None and sample_weight is None and self.class_weight is None:
            return Y, None, None
        Y = apply_label_mask(Y, label_mask)
        weights = check_entry_weights(sample_weight, Y, self.targets_.is_matrix)
        if weights is not None and weights.ndim == 2:
            Y = np.where(weights > 0, Y, np.int8(0))
        # Weights of classes say what errors cost, not how many rows there are.
        counted = None if weights is None else mean_weights(Y, weights)
        names = getattr(self, "label_names_", None)
        return *weigh_entries(Y, weights, self.class_weight, self.targets_, names), counted

    def _set_threshold(self, problem: ConvexProblem | BlockProblem) -> None:
        """Set `threshold_`, and learn it first if the parameter names a metric.

        Warn if the model gives most training rows no label.
        """
        is_matrix = self.targets_.is_matrix
        is_learned = self.threshold in THRESHOLD_METRICS
        may_be_empty = is_matrix and self.non_empty == "auto" and not self.non_empty_ and not THRESHOLD_SET_LATER.get()
        self.threshold_ = 0.0 if is_learned else float(self.threshold)
        if not (is_learned or may_be_empty):
            return
        rows = problem.training_rows()
        blocks = self._untuned_blocks(rows.X)
        if is_learned:
            scored = TrainingRows(rows.Y, self._untuned_scores(rows.X), rows.weights, rows.counted)
            fills = is_matrix and self.non_empty_
            metric = str(self.threshold)
            self.threshold_ = learn_threshold(metric, problem.loss(), scored, problem.count_parameters(), fills)
            blocks = iter([scored.scores])
        if may_be_empty:
            is_empty = np.concatenate([~(scores > self.threshold_).any(axis=1) for scores in blocks])
            warn_of_empty_rows(type(self).__name__, rows, is_empty, self.empty_share_)

    def _untuned_blocks(self, X: Matrix) -> Iterator[FloatArray]:
        """Yield the scores of one block of checked rows after the other, before the threshold is subtracted."""
        step = max(1, LARGEST_BLOCK // self.targets_.n_columns)
        return (self._untuned_scores(X[start : start + step]) for start in range(0, X.shape[0], step))

    # Dual variables from which a warm start continues; they are in no copy and in no file.
    _dual_scores: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        state = cast("dict[str, Any]", super().__getstate__())
        return {name: value for name, value in state.items() if name != "_dual_scores"}

    @property
    def nuclear_(self) -> float:
        """`nuclear` as a number."""
        if not isinstance(self.nuclear, str):
            return float(self.nuclear)
        return 0.0 if self.max_rank is None else NUCLEAR_WITH_MAX_RANK

    @cached_property
    def rank_(self) -> int:
        """Rank of the weights: the number of singular values above 1e-6 of the largest.

        A linear model without a nuclear norm computes it when it is first asked for. With thousands of labels, that takes
        longer than the fit.
        """
        coefficients = LINEAR.coefficients(self)
        if coefficients is None:
            raise AttributeError(f"This {type(self).__name__} has no rank_: it is not fitted.")
        if self.fit_intercept:
            coefficients[-1] /= intercept_column(self.ridge_, self.intercept_ridge)
        return _count_rank(singular_values(coefficients))

    def _store_solution(self, solution: Solution, started: float) -> None:
        proof, result = solution.proof, solution.result
        for text in solution.messages:
            warnings.warn(text, ConvergenceWarning, stacklevel=users_level())
        self.objective_, self.gap_ = proof.objective, proof.gap
        self.n_iter_, self.n_evaluations_ = result.n_iter, result.evaluations
        self.history_ = np.append(result.history[:-1], proof.objective)
        vars(self).pop("_dual_scores", None)
        if self.warm_start and isinstance(result.dual_scores, np.ndarray):
            self._dual_scores = result.dual_scores
        vars(self).pop("rank_", None)
        if proof.sigma is not None:
            self.rank_ = _count_rank(proof.sigma)
        if self.verbose:
            sys.stderr.write(
                f"{type(self).__name__}: {self.n_iter_} iterations, {self.n_evaluations_:g} evaluations, objective "
                f"{self.objective_:.6g}, certified gap {self.gap_:.1e}, rank {self.rank_}, "
                f"{time.perf_counter() - started:.2f} s\n"
            )

    def _scores(self, X: Matrix) -> FloatArray:
        scores = self._untuned_scores(X)
        scores -= np.asarray(getattr(self, "threshold_", 0.0), dtype=scores.dtype)
        return scores

    def _untuned_scores(self, X: Matrix) -> FloatArray:
        """Return the scores of checked rows before the threshold is subtracted, as a new array."""
        return form_of(self).scores(self, X)

    def _sk_visual_block_(self) -> Any:
        return show_certificate(self)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        for name in self.non_negative:
            check_number(owner, name, getattr(self, name), words=("auto",) if name in ("ridge", "nuclear") else ())
        check_number(owner, "intercept_ridge", self.intercept_ridge, strict=True, words=("ridge", None))
        check_choice(owner, "non_empty", self.non_empty, (True, False, "auto"))
        check_number(owner, "tol", self.tol, strict=True)
        check_number(owner, "max_iter", self.max_iter, low=1, integer=True)
        check_choice(owner, "low_rank", self.low_rank, ("coefficients", "function"))
        check_number(owner, "threshold", self.threshold, low=-np.inf, words=THRESHOLD_METRICS)
        check_class_weight(owner, self.class_weight)
        check_kernel(self)
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
        if is_precomputed(self) and self.fit_intercept:
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


def _count_rank(sigma: FloatArray) -> int:
    """Return the number of singular values above the floor."""
    return int(np.count_nonzero(sigma > RANK_FLOOR * sigma.max(initial=0.0)))
