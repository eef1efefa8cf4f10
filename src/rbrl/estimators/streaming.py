"""`partial_fit`: rows that come once, in batches, and are not kept."""

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from rbrl._common.checks import check_row_weights
from rbrl.datasets import Columns
from rbrl.estimators.base import FLOATS, column_names, remember_columns
from rbrl.estimators.convex import present_rows
from rbrl.exceptions import InvalidLabelsError
from rbrl.problem import with_ones
from rbrl.rows import LARGEST_GRAM, GramDesign, LossAtZero, at_zero
from rbrl.rows.design import SummedObjective
from rbrl.rows.sums import Sums
from rbrl.solvers.preconditioner import model_start
from rbrl.solvers.stream import BATCH_ROWS, BatchSteps
from rbrl.targets import SignedTargets, check_not_label_sets

_OF_FIT = ("objective_", "gap_", "rank_", "n_iter_", "n_evaluations_", "history_", "coef_", "intercept_")


class LearnsFromStreams:
    """Mixin of classifiers with an objective whose loss does not depend on the labels of other rows."""

    @available_if(lambda self: self._is_linear())
    def partial_fit(self, X, y, classes=None, sample_weight=None):
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
        first = "stream_" not in self.__dict__
        self._check_label_names(column_names(y), first)
        X, y = validate_data(self, X, y, multi_output=True, accept_sparse="csr", dtype=FLOATS, reset=first)
        if first:
            self._begin_stream(y, classes)
        weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
        learn = self._step if X.shape[1] + self.fit_intercept > LARGEST_GRAM else self._add
        self.stream_ = learn(X.astype(np.float64, copy=False), self._encode_batch(y), weights)
        self.n_samples_seen_ = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        for name in _OF_FIT:
            self.__dict__.pop(name, None)
        return self

    def _add(self, X, Y, weights):
        """The sums of all rows, these included."""
        new = at_zero(self._loss(), with_ones(X) if self.fit_intercept else X, Y, weights)
        return {name: value + self.stream_.get(name, 0.0) for name, value in new._asdict().items()}

    def _step(self, X, Y, weights):
        """The state after the steps of these rows."""
        rows, weights = present_rows(weights, len(Y))
        X, Y = X[rows], Y[rows]
        steps = BatchSteps(**self.stream_) if self.stream_ else BatchSteps.begin(X, Y.shape[1], self.fit_intercept)
        for start in range(0, len(Y), BATCH_ROWS):
            batch = slice(start, start + BATCH_ROWS)
            of_batch = None if weights is None else weights[batch]
            steps.learn(X[batch], Y[batch], self._loss(), self.ridge, self.nuclear, of_batch)
        return vars(steps)

    def __getattr__(self, name):
        if name in ("coef_", "intercept_") and self.__dict__.get("stream_"):
            self._settle_stream()
            return self.__dict__[name]
        if name == "partial_fit":
            raise AttributeError(
                f"partial_fit learns a linear model. Got kernel={self.kernel!r}; map the features of each batch first, for "
                "example with sklearn.kernel_approximation.RBFSampler, and use kernel='linear'."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _begin_stream(self, y, classes):
        known = getattr(self, "classes_", None) if y.ndim == 1 else None
        classes = known if classes is None else classes
        if y.ndim == 1 and classes is None:
            raise ValueError(f"classes must be passed on the first call to partial_fit with a 1-D y. Got {classes}.")
        self.targets_ = SignedTargets().fit(y if y.ndim == 2 else np.asarray(classes))
        self.classes_, self.stream_, self.n_samples_seen_ = self.targets_.classes_, {}, 0

    def _check_label_names(self, names, first):
        """Remember the names of the labels of the first batch; others, or another order, are refused."""
        known = getattr(self, "label_names_", None)
        if first:
            remember_columns(self, Columns(label_names=names))
        elif names is not None and known is not None and list(known) != names:
            raise InvalidLabelsError(
                f"Labels must come as in the first batch: {', '.join(known[:5])}. Got {', '.join(names[:5])}; put the "
                "columns in that order. A model cannot learn new labels: begin another for them."
            )

    def _encode_batch(self, y):
        """Signed labels, in the coding of the first batch."""
        known = self.targets_
        if not known.is_matrix:
            strange = np.setdiff1d(np.ravel(y), known.classes_)
            if len(strange):
                raise InvalidLabelsError(
                    f"y must hold classes among {known.classes_}. Got {strange[:5]} in this batch; a model cannot learn new "
                    "classes: begin another, with all that there will be as classes= in its first call."
                )
            return known.encode(y)
        batch = SignedTargets().fit(y)
        if not batch.is_matrix or len(batch.classes_) != len(known.classes_) or batch.low < known.low:
            raise InvalidLabelsError(
                f"Labels must come as in the first batch: {len(known.classes_)} columns of {known.low}/1. Got a batch of "
                f"{batch.n_columns} columns{f' of {batch.low}/1' if batch.is_matrix else ''}; a model cannot learn new "
                "labels: begin another, and give each batch a column for every label there will be."
            )
        return batch.encode(y)

    def _settle_stream(self):
        by_steps = "directions" in self.stream_
        W = BatchSteps(**self.stream_).coefficients() if by_steps else self._model_of_sums(Sums(**self.stream_))
        self._store_linear(self.n_features_in_, W)

    def _model_of_sums(self, sums):
        design = GramDesign(self.n_samples_seen_, sums.gram.copy())
        loss = LossAtZero(sums, design)
        objective = SummedObjective(design, sums.adjoint.shape[1], loss, self.ridge, self.nuclear)
        return design.coefficients(model_start(objective))
