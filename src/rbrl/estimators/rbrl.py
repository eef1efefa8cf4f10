"""RBRL, and BRL: RBRL without its ranking term."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rbrl.estimators.convex import StreamingClassifier
from rbrl.losses import Loss, PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.out_of_core import LabelCounts
from rbrl.solvers import Solver


class BRLClassifier(StreamingClassifier):
    r"""Binary relevance with low rank: RBRL without its ranking term.

    .. math:: \min_W \tfrac12 \| |E - Y \circ XW|_+^2 \|_1 + \tfrac{\lambda_1}{2} \|W\|_F^2 + \lambda_3 \|W\|_*

    Parameters
    ----------
    ridge : float, default=1.0
        :math:`\lambda_1`.
    nuclear : float, default=0.1
        :math:`\lambda_3`. Larger values give the weights a lower rank; 0 turns low-rank learning off.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        "linear" learns weights of the features; every other choice learns one coefficient per training row and label.
    gamma : float, default=None
        Width of the "rbf" and scale of the "poly" kernel; None means 1 / n_features, as in the paper.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel.
    low_rank : {"coefficients", "function"}, default="coefficients"
        What the nuclear norm of a kernel model is taken of: the coefficients A, as in the paper, or the function
        :math:`\Phi(X)'A`. With "function", a linear kernel gives the linear model exactly, and
        more than 8,000 rows are solved block by block, without a decomposition of the kernel matrix.
    max_rank : int, default=None
        Allow the weights no larger rank: the paper's constraint rank(W) <= k, beside the nuclear norm or, with
        ``nuclear=0``, in place of it. That problem is not convex: the solution is a local optimum, and `gap_` bounds its
        distance from the optimum without the constraint, which need not be small.
    approximation : {"nystroem", "fourier"}, default=None
        Replace the kernel by the inner products of few features, for more rows than a kernel matrix has room for:
        scikit-learn's `Nystroem` over centres of clusters ("rbf" and "poly"), or its `RBFSampler` ("rbf"). The gap is that
        of the approximated problem.
    n_components : int, default=500
        Features of the approximation.
    random_state : int, RandomState instance or None, default=None
        Of the approximation.
    fit_intercept : bool, default=True
        Linear model: append a column of ones, regularised with the rest, as in the paper. No effect on other kernels
        (it cancels in "rbf"); refused for "precomputed".
    non_empty : bool, default=False
        Give a row without a positive score its best label, as the authors' program does.
    solver : {"auto", "apg", "low-rank"} or solver object, default="auto"
        "low-rank" keeps the weights in factors from the start, for ranks far below the number of labels.
        ``rbrl.solvers.APG(lipschitz="paper", stop="paper")`` replays the authors' program.
    tol : float, default=1e-4
        Stop when the objective is certified to be within this share of its optimum.
    max_iter : int, default=1000
    warm_start : bool, default=False
        Start from the weights of the previous `fit`. No effect with an approximation, whose features are drawn anew.
    verbose : int, default=0
        1 writes a line about the solution to standard error.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        Linear model only, with `intercept_` (n_labels,).
    dual_coef_ : array (n_samples, n_labels)
        Kernel model only, with `X_fit_`, the training rows.
    feature_coef_ : array (n_components, n_labels)
        With an approximation only, and `feature_map_`, the transformer to its features.
    objective_ : float
    gap_ : float
        Certified upper bound on the relative distance of `objective_` from its optimum.
    rank_ : int
        Rank of the weights.
    n_iter_ : int
    n_evaluations_ : float
        Products with the design and its transpose, in pairs.
    history_ : array
        Objective values, one per iteration.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import BRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> BRLClassifier(ridge=10).fit(X, Y).predict(X[:2])
    array([[1, 0, 1, 1],
           [0, 1, 1, 0]])
    """

    def loss(self, count_labels: Callable[[], LabelCounts] | None = None) -> Loss:
        """The squared hinge of every label.

        Parameters
        ----------
        count_labels : callable, default=None
            Not called: the loss of a row does not depend on other rows.

        Returns
        -------
        Loss
        """
        return SquaredHinge()


class RBRLClassifier(StreamingClassifier):
    r"""Ranking SVM and binary relevance learned jointly, with low rank (eq. 8 of the paper).

    .. math:: \min_W \tfrac12 \| |E - Y \circ XW|_+^2 \|_1 + \tfrac{\lambda_1}{2} \|W\|_F^2
              + \lambda_2 f_r(W) + \lambda_3 \|W\|_*

    with the ranking term :math:`f_r`, a squared hinge with margin 2 over every row's (relevant, irrelevant) label pairs.

    Parameters
    ----------
    ridge : float, default=1.0
        :math:`\lambda_1`.
    ranking : float, default=0.1
        :math:`\lambda_2`. Larger values rank relevant labels above irrelevant ones more eagerly; 0 gives BRL.
    nuclear : float, default=0.1
        :math:`\lambda_3`. Larger values give the weights a lower rank; 0 turns low-rank learning off.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        "linear" learns weights of the features; every other choice learns one coefficient per training row and label.
    gamma : float, default=None
        Width of the "rbf" and scale of the "poly" kernel; None means 1 / n_features, as in the paper.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel.
    low_rank : {"coefficients", "function"}, default="coefficients"
        What the nuclear norm of a kernel model is taken of: the coefficients A, as in the paper, or the function
        :math:`\Phi(X)'A`. With "function", a linear kernel gives the linear model exactly, and
        more than 8,000 rows are solved block by block, without a decomposition of the kernel matrix.
    max_rank : int, default=None
        Allow the weights no larger rank: the paper's constraint rank(W) <= k, beside the nuclear norm or, with
        ``nuclear=0``, in place of it. That problem is not convex: the solution is a local optimum, and `gap_` bounds its
        distance from the optimum without the constraint, which need not be small.
    approximation : {"nystroem", "fourier"}, default=None
        Replace the kernel by the inner products of few features, for more rows than a kernel matrix has room for:
        scikit-learn's `Nystroem` over centres of clusters ("rbf" and "poly"), or its `RBFSampler` ("rbf"). The gap is that
        of the approximated problem.
    n_components : int, default=500
        Features of the approximation.
    random_state : int, RandomState instance or None, default=None
        Of the approximation.
    fit_intercept : bool, default=True
        Linear model: append a column of ones, regularised with the rest, as in the paper. No effect on other kernels
        (it cancels in "rbf"); refused for "precomputed".
    non_empty : bool, default=False
        Give a row without a positive score its best label, as the authors' program does.
    solver : {"auto", "apg", "low-rank"} or solver object, default="auto"
        "low-rank" keeps the weights in factors from the start, for ranks far below the number of labels.
        ``rbrl.solvers.APG(lipschitz="paper", stop="paper")`` replays the authors' program.
    tol : float, default=1e-4
        Stop when the objective is certified to be within this share of its optimum.
    max_iter : int, default=1000
    warm_start : bool, default=False
        Start from the weights of the previous `fit`. No effect with an approximation, whose features are drawn anew.
    verbose : int, default=0
        1 writes a line about the solution to standard error.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        Linear model only, with `intercept_` (n_labels,).
    dual_coef_ : array (n_samples, n_labels)
        Kernel model only, with `X_fit_`, the training rows.
    feature_coef_ : array (n_components, n_labels)
        With an approximation only, and `feature_map_`, the transformer to its features.
    objective_ : float
    gap_ : float
        Certified upper bound on the relative distance of `objective_` from its optimum.
    rank_ : int
        Rank of the weights.
    n_iter_ : int
    n_evaluations_ : float
        Products with the design and its transpose, in pairs.
    history_ : array
        Objective values, one per iteration.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    References
    ----------
    G. Wu, R. Zheng, Y. Tian, D. Liu: Joint Ranking SVM and Binary Relevance with Robust Low-Rank Learning for
    Multi-Label Classification. Neural Networks 122, 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = RBRLClassifier(ridge=10, ranking=0.1, nuclear=1).fit(X, Y)
    >>> model.predict(X[:2])
    array([[1, 0, 1, 1],
           [0, 1, 1, 0]])
    >>> model.gap_ <= 1e-4
    True
    """

    non_negative = ("ridge", "nuclear", "ranking")

    def __init__(
        self, ridge: float = 1.0, ranking: float = 0.1, nuclear: float = 0.1,
        kernel: str | Callable[[Any, Any], Any] = "linear", gamma: float | None = None, degree: int = 3,
        coef0: float = 1.0, low_rank: str = "coefficients", max_rank: int | None = None,
        approximation: str | None = None, n_components: int = 500,
        random_state: int | np.random.RandomState | None = None, fit_intercept: bool = True, non_empty: bool = False,
        solver: str | Solver = "auto", tol: float = 1e-4, max_iter: int = 1000, warm_start: bool = False,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        self.ridge, self.ranking, self.nuclear = ridge, ranking, nuclear
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, degree, coef0
        self.low_rank, self.max_rank = low_rank, max_rank
        self.approximation, self.n_components, self.random_state = approximation, n_components, random_state
        self.fit_intercept, self.non_empty = fit_intercept, non_empty
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.warm_start, self.verbose = warm_start, verbose

    def loss(self, count_labels: Callable[[], LabelCounts] | None = None) -> Loss:
        """The squared hinge of every label, and `ranking` times that of every row's pairs of labels.

        Parameters
        ----------
        count_labels : callable, default=None
            Not called: the loss of a row does not depend on other rows.

        Returns
        -------
        Loss
        """
        return WeightedSum((1.0, SquaredHinge()), (self.ranking, PairwiseSquaredHinge()))
