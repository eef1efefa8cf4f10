"""Reductions to simpler problems: binary relevance, label powerset, calibrated label ranking."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from rbrl._common.bases import BaseEstimator
from rbrl._common.checks import users_level
from rbrl._common.typing import BoolArray, FloatArray, IntArray, LabelNames, Matrix
from rbrl.decision import relevant_labels
from rbrl.estimators.base_learners import (
    Inputs,
    Learner,
    ReductionClassifier,
    fit_learner,
    fit_sharpness,
    logistic,
    margins,
    probabilities,
    tie_shift,
)
from rbrl.estimators.probabilities import ProbabilityClassifier
from rbrl.scales import Width

# Rows that are enough to fit one number, and cheap beside the fit of a learner.
ROWS_FOR_SHARPNESS = 1000

# A two-class problem: its rows, None for all of them, and whether each training row is relevant.
Problem: TypeAlias = tuple[IntArray | None, BoolArray]
# Its learner, None if it has one class only; its rows; the constant score that then stands for the class.
Fitted: TypeAlias = tuple[Learner | None, IntArray | None, float]


class BinaryBankClassifier(ReductionClassifier):
    """A reduction to two-class problems, each on all or some of the rows.

    LIBLINEAR models become the rows of `coef_`, LIBSVM models the columns of the sparse `dual_coef_`, others the list
    `estimators_`, so that all scores of the first two are one product. A problem that has one class only gets no
    learner: its score is +1 or -1 (0 if it has no rows), noted in `constant_`.
    """

    coef_: FloatArray
    dual_coef_: sparse.csc_array
    intercept_: FloatArray
    constant_: FloatArray
    estimators_: list[Learner | None]

    def _fit_bank(
        self, inputs: Inputs, problems: Iterable[Problem], n_problems: int, weights: FloatArray | None
    ) -> None:
        jobs = (delayed(_fit_problem)(self._learner(), inputs, rows, relevant, weights) for rows, relevant in problems)
        # A generator: of a learner no more is kept than its coefficients.
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(jobs)
        self.constant_, self.intercept_ = np.zeros(n_problems), np.zeros(n_problems)
        kept = [self._kept(j, inputs.matrix.shape[1], *problem) for j, problem in enumerate(fitted)]
        if self.estimator is not None:
            self.estimators_ = kept
        elif self._share_kernel():
            duals, support = zip(*kept)
            columns = np.concatenate(duals), np.concatenate(support), np.cumsum([0, *map(len, duals)])
            self.dual_coef_ = sparse.csc_array(columns, shape=(inputs.matrix.shape[0], n_problems))
        else:
            self.coef_ = np.array(kept)

    def _kept(self, j: int, n_columns: int, learner: Learner | None, rows: IntArray | None, constant: float) -> Any:
        """Note the intercept of problem j; of its learner, what is kept: itself, its dual variables, or its weights."""
        self.constant_[j] = self.intercept_[j] = constant
        if self.estimator is not None:
            return learner
        if learner is None:
            return (np.empty(0), np.empty(0, np.int32)) if self._share_kernel() else np.zeros(n_columns)
        self.intercept_[j] = learner.intercept_[0]
        if not self._share_kernel():
            return learner.coef_[0]
        return learner.dual_coef_.ravel(), learner.support_ if rows is None else rows[learner.support_]

    def _bank_margins(self, inputs: Inputs, problems: slice) -> FloatArray:
        """Scores (n_rows, number of problems) of a slice of the problems."""
        if self.estimator is not None:
            return self._columns(inputs.matrix, problems, margins)
        if self._share_kernel():
            return (self.dual_coef_[:, problems].T @ inputs.matrix.T).T + self.intercept_[problems]
        return np.asarray(inputs.matrix @ self.coef_[problems].T) + self.intercept_[problems]

    def _bank_votes(self, inputs: Inputs, problems: slice, soft: bool = False) -> FloatArray:
        """1 where a problem's learner says relevant and 0 elsewhere, or the probability of it."""
        if not soft:
            return relevant_labels(self._bank_margins(inputs, problems)).astype(np.float64)
        if self.estimator is not None:
            P = self._columns(inputs.matrix, problems, lambda *fitted: probabilities(*fitted)[:, 1])
        else:
            P = logistic(self._bank_margins(inputs, problems))
        constant = self.constant_[problems]
        return np.where(constant == 0, P, 0.5 * (1 + constant))

    def _columns(
        self, matrix: Matrix, problems: slice, response: Callable[[Learner, Matrix], FloatArray]
    ) -> FloatArray:
        scores = np.tile(self.intercept_[problems], (matrix.shape[0], 1))
        for j, learner in enumerate(self.estimators_[problems]):
            if learner is not None:
                scores[:, j] = response(learner, matrix)
        return scores


def _fit_problem(
    learner: Learner, inputs: Inputs, rows: IntArray | None, relevant: BoolArray, weights: FloatArray | None
) -> Fitted:
    part = relevant if rows is None else relevant[rows]
    n_relevant = np.count_nonzero(part)
    if n_relevant in (0, len(part)):
        return None, rows, float(np.sign(2 * n_relevant - 1)) if len(part) else 0.0
    return fit_learner(learner, inputs, relevant.astype(np.int64), weights, rows), rows, 0.0


class BinaryRelevance(ProbabilityClassifier, BinaryBankClassifier):
    r"""One independent classifier per label.

    .. math:: f_k = \arg\min_f \; \Omega(f) + C \sum_i \ell(y_{ik} f(x_i)), \qquad k = 1, \dots, l

    with the squared hinge and a linear f, the hinge and an RBF kernel, or any base learner. The kernel matrix is
    computed once and shared by all labels. A label that is constant in training gets a constant score of its sign.
    Where entries of y are missing (NaN), each label is learned from the rows that somebody looked at; of a label at
    which nobody did, the score is -1, with a warning. `predict_proba` is there if `estimator` has it.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Base learner, instead of the two that `kernel` names. It is cloned, never fitted itself; `kernel`, `C`, `gamma`
        and `tol` then have no effect.
    kernel : {"linear", "rbf"}, default="linear"
        "linear": LIBLINEAR's L2-regularised squared hinge with a regularised intercept, solved in the primal (no
        randomness). "rbf": LIBSVM's C-SVC with :math:`\exp(-\gamma \|x - x'\|^2)`.
    C : float, default=1.0
        Weight of the hinge of both.
    gamma : {"median", "scale", "paper"} or float, default=None
        Width of "rbf": see :class:`rbrl.RBRLClassifier`; None means 1 / n_features, as "paper".
    tol : float, default=None
        Stopping tolerance of both; None means their own defaults, 1e-4 and 1e-3.
    scores : {"decision", "hard"}, default="decision"
        "decision": the decision values of the base learners, else their probabilities less 1/2. "hard": +1/2 or -1/2,
        the predicted class and nothing else, as Mulan ranked the labels of its SVMs.
    non_empty : bool, default=False
        Give a row without a relevant label its best one.
    n_jobs : int, default=None
        Base learners trained at a time, in threads that share the rows. A pure Python `estimator` gains more from
        processes: ``with joblib.parallel_config("loky")``.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        ``kernel="linear"`` only, with `intercept_` (n_labels,).
    dual_coef_ : sparse array (n_samples, n_labels)
        ``kernel="rbf"`` only, with `intercept_` (n_labels,).
    estimators_ : list
        The fitted clones of `estimator`; None for a constant label, whose score is in `constant_`.
    X_fit_ : array or sparse matrix
        Training rows; ``kernel="rbf"`` only.
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
        self.scores, self.n_jobs = scores, n_jobs

    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        problems = ((None if y.all() else np.flatnonzero(y), y > 0) for y in Y.T)
        self._fit_bank(inputs, problems, Y.shape[1], weights)
        never = np.flatnonzero(~Y.any(axis=0))
        if len(never):
            # Below all that is known to be possible: with `non_empty`, too, no row gets such a label before others.
            self.constant_[never] = self.intercept_[never] = -1.0
            which = f"{len(never)} of {Y.shape[1]} labels, the first of which is in column {never[0]}"
            warnings.warn(f"Nobody looked at {which}: they are predicted as irrelevant.", stacklevel=users_level())

    def _scores(self, X: Matrix) -> FloatArray:
        inputs = self._inputs(X)
        hard = self.scores == "hard"
        return self._bank_votes(inputs, slice(None)) - 0.5 if hard else self._bank_margins(inputs, slice(None))

    def _probabilities(self, X: Matrix) -> FloatArray:
        return self._bank_votes(self._inputs(X), slice(None), soft=True)


def encode_sets(relevant: BoolArray) -> tuple[BoolArray, IntArray]:
    """The distinct rows of a boolean matrix, and which of them every row is.

    Parameters
    ----------
    relevant : array (n_rows, n_labels) of bool

    Returns
    -------
    sets : array (n_sets, n_labels) of bool
    code : array (n_rows,) of int
        Index into `sets` of every row.

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
    """Return the distinct label sets, and a learner that tells them apart (None if there is only one).

    Parameters
    ----------
    learner : scikit-learn classifier
        Fresh.
    inputs : Inputs
    relevant : array (n_samples, n_labels) of bool
    weights : array (n_samples,) or None

    Returns
    -------
    sets : array (n_sets, n_labels) of bool
    learner : scikit-learn classifier or None
    sharpness : float
        Factor of the learner's scores in soft votes.
    """
    sets, code = encode_sets(relevant)
    if len(sets) == 1:
        return sets, None, 1.0
    learner = fit_learner(learner, inputs, code, weights)
    rows = np.unique(np.linspace(0, len(code) - 1, ROWS_FOR_SHARPNESS).astype(int))
    return sets, learner, fit_sharpness(learner, inputs.matrix[rows], code[rows])


def powerset_votes(
    sets: BoolArray, learner: Learner | None, matrix: Matrix, votes: str, sharpness: float = 1.0
) -> FloatArray:
    """Return the share of the vote for each label, (n_rows, n_labels).

    "hard": 1 for the labels of the predicted set; "soft": the probability of all sets that hold the label.

    Parameters
    ----------
    sets, learner
        As :func:`fit_powerset` returns them.
    matrix : array or sparse matrix (n_rows, n_columns)
    votes : {"hard", "soft"}
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
    # A sum of probabilities may end a rounding error above 1.
    shares = probabilities(learner, matrix, sharpness) @ sets[learner.classes_].astype(np.float64)
    return np.minimum(shares, 1.0)


class LabelPowerset(ReductionClassifier):
    r"""One multi-class classifier whose classes are the label sets of the training rows.

    .. math:: \hat Y(x) = \arg\max_{S \in \{Y_1, \dots, Y_n\}} f_S(x)

    Only label sets seen in training can be predicted. LIBLINEAR separates each set from the rest, LIBSVM every two sets.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Base learner, instead of the two that `kernel` names. It is cloned, never fitted itself; `kernel`, `C`, `gamma`
        and `tol` then have no effect.
    kernel : {"linear", "rbf"}, default="linear"
        "linear": LIBLINEAR's L2-regularised squared hinge with a regularised intercept, solved in the primal (no
        randomness). "rbf": LIBSVM's C-SVC with :math:`\exp(-\gamma \|x - x'\|^2)`.
    C : float, default=1.0
        Weight of the hinge of both.
    gamma : {"median", "scale", "paper"} or float, default=None
        Width of "rbf": see :class:`rbrl.RBRLClassifier`; None means 1 / n_features, as "paper".
    tol : float, default=None
        Stopping tolerance of both; None means their own defaults, 1e-4 and 1e-3.
    votes : {"hard", "soft"}, default="hard"
        "hard": the label set of the best class. "soft": a label is relevant where the sets that hold it have more than
        half of the probability. This ranks the labels too, and may predict a set that was never seen. For base learners
        without probabilities, it is the softmax of the decision values times `sharpness_`.
    non_empty : bool, default=False
        Give a row without a relevant label its best one.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    label_sets_ : array (n_sets, n_labels) of bool
    estimator_ : scikit-learn classifier
        Its classes are rows of `label_sets_`; None if there is only one.
    sharpness_ : float
        Factor of the decision values in soft votes, fitted to training rows by maximum likelihood.
    X_fit_ : array or sparse matrix
        Training rows; ``kernel="rbf"`` only.
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
    # Model files of 0.1.0 have no other.
    sharpness_: float = 1.0

    def __init__(
        self, estimator: BaseEstimator | None = None, kernel: str = "linear", C: float = 1.0, gamma: Width = None,
        tol: float | None = None, votes: str = "hard", non_empty: bool = False, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        super().__init__(estimator, kernel, C, gamma, tol, non_empty, label_names)
        self.votes = votes

    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        fitted = fit_powerset(self._learner(), inputs, Y > 0, weights)
        self.label_sets_, self.estimator_, self.sharpness_ = fitted

    def _scores(self, X: Matrix) -> FloatArray:
        matrix = self._inputs(X).matrix
        votes = powerset_votes(self.label_sets_, self.estimator_, matrix, self.votes, self.sharpness_)
        return np.subtract(votes, 0.5)


class CalibratedLabelRanking(BinaryBankClassifier):
    r"""Pairwise comparison of labels, calibrated by a virtual label 0.

    .. math:: v_j(x) = [f_j(x) > 0] + \sum_{k \ne j} [f_{jk}(x) > 0], \qquad
              v_0(x) = \sum_k [f_k(x) \le 0], \qquad j \text{ relevant} \iff v_j(x) \ge v_0(x)

    :math:`f_{jk} = -f_{kj}` is trained on the rows that have exactly one of the labels j and k, and :math:`f_k`,
    label k against the virtual one, on all rows. Labels are ranked by their votes; a tie with the virtual label counts
    as relevant.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Base learner, instead of the two that `kernel` names. It is cloned, never fitted itself; `kernel`, `C`, `gamma`
        and `tol` then have no effect.
    kernel : {"linear", "rbf"}, default="linear"
        "linear": LIBLINEAR's L2-regularised squared hinge with a regularised intercept, solved in the primal (no
        randomness). "rbf": LIBSVM's C-SVC with :math:`\exp(-\gamma \|x - x'\|^2)`.
    C : float, default=1.0
        Weight of the hinge of both.
    gamma : {"median", "scale", "paper"} or float, default=None
        Width of "rbf": see :class:`rbrl.RBRLClassifier`; None means 1 / n_features, as "paper".
    tol : float, default=None
        Stopping tolerance of both; None means their own defaults, 1e-4 and 1e-3.
    votes : {"hard", "soft"}, default="hard"
        "soft": a comparison is not one vote for its winner, but split by the probabilities of its two sides (for base
        learners without probabilities, the logistic function of the decision value).
    non_empty : bool, default=False
        Give a row without a relevant label its best one.
    n_jobs : int, default=None
        Base learners trained at a time, in threads that share the rows. A pure Python `estimator` gains more from
        processes: ``with joblib.parallel_config("loky")``.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    pairs_ : array (n_pairs, 2)
        The compared labels (j, k), j < k; the pairs' learners follow those of the n_labels single labels.
    played_ : array (n_pairs,) of bool
        False where no training row tells the two labels apart: nobody gets a vote.
    coef_ : array (n_labels + n_pairs, n_features)
        ``kernel="linear"`` only, with `intercept_`.
    dual_coef_ : sparse array (n_samples, n_labels + n_pairs)
        ``kernel="rbf"`` only, with `intercept_`.
    estimators_ : list
        The fitted clones of `estimator`; None for a problem of one class, whose score is in `constant_`.
    X_fit_ : array or sparse matrix
        Training rows; ``kernel="rbf"`` only.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Notes
    -----
    `decision_function` is :math:`(v_j - v_0 + 1/2) / l` for hard votes, so that a tie is positive; soft votes have the
    smallest positive number in place of 1/2.

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
        self.votes, self.n_jobs = votes, n_jobs

    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        relevant = np.asfortranarray(Y > 0)
        n_labels = Y.shape[1]
        self.pairs_ = np.column_stack(np.triu_indices(n_labels, k=1))
        together = relevant.T.astype(np.float64) @ relevant
        j, k = self.pairs_.T
        self.played_ = np.diag(together)[j] + np.diag(together)[k] > 2 * together[j, k]
        self._fit_bank(inputs, self._problems(relevant), n_labels + len(self.pairs_), weights)

    def _problems(self, relevant: BoolArray) -> Iterator[Problem]:
        for k in range(relevant.shape[1]):
            yield None, relevant[:, k]
        for j, k in self.pairs_:
            yield np.flatnonzero(relevant[:, j] != relevant[:, k]), relevant[:, j]

    def _scores(self, X: Matrix) -> FloatArray:
        inputs, soft = self._inputs(X), self.votes == "soft"
        n_labels = len(self.intercept_) - len(self.pairs_)
        votes = self._bank_votes(inputs, slice(0, n_labels), soft)
        virtual = (1.0 - votes).sum(axis=1, keepdims=True)
        stop = 0
        for j in range(n_labels - 1):
            start, stop = stop, stop + n_labels - 1 - j
            won = self._bank_votes(inputs, slice(n_labels + start, n_labels + stop), soft)
            played = self.played_[start:stop]
            votes[:, j] += won[:, played].sum(axis=1)
            votes[:, j + 1 :] += (1.0 - won) * played
        return (votes - virtual + tie_shift(self.votes, 0.5)) / n_labels
