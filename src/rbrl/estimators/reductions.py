"""Reductions to simpler problems: their base class, and label powersets."""

from abc import abstractmethod
from typing import Any, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from rbrl._common.bases import BaseEstimator
from rbrl._common.checks import check_choice, check_number
from rbrl._common.typing import ArrayLike, BoolArray, FloatArray, IntArray, LabelNames, Matrix, MatrixLike
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.base_learners import (
    Inputs,
    Learner,
    compute_probabilities,
    fit_learner,
    fit_sharpness,
    make_kernel_svm,
    make_linear_svm,
    to_liblinear_rows,
)
from rbrl.kernels import gram
from rbrl.scales import WIDTHS, Width, kernel_width

# Allowed values of the parameters with these names.
CHOICES = {"kernel": ("linear", "rbf"), "votes": ("hard", "soft"), "scores": ("decision", "hard")}
# Number of rows to fit the sharpness to: enough for one number, and cheap compared to the fit of a learner.
ROWS_FOR_SHARPNESS = 1000


class ReductionClassifier(MultiLabelClassifier):
    """A classifier made of base learners.

    A subclass defines ``_fit_learners(inputs, Y, weights)``, where all weights are positive, and
    ``_scores(X)``. Its constructor names all parameters, as scikit-learn requires, and passes those of
    the base learners to the constructor of this class.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
        Base learner in place of those that `kernel` chooses.
    kernel : {"linear", "rbf"}
        Base learner: LIBLINEAR on the features, or LIBSVM on one kernel matrix that all base learners
        share.
    C, gamma, tol : float
        Weight of the hinge, width of the kernel and stopping tolerance of these base learners; `gamma`
        and `tol` may be None.
    non_empty : bool
        If True, a row without a relevant label gets its best label.
    label_names : sequence of str, default=None
        Names of the labels.
    """

    decision_parameters = ("non_empty", "votes")
    n_jobs: int | None
    X_fit_: Matrix | None
    gamma_: float

    def __init__(
        self, estimator: BaseEstimator | None, kernel: str, C: float, gamma: Width, tol: float | None,
        non_empty: bool, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.non_empty = non_empty
        self.label_names = label_names

    def fit(self, X: MatrixLike, y: MatrixLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : array or sparse matrix (n_samples, n_labels)
            Labels, 0/1 or -1/+1; `predict` returns the same coding. A 1-D y of classes is also accepted.
        sample_weight : array (n_samples,), default=None
            Weights of the rows for the base learners. A row of weight 0 is ignored.

        Returns
        -------
        self
        """
        return self._learn(X, y, sample_weight)

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        if weights is not None and not weights.all():
            rows = np.flatnonzero(weights)
            X = X[rows]
            Y = Y[rows]
            weights = weights[rows]
        self.X_fit_ = X if self._shares_kernel() else None
        if self.estimator is None and self.kernel == "rbf":
            self.gamma_ = kernel_width(self.gamma, X, weights)
        self._fit_learners(self._make_inputs(X), Y, weights)

    @abstractmethod
    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        """Fit the base learners to labels in {-1, +1}, with positive row weights (None for ones)."""

    def _make_inputs(self, X: Matrix) -> Inputs:
        """Return rows in the form of the base learners: kernel values with the training rows, or features."""
        if self._shares_kernel():
            return Inputs(gram(X, self.X_fit_, kernel="rbf", gamma=self._get_width()), pairwise=True)
        return Inputs(X if self.estimator is not None else to_liblinear_rows(X))

    def _get_width(self) -> float | None:
        """Return the gamma of the last fit.

        A model file without it has a parameter that is a number, or None for 1 / n_features.
        """
        return cast(float | None, getattr(self, "gamma_", self.gamma))

    def _make_learner(self) -> Learner:
        """Return a new base learner."""
        if self.estimator is not None:
            return clone(self.estimator)
        return make_kernel_svm(self.C, self.tol) if self._shares_kernel() else make_linear_svm(self.C, self.tol)

    def _shares_kernel(self) -> bool:
        """Return whether the base learners share one kernel matrix, in place of features."""
        return self.estimator is None and self.kernel == "rbf"

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        parameters = self.get_params(deep=False)
        for name, allowed in CHOICES.items():
            if name in parameters:
                check_choice(owner, name, parameters[name], allowed)
        check_number(owner, "C", self.C, strict=True)
        check_number(owner, "gamma", self.gamma, strict=True, words=WIDTHS)
        if self.tol is not None:
            check_number(owner, "tol", self.tol, strict=True)
        if self.estimator is not None and not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict")):
            raise ValueError(
                f"The estimator parameter of {owner} must be a classifier with fit and predict, or None. "
                f"Got {self.estimator!r} instead."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def encode_sets(relevant: BoolArray) -> tuple[BoolArray, IntArray]:
    """Return the distinct rows of a boolean matrix, and the index of each row among them.

    Parameters
    ----------
    relevant : array (n_rows, n_labels) of bool

    Returns
    -------
    sets : array (n_sets, n_labels) of bool
    code : array (n_rows,) of int
        Index of each row in `sets`.

    Examples
    --------
    >>> encode_sets(np.array([[True, False], [False, True], [True, False]]))
    (array([[False,  True],
           [ True, False]]), array([1, 0, 1]))
    """
    packed = np.packbits(relevant, axis=1)
    keys = np.ascontiguousarray(packed).view([("", packed.dtype)] * packed.shape[1]).ravel()
    _, first, code = np.unique(keys, return_index=True, return_inverse=True)
    return relevant[first], code


def fit_powerset(
    learner: Learner, inputs: Inputs, relevant: BoolArray, weights: FloatArray | None
) -> tuple[BoolArray, Learner | None, float]:
    """Fit a learner whose classes are the distinct label sets.

    Parameters
    ----------
    learner : scikit-learn classifier
        New learner.
    inputs : Inputs
    relevant : array (n_samples, n_labels) of bool
    weights : array (n_samples,) or None

    Returns
    -------
    sets : array (n_sets, n_labels) of bool
        Distinct label sets.
    learner : scikit-learn classifier or None
        Fitted learner; None if there is only one label set.
    sharpness : float
        Factor of the learner's scores in soft votes.
    """
    sets, code = encode_sets(relevant)
    if len(sets) == 1:
        return sets, None, 1.0
    learner = fit_learner(learner, inputs, code, weights)
    rows = np.unique(np.linspace(0, len(code) - 1, ROWS_FOR_SHARPNESS).astype(int))
    return sets, learner, fit_sharpness(learner, inputs.matrix[rows], code[rows])


def compute_powerset_votes(
    sets: BoolArray, learner: Learner | None, matrix: Matrix, votes: str, sharpness: float = 1.0
) -> FloatArray:
    """Compute the vote for each label.

    Parameters
    ----------
    sets, learner
        Results of :func:`fit_powerset`.
    matrix : array or sparse matrix (n_rows, n_columns)
    votes : {"hard", "soft"}
        "hard" gives the vote 1 to the labels of the predicted set. "soft" gives each label the
        probability of all sets that contain it.
    sharpness : float, default=1.0
        Factor of the learner's scores in soft votes.

    Returns
    -------
    array (n_rows, n_labels)
    """
    if learner is None:
        return np.broadcast_to(sets[0].astype(np.float64), (matrix.shape[0], sets.shape[1]))
    if votes == "hard":
        return sets[learner.predict(matrix)].astype(np.float64)
    # Rounding may make a sum of probabilities larger than 1.
    shares = compute_probabilities(learner, matrix, sharpness) @ sets[learner.classes_].astype(np.float64)
    return np.minimum(shares, 1.0)


class LabelPowerset(ReductionClassifier):
    r"""One multi-class classifier whose classes are the label sets of the training rows.

    .. math:: \hat Y(x) = \arg\max_{S \in \{Y_1, \dots, Y_n\}} f_S(x)

    Only label sets of training rows can be predicted. LIBLINEAR separates each set from all others, and
    LIBSVM each pair of sets.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Base learner in place of those that `kernel` chooses. Clones of it are fitted. `kernel`, `C`,
        `gamma` and `tol` then have no effect.
    kernel : {"linear", "rbf"}, default="linear"
        Base learner. "linear" means LIBLINEAR with the L2-regularised squared hinge and a regularised
        intercept, solved in the primal without randomness. "rbf" means LIBSVM's C-SVC with the kernel
        :math:`\exp(-\gamma \|x - x'\|^2)`.
    C : float, default=1.0
        Weight of the hinge.
    gamma : {"median", "scale", "paper"} or float, default=None
        Width of the "rbf" kernel; see :class:`rbrl.RBRLClassifier`. None means the same as "paper",
        1 / n_features.
    tol : float, default=None
        Stopping tolerance; None means 1e-4 for "linear" and 1e-3 for "rbf".
    votes : {"hard", "soft"}, default="hard"
        "hard" predicts the label set of the best class. "soft" predicts a label if the sets that contain
        it have more than half of the probability. This also ranks the labels, and may predict a set that
        no training row has. The probabilities of a base learner without probabilities are the softmax of
        its decision values times `sharpness_`.
    non_empty : bool, default=False
        If True, a row without a relevant label gets its best label.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame.

    Attributes
    ----------
    label_sets_ : array (n_sets, n_labels) of bool
        Distinct label sets of the training rows.
    estimator_ : scikit-learn classifier
        Fitted classifier, whose classes are rows of `label_sets_`; None if there is only one.
    sharpness_ : float
        Factor of the decision values in soft votes, fitted to training rows by maximum likelihood.
    X_fit_ : array or sparse matrix
        Training rows; only with ``kernel="rbf"``.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Notes
    -----
    `decision_function` is the vote for each label less 1/2.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import LabelPowerset
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = LabelPowerset().fit(X, Y)
    >>> len(model.label_sets_)
    16
    >>> model.predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 0, 1, 0]])
    """

    label_sets_: BoolArray
    estimator_: Learner | None
    # Value for model files of version 0.1.0.
    sharpness_: float = 1.0

    def __init__(
        self, estimator: BaseEstimator | None = None, kernel: str = "linear", C: float = 1.0, gamma: Width = None,
        tol: float | None = None, votes: str = "hard", non_empty: bool = False, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        super().__init__(estimator, kernel, C, gamma, tol, non_empty, label_names)
        self.votes = votes

    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        self.label_sets_, self.estimator_, self.sharpness_ = fit_powerset(self._make_learner(), inputs, Y > 0, weights)

    def _scores(self, X: Matrix) -> FloatArray:
        matrix = self._make_inputs(X).matrix
        votes = compute_powerset_votes(self.label_sets_, self.estimator_, matrix, self.votes, self.sharpness_)
        return np.subtract(votes, 0.5)
