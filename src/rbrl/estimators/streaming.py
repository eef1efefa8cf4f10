"""Learning of linear models from one batch of rows after the other."""

from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, cast

import numpy as np

from rbrl._common.frames import check_same_columns, check_same_rows
from rbrl._common.typing import ArrayLike, FloatArray, IntArray, MatrixLike
from rbrl.datasets import Columns
from rbrl.decision import empty_share
from rbrl.estimators.coefficients import store_weights
from rbrl.estimators.entries import check_classes, find_entries
from rbrl.estimators.forms import find_nuclear, form_of
from rbrl.estimators.validation import store_columns, validate_labelled_rows
from rbrl.exceptions import InvalidLabelsError
from rbrl.losses.base import mean_weights
from rbrl.losses.label_graph import label_counts
from rbrl.out_of_core.fit import learn_batch, streamed_coefficients
from rbrl.scales import intercept_column
from rbrl.targets import SignedTargets, are_label_sets, label_matrix

# Attributes of a fit that are no longer valid after a further batch.
FIT_ATTRIBUTES = (
    "objective_", "gap_", "rank_", "n_iter_", "n_evaluations_", "pass_seconds_", "history_", "coef_", "intercept_",
)  # fmt: skip
Method = TypeVar("Method", bound=Callable[..., Any])


class _StreamingMethod:
    """A method that a classifier has only if it can learn in batches; otherwise, the error explains why it cannot."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self._method
        reason = explain_why_not_streamable(model)
        if reason:
            raise AttributeError(f"This {owner.__name__!r} has no attribute {self._method.__name__!r}: {reason}")
        return MethodType(self._method, model)


def available_if_streamable(method: Method) -> Method:
    """Return a method that exists only for a classifier that can learn in batches.

    Parameters
    ----------
    method : function

    Returns
    -------
    descriptor of the method
    """
    return cast(Method, _StreamingMethod(method))


def explain_why_not_streamable(model: Any) -> str:
    """Return the reason why a classifier cannot learn in batches; an empty text if it can.

    Parameters
    ----------
    model : ConvexClassifier

    Returns
    -------
    str
    """
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
    """Update the share of the rows that have no label.

    A model file of an earlier version has no `empty_share_`: the share of its rows counts as 0 or 1.
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

    Returns
    -------
    array
    """
    if not vars(model).get("stream_"):
        raise AttributeError(f"{type(model).__name__!r} object has no attribute {name!r}")
    ridge = model.ridge_ if isinstance(model.ridge, str) else float(model.ridge)
    constant = intercept_column(ridge, model.intercept_ridge) if model.fit_intercept else 1.0
    store_weights(
        model, streamed_coefficients(model.stream_, model.n_samples_seen_, ridge, find_nuclear(model), constant)
    )
    return vars(model)[name]
