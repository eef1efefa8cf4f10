"""Classifier chains in random orders."""

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
    RandomSource,
    check_accepts_weights,
    compute_probabilities,
    get_tie_shift,
    logistic,
    make_kernel_svm,
)
from rbrl.estimators.reductions import ReductionClassifier
from rbrl.scales import Width


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
        random = check_random_state(self.random_state)
        # Orders and rows are drawn before the jobs start, so that they do not depend on n_jobs.
        plans = [(random.permutation(Y.shape[1]), self._draw_rows(random, len(Y))) for _ in range(self.n_chains)]
        learner = self._make_learner()
        relevant = Y > 0
        jobs = (delayed(_fit_chain)(learner, inputs, relevant, weights, order, rows) for order, rows in plans)
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)
        self.chains_, self.chain_labels_, self.chain_constants_ = (list(part) for part in zip(*fitted))

    def _draw_rows(self, random: np.random.RandomState, n_samples: int) -> IntArray | None:
        """Return the rows of a chain in ascending order; None means all rows."""
        n_drawn = max(1, round(self.max_samples * n_samples))
        return None if n_drawn == n_samples else np.sort(random.permutation(n_samples)[:n_drawn])

    def _scores(self, X: Matrix) -> FloatArray:
        rows = self._make_inputs(X).matrix
        total = np.zeros((rows.shape[0], len(self.chain_constants_[0])))
        for chain, labels, constants in zip(self.chains_, self.chain_labels_, self.chain_constants_):
            votes = np.tile(constants, (rows.shape[0], 1))
            if chain is not None:
                votes[:, labels] = _compute_chain_votes(chain, rows, soft=self.votes == "soft")
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


def _fit_chain(
    learner: Learner, inputs: Inputs, relevant: BoolArray, weights: FloatArray | None, order: IntArray,
    rows: IntArray | None,
) -> tuple[ClassifierChain | None, IntArray, FloatArray]:  # fmt: skip
    """Return a chain over the labels that are not constant, these labels, and the constant votes."""
    if rows is not None:
        relevant = relevant[rows]
        weights = None if weights is None else weights[rows]
    constants = relevant[0].astype(np.float64)
    labels = np.flatnonzero((relevant != relevant[0]).any(axis=0))
    if not len(labels):
        return None, labels, constants
    place = {label: position for position, label in enumerate(labels)}
    chain = ClassifierChain(clone(learner), order=[place[label] for label in order if label in place])
    X = inputs.take(rows)
    Y = relevant[:, labels].astype(np.int64)
    # scikit-learn passes row weights to the learners of a chain only by metadata routing.
    with config_context(assume_finite=True, enable_metadata_routing=weights is not None):
        if weights is None:
            chain.fit(X, Y)
        else:
            check_accepts_weights(chain.estimator)
            chain.estimator.set_fit_request(sample_weight=True)
            chain.fit(X, Y, sample_weight=weights)
    return chain, labels, constants


def _compute_chain_votes(chain: ClassifierChain, rows: Matrix, soft: bool) -> FloatArray:
    """Return the votes of one chain for its labels, 0/1 or probabilities."""
    learners = chain.estimators_
    m = rows.shape[1]
    # One product with the rows serves all linear learners: only the label columns change between them.
    linear = all(isinstance(learner, LinearSVC) for learner in learners)
    if linear:
        coef = np.stack([learner.coef_[0, :m] for learner in learners])
        scores = np.asarray(rows @ coef.T) + np.concatenate([learner.intercept_ for learner in learners])
    predicted, shares = (np.zeros((rows.shape[0], len(learners))) for _ in range(2))
    for step, learner in enumerate(learners):
        before = predicted[:, :step]
        if linear:
            score = scores[:, step] + before @ learner.coef_[0, m:]
            # LinearSVC predicts by the same rule.
            predicted[:, step] = score > 0
            shares[:, step] = logistic(score)
            continue
        extended = sparse.hstack([rows, before], format="csr") if sparse.issparse(rows) else np.hstack([rows, before])
        predicted[:, step] = learner.predict(extended)
        if soft:
            shares[:, step] = compute_probabilities(learner, extended)[:, 1]
    return (shares if soft else predicted)[:, np.argsort(chain.order_)]
