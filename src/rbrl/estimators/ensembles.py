"""Ensembles: RAkEL's label powersets of random subsets, and classifier chains in random orders."""

from itertools import combinations
from math import comb
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.multioutput import ClassifierChain
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from rbrl._common.bases import BaseEstimator
from rbrl._common.checks import check_number
from rbrl._common.typing import BoolArray, FloatArray, IntArray, LabelNames, Matrix
from rbrl.estimators.base_learners import (
    Inputs,
    Learner,
    ReductionClassifier,
    check_takes_weights,
    kernel_svm,
    logistic,
    probabilities,
    tie_shift,
)
from rbrl.estimators.reductions import fit_powerset, powerset_votes
from rbrl.scales import Width

# What scikit-learn's `random_state` may be.
RandomSource: TypeAlias = int | np.random.RandomState | None
# Up to this many subsets are listed and drawn from; of more, random ones are drawn until enough differ.
LISTED_SUBSETS = 20_000


class RAkEL(ReductionClassifier):
    r"""Random k-labelsets: label powersets of m random subsets of k labels, which vote.

    .. math:: v_j(x) = \frac{\sum_{s : j \in R_s} [j \in \hat Y_s(x)]}{|\{s : j \in R_s\}|}, \qquad
              j \text{ relevant} \iff v_j(x) \ge \tfrac12

    :math:`\hat Y_s` is the label powerset of the labels :math:`R_s`. A label in no subset is irrelevant.

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
    overlapping : bool, default=True
        True: distinct subsets, each drawn from all labels. False: a random partition of the labels, whose last
        part may be smaller.
    n_subsets : int, default=None
        m, for overlapping subsets; None means twice the number of labels. All of them, if there are not more.
    subset_size : int or float, default=3
        k; a float is a share of the labels, so that 0.5 means half of them. At most the number of labels.
    votes : {"hard", "soft"}, default="hard"
        "soft": a subset's vote is the probability of the label (for base learners without probabilities, from the
        softmax of the decision values times `sharpness_`).
    non_empty : bool, default=False
        Give a row without a relevant label its best one.
    n_jobs : int, default=None
        Base learners trained at a time, in threads that share the rows. A pure Python `estimator` gains more from
        processes: ``with joblib.parallel_config("loky")``.
    random_state : int, RandomState or None, default=None
        Draws the subsets.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    subsets_ : list of arrays
        Labels of each subset, ascending.
    label_sets_ : list of arrays (n_sets, k) of bool
        The combinations that a subset's labels have in training.
    estimators_ : list
        One fitted classifier of combinations per subset; None where there is only one.
    sharpness_ : array (n_subsets,)
        Factor of each classifier's decision values in soft votes, fitted to training rows by maximum likelihood.
    X_fit_ : array or sparse matrix
        Training rows; ``kernel="rbf"`` only.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

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

    subsets_: list[IntArray]
    label_sets_: list[BoolArray]
    estimators_: list[Learner | None]
    n_votes_: IntArray
    sharpness_: FloatArray

    def __init__(
        self, estimator: BaseEstimator | None = None, kernel: str = "linear", C: float = 1.0, gamma: Width = None,
        tol: float | None = None, overlapping: bool = True, n_subsets: int | None = None, subset_size: float = 3,
        votes: str = "hard", non_empty: bool = False, n_jobs: int | None = None, random_state: RandomSource = None,
        label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        super().__init__(estimator, kernel, C, gamma, tol, non_empty, label_names)
        self.overlapping = overlapping
        self.n_subsets = n_subsets
        self.subset_size = subset_size
        self.votes = votes
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        relevant = Y > 0
        self.subsets_ = self._draw(Y.shape[1])
        self.n_votes_ = np.bincount(np.concatenate(self.subsets_), minlength=Y.shape[1])
        jobs = (delayed(fit_powerset)(self._learner(), inputs, relevant[:, s], weights) for s in self.subsets_)
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)
        self.label_sets_, self.estimators_, sharpness = (list(part) for part in zip(*fitted))
        self.sharpness_ = np.array(sharpness)

    def _draw(self, n_labels: int) -> list[IntArray]:
        k = self.subset_size if isinstance(self.subset_size, Integral) else int(self.subset_size * n_labels)
        k, random = min(max(int(k), 1), n_labels), check_random_state(self.random_state)
        if not self.overlapping:
            order = random.permutation(n_labels)
            return [np.sort(order[start : start + k]) for start in range(0, n_labels, k)]
        m = 2 * n_labels if self.n_subsets is None else self.n_subsets
        return distinct_subsets(n_labels, k, m, random)

    def _scores(self, X: Matrix) -> FloatArray:
        matrix = self._inputs(X).matrix
        votes = np.zeros((matrix.shape[0], len(self.n_votes_)))
        # Model files of 0.1.0 have no factors.
        sharpness = getattr(self, "sharpness_", np.ones(len(self.subsets_)))
        for subset, sets, learner, factor in zip(self.subsets_, self.label_sets_, self.estimators_, sharpness):
            votes[:, subset] += powerset_votes(sets, learner, matrix, self.votes, factor)
        return votes / np.maximum(self.n_votes_, 1) - 0.5 + tie_shift(self.votes, 0.25 / self.n_votes_.max())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        if self.n_subsets is not None:
            check_number(owner, "n_subsets", self.n_subsets, low=1, integer=True)
        size = self.subset_size
        if isinstance(size, Integral) or not isinstance(size, Real) or not 0 < size <= 1:
            check_number(owner, "subset_size", size, low=1, integer=True)


def distinct_subsets(n: int, k: int, m: int, random: np.random.RandomState) -> list[IntArray]:
    """m distinct subsets of k of the numbers 0..n-1, or all of them if there are no more; each sorted.

    Parameters
    ----------
    n, k, m : int
    random : RandomState
        Draws them, where not all are wanted.

    Returns
    -------
    list of arrays

    Examples
    --------
    >>> distinct_subsets(3, 2, 10, np.random.RandomState(0))
    [array([0, 1]), array([0, 2]), array([1, 2])]
    """
    total = comb(n, k)
    if total <= max(m, LISTED_SUBSETS):
        listed = np.array(list(combinations(range(n), k)))
        return list(listed if total <= m else listed[random.permutation(total)[:m]])
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < m:
        drawn.setdefault(tuple(np.sort(random.choice(n, k, replace=False)).tolist()))
    return [np.array(subset) for subset in drawn]


class EnsembleOfChains(ReductionClassifier):
    r"""Classifier chains in random orders, which vote.

    .. math:: \hat y_{\pi(j)}^c(x) = f_j^c(x, \hat y_{\pi(1)}^c, \dots, \hat y_{\pi(j-1)}^c), \qquad
              v_j(x) = \tfrac1c \textstyle\sum_c \hat y_j^c(x), \qquad j \text{ relevant} \iff v_j(x) \ge \tfrac12

    Each chain is scikit-learn's `ClassifierChain` in a random order :math:`\pi`: label after label is predicted from
    the features and the labels before it. Labels that are constant in a chain's rows stay outside it, with a constant
    vote.

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
    n_chains : int, default=10
    max_samples : float, default=1.0
        Share of the rows that each chain learns from, drawn without replacement.
    votes : {"hard", "soft"}, default="hard"
        "soft": a chain's vote is the probability of the label given its own predictions of the labels before (for base
        learners without probabilities, the logistic function of the decision value).
    non_empty : bool, default=False
        Give a row without a relevant label its best one.
    n_jobs : int, default=None
        Base learners trained at a time, in threads that share the rows. A pure Python `estimator` gains more from
        processes: ``with joblib.parallel_config("loky")``.
    random_state : int, RandomState or None, default=None
        Draws the orders and the rows.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.

    Attributes
    ----------
    chains_ : list of sklearn.multioutput.ClassifierChain
        Chains over the labels `chain_labels_`; None where all labels are constant.
    chain_labels_ : list of arrays
    chain_constants_ : list of arrays (n_labels,)
        Votes for the labels outside the chain.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Notes
    -----
    `decision_function` is :math:`v_j - 1/2` plus a shift that makes ties positive and nothing else: 1 / (4 n_chains)
    for hard votes, the smallest positive number for soft ones.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes, E. Frank: Classifier chains for multi-label classification. Machine Learning 85,
    2011.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import EnsembleOfChains
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> EnsembleOfChains(n_chains=5, random_state=0).fit(X, Y).predict(X[:2])
    array([[1, 0, 1, 1],
           [0, 1, 1, 0]])
    """

    chains_: list[ClassifierChain | None]
    chain_labels_: list[IntArray]
    chain_constants_: list[FloatArray]

    def __init__(
        self, estimator: BaseEstimator | None = None, kernel: str = "linear", C: float = 1.0, gamma: Width = None,
        tol: float | None = None, n_chains: int = 10, max_samples: float = 1.0, votes: str = "hard",
        non_empty: bool = False, n_jobs: int | None = None, random_state: RandomSource = None,
        label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        super().__init__(estimator, kernel, C, gamma, tol, non_empty, label_names)
        self.n_chains = n_chains
        self.max_samples = max_samples
        self.votes = votes
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_learners(self, inputs: Inputs, Y: IntArray, weights: FloatArray | None) -> None:
        random = check_random_state(self.random_state)
        # Orders and rows are drawn before the jobs start, so that they do not depend on n_jobs.
        plans = [(random.permutation(Y.shape[1]), self._draw_rows(random, len(Y))) for _ in range(self.n_chains)]
        learner, relevant = self._learner(), Y > 0
        jobs = (delayed(_fit_chain)(learner, inputs, relevant, weights, order, rows) for order, rows in plans)
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)
        self.chains_, self.chain_labels_, self.chain_constants_ = (list(part) for part in zip(*fitted))

    def _draw_rows(self, random: np.random.RandomState, n_samples: int) -> IntArray | None:
        n_drawn = max(1, round(self.max_samples * n_samples))
        return None if n_drawn == n_samples else np.sort(random.permutation(n_samples)[:n_drawn])

    def _scores(self, X: Matrix) -> FloatArray:
        rows = self._inputs(X).matrix
        total = np.zeros((rows.shape[0], len(self.chain_constants_[0])))
        for chain, labels, constants in zip(self.chains_, self.chain_labels_, self.chain_constants_):
            votes = np.tile(constants, (rows.shape[0], 1))
            if chain is not None:
                votes[:, labels] = _walk(chain, rows, soft=self.votes == "soft")
            total += votes
        return total / len(self.chains_) - 0.5 + tie_shift(self.votes, 0.25 / len(self.chains_))

    def _share_kernel(self) -> bool:
        # A chain adds columns to the rows, so that LIBSVM cannot share one kernel matrix: it takes the rows themselves.
        return False

    def _learner(self) -> Learner:
        if self.estimator is not None or self.kernel == "linear":
            return super()._learner()
        return kernel_svm(self.C, self.tol, kernel="rbf", gamma=self.gamma_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        check_number(owner, "n_chains", self.n_chains, low=1, integer=True)
        share = check_number(owner, "max_samples", self.max_samples, strict=True)
        if share > 1:
            raise ValueError(f"The max_samples parameter of {owner} must be a share in (0, 1]. Got {share!r}.")


def _fit_chain(
    learner: Learner, inputs: Inputs, relevant: BoolArray, weights: FloatArray | None, order: IntArray,
    rows: IntArray | None,
) -> tuple[ClassifierChain | None, IntArray, FloatArray]:  # fmt: skip
    """A chain over the labels that vary, these labels, and the votes for the others."""
    if rows is not None:
        relevant, weights = relevant[rows], None if weights is None else weights[rows]
    constants = relevant[0].astype(np.float64)
    labels = np.flatnonzero((relevant != relevant[0]).any(axis=0))
    if not len(labels):
        return None, labels, constants
    place = {label: position for position, label in enumerate(labels)}
    chain = ClassifierChain(clone(learner), order=[place[label] for label in order if label in place])
    X, Y = inputs.take(rows), relevant[:, labels].astype(np.int64)
    # scikit-learn hands row weights on to the learners of a chain by metadata routing only.
    with config_context(assume_finite=True, enable_metadata_routing=weights is not None):
        if weights is None:
            chain.fit(X, Y)
        else:
            check_takes_weights(chain.estimator)
            chain.estimator.set_fit_request(sample_weight=True)
            chain.fit(X, Y, sample_weight=weights)
    return chain, labels, constants


def _walk(chain: ClassifierChain, rows: Matrix, soft: bool) -> FloatArray:
    """Votes of one chain for its labels, 0/1 or probabilities."""
    learners, m = chain.estimators_, rows.shape[1]
    # One product of linear learners with the rows serves the whole walk: only the label columns change from step to step.
    linear = all(isinstance(learner, LinearSVC) for learner in learners)
    if linear:
        coef = np.stack([learner.coef_[0, :m] for learner in learners])
        scores = np.asarray(rows @ coef.T) + np.concatenate([learner.intercept_ for learner in learners])
    predicted, shares = (np.zeros((rows.shape[0], len(learners))) for _ in range(2))
    for step, learner in enumerate(learners):
        before = predicted[:, :step]
        if linear:
            score = scores[:, step] + before @ learner.coef_[0, m:]
            # As LinearSVC itself predicts.
            predicted[:, step], shares[:, step] = score > 0, logistic(score)
            continue
        seen = sparse.hstack([rows, before], format="csr") if sparse.issparse(rows) else np.hstack([rows, before])
        predicted[:, step] = learner.predict(seen)
        if soft:
            shares[:, step] = probabilities(learner, seen)[:, 1]
    return (shares if soft else predicted)[:, np.argsort(chain.order_)]
