"""`partial_fit`: rows that come once, in batches, and are not kept."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from rbrl._common.checks import check_row_weights
from rbrl._common.typing import ArrayLike, MatrixLike
from rbrl.datasets import Columns
from rbrl.estimators.base import FLOATS, remember_columns
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.exceptions import InvalidLabelsError
from rbrl.rows import label_counts
from rbrl.rows.fit import learn_batch, streamed_coefficients
from rbrl.rows.places import column_names
from rbrl.targets import SignedTargets, check_not_label_sets

# What does not hold after a further batch.
_OF_FIT = ("objective_", "gap_", "rank_", "n_iter_", "n_evaluations_", "history_", "coef_", "intercept_")
Method = TypeVar("Method", bound=Callable[..., Any])


def _of_linear_models(method: Method) -> Method:
    """Let a classifier have a method only where its kernel is linear; `available_if` has no types."""
    return cast(Method, available_if(lambda model: model._is_linear())(method))


class StreamingClassifier(ObjectiveClassifier):
    """A classifier with an objective whose loss does not depend on the labels of other rows: it can learn in batches.

    Attributes
    ----------
    stream_ : dict
        After `partial_fit`: what is remembered of the rows; see :func:`rbrl.rows.fit.learn_batch`.
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
        first = "stream_" not in vars(self)
        self._check_label_names(column_names(y), first)
        X, y = validate_data(self, X, y, multi_output=True, accept_sparse="csr", dtype=FLOATS, reset=first)
        if first:
            self._begin_stream(y, classes)
        Y = self.targets_.encode_batch(y)
        weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
        penalties = self.ridge, self.nuclear, self.fit_intercept
        loss = self.loss(lambda: label_counts(Y, weights))
        self.stream_ = learn_batch(self.stream_, X.astype(np.float64, copy=False), Y, weights, loss, *penalties)
        self.n_samples_seen_ = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        for name in _OF_FIT:
            vars(self).pop(name, None)
        return self

    if not TYPE_CHECKING:
        # Hidden from type checkers, to which it would make every misspelt attribute one that exists.
        def __getattr__(self, name: str) -> Any:
            if name in ("coef_", "intercept_") and vars(self).get("stream_"):
                self._store_linear(streamed_coefficients(self.stream_, self.n_samples_seen_, self.ridge, self.nuclear))
                return vars(self)[name]
            if name == "partial_fit":
                raise AttributeError(
                    f"partial_fit learns a linear model. Got kernel={self.kernel!r}; map the features of each batch first, "
                    "for example with sklearn.kernel_approximation.RBFSampler, and use kernel='linear'."
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _begin_stream(self, y: Any, classes: ArrayLike | None) -> None:
        known = getattr(self, "classes_", None) if y.ndim == 1 else None
        classes = known if classes is None else classes
        if y.ndim == 1 and classes is None:
            raise ValueError(f"classes must be passed on the first call to partial_fit with a 1-D y. Got {classes}.")
        self.targets_ = SignedTargets().fit(y if y.ndim == 2 else np.asarray(classes))
        self.classes_, self.stream_, self.n_samples_seen_ = self.targets_.classes_, {}, 0

    def _check_label_names(self, names: list[str] | None, first: bool) -> None:
        """Remember the names of the labels of the first batch; others, or another order, are refused."""
        known = getattr(self, "label_names_", None)
        if first:
            remember_columns(self, Columns(label_names=names))
        elif names is not None and known is not None and list(known) != names:
            raise InvalidLabelsError(
                f"Labels must come as in the first batch: {', '.join(known[:5])}. Got {', '.join(names[:5])}; put the "
                "columns in that order. A model cannot learn new labels: begin another for them."
            )
