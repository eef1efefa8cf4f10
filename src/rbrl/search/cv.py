"""Grid search over models of one objective, many times faster than fitting each point alone."""

import sys
import time

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.validation import check_is_fitted, validate_data

from rbrl._common.checks import check_number, check_row_weights
from rbrl.estimators import RBRLClassifier
from rbrl.estimators.base import FLOATS
from rbrl.search.choose import Scoring, best_point, results_table
from rbrl.search.path import SearchData, search_fold
from rbrl.targets import SignedTargets, check_not_label_sets


class PathSearchCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Choose the parameters of a model with an objective by cross-validation.

    The design of each fold (its kernel, its decomposition) is computed once; every grid point starts from its solved
    neighbours and stops when a step gains less than `search_tol`; the best point is fitted again to the estimator's own
    tolerance.

    Parameters
    ----------
    estimator : ObjectiveClassifier
        Such as :class:`rbrl.RBRLClassifier`.
    param_grid : dict of str to list
        Values of parameters that change the objective but not the design: weights of losses and penalties. Each list is
        visited in the given order; put strong ridges first.
    cv : int or splitter, default=5
        An int means shuffled folds.
    scoring : None, str, Metric, callable, or a list or dict of these, default=None
        None means the paper's six metrics. Ours are recorded as they are, losses not negated.
    refit : str, default=None
        The metric that chooses. None means average precision where labels can be ranked, else Hamming loss.
    search_tol : float, default=1e-4
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Folds in parallel; the answer is the same for any number.
    verbose : int, default=0
        1 writes a line per fold, with the time left, to standard error.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As in scikit-learn, with gap and evaluations of every point and fold.
    best_params_, best_index_, best_score_, best_estimator_
    """

    def __init__(
        self,
        estimator,
        param_grid,
        *,
        cv=5,
        scoring=None,
        refit=None,
        search_tol=1e-4,
        random_state=0,
        n_jobs=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search_tol = search_tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None):
        """Search, then fit the best point to all rows.

        Parameters
        ----------
        X, y, sample_weight
            As for the estimator.
        """
        estimator = clone(self._estimator())
        estimator._check_parameters()
        check_number(type(self).__name__, "search_tol", self.search_tol, strict=True)
        check_not_label_sets(y)
        X, y = validate_data(self, X, y, multi_output=True, accept_sparse="csr", dtype=FLOATS)
        targets = SignedTargets().fit(y)
        weights = None if sample_weight is None else check_row_weights(sample_weight, X.shape[0])
        data = SearchData(X, y, targets, weights, estimator._is_precomputed())
        scoring = Scoring(self.scoring)
        metric = self._deciding(scoring, data)
        self.cv_results_ = results_table(self._search(estimator, data, scoring), scoring)
        self.best_index_ = best_point(self.cv_results_, scoring, metric)
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][self.best_index_])
        self.best_estimator_ = estimator.set_params(**self.best_params_).fit(X, y, sample_weight)
        self.classes_, self.targets_ = targets.classes_, targets
        return self

    def decision_function(self, X):
        """Scores by the best estimator."""
        return self._best().decision_function(self._checked(X))

    def predict(self, X):
        """Labels by the best estimator."""
        return self._best().predict(self._checked(X))

    def _estimator(self):
        return self.estimator

    def _axes(self):
        return {name: list(values) for name, values in self.param_grid.items()}

    def _best(self):
        check_is_fitted(self)
        return self.best_estimator_

    def _checked(self, X):
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)

    def _deciding(self, scoring, data):
        """The metric that chooses, checked."""
        default = "average_precision" if data.signed.shape[1] > 1 else "hamming_loss"
        metric = self.refit or (default if default in scoring.scorers else next(iter(scoring.scorers)))
        if metric not in scoring.scorers:
            raise ValueError(
                f"refit must be one of the metrics searched, {list(scoring.scorers)}. Got {metric!r} instead."
            )
        return metric

    def _search(self, estimator, data, scoring):
        """Tables of all folds, in their order."""
        folds = list(self._splitter(data.y).split(data.X, data.y))
        axes, started, tables = self._axes(), time.perf_counter(), []
        jobs = (delayed(search_fold)(estimator, axes, data, *fold, scoring, self.search_tol) for fold in folds)
        for table in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            tables.append(table)
            self._report(len(tables), len(folds), time.perf_counter() - started)
        return tables

    def _splitter(self, y):
        if isinstance(self.cv, int | np.integer):
            return KFold(int(self.cv), shuffle=True, random_state=self.random_state)
        return check_cv(self.cv, y, classifier=True)

    def _report(self, done, total, seconds):
        if self.verbose:
            left = seconds / done * (total - done)
            sys.stderr.write(
                f"{type(self).__name__}: fold {done} of {total} done, {seconds:.0f} s, about {left:.0f} s left\n"
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = self._estimator().__sklearn_tags__().input_tags
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


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
