"""Classifiers of convex objectives: RBRL, BRL, which is RBRL without its ranking term, and CPNL."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rbrl._common.checks import check_number
from rbrl._common.typing import LabelNames
from rbrl.estimators.base import Filling
from rbrl.estimators.convex import ConvexClassifier
from rbrl.estimators.entries import ClassWeight
from rbrl.estimators.training_scores import Threshold
from rbrl.losses import (
    CostWeightedSquaredHinge,
    LabelGraph,
    Loss,
    PairwiseSquaredHinge,
    SquaredHinge,
    WeightedSum,
)
from rbrl.losses.label_graph import LabelCounts, costs_of_counts, laplacians_of_products
from rbrl.scales import InterceptStrength, Strength, Width
from rbrl.solvers import Solver


class BRLClassifier(ConvexClassifier):
    r"""Binary relevance with low rank: RBRL without its ranking term.

    .. math:: \min_W \tfrac12 \| |E - Y \circ XW|_+^2 \|_1 + \tfrac{\lambda_1}{2} \|W\|_F^2 + \lambda_3 \|W\|_*

    :class:`RBRLClassifier` documents the parameters and the fitted attributes. They are the same here,
    except that this class has no parameter `ranking`.

    See Also
    --------
    RBRLClassifier : The same model with a ranking term, and the documentation of all parameters.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import BRLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> BRLClassifier().fit(X, Y).predict(X[:2])
    array([[1, 1, 1, 0],
           [0, 1, 1, 0]])
    """

    loss_is_row_wise = True

    def loss(self, count_labels: Callable[[], LabelCounts] | None = None) -> Loss:
        """Return the squared hinge of all labels.

        Parameters
        ----------
        count_labels : callable, default=None
            Function that is not called, because the loss of a row does not depend on other rows.

        Returns
        -------
        Loss
        """
        return SquaredHinge()


class RBRLClassifier(ConvexClassifier):
    r"""Joint learning of ranking SVM and binary relevance with low rank: equation 8 of the paper.

    .. math:: \min_W \tfrac12 \| |E - Y \circ XW|_+^2 \|_1 + \tfrac{\lambda_1}{2} \|W\|_F^2
              + \lambda_2 f_r(W) + \lambda_3 \|W\|_*

    The ranking term :math:`f_r` is a squared hinge with margin 2 over all pairs of a relevant and an
    irrelevant label of a row. The defaults adapt to the data. The model of the paper is
    ``RBRLClassifier(ridge=1, ranking=0.1, nuclear=0.1, intercept_ridge=None, gamma="paper",
    non_empty=True)``.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Weight :math:`\lambda_1` of the ridge. For the linear model, "auto" means :math:`3\, m
        \operatorname{median}_j \operatorname{var}(x_j) \sqrt{n / \min(n, m + 1)}` over the m features that
        are not constant, or 1 if all features are constant; n is the sum of the weights of the rows. For
        other kernels, "auto" means 1. The value is in `ridge_`.
    ranking : float, default=1.0
        Weight :math:`\lambda_2` of the ranking term; 0 gives BRL.
    nuclear : float or "auto", default="auto"
        Weight :math:`\lambda_3` of the nuclear norm. Larger values give the weights a lower rank, and 0 means
        no nuclear norm. "auto" means 0 without `max_rank`, because the norm gains nothing at the default
        ridge, and 0.1 with `max_rank`. The value is in `nuclear_`.
    kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        Kernel. "linear" learns weights of the features. Every other kernel learns one coefficient per
        training row and label.
    gamma : {"median", "scale", "paper"} or float, default="median"
        Width of the "rbf" kernel and scale of the "poly" kernel. "median" means 1 / the median squared
        distance between rows that differ, over a sample of at most 1,000 rows. "scale" means
        1 / (n_features * X.var()), as in scikit-learn. "paper" or None means 1 / n_features. The value is in
        `gamma_`.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel.
    low_rank : {"coefficients", "function"}, default="coefficients"
        Matrix whose nuclear norm is penalised in a kernel model: the coefficients A, as in the paper, or the
        function :math:`\Phi(X)'A`. With "function", a linear kernel gives the linear model exactly, and the
        kernel matrix is not decomposed, which makes fits with thousands of rows much faster. Without a
        nuclear norm, both give the same model.
    max_rank : int, default=None
        Largest rank k of the weights: the paper's constraint rank(W) <= k, in addition to the nuclear norm or,
        with ``nuclear=0``, in place of it. This problem is not convex. The solution is a local optimum, and
        `gap_` bounds its distance from the optimum without the constraint, which may be large.
    approximation : {"nystroem", "fourier"}, default=None
        Approximation of the kernel by inner products of few features, for data sets whose kernel matrix does
        not fit into memory. "nystroem" is scikit-learn's `Nystroem` over cluster centres, for "rbf" and
        "poly". "fourier" is its `RBFSampler`, for "rbf". The gap is that of the approximated problem.
    n_components : int, default=500
        Number of features of the kernel approximation.
    random_state : int, RandomState instance or None, default=None
        Seed of the kernel approximation.
    fit_intercept : bool, default=True
        If True, the linear model gets a column for the intercept. This has no effect on other kernels: a
        constant cancels in "rbf". It must be False for "precomputed".
    intercept_ridge : float, "ridge" or None, default=1.0
        Penalty of the intercept in place of `ridge`: its column holds the square root of
        `ridge / intercept_ridge`. None means the value of `ridge`, and so a column of ones, as in the paper.
        "ridge" means the same, for files that cannot store None.
        The nuclear norm includes the weight of this column, the intercept divided by the value in the column.
    non_empty : bool or "auto", default="auto"
        If True, a row without a positive score gets its best label, as in the authors' program. "auto"
        means True if at most 2 % of the training rows have no label. The value is in `non_empty_`.
    class_weight : "balanced" or dict, default=None
        Weights of the entries of y, which multiply `sample_weight`. "balanced" gives the relevant and the
        irrelevant entries of each label the same total weight. The keys of a dict are columns or names of
        labels, and its values are weights of the relevant entries, or pairs of weights (irrelevant,
        relevant). For a 1-D y, a dict has a weight for each class.
    solver : {"auto", "dual-ascent", "quasi-newton", "low-rank", "apg"} or solver object, default="auto"
        Solver. "dual-ascent" visits the rows of a linear model one at a time. "quasi-newton" also solves
        problems with kernels, rows in blocks and very weak ridges. "auto" chooses between these two.
        "low-rank" stores the weights as factors, for ranks far below the number of labels.
        ``rbrl.solvers.APG(lipschitz="paper", stop="paper")`` repeats the steps of the authors' program.
    tol : float, default=1e-4
        Relative gap at which the solver stops: the objective is certified to be within this share of its
        optimum.
    max_iter : int, default=1000
        Largest number of iterations; an iteration of dual ascent is a pass over all rows.
    warm_start : bool, default=False
        If True, `fit` starts from the weights of the previous `fit`. This has no effect with an
        approximation, because every fit draws new features.
    verbose : int, default=0
        If 1, `fit` writes a line about the solution to standard error.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame.
    threshold : float, "f1_micro", "f1_samples" or "f1_macro", default=0.0
        Number that is subtracted from the scores: a label is predicted if its score is above it. The name
        of a metric means a threshold that is learned from the scores of the training rows, corrected for the
        fit to these rows. "f1_micro" and "f1_samples" learn one threshold for all labels, and "f1_macro" one
        for each label. This costs one evaluation. The value is in `threshold_`. For a 1-D y of three or more
        classes, it must be 0.
    compress : float, default=None
        Largest relative rise of the objective by which unimportant weights of a linear model become 0 after the fit, for
        example 0.01. `coef_` is then a sparse matrix in single precision, and `gap_` holds for it: it may
        exceed `tol` by this rise. None keeps all weights. :func:`rbrl.compress` compresses a fitted model.

    Attributes
    ----------
    coef_ : array or sparse matrix (n_labels, n_features)
        Weights of the features; linear model only. Of a model in factors, it is computed when it is first used.
    label_factors_, feature_factors_ : arrays (n_labels, rank) and (n_features, rank)
        Factors of `coef_`, ``label_factors_ @ feature_factors_.T``; only of a linear model in factors.
    intercept_ : array (n_labels,)
        Intercepts; linear model only.
    dual_coef_ : array (n_samples, n_labels)
        Coefficients of the training rows `X_fit_`; kernel model only.
    feature_coef_ : array (n_components, n_labels)
        Coefficients of the features of `feature_map_`; only with an approximation.
    feature_map_ : transformer
        Fitted kernel approximation; only with an approximation.
    ridge_ : float
        `ridge` as a number.
    gamma_ : float
        `gamma` as a number; "rbf" and "poly" only.
    threshold_ : float, or array (n_labels,) with ``threshold="f1_macro"``
        Threshold that `decision_function` subtracts from the scores.
    non_empty_ : bool
        True if a row without a positive score gets its best label.
    empty_share_ : float
        Share of the training rows that have no label.
    objective_ : float
        Value of the objective.
    gap_ : float
        Certified upper bound on the relative distance of `objective_` from its optimum.
    rank_ : int
        Rank of the weights.
    n_iter_ : int
        Number of iterations.
    n_evaluations_ : float
        Number of pairs of products with the design and its transpose.
    pass_seconds_ : tuple of two floats
        Seconds in passes over the rows, and between the passes; only after a fit of rows in blocks.
        A model file does not contain them.
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

    loss_is_row_wise = True
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
        compress: float | None = None,
    ) -> None:  # fmt: skip
        self.ridge = ridge
        self.ranking = ranking
        self.nuclear = nuclear
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.low_rank = low_rank
        self.max_rank = max_rank
        self.approximation = approximation
        self.n_components = n_components
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.intercept_ridge = intercept_ridge
        self.non_empty = non_empty
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.label_names = label_names
        self.threshold = threshold
        self.compress = compress

    def loss(self, count_labels: Callable[[], LabelCounts] | None = None) -> Loss:
        """Return the squared hinge of all labels plus `ranking` times that of all pairs of labels in a row.

        Parameters
        ----------
        count_labels : callable, default=None
            Function that is not called, because the loss of a row does not depend on other rows.

        Returns
        -------
        Loss
        """
        return WeightedSum((1.0, SquaredHinge()), (self.ranking, PairwiseSquaredHinge()))


class CPNL(ConvexClassifier):
    r"""Cost-sensitive learning with positive and negative label correlations.

    .. math:: \min_W \tfrac12 \sum_{ij} c_{ij} |1 - y_{ij} f_{ij}|_+^2 + \tfrac{\lambda_1}{2} \|W\|_F^2
              + \tfrac{\lambda_2}{2} \operatorname{tr}(F L^+ F') + \tfrac{\lambda_3}{2} \operatorname{tr}(F L^- F'),
              \qquad F = XW

    A relevant entry has the cost :math:`c_{ij} = (n_j^- / n_j^+)^\beta`, and an irrelevant entry the cost
    1. The graph :math:`L^+` makes the scores of labels similar that often agree. The graph :math:`L^-` gives
    the scores of labels opposite signs that often differ.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Weight :math:`\lambda_1` of the ridge; "auto" is the value of :class:`RBRLClassifier`.
    positive : float, default=0.1
        Weight :math:`\lambda_2` of the graph of agreement.
    negative : float, default=0.1
        Weight :math:`\lambda_3` of the graph of disagreement.
    beta : float, default=0.5
        Exponent :math:`\beta` of the costs; 0 gives every entry the same cost.
    n_neighbors : int, default=3
        Number that limits the neighbours of a label in a graph. As in the authors' program, the entries above
        the `n_neighbors`-th largest entry of its row are kept. These are usually `n_neighbors` - 1 entries.
    kernel, gamma, degree, coef0, fit_intercept, intercept_ridge, non_empty : as in :class:`RBRLClassifier`
        The same parameters, with the same defaults.
    solver, tol, max_iter, warm_start, verbose, label_names, threshold : as in :class:`RBRLClassifier`
        The same parameters, with the same defaults.

    Attributes
    ----------
    dual_objective_ : float
        Lower bound on the optimum. :class:`RBRLClassifier` documents the other fitted attributes.

    See Also
    --------
    RBRLClassifier : Documentation of the parameters and attributes that the classes share.

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
        self.ridge = ridge
        self.positive = positive
        self.negative = negative
        self.beta = beta
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_ridge = intercept_ridge
        self.non_empty = non_empty
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.label_names = label_names
        self.threshold = threshold

    # Other classifiers have this name as a parameter.
    @property
    def low_rank(self) -> str:  # type: ignore[override]
        """Coordinates of a kernel model; without a nuclear norm, they do not change the solution.

        The authors' program iterates in the coordinates of the coefficients.
        """
        return "coefficients" if getattr(self.solver, "lipschitz", None) == "paper" else "function"

    @property
    def dual_objective_(self) -> float:
        """Lower bound on the optimum."""
        return self.objective_ / (1.0 + self.gap_)

    def loss(self, count_labels: Callable[[], LabelCounts]) -> Loss:
        """Return the weighted squared hinge and the label graphs, which depend on the labels of all rows.

        Parameters
        ----------
        count_labels : callable
            Function that counts the labels of all rows.

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
