"""Search over the models of one objective, with shared designs and warm starts: on a grid, or coarse to fine.

The models of a fold share a design, or have one for each ridge if the intercept has a penalty of its
own. Each model starts from the solutions of its neighbours in the grid.
"""

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.validation import check_is_fitted

from rbrl._common.checks import check_choice, check_number
from rbrl._common.frames import check_same_columns, check_same_rows
from rbrl._common.progress import PATIENCE_SECONDS, Models, display_for
from rbrl._common.texts import check_joined_texts
from rbrl._common.typing import FloatArray, LabelNames, Matrix, MatrixLike
from rbrl.datasets import Columns
from rbrl.estimators import RBRLClassifier
from rbrl.estimators.convex import ConvexClassifier
from rbrl.estimators.display import FitTask, TakesCallbacks, with_callbacks
from rbrl.estimators.named_answers import NamedAnswers, find_label_names_parameter, set_label_names
from rbrl.estimators.validation import can_skip_checks, store_columns, validate_labelled_rows, validate_rows
from rbrl.registry import WEIGHTS
from rbrl.selection.grid_search import Folds
from rbrl.selection.path import Fold, Grid, Scorers, Scoring, SearchData, Stage, coarse_to_fine
from rbrl.targets import label_matrix

# Grids of the three weights if no values are given.
GRIDS = ("auto", "paper")


class PathSearchCV(TakesCallbacks, NamedAnswers):
    """Choose the parameters of a model with an objective by cross-validation.

    The design of each fold, such as a kernel matrix and its decomposition, is computed once, or once
    for each ridge if the model is linear and has an `intercept_ridge`. Every grid point starts from
    the solutions of its neighbours, and stops when a step is expected to gain less than
    `search_tol`. The best point is then fitted to all rows, to the tolerance of the estimator.

    Parameters
    ----------
    estimator : ConvexClassifier
        Model with an objective, such as :class:`rbrl.RBRLClassifier`.
    param_grid : dict of str to list
        Values of parameters that change the objective but not the design: weights of losses and
        penalties. Each list is visited in the given order; put strong ridges first.
    cv : int or splitter, default=5
        Number of shuffled folds, or a splitter.
    scoring : None, str, Metric, callable, or a list or dict of these, default=None
        Metrics and scorers; None means the six metrics of the paper. Losses are not negated.
    refit : str, default=None
        Metric that chooses the best point. None means average precision, or Hamming loss for a
        single label.
    search_tol : float, default=1e-4
        Expected gain of a step, as a share of the objective, below which a model is not improved.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Number of folds in parallel. It does not change the result.
    verbose : int, default=0
        1 shows the number of solved models and the remaining time on standard error.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame or
        of the estimator.

    Attributes
    ----------
    cv_results_ : dict of arrays
        Results in the format of scikit-learn, with gap, evaluations and seconds of every point and
        fold. A model file does not contain the seconds. The
        gap is an estimate if `search_tol` is at least 1e-5 and the matrix is dense, because products
        are then in single precision. The gap of `best_estimator_` is certified.
    best_params_, best_index_, best_score_, best_estimator_
        Parameters, index and mean score of the best point, and the classifier fitted to all rows.
    label_names_ : array (n_labels,)
        Names of the labels, if the labels have names.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import BRLClassifier
    >>> from rbrl.selection import PathSearchCV
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> search = PathSearchCV(BRLClassifier(), {"ridge": [100, 10, 1]}, cv=3).fit(X, Y)
    >>> list(search.best_params_), search.cv_results_["mean_test_average_precision"].shape
    (['ridge'], (3,))
    """

    cv_results_: dict[str, Any]
    best_params_: dict[str, Any]
    best_index_: int
    best_score_: float
    best_estimator_: ConvexClassifier

    def __init__(
        self, estimator: ConvexClassifier | None, param_grid: Grid | None, *, cv: Any = 5, scoring: Scorers = None,
        refit: str | None = None, search_tol: float = 1e-4, random_state: int = 0, n_jobs: int | None = None,
        verbose: int = 0, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search_tol = search_tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.label_names = label_names

    @with_callbacks
    def fit(
        self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None, *,
        label_mask: MatrixLike | None = None,
    ) -> Self:  # fmt: skip
        """Search for the best point, and fit it to all rows.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : label matrix
        sample_weight : array (n_samples,) or (n_samples, n_labels), default=None
        label_mask : array (n_samples, n_labels), default=None
            Weights and mask of the estimator. Metrics of held-out rows ignore the weights, and
            leave out missing labels.

        Returns
        -------
        self
        """
        check_number(type(self).__name__, "search_tol", self.search_tol, strict=True)
        task = FitTask(self, X, y, "model of a fold")
        check_same_rows(X=X, y=y, sample_weight=sample_weight, label_mask=label_mask)
        check_same_columns(y=y, sample_weight=sample_weight, label_mask=label_mask)
        given, names = label_matrix(y, find_label_names_parameter(self))
        estimator = set_label_names(clone(self._estimator()), names)
        X, y = validate_labelled_rows(self, X, given)
        data = SearchData(X, y, sample_weight, label_mask)
        if not data.targets.is_matrix:
            check_joined_texts(given)
        scoring = Scoring(self.scoring)
        metric = self._check_refit(scoring, data)
        folds = self._search(estimator, data, scoring, metric, task)
        self.cv_results_ = folds.results
        self.best_index_ = folds.best_index
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][self.best_index_])
        self.best_estimator_ = estimator.set_params(**self.best_params_).fit(
            X, given, sample_weight, label_mask=label_mask
        )
        self.targets_ = self.best_estimator_.targets_
        store_columns(self, Columns(label_names=names))
        task.end()
        return self

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return the scores of the best estimator.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)

        Returns
        -------
        array (n_samples, n_labels); (n_samples,) for a binary 1-D target
        """
        X = self._check_rows(X)
        return self.best_estimator_.decision_function(X)

    def predict(self, X: MatrixLike) -> Any:
        """Return the labels that the best estimator predicts.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)

        Returns
        -------
        array or sparse matrix, in the coding that `fit` received
        """
        X = self._check_rows(X)
        return self.best_estimator_.predict(X)

    @property
    def takes_missing(self) -> bool:
        """True if labels may be missing."""
        return bool(self._estimator().takes_missing)

    def _estimator(self) -> Any:
        """Return the estimator of the search, which must not be changed."""
        return self.estimator

    def _folds(self) -> Any:
        """Return the number of folds, or the splitter."""
        return self.cv

    def _try_points(self, estimator: Any, data: SearchData, folds: Folds) -> None:
        """Search the grid in a single stage; the results are in `folds`."""
        axes = {name: list(values) for name, values in (self.param_grid or {}).items()}
        folds.search(Stage(axes, final=True))

    def _check_rows(self, X: MatrixLike) -> Matrix:
        """Return rows to predict labels for, after the checks."""
        if can_skip_checks(self, X):
            return cast(Matrix, X)
        check_is_fitted(self)
        return validate_rows(self, X, reset=False)

    def _check_refit(self, scoring: Scoring, data: SearchData) -> str:
        """Return the name of the metric that chooses the best point; raise ValueError for others."""
        default = "average_precision" if data.signed.shape[1] > 1 else "hamming_loss"
        metric = self.refit or (default if default in scoring.scorers else next(iter(scoring.scorers)))
        if metric not in scoring.scorers:
            raise ValueError(
                f"refit must be one of the metrics searched, {list(scoring.scorers)}. Got {metric!r} instead."
            )
        return metric

    def _search(
        self, estimator: ConvexClassifier, data: SearchData, scoring: Scoring, metric: str, task: FitTask
    ) -> Folds:
        """Return the folds after all stages, with the results.

        `estimator` is a clone, which is not fitted. `metric` is the name of the metric that
        chooses.
        """
        cv = self._folds()
        cv = KFold(int(cv), shuffle=True, random_state=self.random_state) if isinstance(cv, int | np.integer) else cv
        splits = list(check_cv(cv, data.y, classifier=True).split(data.X, data.y))
        fold_generator = (Fold(estimator, data, train, test, scoring, self.search_tol) for train, test in splits)
        display = display_for(True, patience=PATIENCE_SECONDS) if self.verbose else None
        with Models(type(self).__name__, display, callback=task.callback) as progress:
            folds = Folds(fold_generator, len(splits), scoring, metric, self.n_jobs, progress)
            self._try_points(estimator, data, folds)
        return folds

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a classifier of label matrices, with the input tags of the estimator."""
        tags = super().__sklearn_tags__()
        tags.input_tags = self._estimator().__sklearn_tags__().input_tags
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


class RBRLClassifierCV(PathSearchCV):
    r"""RBRL with :math:`\lambda_1, \lambda_2, \lambda_3` chosen by cross-validation.

    By default the search goes from coarse to fine, in three stages:

    1. Four ridges: 3, 1, 0.3 and 0.1 times the ridge "auto" of the rows (1 for a kernel), with
       :math:`\lambda_2 = 1` and :math:`\lambda_3 = 0.1`.
    2. :math:`\lambda_2` = 0.1, 1 and 10 at the best ridge.
    3. The best ridge and a third of it, with :math:`\lambda_3` = 0.1 and with 0.03 and 0.1 times the
       weight above which nearly all weights except the intercepts are zero.

    If the best point lies at an edge of a stage, up to three points beyond the edge follow, one at a
    time.

    Parameters
    ----------
    ridges, rankings, nuclears : sequences of float, default=None
        Values of :math:`\lambda_1, \lambda_2, \lambda_3`; all combinations are tried. If only some
        of the three are given, None means the values of the paper.
    grid : {"auto", "paper"}, default="auto"
        Grid if none of the three is given: coarse to fine, or all 343 combinations of the values of
        the paper, 1e-4, ..., 1e2 each.
    estimator : RBRLClassifier, default=None
        Model with all other parameters: kernel, decision rule, tolerance. None means the linear model.
    cv : int or splitter, default=None
        Number of shuffled folds, or a splitter. None means 3 folds from coarse to fine, and 5 for
        all combinations.
    scoring : None, str, Metric, callable, or a list or dict of these, default=None
        Metrics and scorers; None means the six metrics of the paper. Losses are not negated.
    refit : str, default=None
        Metric that chooses the best point. None means average precision, or Hamming loss for a
        single label.
    search_tol : float, default=1e-4
        Expected gain of a step, as a share of the objective, below which a model is not improved.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Number of folds in parallel. It does not change the result.
    verbose : int, default=0
        1 shows the number of solved models and the remaining time on standard error.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y. None means those of a data frame or
        of the estimator.

    Attributes
    ----------
    best_params_, best_index_, best_score_, best_estimator_, cv_results_
        Attributes of :class:`PathSearchCV`, with the points of all stages in the order of the search.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifierCV
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> search = RBRLClassifierCV().fit(X, Y)
    >>> list(search.best_params_), len(search.cv_results_["params"]) < 20
    (['ridge', 'ranking', 'nuclear'], True)
    >>> search.predict(X[:2]).shape
    (2, 4)

    All combinations of given values:

    >>> search = RBRLClassifierCV(ridges=[1, 10, 100], rankings=[0, 1], nuclears=[0, 1], cv=3).fit(X, Y)
    >>> len(search.cv_results_["params"])
    12
    """

    best_estimator_: RBRLClassifier
    # Model files of earlier versions lack this parameter.
    grid: str = "auto"

    def __init__(
        self, ridges: Sequence[float] | None = None, rankings: Sequence[float] | None = None,
        nuclears: Sequence[float] | None = None, *, grid: str = "auto", estimator: RBRLClassifier | None = None,
        cv: Any = None, scoring: Scorers = None, refit: str | None = None, search_tol: float = 1e-4,
        random_state: int = 0, n_jobs: int | None = None, verbose: int = 0, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.ridges = ridges
        self.rankings = rankings
        self.nuclears = nuclears
        self.grid = grid
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.search_tol = search_tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.label_names = label_names

    def _estimator(self) -> Any:
        """Return the estimator of the search; the default is the linear model."""
        return RBRLClassifier() if self.estimator is None else self.estimator

    def _is_coarse_to_fine(self) -> bool:
        """Return whether the search has stages; raise ValueError for an unknown `grid`."""
        check_choice(type(self).__name__, "grid", self.grid, GRIDS)
        return self.grid == "auto" and all(values is None for values in (self.ridges, self.rankings, self.nuclears))

    def _folds(self) -> Any:
        """Return `cv`, or its default: fewer folds if the search has stages."""
        if self.cv is not None:
            return self.cv
        return 3 if self._is_coarse_to_fine() else 5

    def _axes(self) -> dict[str, list[Any]]:
        """Return the axes, with strong ridges, weak ranking and weak nuclear norm first.

        In this order, the solutions of neighbours are the best starting points.
        """
        given = {"ridge": self.ridges, "ranking": self.rankings, "nuclear": self.nuclears}
        given = {name: WEIGHTS if values is None else values for name, values in given.items()}
        axes = {name: np.unique(np.asarray(values, dtype=float)).tolist() for name, values in given.items()}
        return axes | {"ridge": axes["ridge"][::-1]}

    def _try_points(self, estimator: Any, data: SearchData, folds: Folds) -> None:
        """Search coarse to fine, or over the grid in a single stage."""
        if not self._is_coarse_to_fine():
            folds.search(Stage(self._axes(), final=True))
            return
        problem = clone(estimator).set_params(ridge="auto").problem(data.X, data.signed, data.weights)
        ranked = data.signed.shape[1] > 1
        coarse_to_fine(folds.search, problem.ridge, folds.nuclear_reference, ranked)
