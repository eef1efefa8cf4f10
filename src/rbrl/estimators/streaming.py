"""Learning of linear models from rows that are not all in memory: in blocks, or in one batch after the other."""

import time
from collections.abc import Callable
from dataclasses import replace
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from rbrl._common.frames import check_same_columns, check_same_rows
from rbrl._common.typing import ArrayLike, FloatArray, IntArray, MatrixLike
from rbrl.datasets import Columns
from rbrl.decision import empty_share
from rbrl.estimators.coefficients import WEIGHT_ATTRIBUTES, dense_weights, find_nuclear, store_weights
from rbrl.estimators.convex_problem import solver_of
from rbrl.estimators.entries import WeightedLoss, check_classes, find_entries, warn_of_missing_labels
from rbrl.estimators.forms import form_of
from rbrl.estimators.training_scores import LabelledRows, estimate_linear_parameters, take_sampled_rows
from rbrl.estimators.validation import store_columns, validate_labelled_rows
from rbrl.exceptions import InvalidLabelsError
from rbrl.losses import Loss
from rbrl.losses.label_graph import label_counts
from rbrl.losses.weights import mean_weights
from rbrl.out_of_core import Block, Blocks, fit_blocks
from rbrl.out_of_core.batches import learn_batch, streamed_coefficients
from rbrl.out_of_core.design import Survey
from rbrl.scales import intercept_column
from rbrl.solvers import QuasiNewton, Solution
from rbrl.targets import SignedTargets, agreed_names, are_label_sets, label_matrix

if TYPE_CHECKING:
    from rbrl.estimators.convex import ConvexClassifier

# Attributes of a fit that are no longer valid after a further batch.
FIT_ATTRIBUTES = (
    "objective_", "gap_", "rank_", "n_iter_", "n_evaluations_", "pass_seconds_", "history_", *WEIGHT_ATTRIBUTES,
)  # fmt: skip
Method = TypeVar("Method", bound=Callable[..., Any])


class BlockProblem:
    """The objective of a linear classifier over rows in blocks, which is minimised in passes over them.

    Parameters
    ----------
    model : ConvexClassifier
    blocks : Blocks

    Attributes
    ----------
    on_gap : callable or None
        Function that is called with every certified gap; it returns True to stop.
    ridge : float
        Ridge of the model as a number, after `fit`.
    """

    on_gap: Callable[..., bool] | None = None
    ridge: float
    _found: Survey
    _loss: WeightedLoss

    def __init__(self, model: "ConvexClassifier", blocks: Blocks) -> None:
        owner = type(model).__name__
        if not form_of(model).is_linear:
            raise ValueError(
                f"{owner} learns a linear model from rows in blocks. Got kernel={model.kernel!r}; map the features of each "
                "block first, for example with sklearn.kernel_approximation.Nystroem, and use kernel='linear'."
            )
        is_named = isinstance(model.solver, str) and model.solver in ("auto", "quasi-newton")
        if not (is_named or isinstance(model.solver, QuasiNewton)):
            raise ValueError(
                f"The solver parameter of {owner} must be 'auto' or 'quasi-newton' if the rows are in blocks. "
                f"Got {model.solver!r} instead."
            )
        if model.compress is not None:
            raise ValueError(
                f"{owner} compresses models of rows in memory. Got rows in blocks and compress={model.compress}; set "
                "compress=None."
            )
        self.model = model
        self.blocks = blocks

    def fit(self) -> Solution:
        """Solve the problem, and store the weights and the facts about the data in the model."""
        model = self.model
        blocks = self.blocks
        started = time.perf_counter()
        seconds_before = blocks.pass_seconds
        columns = blocks.columns or Columns()
        if model.label_names is not None:
            n_labels = blocks.apply_to_first(_count_labels)
            columns = replace(columns, label_names=agreed_names(model.label_names, columns.label_names, *n_labels))
        self._loss = WeightedLoss(model.loss, model.class_weight, columns.label_names)
        self._found, solution = fit_blocks(
            blocks,
            self._loss,
            model.ridge,
            find_nuclear(model),
            intercept=model.fit_intercept,
            intercept_ridge=model.intercept_ridge,
            solver=solver_of(model),
            start=dense_weights(model) if model.warm_start else None,
            tol=model.tol,
            max_iter=model.max_iter,
            verbose=model.verbose,
            callback=self.on_gap,
        )
        found = self._found
        model.targets_ = SignedTargets.of_matrix(found.n_labels, found.low, found.label_type, found.sparse_labels)
        model.n_samples_seen_ = found.n_samples
        model.n_features_in_ = found.n_features
        model.empty_share_ = found.empty_share
        if not found.sparse_features:
            found.scales.warn_of_spread(type(model).__name__)
        vars(model).pop("feature_names_in_", None)
        store_columns(model, columns)
        if not found.known.all():
            warn_of_missing_labels(found.known[None], columns.label_names)
        store_weights(model, solution.coefficients)
        self.ridge = found.scales.ridge() if isinstance(model.ridge, str) else float(model.ridge)
        model.ridge_ = self.ridge
        in_passes = blocks.pass_seconds - seconds_before
        model.pass_seconds_ = in_passes, time.perf_counter() - started - in_passes
        return solution

    def training_rows(self) -> LabelledRows:
        """Return the sample of the rows that was kept."""
        return take_sampled_rows(self._found)

    def loss(self) -> Loss:
        """Return the loss."""
        return self._loss.made

    def count_parameters(self) -> float:
        """Estimate the effective number of parameters."""
        model = self.model
        constant = intercept_column(self.ridge, model.intercept_ridge) if model.fit_intercept else 0.0
        return estimate_linear_parameters(self._found, self.ridge, constant)


def _count_labels(block: Block) -> tuple[int]:
    """Return the number of labels of a block, in a tuple."""
    return (block.Y.shape[1],)


class _StreamingMethod:
    """A method that a classifier has only if it can learn in batches; otherwise, the error explains why it cannot."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: type) -> Any:
        """Return the bound method; raise AttributeError with the reason if batches are not possible."""
        if model is None:
            return self._method
        reason = explain_why_not_streamable(model)
        if reason:
            raise AttributeError(f"This {owner.__name__!r} has no attribute {self._method.__name__!r}: {reason}")
        return MethodType(self._method, model)


def available_if_streamable(method: Method) -> Method:
    """Return a method that exists only for a classifier that can learn in batches."""
    return cast(Method, _StreamingMethod(method))


def explain_why_not_streamable(model: Any) -> str:
    """Return the reason why a ConvexClassifier cannot learn in batches; an empty text if it can."""
    if not model.loss_is_row_wise:
        return "its loss depends on the labels of all rows, and a batch has some of them. Fit all rows, as shards."
    if not form_of(model).is_linear:
        return (
            f"it learns a linear model. Got kernel={model.kernel!r}; map the features of each batch first, for example "
            "with sklearn.kernel_approximation.RBFSampler, and use kernel='linear'."
        )
    if model.ridge == "auto":
        return (
            "ridge='auto' depends on all rows, and a batch has some of them. Give ridge as a number, such as the "
            "ridge_ of an earlier fit, or fit all rows, as shards: fit(rbrl.datasets.write_shards(...))."
        )
    if isinstance(model.threshold, str):
        return (
            f"threshold={model.threshold!r} depends on the scores of all rows, and a batch has some of them. Give "
            "threshold as a number, such as the threshold_ of an earlier fit, or fit all rows, as shards."
        )
    return ""


def learn_rows(
    model: Any, X: MatrixLike, y: MatrixLike, classes: ArrayLike | None, sample_weight: ArrayLike | None,
    label_mask: MatrixLike | None,
) -> None:  # fmt: skip
    """Let a classifier learn from a further batch of rows.

    Parameters
    ----------
    model : ConvexClassifier
    X, y, classes, sample_weight, label_mask
        Arguments of its method `partial_fit`.
    """
    if model.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs the labels of all rows, and partial_fit has one batch. Pass the weights "
            "as a dict, such as {0: 5.0} for label 0, or as sample_weight of shape (n_rows, n_labels)."
        )
    first = "stream_" not in vars(model)
    check_same_rows(X=X, y=y, sample_weight=sample_weight, label_mask=label_mask)
    check_same_columns(y=y, sample_weight=sample_weight, label_mask=label_mask)
    given = model.label_names if first else getattr(model, "label_names_", None) if are_label_sets(y) else None
    labels, names = label_matrix(y, given)
    known = list(getattr(model, "label_names_", names or ()))
    if not first and names is not None and known != names:
        raise InvalidLabelsError(
            f"Labels must come as in the first batch: {', '.join(known[:5])}. Got {', '.join(names[:5])}; put the "
            "columns in that order. A model cannot learn new labels: begin another for them."
        )
    X, y = validate_labelled_rows(model, X, labels, reset=first)
    if first:
        classes = getattr(model, "classes_", None) if classes is None else classes
        if y.ndim == 1 and classes is None:
            raise ValueError(f"classes must be passed on the first call to partial_fit with a 1-D y. Got {classes}.")
        model.targets_ = SignedTargets().fit(labels if y.ndim == 2 else np.asarray(classes))
        model.stream_ = {}
        model.n_samples_seen_ = 0
        model.empty_share_ = 0.0
        model.weight_seen_ = 0.0
        store_columns(model, Columns(label_names=names))
    Y, weights, counted = find_entries(
        model.targets_.encode_batch(y), sample_weight, label_mask, model.class_weight, model.targets_,
        getattr(model, "label_names_", None),
    )  # fmt: skip
    _count_empty_rows(model, Y, mean_weights(Y, None) if counted is None else counted)
    check_classes(type(model).__name__, model.threshold, model.targets_.kind)
    model.ridge_ = float(model.ridge)
    model.threshold_ = float(model.threshold)
    loss = model.loss(lambda: label_counts(Y, weights))
    penalties = model.ridge_, find_nuclear(model), model.fit_intercept, model.intercept_ridge
    model.stream_ = learn_batch(model.stream_, X.astype(np.float64, copy=False), Y, weights, loss, *penalties)
    model.n_samples_seen_ = getattr(model, "n_samples_seen_", 0) + X.shape[0]
    for name in FIT_ATTRIBUTES:
        vars(model).pop(name, None)


def _count_empty_rows(model: Any, Y: IntArray, counts: FloatArray) -> None:
    """Update the share of the rows that have no label, and the weight of all rows so far.

    `counts` (n_rows,) are the weights of the rows of Y. A model file of an earlier version has no
    `empty_share_`: the share of its rows counts as 0 or 1.
    """
    before = getattr(model, "weight_seen_", float(model.n_samples_seen_))
    share = getattr(model, "empty_share_", 0.0 if getattr(model, "all_labelled_", False) else 1.0)
    batch = float(counts.sum())
    total = before + batch
    empty = share * before + empty_share(Y, counts) * batch
    model.empty_share_ = empty / total if total else 0.0
    model.weight_seen_ = total


def compute_stream_coefficients(model: Any, name: str) -> FloatArray:
    """Compute and store the coefficients of a stream, and return those of the attribute `name`.

    Parameters
    ----------
    model : ConvexClassifier
    name : {"coef_", "intercept_"}
    """
    if not vars(model).get("stream_"):
        raise AttributeError(f"{type(model).__name__!r} object has no attribute {name!r}")
    ridge = model.ridge_ if isinstance(model.ridge, str) else float(model.ridge)
    constant = intercept_column(ridge, model.intercept_ridge) if model.fit_intercept else 1.0
    store_weights(
        model, streamed_coefficients(model.stream_, model.n_samples_seen_, ridge, find_nuclear(model), constant)
    )
    return vars(model)[name]
