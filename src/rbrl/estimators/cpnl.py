"""CPNL: costs for rare labels, and label graphs of agreement and disagreement."""

from collections.abc import Callable
from typing import Any

from rbrl._common.checks import check_number
from rbrl._common.typing import LabelNames
from rbrl.estimators.base import Filling
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.estimators.training_scores import Threshold
from rbrl.losses import CostWeightedSquaredHinge, LabelGraph, Loss, WeightedSum
from rbrl.losses.hinges import costs_of_counts
from rbrl.losses.label_graph import LabelCounts, laplacians_of_products
from rbrl.scales import InterceptStrength, Strength, Width
from rbrl.solvers import Solver


class CPNL(ObjectiveClassifier):
    r"""Cost-sensitive learning with positive and negative label correlations.

    .. math:: \min_W \tfrac12 \sum_{ij} c_{ij} |1 - y_{ij} f_{ij}|_+^2 + \tfrac{\lambda_1}{2} \|W\|_F^2
              + \tfrac{\lambda_2}{2} \operatorname{tr}(F L^+ F') + \tfrac{\lambda_3}{2} \operatorname{tr}(F L^- F'),
              \qquad F = XW

    with costs :math:`c_{ij} = (n_j^- / n_j^+)^\beta` of relevant entries and 1 of irrelevant ones. :math:`L^+` pulls scores
    of labels that often agree together, :math:`L^-` pushes those of labels that often differ to opposite signs.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        :math:`\lambda_1`. "auto" is, for the linear model, :math:`3\, m \operatorname{median}_j \operatorname{var}(x_j)
        \sqrt{n / \min(n, m + 1)}` over the m features that are not constant (1 if all are), n the sum of the weights of
        the rows; and 1 for other kernels. The value is in `ridge_`.
    positive : float, default=0.1
        :math:`\lambda_2`, weight of agreement.
    negative : float, default=0.1
        :math:`\lambda_3`, weight of disagreement.
    beta : float, default=0.5
        :math:`\beta`: 0 gives every entry the same cost.
    n_neighbors : int, default=3
        In each label's row of a graph, entries above the `n_neighbors`-th largest are kept, as in the authors' program:
        commonly one fewer than its name says, and none of those that tie with it.
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
    fit_intercept : bool, default=True
        Linear model: append a column for the intercept. No effect on other kernels (a constant cancels in "rbf"); refused
        for "precomputed".
    intercept_ridge : float, "ridge" or None, default=1.0
        Penalty of the intercept in place of `ridge`: the column holds the square root of
        `ridge / intercept_ridge`.
        None, and "ridge" where a file has no None, mean the same as `ridge`: a column of ones, as in the paper.
    non_empty : bool or "auto", default="auto"
        Give a row without a positive score its best label, as the authors' program does. "auto": if at most 2 % of the
        training rows have no label. The value is in `non_empty_`.
    solver : {"auto", "quasi-newton", "apg"} or solver object, default="auto"
        ``rbrl.solvers.APG(lipschitz="paper", stop="paper")`` replays the authors' program.
    tol : float, default=1e-4
        Stop when the objective is certified to be within this share of its optimum.
    max_iter : int, default=1000
    warm_start : bool, default=False
        Start from the weights of the previous `fit`.
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
    dual_objective_ : float
        Lower bound of the optimum.
    gap_ : float
        Certified upper bound on the relative distance of `objective_` from its optimum.
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
    G. Wu, Y. Tian, D. Liu: Cost-sensitive multi-label learning with positive and negative label pairwise correlations.
    Neural Networks 108, 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import CPNL
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = CPNL().fit(X, Y)
    >>> model.predict(X[:2])
    array([[1, 0, 1, 0],
           [0, 0, 1, 0]])
    >>> model.gap_ <= 1e-4
    True
    """

    nuclear = 0.0
    non_negative = ("ridge", "nuclear", "positive", "negative", "beta")

    def __init__(
        self, ridge: Strength = "auto", positive: float = 0.1, negative: float = 0.1, beta: float = 0.5,
        n_neighbors: int = 3, kernel: str | Callable[[Any, Any], Any] = "linear",
        gamma: Width = "median", degree: int = 3, coef0: float = 1.0, fit_intercept: bool = True,
        intercept_ridge: InterceptStrength = 1.0, non_empty: Filling = "auto",
        solver: str | Solver = "auto", tol: float = 1e-4, max_iter: int = 1000, warm_start: bool = False,
        verbose: int = 0, label_names: LabelNames = None, threshold: Threshold = 0.0,
    ) -> None:  # fmt: skip
        self.ridge, self.positive, self.negative = ridge, positive, negative
        self.beta, self.n_neighbors = beta, n_neighbors
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, degree, coef0
        self.fit_intercept, self.intercept_ridge, self.non_empty = fit_intercept, intercept_ridge, non_empty
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.warm_start, self.verbose, self.label_names = warm_start, verbose, label_names
        self.threshold = threshold

    # Other classifiers have it as a parameter.
    @property
    def low_rank(self) -> str:  # type: ignore[override]
        """Without a nuclear norm only a choice of coordinates: the authors' iteration is in those of the coefficients."""
        return "coefficients" if getattr(self.solver, "lipschitz", None) == "paper" else "function"

    @property
    def dual_objective_(self) -> float:
        """Lower bound of the optimum."""
        return self.objective_ / (1.0 + self.gap_)

    def loss(self, count_labels: Callable[[], LabelCounts]) -> Loss:
        """Costs and label graphs depend on all labels: they are counted once.

        Parameters
        ----------
        count_labels : callable
            Counts the labels of all rows.

        Returns
        -------
        Loss
        """
        counts = count_labels()
        positive, negative = laplacians_of_products(counts.products, counts.together, self.n_neighbors)
        return WeightedSum(
            (1.0, CostWeightedSquaredHinge(costs_of_counts(counts.relevant, counts.irrelevant, self.beta))),
            (self.positive, LabelGraph(positive)),
            (self.negative, LabelGraph(negative)),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(type(self).__name__, "n_neighbors", self.n_neighbors, low=1, integer=True)
