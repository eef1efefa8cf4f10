"""Label powersets, ensembles of them over random subsets (RAkEL), and ensembles of chains."""

from itertools import combinations
from math import comb
from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed
from sklearn.multioutput import ClassifierChain
from sklearn.utils import check_random_state

from rbrl._common.bases import BaseEstimator
from rbrl._common.checks import check_number
from rbrl._common.typing import BoolArray, FloatArray, IntArray, LabelNames, Matrix
from rbrl.estimators.base_learners import (
    Inputs,
    Learner,
    RandomSource,
    compute_chain_votes,
    compute_powerset_votes,
    fit_chain,
    fit_powerset,
    get_tie_shift,
    make_kernel_svm,
)
from rbrl.estimators.reductions import ReductionClassifier
from rbrl.scales import Width

# If there are at most this many subsets, all are listed and some are drawn from the list. Otherwise,
# random subsets are drawn until there are enough different ones.
LISTED_SUBSETS = 20_000


class LabelPowerset(ReductionClassifier):
    r"""One multi-class classifier whose classes are the label sets of the training rows.

    .. math:: \hat Y(x) = \arg\max_{S \in \{Y_1, \dots, Y_n\}} f_S(x)

    Only label sets of training rows can be predicted. LIBLINEAR separates each set from all others, and
    LIBSVM each pair of sets.

    Parameters
    ----------
    estimator, kernel, C, gamma, tol : as in :class:`BinaryRelevance`
        The same parameters, with the same defaults.
    votes : {"hard", "soft"}, default="hard"
        "hard" predicts the label set of the best class. "soft" predicts a label if the sets that contain
        it have more than half of the probability. This also ranks the labels, and may predict a set that
        no training row has. The probabilities of a base learner without probabilities are the softmax of
        its decision values times `sharpness_`.
    non_empty, label_names : as in :class:`BinaryRelevance`
        The same parameters, with the same defaults.

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
        """Fit one learner whose classes are the label sets of the training rows."""
        self.label_sets_, self.estimator_, self.sharpness_ = fit_powerset(self._make_learner(), inputs, Y > 0, weights)

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the votes less 1/2, as a new array, because votes may be a read-only view."""
        matrix = self._make_inputs(X).matrix
        votes = compute_powerset_votes(self.label_sets_, self.estimator_, matrix, self.votes, self.sharpness_)
        return np.subtract(votes, 0.5)


class RAkEL(ReductionClassifier):
    r"""Random k-labelsets: an ensemble of label powersets of m random subsets of k labels.

    .. math:: v_j(x) = \frac{\sum_{s : j \in R_s} [j \in \hat Y_s(x)]}{|\{s : j \in R_s\}|}, \qquad
              j \text{ relevant} \iff v_j(x) \ge \tfrac12

    :math:`\hat Y_s` is the label powerset of the labels :math:`R_s`. A label that is in no
    subset is irrelevant.

    Parameters
    ----------
    estimator, kernel, C, gamma, tol : as in :class:`BinaryRelevance`
        The same parameters, with the same defaults.
    overlapping : bool, default=True
        If True, each subset is drawn from all labels, and the subsets are distinct. If False, they are a
        random partition of the labels, whose last part may be smaller.
    n_subsets : int, default=None
        Number m of overlapping subsets, at most the number of all subsets. None means twice the number of
        labels.
    subset_size : int or float, default=3
        Number k of labels in a subset, at most the number of labels. A float is a share of the labels:
        0.5 means half of them.
    votes : {"hard", "soft"}, default="hard"
        Votes of a subset. "hard" means its predicted labels, and "soft" the probabilities of its labels.
        For base learners without probabilities, they come from the softmax of the decision values times
        `sharpness_`.
    non_empty, n_jobs : as in :class:`BinaryRelevance`
        The same parameters, with the same defaults.
    random_state : int, RandomState or None, default=None
        Seed of the random subsets.
    label_names : as in :class:`BinaryRelevance`
        The same parameter, with the same default.

    Attributes
    ----------
    subsets_ : list of arrays
        Labels of each subset, in ascending order.
    label_sets_ : list of arrays (n_sets, k) of bool
        Combinations of the labels of each subset in the training rows.
    estimators_ : list
        Fitted classifier of the combinations of each subset; None if there is only one combination.
    sharpness_ : array (n_subsets,)
        Factor of each classifier's decision values in soft votes, fitted to training rows by maximum likelihood.
    X_fit_ : array or sparse matrix
        Training rows; only with ``kernel="rbf"``.

    Notes
    -----
    `decision_function` is :math:`v_j - 1/2` plus a shift that makes ties positive, and changes no other
    sign. The shift is the same for all labels: for hard votes 1 / (4 times the largest number of subsets
    of a label), and for soft votes the smallest positive number.

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
        """Draw the subsets, and fit a label powerset for each of them."""
        relevant = Y > 0
        self.subsets_ = self._draw_subsets(Y.shape[1])
        self.n_votes_ = np.bincount(np.concatenate(self.subsets_), minlength=Y.shape[1])
        jobs = (delayed(fit_powerset)(self._make_learner(), inputs, relevant[:, s], weights) for s in self.subsets_)
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)
        self.label_sets_, self.estimators_, sharpness = (list(part) for part in zip(*fitted))
        self.sharpness_ = np.array(sharpness)

    def _draw_subsets(self, n_labels: int) -> list[IntArray]:
        """Return the random subsets of the labels, each in ascending order.

        `random_state` is read, and a RandomState in it is advanced. Disjoint subsets cover all
        labels, and the last one may be smaller.
        """
        k = self.subset_size if isinstance(self.subset_size, Integral) else int(self.subset_size * n_labels)
        k = min(max(int(k), 1), n_labels)
        random = check_random_state(self.random_state)
        if not self.overlapping:
            order = random.permutation(n_labels)
            return [np.sort(order[start : start + k]) for start in range(0, n_labels, k)]
        m = 2 * n_labels if self.n_subsets is None else self.n_subsets
        return draw_distinct_subsets(n_labels, k, m, random)

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the mean vote of each label less 1/2, shifted so that ties are positive.

        The shift changes no other sign.
        """
        matrix = self._make_inputs(X).matrix
        votes = np.zeros((matrix.shape[0], len(self.n_votes_)))
        # Model files of version 0.1.0 have no factors.
        sharpness = getattr(self, "sharpness_", np.ones(len(self.subsets_)))
        for subset, sets, learner, factor in zip(self.subsets_, self.label_sets_, self.estimators_, sharpness):
            votes[:, subset] += compute_powerset_votes(sets, learner, matrix, self.votes, factor)
        return votes / np.maximum(self.n_votes_, 1) - 0.5 + get_tie_shift(self.votes, 0.25 / self.n_votes_.max())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        if self.n_subsets is not None:
            check_number(owner, "n_subsets", self.n_subsets, low=1, integer=True)
        size = self.subset_size
        if isinstance(size, Integral) or not isinstance(size, Real) or not 0 < size <= 1:
            check_number(owner, "subset_size", size, low=1, integer=True)


def draw_distinct_subsets(n: int, k: int, m: int, random: np.random.RandomState) -> list[IntArray]:
    """Draw m distinct subsets of k of the numbers 0..n-1, or return all subsets if there are fewer.

    Each is an ascending array. `random` is advanced, unless all are returned.

    Examples
    --------
    >>> draw_distinct_subsets(3, 2, 10, np.random.RandomState(0))
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
    r"""An ensemble of classifier chains in random orders.

    .. math:: \hat y_{\pi(j)}^c(x) = f_j^c(x, \hat y_{\pi(1)}^c, \dots, \hat y_{\pi(j-1)}^c), \qquad
              v_j(x) = \tfrac1c \textstyle\sum_c \hat y_j^c(x), \qquad j \text{ relevant} \iff v_j(x) \ge \tfrac12

    Each chain is scikit-learn's `ClassifierChain` in a random order :math:`\pi`: every label is predicted
    from the features and the labels before it. Labels that are constant in the rows of a chain are not
    part of it, and get a constant vote.

    Parameters
    ----------
    estimator, kernel, C, gamma, tol : as in :class:`BinaryRelevance`
        The same parameters, with the same defaults.
    n_chains : int, default=10
        Number of chains.
    max_samples : float, default=1.0
        Share of the rows that each chain learns from, drawn without replacement.
    votes : {"hard", "soft"}, default="hard"
        Votes of a chain. "hard" means its predicted labels. "soft" means the probabilities of the labels,
        given its predictions of the labels before; for base learners without probabilities, the logistic
        function of the decision value.
    non_empty, n_jobs : as in :class:`BinaryRelevance`
        The same parameters, with the same defaults.
    random_state : int, RandomState or None, default=None
        Seed of the random orders and rows.
    label_names : as in :class:`BinaryRelevance`
        The same parameter, with the same default.

    Attributes
    ----------
    chains_ : list of sklearn.multioutput.ClassifierChain
        Chains over the labels `chain_labels_`; None if all labels are constant.
    chain_labels_ : list of arrays
        Labels of each chain.
    chain_constants_ : list of arrays (n_labels,)
        Votes for the labels that are not in the chain.

    Notes
    -----
    `decision_function` is :math:`v_j - 1/2` plus a shift that makes ties positive, and changes no other
    sign: 1 / (4 n_chains) for hard votes, and the smallest positive number for soft votes.

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
        """Draw orders and rows, and fit the chains."""
        random = check_random_state(self.random_state)
        # Orders and rows are drawn before the jobs start, so that they do not depend on n_jobs.
        plans = [(random.permutation(Y.shape[1]), self._draw_rows(random, len(Y))) for _ in range(self.n_chains)]
        learner = self._make_learner()
        relevant = Y > 0
        jobs = (delayed(fit_chain)(learner, inputs, relevant, weights, order, rows) for order, rows in plans)
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)
        self.chains_, self.chain_labels_, self.chain_constants_ = (list(part) for part in zip(*fitted))

    def _draw_rows(self, random: np.random.RandomState, n_samples: int) -> IntArray | None:
        """Return the sorted indices of the rows of one chain; None for all rows.

        Rows are drawn without replacement. `random` is advanced unless all rows are taken.
        """
        n_drawn = max(1, round(self.max_samples * n_samples))
        return None if n_drawn == n_samples else np.sort(random.permutation(n_samples)[:n_drawn])

    def _scores(self, X: Matrix) -> FloatArray:
        """Return the mean vote of the chains less 1/2, shifted so that ties are positive.

        The shift changes no other sign.
        """
        rows = self._make_inputs(X).matrix
        total = np.zeros((rows.shape[0], len(self.chain_constants_[0])))
        for chain, labels, constants in zip(self.chains_, self.chain_labels_, self.chain_constants_):
            votes = np.tile(constants, (rows.shape[0], 1))
            if chain is not None:
                votes[:, labels] = compute_chain_votes(chain, rows, soft=self.votes == "soft")
            total += votes
        return total / len(self.chains_) - 0.5 + get_tie_shift(self.votes, 0.25 / len(self.chains_))

    def _shares_kernel(self) -> bool:
        # A chain adds columns to the rows, so that its learners cannot share one kernel matrix.
        return False

    def _make_learner(self) -> Learner:
        if self.estimator is not None or self.kernel == "linear":
            return super()._make_learner()
        return make_kernel_svm(self.C, self.tol, kernel="rbf", gamma=self.gamma_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        check_number(owner, "n_chains", self.n_chains, low=1, integer=True)
        share = check_number(owner, "max_samples", self.max_samples, strict=True)
        if share > 1:
            raise ValueError(f"The max_samples parameter of {owner} must be a share in (0, 1]. Got {share!r}.")
