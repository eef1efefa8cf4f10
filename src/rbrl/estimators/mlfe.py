"""MLFE: labels enriched by the structure of the features, then regressed."""

import numpy as np
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_chunked

from rbrl._validation import check_number
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.mlfe_labels import enrich_labels
from rbrl.estimators.mlfe_regression import SignedRegression
from rbrl.estimators.mlfe_structure import LassoADMM
from rbrl.kernels import gram

# Parameters that only the last stage sees.
STAGE_THREE = {"beta1", "beta2", "beta3", "epsilon", "tol", "max_iter", "non_empty"}


class MLFE(MultiLabelClassifier):
    r"""Multi-label learning with feature-induced labelling information enrichment.

    1. Every row is reconstructed from the others, :math:`x_i \approx \sum_j w_{ij} x_j`, by a lasso.
    2. Labels become numbers that follow the same structure, keeping their signs:
       :math:`\min_{\mu_k} \|(I - W) \mu_k\|^2` subject to :math:`1 \le y_{ik} \mu_{ik} \le 2`.
    3. The numbers are regressed with a kernel, :math:`F = KB + 1b`:

    .. math:: \min_{B, b} \tfrac12 \mathrm{tr}(B'KB) + \beta_1 \sum_i |\|\mu_i - f_i\| - \varepsilon|_+^2
              + \beta_2 \sum_{ik} |-y_{ik} f_{ik}|_+ - \beta_3 \sum_{ik} z_{ik} f_{ik}

    with :math:`z_{ik}` one over the row's number of relevant labels, or minus one over that of irrelevant ones. A label
    is relevant iff :math:`f_k(x) \ge 0`.

    Stages 1 and 2 and the prediction are the authors'. Stage 3 is a **reconstruction**: inputs, parameters and kernel
    are known, the program is not; its first two losses are those of a sister method of the same group, the third is a
    guess.

    Parameters
    ----------
    beta1, beta2, beta3 : float, default=1.0
        Weights of the distance to the enriched labels, of their signs, and of the contrast between relevant and
        irrelevant labels.
    bounds : pair of floats, default=(1.0, 2.0)
        Bounds on the size of an enriched label.
    epsilon : float, default=0.001
        Distance to the enriched labels that costs nothing.
    gamma : float, default=None
        Width of the RBF kernel; None means :math:`1 / (2 \sigma^2)` with the mean distance :math:`\sigma` between two
        training rows.
    tol : float, default=1e-5
        Stage 3 stops when an iteration lowers the objective by less than this share.
    max_iter : int, default=100
        Iterations of stage 3.
    non_empty : bool, default=False
        Give a row without a relevant label its best one.
    n_jobs : int, default=None
        Threads of stage 1.

    Attributes
    ----------
    reconstruction_ : sparse array (n_samples, n_samples)
        W.
    enriched_labels_ : array (n_samples, n_labels)
    dual_coef_ : array (n_samples, n_labels)
        B, with `intercept_` (n_labels,) and `X_fit_`, the training rows.
    gamma_ : float
        Width of the kernel that was used.
    objective_ : float
        Of stage 3.
    n_iter_ : int
        Of stage 3.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target.

    Notes
    -----
    The n lasso problems of stage 1 share one factorisation and are solved as blocks of columns, with the authors'
    tolerance; the quadratic programs of stage 2 are solved for all labels at once, each to a certified gap.
    Memory grows with the square of n_samples.

    References
    ----------
    Q.-W. Zhang, Y. Zhong, M.-L. Zhang: Feature-induced labeling information enrichment for multi-label learning. AAAI
    2018.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import MLFE
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> MLFE().fit(X, Y).predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 0, 1, 0]])
    """

    def __init__(
        self,
        beta1=1.0,
        beta2=1.0,
        beta3=1.0,
        bounds=(1.0, 2.0),
        epsilon=1e-3,
        gamma=None,
        tol=1e-5,
        max_iter=100,
        non_empty=False,
        n_jobs=None,
    ):
        self.beta1 = beta1
        self.beta2 = beta2
        self.beta3 = beta3
        self.bounds = bounds
        self.epsilon = epsilon
        self.gamma = gamma
        self.tol = tol
        self.max_iter = max_iter
        self.non_empty = non_empty
        self.n_jobs = n_jobs

    def fit_many(self, X, y, points):
        """Yield a fitted copy for each dict of parameters; the first two stages are common to all weights of the third."""
        if any(not set(params) <= STAGE_THREE for params in points):
            yield from super().fit_many(X, y, points)
            return
        shared = None
        for params in points:
            model = clone(self).set_params(**params)
            model._shared = shared
            model._learn(X, y)
            shared, model._shared = model._shared, None
            yield model

    def fit(self, X, y=None):
        """Learn from rows X (n_samples, n_features) and their labels y (n_samples, n_labels), 0/1 or -1/+1."""
        self._shared = None
        self._learn(X, y)
        self._shared = None
        return self

    def _fit(self, X, Y, weights):
        self._shared = getattr(self, "_shared", None) or self._enrich(X.astype(np.float64, copy=False), Y)
        self.X_fit_, self.reconstruction_, self.enriched_labels_, self.gamma_, K = self._shared
        regression = SignedRegression(self.beta1, self.beta2, self.beta3, self.epsilon, self.tol, self.max_iter)
        self._store(regression.fit(K, self.enriched_labels_))

    def _enrich(self, X, Y):
        """Stages 1 and 2, and the kernel of stage 3."""
        reconstruction = LassoADMM().weights(X, self.n_jobs)
        gamma = 0.5 / _mean_distance(X) ** 2 if self.gamma is None else self.gamma
        K = gram(X, kernel="rbf", gamma=gamma)
        return X, reconstruction, enrich_labels(reconstruction, Y, *self.bounds), gamma, K

    def _store(self, found):
        self.dual_coef_, self.intercept_ = found.dual_coef, found.intercept
        self.objective_, self.n_iter_ = found.objective, found.n_iter

    def _scores(self, X):
        # A score of exactly 0 is relevant: the smallest positive number leaves all others as they are.
        K = gram(X, self.X_fit_, kernel="rbf", gamma=self.gamma_)
        return K @ self.dual_coef_ + self.intercept_ + np.finfo(np.float64).tiny

    def _check_parameters(self):
        owner = type(self).__name__
        check_number(owner, "beta1", self.beta1, strict=True)
        for name in ("beta2", "beta3", "epsilon"):
            check_number(owner, name, getattr(self, name))
        check_number(owner, "tol", self.tol, strict=True)
        check_number(owner, "max_iter", self.max_iter, low=1, integer=True)
        if self.gamma is not None:
            check_number(owner, "gamma", self.gamma, strict=True)
        low, high = self.bounds
        if not 0 < low <= high < np.inf:
            raise ValueError(f"The bounds parameter of {owner} must be 0 < low <= high. Got {self.bounds!r} instead.")


def _mean_distance(X):
    """Mean distance between two different rows; 1 where it would be 0."""
    n = X.shape[0]
    total = sum(float(D.sum()) for D in pairwise_distances_chunked(X))
    return total / (n * (n - 1)) if n > 1 and total > 0 else 1.0
