"""Grid search over the models of one objective, with shared designs and warm starts.

The models of a fold share a design, or have one for each ridge if the intercept has a penalty of its
own. Each model starts from the solutions of its neighbours in the grid.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.validation import check_is_fitted

from rbrl._common.checks import check_number
from rbrl._common.frames import check_same_columns, check_same_rows
from rbrl._common.progress import PATIENCE_SECONDS, Models, display_for
from rbrl._common.texts import check_joined_texts
from rbrl._common.typing import FloatArray, LabelNames, Matrix, MatrixLike
from rbrl.datasets import Columns
from rbrl.estimators.convex import ConvexClassifier
from rbrl.estimators.display import FitTask, TakesCallbacks, with_callbacks
from rbrl.estimators.named_answers import NamedAnswers, find_label_names_parameter, set_label_names
from rbrl.estimators.validation import can_skip_checks, store_columns, validate_labelled_rows, validate_rows
from rbrl.selection.grid_search import best_index, round_losses
from rbrl.selection.path import Fold, Grid, Scorers, Scoring, SearchData, Table
from rbrl.targets import label_matrix

# Columns of a table of results beside the metrics.
SOLVER_COLUMNS = ("gap", "evaluations", "seconds")


class Stage(NamedTuple):
    """A grid to try in one stage of a search.

    Attributes
    ----------
    axes : dict of str to list
        Grid. Points of earlier stages are not tried again.
    n_later : int
        Number of points of later stages, as far as it is known.
    final : bool
        True if no other stage can follow.
    """

    axes: Grid
    n_later: int = 0
    final: bool = False


class Best(NamedTuple):
    """The best point of all stages so far.

    Attributes
    ----------
    point : dict
        Best point, after breaking ties.
    ties : list of dict
        All points with the same value of the metric, including the best point.
    """

    point: dict[str, Any]
    ties: list[dict[str, Any]]


class Folds:
    """All folds of a search, and its results so far.

    Parameters
    ----------
    folds : iterable of Fold
        Folds. A generator makes each fold on demand, so that a final stage holds one at a time. After
        a final stage, there are no folds and no further search.
    n_folds : int
    scoring : Scoring
    metric : str
        Name of the metric that chooses the best point.
    n_jobs : int or None
        Number of folds in parallel.
    progress : Models

    Attributes
    ----------
    results : dict of arrays
        Results of all stages; see :func:`results_table`.
    best_index : int
        Index of the best point.
    """

    results: dict[str, Any]
    best_index: int

    def __init__(
        self, folds: Iterable[Fold], n_folds: int, scoring: Scoring, metric: str, n_jobs: int | None,
        progress: Models,
    ) -> None:  # fmt: skip
        self.folds = folds
        self.scoring = scoring
        self.metric = metric
        self.n_jobs = n_jobs
        self.progress = progress
        self.tables: list[Table] = [[] for _ in range(n_folds)]

    def search(self, stage: Stage) -> Best:
        """Try the new points of a stage in all folds, and return the best point of all stages so far."""
        solved = [tuple(row["params"].values()) for row in self.tables[0]]
        n_new = sum(point not in solved for point in itertools.product(*stage.axes.values()))
        self.progress.expect(len(self.tables) * (n_new + stage.n_later))
        serial = effective_n_jobs(self.n_jobs) == 1
        if serial:
            found = (_search_fold(fold, stage, self.progress) for fold in self.folds)
        else:
            jobs = (delayed(_search_fold)(fold, stage) for fold in self.folds)
            found = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        kept = []
        for table, (fold, rows) in zip(self.tables, found):
            table += rows
            kept += [] if fold is None else [fold]
            if not serial:
                self.progress.advance(len(rows))
        self.folds = kept
        self.results = results_table(self.tables, self.scoring)
        self.best_index = best_point(self.results, self.scoring, self.metric)
        points = self.results["params"]
        ties = np.flatnonzero(self.results[f"rank_test_{self.metric}"] == 1)
        return Best(points[self.best_index], [points[i] for i in ties])

    def nuclear_reference(self, params: dict[str, Any]) -> float:
        """Return the mean over folds of :meth:`Fold.nuclear_reference`."""
        return float(np.mean([fold.nuclear_reference(params) for fold in self.folds]))


def _search_fold(fold: Fold, stage: Stage, progress: Models | None = None) -> tuple[Fold | None, Table]:
    """Return the fold with its solutions, or None after the final stage, and the rows of its table."""
    rows = []
    for row in fold.search(stage.axes, stage.final):
        rows.append(row)
        if progress is not None:
            progress.advance(1)
    return (None if stage.final else fold), rows


def results_table(tables: Sequence[Table], scoring: Scoring) -> dict[str, Any]:
    """Return arrays over grid points: parameters, the values of every fold, means, deviations, ranks.

    There is a table for each fold, with the points in the same order.
    """
    params = [row["params"] for row in tables[0]]
    results: dict[str, Any] = {f"param_{name}": np.array([p[name] for p in params]) for name in params[0]}
    results["params"] = params
    for name in (*scoring.scorers, *SOLVER_COLUMNS):
        values = np.array([[row[name] for row in table] for table in tables])
        prefix = name if name in SOLVER_COLUMNS else f"test_{name}"
        results |= {f"split{i}_{prefix}": fold for i, fold in enumerate(values)}
        results[f"mean_{prefix}"] = values.mean(axis=0)
        # Without any penalty, a gap is infinite and its deviation is NaN.
        with np.errstate(invalid="ignore"):
            results[f"std_{prefix}"] = values.std(axis=0)
    for name in scoring.scorers:
        results[f"rank_test_{name}"] = rankdata(_loss(results, scoring, name), method="min").astype(int)
    return results


def _loss(results: Mapping[str, Any], scoring: Scoring, metric: str) -> FloatArray:
    """Return means over folds, negated if larger is better."""
    sign = -1.0 if scoring.greater_is_better(metric) else 1.0
    return round_losses(sign * results[f"mean_test_{metric}"])


def best_point(results: Mapping[str, Any], scoring: Scoring, metric: str) -> int:
    """Return the index of the best point of a :func:`results_table` by a metric; see `best_index`."""
    return best_index(results["params"], _loss(results, scoring, metric))


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
        Results in the format of scikit-learn, with gap and evaluations of every point and fold. The
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
        return self.estimator

    def _folds(self) -> Any:
        return self.cv

    def _try_points(self, estimator: Any, data: SearchData, folds: Folds) -> None:
        """Search the grid in a single stage."""
        axes = {name: list(values) for name, values in (self.param_grid or {}).items()}
        folds.search(Stage(axes, final=True))

    def _check_rows(self, X: MatrixLike) -> Matrix:
        if can_skip_checks(self, X):
            return cast(Matrix, X)
        check_is_fitted(self)
        return validate_rows(self, X, reset=False)

    def _check_refit(self, scoring: Scoring, data: SearchData) -> str:
        """Return the metric that chooses the best point."""
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
        """Return the folds after all stages."""
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
        tags = super().__sklearn_tags__()
        tags.input_tags = self._estimator().__sklearn_tags__().input_tags
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
