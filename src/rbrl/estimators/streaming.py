"""Linear models that learn batch by batch, from rows that need not be kept."""

from collections.abc import Callable
from functools import cached_property
from types import MethodType
from typing import Any, Self, TypeVar, cast

import numpy as np

from rbrl._common.bases import all_or_nothing
from rbrl._common.frames import check_same_columns, check_same_rows
from rbrl._common.typing import ArrayLike, FloatArray, IntArray, MatrixLike
from rbrl.datasets import Columns
from rbrl.decision import empty_share
from rbrl.estimators.base import checked_labelled, remember_columns
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.estimators.entries import check_classes
from rbrl.estimators.forms import LINEAR, form_of
from rbrl.exceptions import InvalidLabelsError
from rbrl.losses.base import mean_weights
from rbrl.losses.label_graph import label_counts
from rbrl.out_of_core.fit import learn_batch, streamed_coefficients
from rbrl.scales import intercept_column
from rbrl.targets import SignedTargets, are_label_sets, label_matrix

# What does not hold after a further batch.
_OF_FIT = (
    "objective_", "gap_", "rank_", "n_iter_", "n_evaluations_", "pass_seconds_", "history_", "coef_", "intercept_",
)  # fmt: skip
Method = TypeVar("Method", bound=Callable[..., Any])


class _AvailableIfStreamable:
    """A method that a classifier has only if it can learn in batches; otherwise, the error explains why it cannot."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method, self.__doc__ = method, method.__doc__

    def __get__(self, model: "StreamingClassifier | None", owner: type) -> Any:
        if model is None:
            return self._method
        reason = model._why_not_in_batches()
        if reason:
            raise AttributeError(f"This {owner.__name__!r} has no attribute {self._method.__name__!r}: {reason}")
        return MethodType(self._method, model)


def _available_if_streamable(method: Method) -> Method:
    return cast(Method, _AvailableIfStreamable(method))


class StreamingClassifier(ObjectiveClassifier):
    """A classifier with an objective whose loss does not depend on the labels of other rows: it can learn in batches.

    Attributes
    ----------
    stream_ : dict
        After `partial_fit`: what is remembered of the rows; see :func:`rbrl.out_of_core.fit.learn_batch`.
    n_samples_seen_ : int
        After `partial_fit`, or a fit of rows in blocks.
    weight_seen_ : float
        After `partial_fit`: sum of the weights of the rows.

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
    weight_seen_: float

    @_available_if_streamable
    @all_or_nothing
    def partial_fit(
        self, X: MatrixLike, y: MatrixLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        label_mask: MatrixLike | None = None,
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
        sample_weight : array (n_rows,) or (n_rows, n_labels), default=None
        label_mask : bool array or sparse matrix (n_rows, n_labels), default=None
            As for `fit`.

        Returns
        -------
        self
            `coef_` and `intercept_` are computed when they are first asked for.

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
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' counts the labels of all rows, which partial_fit does not have. Pass their weights "
                "as a dict, such as {0: 5.0} for those of label 0, or as sample_weight of shape (n_rows, n_labels)."
            )
        first = "stream_" not in vars(self)
        check_same_rows(X=X, y=y, sample_weight=sample_weight, label_mask=label_mask)
        check_same_columns(y=y, sample_weight=sample_weight, label_mask=label_mask)
        given, names = self._named_batch(y, first)
        known = list(getattr(self, "label_names_", names or ()))
        if not first and names is not None and known != names:
            raise InvalidLabelsError(
                f"Labels must come as in the first batch: {', '.join(known[:5])}. Got {', '.join(names[:5])}; put the "
                "columns in that order. A model cannot learn new labels: begin another for them."
            )
        X, y = checked_labelled(self, X, given, reset=first)
        if first:
            classes = getattr(self, "classes_", None) if classes is None else classes
            if y.ndim == 1 and classes is None:
                raise ValueError(
                    f"classes must be passed on the first call to partial_fit with a 1-D y. Got {classes}."
                )
            self.targets_ = SignedTargets().fit(given if y.ndim == 2 else np.asarray(classes))
            self.stream_, self.n_samples_seen_ = {}, 0
            self.empty_share_, self.weight_seen_ = 0.0, 0.0
            remember_columns(self, Columns(label_names=names))
        Y, weights, counted = self._entries(self.targets_.encode_batch(y), sample_weight, label_mask)
        self._count_empty_rows(Y, mean_weights(Y, None) if counted is None else counted)
        check_classes(type(self).__name__, self.threshold, self.targets_.kind)
        self.ridge_, self.threshold_ = float(self.ridge), float(self.threshold)
        loss = self.loss(lambda: label_counts(Y, weights))
        penalties = self.ridge_, self.nuclear_, self.fit_intercept, self.intercept_ridge
        self.stream_ = learn_batch(self.stream_, X.astype(np.float64, copy=False), Y, weights, loss, *penalties)
        self.n_samples_seen_ = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        for name in _OF_FIT:
            vars(self).pop(name, None)
        return self

    def _count_empty_rows(self, Y: IntArray, counts: FloatArray) -> None:
        """Update the share of the rows that have no label.

        A model file from before `empty_share_` does not know the share of its rows: it is taken to be 0 or 1.
        """
        before = getattr(self, "weight_seen_", float(self.n_samples_seen_))
        share = getattr(self, "empty_share_", 0.0 if getattr(self, "all_labelled_", False) else 1.0)
        batch = float(counts.sum())
        total = before + batch
        empty = share * before + empty_share(Y, counts) * batch
        self.empty_share_ = empty / total if total else 0.0
        self.weight_seen_ = total

    def _named_batch(self, y: Any, first: bool) -> tuple[Any, list[str] | None]:
        """A batch of labels, and their names; label sets have the columns of the first batch."""
        if first:
            return label_matrix(y, self.label_names)
        return label_matrix(y, getattr(self, "label_names_", None) if are_label_sets(y) else None)

    def _why_not_in_batches(self) -> str:
        if not form_of(self).is_linear:
            return (
                f"it learns a linear model. Got kernel={self.kernel!r}; map the features of each batch first, for example "
                "with sklearn.kernel_approximation.RBFSampler, and use kernel='linear'."
            )
        if self.ridge == "auto":
            return (
                "ridge='auto' follows from all rows, and a batch has some of them. Give ridge as a number, such as the "
                "ridge_ of an earlier fit, or fit all rows, as shards: fit(rbrl.datasets.write_shards(...))."
            )
        if isinstance(self.threshold, str):
            return (
                f"threshold={self.threshold!r} follows from the scores of all rows, and a batch has some of them. Give "
                "threshold as a number, such as the threshold_ of an earlier fit, or fit all rows, as shards."
            )
        return ""

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
        ridge = self.ridge_ if isinstance(self.ridge, str) else float(self.ridge)
        penalties = ridge, self.nuclear_, intercept_column(ridge, self.intercept_ridge) if self.fit_intercept else 1.0
        LINEAR.store(self, streamed_coefficients(self.stream_, self.n_samples_seen_, *penalties))
        return vars(self)[name]
