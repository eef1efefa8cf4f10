"""Linear models that learn from one batch of rows after the other."""

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
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.estimators.entries import check_classes
from rbrl.estimators.forms import LINEAR, form_of
from rbrl.estimators.validation import store_columns, validate_labelled_rows
from rbrl.exceptions import InvalidLabelsError
from rbrl.losses.label_graph import label_counts
from rbrl.losses.weights import mean_weights
from rbrl.out_of_core.fit import learn_batch, streamed_coefficients
from rbrl.scales import intercept_column
from rbrl.targets import SignedTargets, are_label_sets, label_matrix

# Attributes of a fit that are no longer valid after a further batch.
_FIT_ATTRIBUTES = (
    "objective_", "gap_", "rank_", "n_iter_", "n_evaluations_", "pass_seconds_", "history_", "coef_", "intercept_",
)  # fmt: skip
Method = TypeVar("Method", bound=Callable[..., Any])


class _AvailableIfStreamable:
    """A method that a classifier has only if it can learn in batches; otherwise, the error explains why it cannot."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, model: "StreamingClassifier | None", owner: type) -> Any:
        if model is None:
            return self._method
        reason = model._explain_why_not_streamable()
        if reason:
            raise AttributeError(f"This {owner.__name__!r} has no attribute {self._method.__name__!r}: {reason}")
        return MethodType(self._method, model)


def _available_if_streamable(method: Method) -> Method:
    return cast(Method, _AvailableIfStreamable(method))


class StreamingClassifier(ObjectiveClassifier):
    """A classifier that can learn in batches, because the loss of a row depends on no other row.

    Attributes
    ----------
    stream_ : dict
        Summary of the rows of `partial_fit`; see :func:`rbrl.out_of_core.fit.learn_batch`.
    n_samples_seen_ : int
        Number of rows of `partial_fit`, or of a fit of rows in blocks.
    weight_seen_ : float
        Sum of the weights of the rows of `partial_fit`.

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
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs the labels of all rows, and partial_fit has one batch. Pass the weights "
                "as a dict, such as {0: 5.0} for label 0, or as sample_weight of shape (n_rows, n_labels)."
            )
        first = "stream_" not in vars(self)
        check_same_rows(X=X, y=y, sample_weight=sample_weight, label_mask=label_mask)
        check_same_columns(y=y, sample_weight=sample_weight, label_mask=label_mask)
        labels, names = self._split_names(y, first)
        known = list(getattr(self, "label_names_", names or ()))
        if not first and names is not None and known != names:
            raise InvalidLabelsError(
                f"Labels must come as in the first batch: {', '.join(known[:5])}. Got {', '.join(names[:5])}; put the "
                "columns in that order. A model cannot learn new labels: begin another for them."
            )
        X, y = validate_labelled_rows(self, X, labels, reset=first)
        if first:
            classes = getattr(self, "classes_", None) if classes is None else classes
            if y.ndim == 1 and classes is None:
                raise ValueError(
                    f"classes must be passed on the first call to partial_fit with a 1-D y. Got {classes}."
                )
            self.targets_ = SignedTargets().fit(labels if y.ndim == 2 else np.asarray(classes))
            self.stream_ = {}
            self.n_samples_seen_ = 0
            self.empty_share_ = 0.0
            self.weight_seen_ = 0.0
            store_columns(self, Columns(label_names=names))
        Y, weights, counted = self._entries(self.targets_.encode_batch(y), sample_weight, label_mask)
        self._count_empty_rows(Y, mean_weights(Y, None) if counted is None else counted)
        check_classes(type(self).__name__, self.threshold, self.targets_.kind)
        self.ridge_ = float(self.ridge)
        self.threshold_ = float(self.threshold)
        loss = self.loss(lambda: label_counts(Y, weights))
        penalties = self.ridge_, self.nuclear_, self.fit_intercept, self.intercept_ridge
        self.stream_ = learn_batch(self.stream_, X.astype(np.float64, copy=False), Y, weights, loss, *penalties)
        self.n_samples_seen_ = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        for name in _FIT_ATTRIBUTES:
            vars(self).pop(name, None)
        return self

    def _count_empty_rows(self, Y: IntArray, counts: FloatArray) -> None:
        """Update the share of the rows that have no label.

        A model file of an earlier version has no `empty_share_`: the share of its rows counts as 0 or 1.
        """
        before = getattr(self, "weight_seen_", float(self.n_samples_seen_))
        share = getattr(self, "empty_share_", 0.0 if getattr(self, "all_labelled_", False) else 1.0)
        batch = float(counts.sum())
        total = before + batch
        empty = share * before + empty_share(Y, counts) * batch
        self.empty_share_ = empty / total if total else 0.0
        self.weight_seen_ = total

    def _split_names(self, y: Any, first: bool) -> tuple[Any, list[str] | None]:
        """Return the labels of a batch, and their names; label sets get the columns of the first batch."""
        if first:
            return label_matrix(y, self.label_names)
        return label_matrix(y, getattr(self, "label_names_", None) if are_label_sets(y) else None)

    def _explain_why_not_streamable(self) -> str:
        if not form_of(self).is_linear:
            return (
                f"it learns a linear model. Got kernel={self.kernel!r}; map the features of each batch first, for example "
                "with sklearn.kernel_approximation.RBFSampler, and use kernel='linear'."
            )
        if self.ridge == "auto":
            return (
                "ridge='auto' depends on all rows, and a batch has some of them. Give ridge as a number, such as the "
                "ridge_ of an earlier fit, or fit all rows, as shards: fit(rbrl.datasets.write_shards(...))."
            )
        if isinstance(self.threshold, str):
            return (
                f"threshold={self.threshold!r} depends on the scores of all rows, and a batch has some of them. Give "
                "threshold as a number, such as the threshold_ of an earlier fit, or fit all rows, as shards."
            )
        return ""

    @cached_property
    def coef_(self) -> FloatArray:  # type: ignore[override]
        """Weights of the features after `partial_fit`, computed at their first use; `fit` stores its own."""
        return self._compute_coefficients("coef_")

    @cached_property
    def intercept_(self) -> FloatArray:  # type: ignore[override]
        """Intercepts after `partial_fit`, computed at their first use; `fit` stores its own."""
        return self._compute_coefficients("intercept_")

    def _compute_coefficients(self, name: str) -> FloatArray:
        """Compute and store the coefficients of a stream, and return those of the attribute `name`."""
        if not vars(self).get("stream_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        ridge = self.ridge_ if isinstance(self.ridge, str) else float(self.ridge)
        penalties = ridge, self.nuclear_, intercept_column(ridge, self.intercept_ridge) if self.fit_intercept else 1.0
        LINEAR.store(self, streamed_coefficients(self.stream_, self.n_samples_seen_, *penalties))
        return vars(self)[name]
