"""RBRL with its three weights chosen by cross-validation."""

import numpy as np

from rbrl.estimators import RBRLClassifier
from rbrl.search.path_search import PathSearchCV

# 10^-4, ..., 10^2: the grid of the paper for each of the three weights.
PAPER_GRID = tuple(10.0**k for k in range(-4, 3))


class RBRLClassifierCV(PathSearchCV):
    r"""RBRL with :math:`\lambda_1, \lambda_2, \lambda_3` chosen by cross-validation.

    All combinations are tried: 343 with the paper's grid, in each of five folds, in seconds to minutes.

    Parameters
    ----------
    ridges, rankings, nuclears : sequences of float, default=(1e-4, ..., 1e2)
        Values of :math:`\lambda_1, \lambda_2, \lambda_3`.
    estimator : RBRLClassifier, default=None
        The model, for every parameter but these three: kernel, decision rule, tolerance. None means the linear model.
    cv, scoring, refit, search_tol, random_state, n_jobs, verbose
        As for :class:`PathSearchCV`.

    Attributes
    ----------
    best_params_, best_index_, best_score_, best_estimator_, cv_results_
        As for :class:`PathSearchCV`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifierCV
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> search = RBRLClassifierCV(ridges=[1, 10, 100], rankings=[0, 1], nuclears=[0, 1], cv=3).fit(X, Y)
    >>> len(search.cv_results_["params"])
    12
    >>> search.predict(X[:2]).shape
    (2, 4)
    """

    def __init__(
        self,
        ridges=PAPER_GRID,
        rankings=PAPER_GRID,
        nuclears=PAPER_GRID,
        *,
        estimator=None,
        cv=5,
        scoring=None,
        refit=None,
        search_tol=1e-4,
        random_state=0,
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(
            estimator,
            None,
            cv=cv,
            scoring=scoring,
            refit=refit,
            search_tol=search_tol,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.ridges = ridges
        self.rankings = rankings
        self.nuclears = nuclears

    def _estimator(self):
        return RBRLClassifier() if self.estimator is None else self.estimator

    def _axes(self):
        """Strong ridges, weak ranking and weak nuclear norm first: the order in which neighbours help most."""
        return {
            "ridge": np.unique(np.asarray(self.ridges, dtype=float))[::-1].tolist(),
            "ranking": np.unique(np.asarray(self.rankings, dtype=float)).tolist(),
            "nuclear": np.unique(np.asarray(self.nuclears, dtype=float)).tolist(),
        }
