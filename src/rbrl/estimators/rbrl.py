"""RBRL, and BRL: RBRL without its ranking term."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rbrl._common.typing import LabelNames
from rbrl.estimators.base import Filling
from rbrl.estimators.entries import ClassWeight
from rbrl.estimators.streaming import StreamingClassifier
from rbrl.estimators.training_scores import Threshold
from rbrl.losses import Loss, PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.losses.label_graph import LabelCounts
from rbrl.scales import InterceptStrength, Strength, Width
from rbrl.solvers import Solver


class BRLClassifier(StreamingClassifier):
    r"""Binary relevance with low rank: RBRL without its ranking term.

    .. math:: \min_W \tfrac12 \| |E - Y \circ XW|_+^2 \|_1 + \tfrac{\lambda_1}{2} \|W\|_F^2 + \lambda_3 \|W\|_*

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        :math:`\lambda_1`. "auto" is, for the linear model, :math:`3\, m \operatorname{median}_j \operatorname{var}(x_j)
        \sqrt{n / \min(n, m + 1)}` over the m features that are not constant (1 if all are), n the sum of the weights of
        the rows; and 1 for other kernels. The value is in `ridge_`.
    nuclear : float or "auto", default="auto"
        :math:`\lambda_3`. Larger values give the weights a lower rank; 0 turns low-rank learning off. "auto" is 0 without
        `max_rank`, where the norm gains nothing at the default ridge, and 0.1 with it. The value is in `nuclear_`.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        "linear" learns weights of the features; every other choice learns one coefficient per training row and label.
    gamma : {"median", "scale", "paper"} or float, default="median"
        Width of the "rbf" and scale of the "poly" kernel: 1 / the median squared distance between rows that differ, over a
        sample of 1,000 rows if there are more; 1 / (n_features * X.var()), as in scikit-learn; or 1 / n_features, as in the
        paper, for which None stands, too. The value is in `gamma_`.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel.
    low_rank : {"coefficients", "function"}, default="coefficients"
        What the nuclear norm of a kernel model is taken of: the coefficients A, as in the paper, or the function
        :math:`\Phi(X)'A`. With "function", a linear kernel gives the linear model exactly. The kernel matrix is then not
        decomposed, which makes fits with thousands of rows much faster. Without a nuclear norm there is no difference.
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
        Linear model: append a column for the intercept. No effect on other kernels (a constant cancels in "rbf"); refused
        for "precomputed".
    intercept_ridge : float, "ridge" or None, default=1.0
        Penalty of the intercept in place of `ridge`: the column holds the square root of
        `ridge / intercept_ridge`.
        None, and "ridge" where a file has no None, mean the same as `ridge`: a column of ones, as in the paper.
        The nuclear norm sees the weight of that column, the intercept divided by what the column holds.
    non_empty : bool or "auto", default="auto"
        Give a row without a positive score its best label, as the authors' program does. "auto": if at most 2 % of the
        training rows have no label. The value is in `non_empty_`.
    class_weight : "balanced" or dict, default=None
        Weights of the entries of y, by label. "balanced" gives the relevant and the irrelevant entries of each label the
        same total weight. A dict has a weight of the relevant entries, or a pair of weights (irrelevant, relevant), for
        labels by their column or name; of a 1-D y, a weight for each class. They multiply `sample_weight`.
    solver : {"auto", "dual-ascent", "quasi-newton", "low-rank", "apg"} or solver object, default="auto"
        "dual-ascent" visits the rows of a linear model one at a time. "quasi-newton" serves kernels, rows in blocks and very
        weak ridges, too. "auto" chooses between the two. "low-rank" keeps the weights in factors from the start, for ranks
        far below the number of labels.
        ``rbrl.solvers.APG(lipschitz="paper", stop="paper")`` replays the authors' program.
    tol : float, default=1e-4
        Stop when the objective is certified to be within this share of its optimum.
    max_iter : int, default=1000
        Largest number of iterations; one of dual ascent is a pass over all rows.
    warm_start : bool, default=False
        Start from the weights of the previous `fit`. No effect with an approximation, whose features are drawn anew.
    verbose : int, default=0
        1 writes a line about the solution to standard error.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.
    threshold : float, "f1_micro", "f1_samples" or "f1_macro", default=0.0
        Number that is subtracted from the scores, so that a label is predicted if its score is above it. A metric learns
        it from the scores of the training rows, corrected for the fit to these rows, at the cost of one evaluation: one
        threshold for all labels that is best for micro-F1 or for the F1 of the samples, or one for each label that is
        best for its F1. The value is in `threshold_`. A 1-D y of three or more classes allows 0 only.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        Linear model only, with `intercept_` (n_labels,).
    dual_coef_ : array (n_samples, n_labels)
        Kernel model only, with `X_fit_`, the training rows.
    feature_coef_ : array (n_components, n_labels)
        With an approximation only, and `feature_map_`, the transformer to its features.
    ridge_ : float
        `ridge` as a number.
    gamma_ : float
        `gamma` as a number; "rbf" and "poly" only.
    threshold_ : float, or array (n_labels,) with ``threshold="f1_macro"``
        Threshold that `decision_function` subtracts from the scores.
    non_empty_ : bool
        Whether a row without a positive score gets its best label.
    empty_share_ : float
        Share of the training rows that have no label.
    objective_ : float
    gap_ : float
        Certified upper bound on the relative distance of `objective_` from its optimum.
    rank_ : int
        Rank of the weights.
    n_iter_ : int
    n_evaluations_ : float
        Products with the design and its transpose, in pairs.
    pass_seconds_ : tuple of two floats
        Of a fit of rows in blocks: its time in passes over them, and in between.
    history_ : array
        Objective values, one per iteration.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import BRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> BRLClassifier().fit(X, Y).predict(X[:2])
    array([[1, 1, 1, 0],
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
    r"""Ranking SVM and binary relevance learned jointly, with low rank: equation 8 of the paper.

    .. math:: \min_W \tfrac12 \| |E - Y \circ XW|_+^2 \|_1 + \tfrac{\lambda_1}{2} \|W\|_F^2
              + \lambda_2 f_r(W) + \lambda_3 \|W\|_*

    with the ranking term :math:`f_r`, a squared hinge with margin 2 over every row's (relevant, irrelevant) label pairs.
    The defaults fit themselves to the data; the paper's model is ``RBRLClassifier(ridge=1, ranking=0.1, nuclear=0.1,
    intercept_ridge=None, gamma="paper", non_empty=True)``.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        :math:`\lambda_1`. "auto" is, for the linear model, :math:`3\, m \operatorname{median}_j \operatorname{var}(x_j)
        \sqrt{n / \min(n, m + 1)}` over the m features that are not constant (1 if all are), n the sum of the weights of
        the rows; and 1 for other kernels. The value is in `ridge_`.
    ranking : float, default=1.0
        :math:`\lambda_2`. Larger values rank relevant labels above irrelevant ones more eagerly; 0 gives BRL.
    nuclear : float or "auto", default="auto"
        :math:`\lambda_3`. Larger values give the weights a lower rank; 0 turns low-rank learning off. "auto" is 0 without
        `max_rank`, where the norm gains nothing at the default ridge, and 0.1 with it. The value is in `nuclear_`.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        "linear" learns weights of the features; every other choice learns one coefficient per training row and label.
    gamma : {"median", "scale", "paper"} or float, default="median"
        Width of the "rbf" and scale of the "poly" kernel: 1 / the median squared distance between rows that differ, over a
        sample of 1,000 rows if there are more; 1 / (n_features * X.var()), as in scikit-learn; or 1 / n_features, as in the
        paper, for which None stands, too. The value is in `gamma_`.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel.
    low_rank : {"coefficients", "function"}, default="coefficients"
        What the nuclear norm of a kernel model is taken of: the coefficients A, as in the paper, or the function
        :math:`\Phi(X)'A`. With "function", a linear kernel gives the linear model exactly. The kernel matrix is then not
        decomposed, which makes fits with thousands of rows much faster. Without a nuclear norm there is no difference.
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
        Linear model: append a column for the intercept. No effect on other kernels (a constant cancels in "rbf"); refused
        for "precomputed".
    intercept_ridge : float, "ridge" or None, default=1.0
        Penalty of the intercept in place of `ridge`: the column holds the square root of
        `ridge / intercept_ridge`.
        None, and "ridge" where a file has no None, mean the same as `ridge`: a column of ones, as in the paper.
        The nuclear norm sees the weight of that column, the intercept divided by what the column holds.
    non_empty : bool or "auto", default="auto"
        Give a row without a positive score its best label, as the authors' program does. "auto": if at most 2 % of the
        training rows have no label. The value is in `non_empty_`.
    class_weight : "balanced" or dict, default=None
        Weights of the entries of y, by label. "balanced" gives the relevant and the irrelevant entries of each label the
        same total weight. A dict has a weight of the relevant entries, or a pair of weights (irrelevant, relevant), for
        labels by their column or name; of a 1-D y, a weight for each class. They multiply `sample_weight`.
    solver : {"auto", "dual-ascent", "quasi-newton", "low-rank", "apg"} or solver object, default="auto"
        "dual-ascent" visits the rows of a linear model one at a time. "quasi-newton" serves kernels, rows in blocks and very
        weak ridges, too. "auto" chooses between the two. "low-rank" keeps the weights in factors from the start, for ranks
        far below the number of labels.
        ``rbrl.solvers.APG(lipschitz="paper", stop="paper")`` replays the authors' program.
    tol : float, default=1e-4
        Stop when the objective is certified to be within this share of its optimum.
    max_iter : int, default=1000
        Largest number of iterations; one of dual ascent is a pass over all rows.
    warm_start : bool, default=False
        Start from the weights of the previous `fit`. No effect with an approximation, whose features are drawn anew.
    verbose : int, default=0
        1 writes a line about the solution to standard error.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own.
    threshold : float, "f1_micro", "f1_samples" or "f1_macro", default=0.0
        Number that is subtracted from the scores, so that a label is predicted if its score is above it. A metric learns
        it from the scores of the training rows, corrected for the fit to these rows, at the cost of one evaluation: one
        threshold for all labels that is best for micro-F1 or for the F1 of the samples, or one for each label that is
        best for its F1. The value is in `threshold_`. A 1-D y of three or more classes allows 0 only.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        Linear model only, with `intercept_` (n_labels,).
    dual_coef_ : array (n_samples, n_labels)
        Kernel model only, with `X_fit_`, the training rows.
    feature_coef_ : array (n_components, n_labels)
        With an approximation only, and `feature_map_`, the transformer to its features.
    ridge_ : float
        `ridge` as a number.
    gamma_ : float
        `gamma` as a number; "rbf" and "poly" only.
    threshold_ : float, or array (n_labels,) with ``threshold="f1_macro"``
        Threshold that `decision_function` subtracts from the scores.
    non_empty_ : bool
        Whether a row without a positive score gets its best label.
    empty_share_ : float
        Share of the training rows that have no label.
    objective_ : float
    gap_ : float
        Certified upper bound on the relative distance of `objective_` from its optimum.
    rank_ : int
        Rank of the weights.
    n_iter_ : int
    n_evaluations_ : float
        Products with the design and its transpose, in pairs.
    pass_seconds_ : tuple of two floats
        Of a fit of rows in blocks: its time in passes over them, and in between.
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
    >>> model = RBRLClassifier().fit(X, Y)
    >>> model.predict(X[:2])
    array([[1, 1, 1, 0],
           [0, 1, 1, 0]])
    >>> model.gap_ <= 1e-4
    True
    """

    non_negative = ("ridge", "nuclear", "ranking")

    def __init__(
        self, ridge: Strength = "auto", ranking: float = 1.0, nuclear: Strength = "auto",
        kernel: str | Callable[[Any, Any], Any] = "linear", gamma: Width = "median", degree: int = 3,
        coef0: float = 1.0, low_rank: str = "coefficients", max_rank: int | None = None,
        approximation: str | None = None, n_components: int = 500,
        random_state: int | np.random.RandomState | None = None, fit_intercept: bool = True,
        intercept_ridge: InterceptStrength = 1.0, non_empty: Filling = "auto", class_weight: ClassWeight = None,
        solver: str | Solver = "auto", tol: float = 1e-4, max_iter: int = 1000, warm_start: bool = False,
        verbose: int = 0, label_names: LabelNames = None, threshold: Threshold = 0.0,
    ) -> None:  # fmt: skip
        self.ridge, self.ranking, self.nuclear = ridge, ranking, nuclear
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, degree, coef0
        self.low_rank, self.max_rank = low_rank, max_rank
        self.approximation, self.n_components, self.random_state = approximation, n_components, random_state
        self.fit_intercept, self.intercept_ridge, self.non_empty = fit_intercept, intercept_ridge, non_empty
        self.class_weight = class_weight
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.warm_start, self.verbose, self.label_names = warm_start, verbose, label_names
        self.threshold = threshold

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
