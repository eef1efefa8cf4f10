"""Reductions to two-class problems: their base class, binary relevance, and calibrated label ranking."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeAlias, cast

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone

from rbrl._common.bases import BaseEstimator
from rbrl._common.checks import check_choice, check_number, users_level
from rbrl._common.typing import ArrayLike, BoolArray, FloatArray, IntArray, LabelNames, Matrix, MatrixLike
from rbrl.decision import relevant_labels
from rbrl.estimators.base import MultiLabelClassifier, ProbabilityClassifier
from rbrl.estimators.base_learners import (
    Inputs,
    Learner,
    compute_margins,
    compute_probabilities,
    fit_learner,
    get_tie_shift,
    logistic,
    make_kernel_svm,
    make_linear_svm,
    to_liblinear_rows,
)
from rbrl.estimators.validation import check_training_data
from rbrl.kernels import gram
from rbrl.scales import WIDTHS, Width, kernel_width

# Allowed values of the parameters with these names.
CHOICES = {"kernel": ("linear", "rbf"), "votes": ("hard", "soft"), "scores": ("decision", "hard")}
# A two-class problem: its rows, None for all rows, and whether each training row is relevant.
Problem: TypeAlias = tuple[IntArray | None, BoolArray]
# Result of a problem: its learner, or None if it has only one class; its rows; the score of that class.
FittedProblem: TypeAlias = tuple[Learner | None, IntArray | None, float]


class ReductionClassifier(MultiLabelClassifier):
    """A classifier made of base learners.

    A subclass defines ``_fit_learners(inputs, Y, weights)``, where all weights are positive, and
    ``_scores(X)``. Its constructor names all parameters, as scikit-learn requires, and passes those
    of the base learners to the constructor of this class. :class:`BinaryRelevance` describes them.
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
        """
        self._check_parameters()
        self._fit(*check_training_data(self, X, y, sample_weight))
        return self

    def _fit(self, X: Matrix, Y: IntArray, weights: FloatArray | None) -> None:
        """Drop rows of weight 0, set `X_fit_` and `gamma_`, and fit the base learners."""
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
        """Fit the base learners, and store them in attributes of the subclass.

        Y (n_rows, n_labels) is in {-1, +1}, or with `takes_missing` in {-1, 0, +1}. The weights
        (n_rows,) are positive, or None for ones.
        """

    def _make_inputs(self, X: Matrix) -> Inputs:
        """Return checked rows for the base learners: features, or kernel values with `X_fit_`."""
        if self._shares_kernel():
            return Inputs(gram(X, self.X_fit_, kernel="rbf", gamma=self._get_width()), pairwise=True)
        return Inputs(X if self.estimator is not None else to_liblinear_rows(X))

    def _get_width(self) -> float | None:
        """Return the gamma of the last fit.

        A model file without it has a parameter that is a number, or None for 1 / n_features.
        """
        return cast(float | None, getattr(self, "gamma_", self.gamma))

    def _make_learner(self) -> Learner:
        """Return a new base learner, which is not fitted."""
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
                f"Got {self.estimator!r} instead; pass for example LogisticRegression()."
            )


class BinaryBankClassifier(ReductionClassifier):
    """A reduction to two-class problems, each on all or some of the rows.

    LIBLINEAR models become the rows of `coef_`, and LIBSVM models the columns of the sparse
    `dual_coef_`, so that one product computes all scores. Other models are in the list `estimators_`.
    A problem with only one class has no learner: its score is +1 or -1 (0 if it has no rows), and is
    stored in `constant_`.
    """

    coef_: FloatArray
    dual_coef_: sparse.csc_array
    intercept_: FloatArray
    constant_: FloatArray
    estimators_: list[Learner | None]

    def _fit_bank(
        self, inputs: Inputs, problems: Iterable[Problem], n_problems: int, weights: FloatArray | None
    ) -> None:
        """Fit a learner for each problem, and store the models in the form of their kind.

        `weights` belong to all rows. The problems may be a generator, which is read once.
        """
        jobs = (
            delayed(_fit_problem)(self._make_learner(), inputs, rows, relevant, weights) for rows, relevant in problems
        )
        # A generator keeps in memory only the coefficients of each learner.
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(jobs)
        self.constant_ = np.zeros(n_problems)
        self.intercept_ = np.zeros(n_problems)
        parts = [self._store_problem(j, inputs.matrix.shape[1], *problem) for j, problem in enumerate(fitted)]
        if self.estimator is not None:
            self.estimators_ = parts
        elif self._shares_kernel():
            duals, support = zip(*parts)
            columns = np.concatenate(duals), np.concatenate(support), np.cumsum([0, *map(len, duals)])
            self.dual_coef_ = sparse.csc_array(columns, shape=(inputs.matrix.shape[0], n_problems))
        else:
            self.coef_ = np.array(parts)

    def _store_problem(
        self, j: int, n_columns: int, learner: Learner | None, rows: IntArray | None, constant: float
    ) -> Any:
        """Store the intercept of problem j, and return its learner, its dual variables or its weights.

        For a kernel, the result is a pair: dual variables, and the indices of their training rows.
        """
        self.constant_[j] = self.intercept_[j] = constant
        if self.estimator is not None:
            return learner
        if learner is None:
            return (np.empty(0), np.empty(0, np.int32)) if self._shares_kernel() else np.zeros(n_columns)
        self.intercept_[j] = learner.intercept_[0]
        if not self._shares_kernel():
            return learner.coef_[0]
        return learner.dual_coef_.ravel(), learner.support_ if rows is None else rows[learner.support_]

    def _compute_bank_margins(self, inputs: Inputs, problems: slice) -> FloatArray:
        """Return the scores (n_rows, n_problems) of a slice of the problems: a new dense array."""
        if self.estimator is not None:
            return self._compute_columns(inputs.matrix, problems, compute_margins)
        if self._shares_kernel():
            return (self.dual_coef_[:, problems].T @ inputs.matrix.T).T + self.intercept_[problems]
        return np.asarray(inputs.matrix @ self.coef_[problems].T) + self.intercept_[problems]

    def _compute_bank_votes(self, inputs: Inputs, problems: slice, soft: bool = False) -> FloatArray:
        """Return 1 for each problem that predicts relevant, else 0: (n_rows, n_problems), or probabilities."""
        if not soft:
            return relevant_labels(self._compute_bank_margins(inputs, problems)).astype(np.float64)
        if self.estimator is not None:
            P = self._compute_columns(inputs.matrix, problems, lambda *fitted: compute_probabilities(*fitted)[:, 1])
        else:
            P = logistic(self._compute_bank_margins(inputs, problems))
        constant = self.constant_[problems]
        return np.where(constant == 0, P, 0.5 * (1 + constant))

    def _compute_columns(
        self, matrix: Matrix, problems: slice, response: Callable[[Learner, Matrix], FloatArray]
    ) -> FloatArray:
        """Return the response of each learner, or the constant score of a problem without one.

        `response` maps a learner and the matrix to (n_rows,). The result has a column for each
        problem.
        """
        scores = np.tile(self.intercept_[problems], (matrix.shape[0], 1))
        for j, learner in enumerate(self.estimators_[problems]):
            if learner is not None:
                scores[:, j] = response(learner, matrix)
        return scores


def _fit_problem(
    learner: Learner, inputs: Inputs, rows: IntArray | None, relevant: BoolArray, weights: FloatArray | None
) -> FittedProblem:
    """Fit a learner to a two-class problem; without two classes, return the score +1 or -1.

    The score is 0 for a problem without rows. `relevant` and `weights` belong to all training rows.
    """
    part = relevant if rows is None else relevant[rows]
    n_relevant = np.count_nonzero(part)
    if n_relevant in (0, len(part)):
        return None, rows, float(np.sign(2 * n_relevant - 1)) if len(part) else 0.0
    return fit_learner(learner, inputs, relevant.astype(np.int64), weights, rows), rows, 0.0


class BinaryRelevance(ProbabilityClassifier, BinaryBankClassifier):
    r"""One independent classifier per label.

    .. math:: f_k = \arg\min_f \; \Omega(f) + C \sum_i \ell(y_{ik} f(x_i)), \qquad k = 1, \dots, l

    with the squared hinge and a linear f, the hinge and an RBF kernel, or any base learner. The kernel
    matrix is computed once and shared by all labels. A label that is constant in training gets the
    constant score +1 or -1. Entries of y may be missing (NaN): each label is learned from the rows in
    which it is known. A label that is missing in all rows gets the score -1, with a warning.
    `predict_proba` exists if `estimator` has it.

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
    scores : {"decision", "hard"}, default="decision"
        Scores of the labels. "decision" means the decision values of the base learners, or their
        probabilities less 1/2. "hard" means +1/2 or -1/2 for the predicted class, as Mulan ranked the
        labels of its SVMs.
    non_empty : bool, default=False
        If True, a row without a relevant label gets its best label.
    n_jobs : int, default=None
        Number of base learners that are trained at the same time, in threads that share the rows. An
        `estimator` in pure Python gains more from processes: ``with joblib.parallel_config("loky")``.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        Weights of the features; only with ``kernel="linear"``.
    dual_coef_ : sparse array (n_samples, n_labels)
        Coefficients of the training rows; only with ``kernel="rbf"``.
    intercept_ : array (n_labels,)
        Intercepts of the labels.
    estimators_ : list
        Fitted clones of `estimator`; None for a constant label, whose score is in `constant_`.
    X_fit_ : array or sparse matrix
        Training rows; only with ``kernel="rbf"``.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import BinaryRelevance
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> BinaryRelevance(kernel="rbf", gamma=0.01).fit(X, Y).predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 0, 1, 0]])
    """

    decision_parameters = ("non_empty", "scores")
    takes_missing = True

    def __init__(
        self, estimator: BaseEstimator | None = None, kernel: str = "linear", C: float = 1.0, gamma: Width = None,
        tol: float | None = None, scores: str = "decision", non_empty: bool = False, n_jobs: int | None = None,
        label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        super().__init__(estimator, kernel, C, gamma, tol, non_empty, label_names)
        self.scores = scores
        self.n_jobs = n_jobs

    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        """Fit one learner for each label; warn of labels that are missing in all rows."""
        problems = ((None if y.all() else np.flatnonzero(y), y > 0) for y in Y.T)
        self._fit_bank(inputs, problems, Y.shape[1], weights)
        missing = np.flatnonzero(~Y.any(axis=0))
        if len(missing):
            # With this score, `non_empty` gives no row such a label before a label that was learned.
            self.constant_[missing] = self.intercept_[missing] = -1.0
            text = (
                f"{len(missing)} of {Y.shape[1]} labels are missing in all rows, the first of them in column "
                f"{missing[0]}. They are predicted as irrelevant."
            )
            warnings.warn(text, stacklevel=users_level())

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the margins, or votes less 1/2 with ``scores="hard"``."""
        inputs = self._make_inputs(X)
        if self.scores == "hard":
            return self._compute_bank_votes(inputs, slice(None)) - 0.5
        return self._compute_bank_margins(inputs, slice(None))

    def _probabilities(self, X: Matrix) -> FloatArray:
        """Return the soft votes of the learners."""
        return self._compute_bank_votes(self._make_inputs(X), slice(None), soft=True)


class CalibratedLabelRanking(BinaryBankClassifier):
    r"""Pairwise comparison of labels, calibrated by a virtual label 0.

    .. math:: v_j(x) = [f_j(x) > 0] + \sum_{k \ne j} [f_{jk}(x) > 0], \qquad
              v_0(x) = \sum_k [f_k(x) \le 0], \qquad j \text{ relevant} \iff v_j(x) \ge v_0(x)

    :math:`f_{jk} = -f_{kj}` is trained on the rows that have exactly one of the labels j and k.
    :math:`f_k` compares label k with the virtual label, and is trained on all rows. Labels are ranked by
    their votes. A label with as many votes as the virtual label is relevant.

    Parameters
    ----------
    estimator, kernel, C, gamma, tol : as in :class:`BinaryRelevance`
        The same parameters, with the same defaults.
    votes : {"hard", "soft"}, default="hard"
        Votes of a comparison. "hard" gives one vote to the winner. "soft" divides the vote by the
        probabilities of the two labels; for base learners without probabilities, by the logistic function
        of the decision value.
    non_empty, n_jobs, label_names : as in :class:`BinaryRelevance`
        The same parameters, with the same defaults.

    Attributes
    ----------
    pairs_ : array (n_pairs, 2)
        Compared labels (j, k), j < k. The learners of the pairs follow those of the n_labels labels.
    played_ : array (n_pairs,) of bool
        False if no training row has exactly one of the two labels; then neither gets a vote.
    coef_ : array (n_labels + n_pairs, n_features)
        Weights of the features; only with ``kernel="linear"``.
    dual_coef_ : sparse array (n_samples, n_labels + n_pairs)
        Coefficients of the training rows; only with ``kernel="rbf"``.
    intercept_ : array (n_labels + n_pairs,)
        Intercepts of the learners.
    estimators_ : list
        Fitted clones of `estimator`; None for a problem of one class, whose score is in `constant_`.
    X_fit_ : array or sparse matrix
        Training rows; only with ``kernel="rbf"``.

    Notes
    -----
    `decision_function` is :math:`(v_j - v_0 + 1/2) / l` for hard votes, so that a tie is positive. For
    soft votes, the smallest positive number replaces 1/2.

    References
    ----------
    J. Fürnkranz, E. Hüllermeier, E. Loza Mencía, K. Brinker: Multilabel classification via calibrated label ranking.
    Machine Learning 73, 2008.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import CalibratedLabelRanking
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> CalibratedLabelRanking(C=0.1).fit(X, Y).predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 1, 1, 0]])
    """

    pairs_: IntArray
    played_: BoolArray

    def __init__(
        self, estimator: BaseEstimator | None = None, kernel: str = "linear", C: float = 1.0, gamma: Width = None,
        tol: float | None = None, votes: str = "hard", non_empty: bool = False, n_jobs: int | None = None,
        label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        super().__init__(estimator, kernel, C, gamma, tol, non_empty, label_names)
        self.votes = votes
        self.n_jobs = n_jobs

    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        """Fit a learner for each label, and for each pair of labels on the rows that have one of them."""
        relevant = np.asfortranarray(Y > 0)
        n_labels = Y.shape[1]
        self.pairs_ = np.column_stack(np.triu_indices(n_labels, k=1))
        together = relevant.T.astype(np.float64) @ relevant
        j, k = self.pairs_.T
        self.played_ = np.diag(together)[j] + np.diag(together)[k] > 2 * together[j, k]
        self._fit_bank(inputs, self._iterate_problems(relevant), n_labels + len(self.pairs_), weights)

    def _iterate_problems(self, relevant: BoolArray) -> Iterator[Problem]:
        """Yield the problem of each label, then of each pair j < k: rows with one of its labels."""
        for k in range(relevant.shape[1]):
            yield None, relevant[:, k]
        for j, k in self.pairs_:
            yield np.flatnonzero(relevant[:, j] != relevant[:, k]), relevant[:, j]

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the votes of each label less those of the virtual label; a tie is positive."""
        inputs = self._make_inputs(X)
        soft = self.votes == "soft"
        n_labels = len(self.intercept_) - len(self.pairs_)
        votes = self._compute_bank_votes(inputs, slice(0, n_labels), soft)
        virtual = (1.0 - votes).sum(axis=1, keepdims=True)
        stop = 0
        for j in range(n_labels - 1):
            start = stop
            stop = start + n_labels - 1 - j
            won = self._compute_bank_votes(inputs, slice(n_labels + start, n_labels + stop), soft)
            played = self.played_[start:stop]
            votes[:, j] += won[:, played].sum(axis=1)
            votes[:, j + 1 :] += (1.0 - won) * played
        return (votes - virtual + get_tie_shift(self.votes, 0.5)) / n_labels
