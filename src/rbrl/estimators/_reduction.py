"""What all reductions to base learners share: their parameters, row weights, the kernel matrix, the docstrings."""

from abc import abstractmethod

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from rbrl._validation import check_choice, check_number
from rbrl.estimators._base_learners import Inputs, kernel_svm, liblinear_rows, linear_svm
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.kernels import gram

LEARNER_PARAMETERS = """estimator : scikit-learn classifier, default=None
        Base learner, instead of the two that `kernel` names. It is cloned, never fitted itself; `kernel`, `C`, `gamma`
        and `tol` then have no effect.
    kernel : {"linear", "rbf"}, default="linear"
        "linear": LIBLINEAR's L2-regularised squared hinge with a regularised intercept, solved in the primal (no
        randomness). "rbf": LIBSVM's C-SVC with :math:`\\exp(-\\gamma \\|x - x'\\|^2)`.
    C : float, default=1.0
        Weight of the hinge of both.
    gamma : float, default=None
        Width of "rbf"; None means 1 / n_features.
    tol : float, default=None
        Stopping tolerance of both; None means their own defaults, 1e-4 and 1e-3."""

COMMON_PARAMETERS = """non_empty : bool, default=False
        Give a row without a relevant label its best one.
    n_jobs : int, default=None
        Base learners trained at a time, in threads that share the rows. A pure Python `estimator` gains more from
        processes: ``with joblib.parallel_config("loky")``."""

KERNEL_ATTRIBUTES = """X_fit_ : array or sparse matrix
        Training rows; ``kernel="rbf"`` only.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target."""


class ReductionClassifier(MultiLabelClassifier):
    """A classifier made of base learners.

    A subclass writes ``_fit_learners(inputs, Y, weights)``, where all weights are positive, and ``_scores(X)``.
    """

    def fit(self, X, y=None, sample_weight=None):
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : array or sparse matrix (n_samples, n_labels)
            0/1 or -1/+1; `predict` answers in the same coding. A 1-D y of classes works too.
        sample_weight : array (n_samples,), default=None
            Weights of the rows, handed to the base learners; a row of weight 0 is as if it were absent.

        Returns
        -------
        self
        """
        return self._learn(X, y, sample_weight)

    def _fit(self, X, Y, weights):
        if weights is not None and not weights.all():
            rows = np.flatnonzero(weights)
            X, Y, weights = X[rows], Y[rows], weights[rows]
        self._fit_learners(self._training_inputs(X), Y, weights)

    @abstractmethod
    def _fit_learners(self, inputs, Y, weights):
        """Learn from inputs, labels in {-1, +1} and positive row weights (None for ones)."""

    def _training_inputs(self, X):
        self.X_fit_ = X if self._has_kernel() else None
        return self._inputs(X)

    def _inputs(self, X):
        """Rows as the base learners take them: kernel values with the training rows, or features."""
        if self._has_kernel():
            return Inputs(gram(X, self.X_fit_, kernel="rbf", gamma=self.gamma), pairwise=True)
        return Inputs(X if self.estimator is not None else liblinear_rows(X))

    def _learner(self):
        """A fresh base learner."""
        if self.estimator is not None:
            return clone(self.estimator)
        return kernel_svm(self.C, self.tol) if self._has_kernel() else linear_svm(self.C, self.tol)

    def _has_kernel(self):
        return self.estimator is None and self.kernel == "rbf"

    def _check_parameters(self):
        owner = type(self).__name__
        check_choice(owner, "kernel", self.kernel, ("linear", "rbf"))
        check_number(owner, "C", self.C, strict=True)
        for name in ("gamma", "tol"):
            if getattr(self, name) is not None:
                check_number(owner, name, getattr(self, name), strict=True)
        if self.estimator is not None and not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict")):
            raise ValueError(
                f"The estimator parameter of {owner} must be a classifier with fit and predict, or None. "
                f"Got {self.estimator!r} instead."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
