"""Calibrated label ranking: a tournament of labels with a virtual one that separates the relevant from the rest."""

import numpy as np

from rbrl._validation import check_choice
from rbrl.estimators._binary_bank import BinaryBankClassifier
from rbrl.estimators._reduction import COMMON_PARAMETERS, KERNEL_ATTRIBUTES, LEARNER_PARAMETERS


class CalibratedLabelRanking(BinaryBankClassifier):
    __doc__ = rf"""Pairwise comparison of labels, calibrated by a virtual label 0.

    .. math:: v_j(x) = [f_j(x) > 0] + \sum_{{k \ne j}} [f_{{jk}}(x) > 0], \qquad
              v_0(x) = \sum_k [f_k(x) \le 0], \qquad j \text{{ relevant}} \iff v_j(x) \ge v_0(x)

    :math:`f_{{jk}} = -f_{{kj}}` is trained on the rows that have exactly one of the labels j and k, and :math:`f_k`,
    label k against the virtual one, on all rows. Labels are ranked by their votes; a tie with the virtual label counts
    as relevant.

    Parameters
    ----------
    {LEARNER_PARAMETERS}
    votes : {{"hard", "soft"}}, default="hard"
        "soft": a comparison is not one vote for its winner, but split by the probabilities of its two sides (for base
        learners without probabilities, the logistic function of the decision value).
    {COMMON_PARAMETERS}

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
    {KERNEL_ATTRIBUTES}

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

    decision_parameters = ("non_empty", "votes")

    def __init__(
        self,
        estimator=None,
        kernel="linear",
        C=1.0,
        gamma=None,
        tol=None,
        votes="hard",
        non_empty=False,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.votes = votes
        self.non_empty = non_empty
        self.n_jobs = n_jobs

    def _fit_learners(self, inputs, Y, weights):
        relevant = np.asfortranarray(Y > 0)
        n_labels = Y.shape[1]
        self.pairs_ = np.column_stack(np.triu_indices(n_labels, k=1))
        together = relevant.T.astype(np.float64) @ relevant
        j, k = self.pairs_.T
        self.played_ = np.diag(together)[j] + np.diag(together)[k] > 2 * together[j, k]
        self._fit_bank(inputs, self._problems(relevant), n_labels + len(self.pairs_), weights)

    def _problems(self, relevant):
        for k in range(relevant.shape[1]):
            yield None, relevant[:, k]
        for j, k in self.pairs_:
            yield np.flatnonzero(relevant[:, j] != relevant[:, k]), relevant[:, j]

    def _scores(self, X):
        inputs = self._inputs(X)
        n_labels = self._n_labels()
        votes = self._won(inputs, slice(0, n_labels))
        virtual = (1.0 - votes).sum(axis=1, keepdims=True)
        stop = 0
        for j in range(n_labels - 1):
            start, stop = stop, stop + n_labels - 1 - j
            won = self._won(inputs, slice(n_labels + start, n_labels + stop))
            played = self.played_[start:stop]
            votes[:, j] += won[:, played].sum(axis=1)
            votes[:, j + 1 :] += (1.0 - won) * played
        tie = 0.5 if self.votes == "hard" else np.finfo(np.float64).tiny
        return (votes - virtual + tie) / n_labels

    def _n_labels(self):
        return len(self.intercept_) - len(self.pairs_)

    def _won(self, inputs, problems):
        """The first side's share of the votes."""
        if self.votes == "soft":
            return self._bank_probabilities(inputs, problems)
        return (self._bank_margins(inputs, problems) > 0).astype(np.float64)

    def _check_parameters(self):
        super()._check_parameters()
        check_choice(type(self).__name__, "votes", self.votes, ("hard", "soft"))
