"""RAkEL: label powersets of small random subsets of the labels, which vote."""

from itertools import combinations
from math import comb
from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from rbrl._validation import check_choice, check_number
from rbrl.estimators._powerset import fit_powerset, powerset_votes
from rbrl.estimators._reduction import COMMON_PARAMETERS, KERNEL_ATTRIBUTES, LEARNER_PARAMETERS, ReductionClassifier

# Up to this many subsets are listed and drawn from; of more, random ones are drawn until enough differ.
LISTED_SUBSETS = 20_000


class RAkEL(ReductionClassifier):
    __doc__ = rf"""Random k-labelsets: label powersets of m random subsets of k labels, which vote.

    .. math:: v_j(x) = \frac{{\sum_{{s : j \in R_s}} [j \in \hat Y_s(x)]}}{{|\{{s : j \in R_s\}}|}}, \qquad
              j \text{{ relevant}} \iff v_j(x) \ge \tfrac12

    :math:`\hat Y_s` is the label powerset of the labels :math:`R_s`. A label in no subset is irrelevant.

    Parameters
    ----------
    {LEARNER_PARAMETERS}
    overlapping : bool, default=True
        True: distinct subsets, each drawn from all labels. False: a random partition of the labels, whose last
        part may be smaller.
    n_subsets : int, default=None
        m, for overlapping subsets; None means twice the number of labels. All of them, if there are not more.
    subset_size : int or float, default=3
        k; a float is a share of the labels, so that 0.5 means half of them. At most the number of labels.
    votes : {{"hard", "soft"}}, default="hard"
        "soft": a subset's vote is the probability of the label (for base learners without probabilities, from the
        softmax of the decision values).
    {COMMON_PARAMETERS}
    random_state : int, RandomState or None, default=None
        Draws the subsets.

    Attributes
    ----------
    subsets_ : list of arrays
        Labels of each subset, ascending.
    label_sets_ : list of arrays (n_sets, k) of bool
        The combinations that a subset's labels have in training.
    estimators_ : list
        One fitted classifier of combinations per subset; None where there is only one.
    {KERNEL_ATTRIBUTES}

    Notes
    -----
    `decision_function` is :math:`v_j - 1/2` plus a shift, the same for all labels, that makes ties positive and nothing
    else: 1 / (4 times the largest number of subsets of a label) for hard votes, the smallest positive number for soft.

    References
    ----------
    G. Tsoumakas, I. Katakis, I. Vlahavas: Random k-labelsets for multilabel classification. IEEE TKDE 23, 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import RAkEL
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> RAkEL(subset_size=2, random_state=0).fit(X, Y).predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 0, 1, 0]])
    """

    decision_parameters = ("non_empty", "votes")

    def __init__(
        self,
        estimator=None,
        kernel="linear",
        C=1.0,
        gamma=None,
        tol=None,
        overlapping=True,
        n_subsets=None,
        subset_size=3,
        votes="hard",
        non_empty=False,
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.overlapping = overlapping
        self.n_subsets = n_subsets
        self.subset_size = subset_size
        self.votes = votes
        self.non_empty = non_empty
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_learners(self, inputs, Y, weights):
        relevant = Y > 0
        self.subsets_ = self._draw(Y.shape[1])
        self.n_votes_ = np.bincount(np.concatenate(self.subsets_), minlength=Y.shape[1])
        jobs = (delayed(fit_powerset)(self._learner(), inputs, relevant[:, s], weights) for s in self.subsets_)
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)
        self.label_sets_, self.estimators_ = (list(part) for part in zip(*fitted))

    def _draw(self, n_labels):
        k, random = self._size(n_labels), check_random_state(self.random_state)
        if not self.overlapping:
            order = random.permutation(n_labels)
            return [np.sort(order[start : start + k]) for start in range(0, n_labels, k)]
        m = 2 * n_labels if self.n_subsets is None else self.n_subsets
        return distinct_subsets(n_labels, k, m, random)

    def _size(self, n_labels):
        k = self.subset_size if isinstance(self.subset_size, Integral) else int(self.subset_size * n_labels)
        return min(max(int(k), 1), n_labels)

    def _scores(self, X):
        matrix = self._inputs(X).matrix
        votes = np.zeros((matrix.shape[0], len(self.n_votes_)))
        for subset, sets, learner in zip(self.subsets_, self.label_sets_, self.estimators_):
            votes[:, subset] += powerset_votes(sets, learner, matrix, self.votes)
        shares = votes / np.maximum(self.n_votes_, 1)
        tie = 0.25 / self.n_votes_.max() if self.votes == "hard" else np.finfo(np.float64).tiny
        return shares - 0.5 + tie

    def _check_parameters(self):
        super()._check_parameters()
        owner = type(self).__name__
        check_choice(owner, "votes", self.votes, ("hard", "soft"))
        if self.n_subsets is not None:
            check_number(owner, "n_subsets", self.n_subsets, low=1, integer=True)
        size = self.subset_size
        share = isinstance(size, Real) and not isinstance(size, Integral) and 0 < size <= 1
        if not share:
            check_number(owner, "subset_size", size, low=1, integer=True)


def distinct_subsets(n, k, m, random):
    """m distinct subsets of k of the numbers 0..n-1, or all of them if there are no more; each sorted."""
    total = comb(n, k)
    if total <= max(m, LISTED_SUBSETS):
        listed = np.array(list(combinations(range(n), k)))
        return list(listed if total <= m else listed[random.permutation(total)[:m]])
    drawn = {}
    while len(drawn) < m:
        drawn.setdefault(tuple(np.sort(random.choice(n, k, replace=False)).tolist()))
    return [np.array(subset) for subset in drawn]
