"""The base class of the convex classifiers: check the data, solve the problem, store the solution."""

import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from rbrl._common.bases import all_or_nothing
from rbrl._common.checks import check_choice, check_number, users_level
from rbrl._common.frames import check_same_columns, check_same_rows
from rbrl._common.typing import ArrayLike, FloatArray, IntArray, LabelNames, Matrix, MatrixLike, issparse
from rbrl.datasets import Dataset
from rbrl.decision import empty_share
from rbrl.estimators.base import Filling, MultiLabelClassifier, Rows
from rbrl.estimators.coefficients import (
    check_kernel,
    compute_rank,
    count_rank,
    find_best_labels,
    find_nuclear,
    has_factors,
)
from rbrl.estimators.compression import check_compress
from rbrl.estimators.convex_problem import ConvexProblem, solver_of
from rbrl.estimators.display import FitTask, TakesCallbacks, show_certificate, with_callbacks
from rbrl.estimators.entries import ClassWeight, check_class_weight, check_classes, find_entries, warn_of_missing_labels
from rbrl.estimators.forms import form_of
from rbrl.estimators.streaming import BlockProblem, available_if_streamable, compute_stream_coefficients, learn_rows
from rbrl.estimators.training_scores import THRESHOLD_METRICS, Threshold, set_threshold
from rbrl.estimators.validation import check_training_data
from rbrl.exceptions import ConvergenceWarning
from rbrl.losses import Loss
from rbrl.losses.label_graph import LabelCounts
from rbrl.losses.weights import mean_weights
from rbrl.out_of_core import as_blocks
from rbrl.out_of_core.sources import feature_blocks
from rbrl.scales import InterceptStrength, Strength, Width
from rbrl.solvers import Solver

# Packages whose data frames are in memory.
FRAME_PACKAGES = ("pandas", "polars", "pyarrow")


class ConvexClassifier(MultiLabelClassifier):
    """A classifier that minimises loss + ridge + nuclear norm, linear or with a kernel.

    A subclass defines its loss in :meth:`loss`; everything else is here. Parameters are those of
    :class:`rbrl.RBRLClassifier` without `ranking`. A subclass whose loss of a row depends on no other row sets
    ``loss_is_row_wise = True``; its linear models have :meth:`partial_fit`.

    Attributes
    ----------
    stream_ : dict
        Summary of the rows of `partial_fit`; see :func:`rbrl.out_of_core.batches.learn_batch`.
    n_samples_seen_ : int
        Number of rows of `partial_fit`, or of a fit of rows in blocks.
    weight_seen_ : float
        Sum of the weights of the rows of `partial_fit`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators.convex import ConvexClassifier
    >>> from rbrl.losses import SquaredHinge
    >>> class RidgeOnHinges(ConvexClassifier):
    ...     def loss(self, count_labels):
    ...         return SquaredHinge()
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> RidgeOnHinges(ridge=10, nuclear=0).fit(X, Y).gap_ <= 1e-4
    True
    """

    # Parameters that are numbers of 0 or more.
    non_negative: tuple[str, ...] = ("ridge", "nuclear")
    # True if the loss of a row depends on no other row.
    loss_is_row_wise: bool = False
    takes_missing = True
    takes_sparse_labels = True
    # Values for a subclass without these parameters.
    max_rank: int | None = None
    approximation: str | None = None
    class_weight: ClassWeight = None
    # Values for a subclass without this parameter, and for a model file of an earlier version.
    compress: float | None = None
    intercept_ridge: InterceptStrength = None
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
    label_factors_: FloatArray
    feature_factors_: FloatArray
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
    weight_seen_: float
    stream_: dict[str, Any]
    pass_seconds_: tuple[float, float]
    # Dual variables from which a warm start continues; they are in no copy and in no file.
    _dual_scores: FloatArray | None = None

    def __init__(
        self, ridge: Strength = "auto", nuclear: Strength = "auto", kernel: str | Callable[[Any, Any], Any] = "linear",
        gamma: Width = "median", degree: int = 3, coef0: float = 1.0, low_rank: str = "coefficients",
        max_rank: int | None = None, approximation: str | None = None, n_components: int = 500,
        random_state: int | np.random.RandomState | None = None, fit_intercept: bool = True,
        intercept_ridge: InterceptStrength = 1.0, non_empty: Filling = "auto", class_weight: ClassWeight = None,
        solver: str | Solver = "auto", tol: float = 1e-4, max_iter: int = 1000, warm_start: bool = False,
        verbose: int = 0, label_names: LabelNames = None, threshold: Threshold = 0.0,
        compress: float | None = None,
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
        self.compress = compress

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
        return ConvexProblem(self, X, Y, weights, counted, n_problems)

    @available_if(lambda model: hasattr(TakesCallbacks, "set_callbacks"))
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks of scikit-learn 1.9 or later, which are called with every certified gap of a fit."""
        # Not a base class: only these methods are needed.
        return cast(Any, TakesCallbacks).set_callbacks(self, *callbacks)

    @with_callbacks
    def fit(
        self, X: Rows, y: MatrixLike | None = None, sample_weight: ArrayLike | None = None, *,
        label_mask: MatrixLike | None = None,
    ) -> Self:  # fmt: skip
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), Dataset, Shards, list of parts, Dask array or data frame
            Features, or the kernel matrix (n_samples, n_samples) with ``kernel="precomputed"``. A
            :class:`rbrl.datasets.Dataset` contains its labels. So do rows in parts: :class:`rbrl.datasets.Shards`, or a
            list of (X, Y) or (X, Y, weights), which may be delayed objects of Dask. Parts are not loaded together: a
            linear model is fitted in passes over them, with bounded memory.
        y : array or sparse matrix (n_samples, n_labels)
            Labels, 0/1 or -1/+1; `predict` returns the same coding. NaN is a missing label, which is in no
            loss and no pair. A 1-D y of classes is also accepted. With a Dask array X, y is a Dask array with
            the same rows in each block. With a Dataset, shards or parts, y must be None.
        sample_weight : array (n_samples,) or (n_samples, n_labels), default=None
            Weights of the rows in the loss, or of the entries of y. A row or an entry of weight 0 is ignored. The hinge
            of an entry has the weight of this entry. A pair of labels has the product of their weights, as a share of
            all pairs of the row, times the mean weight of the entries of the row. With a Dask array X, it is a Dask
            array. For parts, it must be None, because the parts contain the weights.
        label_mask : bool array or sparse matrix (n_samples, n_labels), default=None
            True for a known label, False for a missing label. A sparse y needs it, because it cannot contain NaN. With
            a Dask array X, it is a Dask array. For parts, it must be None; a weight of 0 marks a missing label.

        Returns
        -------
        self
        """
        self._check_parameters()
        task = FitTask(self, X, y, "certified step") if getattr(self, "_skl_callbacks", None) else None
        vars(self).pop("pass_seconds_", None)
        is_frame = type(X).__module__.partition(".")[0] in FRAME_PACKAGES
        is_in_memory = isinstance(X, np.ndarray | Dataset) or issparse(X) or is_frame
        blocks = None if is_in_memory else as_blocks(X, y, sample_weight, label_mask)
        problem: ConvexProblem | BlockProblem
        if blocks is None:
            problem = ConvexProblem(self, *self._check_entries(X, y, sample_weight, label_mask))
        else:
            problem = BlockProblem(self, blocks)
        problem.on_gap = None if task is None else task.callback
        self._fit_problem(problem)
        vars(self).pop("stream_", None)
        if task is not None:
            task.end()
        return self

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        """Fit the problem of these rows without masks and weights of entries."""
        self._fit_problem(ConvexProblem(self, X, Y, weights))

    def _fit_problem(self, problem: ConvexProblem | BlockProblem) -> None:
        """Solve a problem, and store its solution and the numbers that the parameters stand for."""
        started = time.perf_counter()
        vars(self).pop("gamma_", None)
        solution = problem.fit()
        set_threshold(self, problem)
        proof = solution.proof
        result = solution.result
        for text in solution.messages:
            warnings.warn(text, ConvergenceWarning, stacklevel=users_level())
        self.objective_ = proof.objective
        self.gap_ = proof.gap
        self.n_iter_ = result.n_iter
        self.n_evaluations_ = result.evaluations
        self.history_ = np.append(result.history[:-1], proof.objective)
        for name in ("_dual_scores", "rank_"):
            vars(self).pop(name, None)
        if self.warm_start and isinstance(result.dual_scores, np.ndarray):
            self._dual_scores = result.dual_scores
        if proof.sigma is not None:
            self.rank_ = count_rank(proof.sigma)
        if self.verbose:
            # Without a nuclear norm, the rank would take longer to compute than the fit.
            rank = f"rank {self.rank_}, " if "rank_" in vars(self) else ""
            sys.stderr.write(
                f"{type(self).__name__}: {self.n_iter_} iterations, {self.n_evaluations_:g} evaluations, objective "
                f"{self.objective_:.6g}, certified gap {self.gap_:.1e}, {rank}{time.perf_counter() - started:.2f} s\n"
            )

    def _check_entries(
        self, X: Rows, y: MatrixLike | None, sample_weight: ArrayLike | None = None,
        label_mask: MatrixLike | None = None,
    ) -> tuple[Matrix, IntArray, FloatArray | None, FloatArray | None]:  # fmt: skip
        """Return checked rows X, labels Y (0 is missing), weights, and weights of whole rows.

        The weights belong to rows (n_samples,) or entries of Y; None means 1. The last result has
        the weights without those of classes. The columns and the coding are stored.
        """
        if not (sample_weight is None and label_mask is None):
            check_same_rows(X=X, y=y, sample_weight=sample_weight, label_mask=label_mask)
            check_same_columns(y=y, sample_weight=sample_weight, label_mask=label_mask)
        X, Y, _ = check_training_data(self, X, y)
        if self.threshold != 0:
            check_classes(type(self).__name__, self.threshold, self.targets_.kind)
        weights = counted = None
        names = getattr(self, "label_names_", None)
        if not (label_mask is None and sample_weight is None and self.class_weight is None):
            Y, weights, counted = find_entries(Y, sample_weight, label_mask, self.class_weight, self.targets_, names)
            # Weights of classes do not change the number of rows.
            self.empty_share_ = empty_share(Y, mean_weights(Y, None) if counted is None else counted)
        if not Y.any(axis=0).all():
            warn_of_missing_labels(Y, names)
        return X, Y, weights, counted

    @available_if_streamable
    @all_or_nothing
    def partial_fit(
        self, X: MatrixLike, y: MatrixLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        label_mask: MatrixLike | None = None,
    ) -> Self:  # fmt: skip
        r"""Learn from a further batch of rows; earlier batches need not be kept.

        The model minimises the objective over all rows since the first call, with a quadratic model of the
        loss at zero scores in place of the loss. It is computed from sums over rows. Therefore it depends
        neither on the order of the rows nor on the batches, and needs no step size. It needs the memory of
        :math:`X'X`.

        With more than 5000 features, :math:`X'X` would be too large. Every batch is then a step of a
        stochastic quasi-Newton method on the objective of all rows so far, and rows should come in random
        order. This needs the memory of a few matrices of the size of `coef_`.

        Neither model is the optimum, and neither has a certificate: on the sets of ``studies/benchmarks/passes``,
        the objective was 5 % to 107 % higher. ``set_params(warm_start=True).fit(shards)`` continues from
        such a model to the optimum.

        Parameters
        ----------
        X : array or sparse matrix (n_rows, n_features)
            Rows of the batch. With more than 5000 features, the first batch should have some hundred rows:
            their leading directions become the coordinates of the method.
        y : array or sparse matrix (n_rows, n_labels)
            Labels, in a form that `fit` accepts.
        classes : array, default=None
            All classes of a 1-D y. They are needed only in the first call, and not after `fit`.
        sample_weight : array (n_rows,) or (n_rows, n_labels), default=None
            Weights of the rows or of the entries of y.
        label_mask : bool array or sparse matrix (n_rows, n_labels), default=None
            True for a known label, False for a missing label.

        Returns
        -------
        self
            Classifier; `coef_` and `intercept_` are computed at their first use.

        Examples
        --------
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from rbrl import RBRLClassifier
        >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
        >>> model = RBRLClassifier(ridge=10)
        >>> for start in range(0, 60, 20):
        ...     model = model.partial_fit(X[start : start + 20], Y[start : start + 20])
        >>> model.n_samples_seen_, model.coef_.shape
        (60, (4, 8))
        """
        self._check_parameters()
        learn_rows(self, X, y, classes, sample_weight, label_mask)
        return self

    @cached_property
    def coef_(self) -> FloatArray:
        """Weights of the features, computed at their first use after `partial_fit` or from factors.

        `fit` stores weights that are not factors.
        """
        if has_factors(self):
            return np.asarray(self.label_factors_ @ self.feature_factors_.T)
        return compute_stream_coefficients(self, "coef_")

    @cached_property
    def intercept_(self) -> FloatArray:
        """Intercepts after `partial_fit`, computed at their first use; `fit` stores its own."""
        return compute_stream_coefficients(self, "intercept_")

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without arrays that only the next fit uses, or that can be computed."""
        state = cast("dict[str, Any]", super().__getstate__())
        computed = ("_dual_scores", "coef_") if has_factors(self) else ("_dual_scores",)
        return {name: value for name, value in state.items() if name not in computed}

    @property
    def nuclear_(self) -> float:
        """`nuclear` as a number."""
        return find_nuclear(self)

    @cached_property
    def rank_(self) -> int:
        """Rank of the weights: the number of singular values above 1e-6 of the largest.

        A linear model without a nuclear norm computes it when it is first asked for. With thousands of labels, that takes
        longer than the fit.
        """
        return compute_rank(self)

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the scores less the threshold, as a new array."""
        scores = self._untuned_scores(X)
        scores -= np.asarray(getattr(self, "threshold_", 0.0), dtype=scores.dtype)
        return scores

    def _best_labels(self, X: Rows, k: int) -> Iterator[tuple[IntArray, FloatArray]]:
        if not issparse(vars(self).get("coef_")):
            yield from super()._best_labels(X, k)
            return
        for rows in map(self._check_rows, feature_blocks(X)):
            yield find_best_labels(self, csr_array(rows), k)

    def _untuned_scores(self, X: Matrix) -> FloatArray:
        """Return the scores of checked rows before the threshold is subtracted, as a new array."""
        return form_of(self).scores(self, X)

    def _sk_visual_block_(self) -> Any:
        """Return the box of a notebook, which scikit-learn calls for."""
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
        if self.class_weight is not None:
            check_class_weight(owner, self.class_weight)
        if self.compress is not None:
            check_compress(self)
        check_kernel(self)
        solver_of(self)


# Name of this class in version 0.1.0.
ObjectiveClassifier = ConvexClassifier
