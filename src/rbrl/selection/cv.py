"""Grid search over models of one objective, many times faster than fitting each point alone.

All models of a fold have one design, or one for each ridge where the intercept has a penalty of its own, and each starts
from its solved neighbours in the grid.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, cast

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.validation import check_is_fitted

from rbrl._common.bases import Estimator
from rbrl._common.checks import check_choice, check_number
from rbrl._common.frames import check_same_columns, check_same_rows
from rbrl._common.progress import PATIENCE_SECONDS, Models, display_for
from rbrl._common.texts import check_joined_texts
from rbrl._common.typing import FloatArray, LabelNames, Matrix, MatrixLike
from rbrl.datasets import Columns
from rbrl.estimators.base import checked_labelled, needs_no_check, remember_columns, validated
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.estimators.display import FitTask, TakesCallbacks, Told, with_callbacks
from rbrl.estimators.named_answers import NamedAnswers, given_names, hand_on_names
from rbrl.estimators.rbrl import RBRLClassifier
from rbrl.registry import WEIGHTS
from rbrl.selection.choose import Grid, Scorers, Scoring, Table, best_point, results_table
from rbrl.selection.fold import Fold, SearchData
from rbrl.selection.stages import Best, Stage, Stages, coarse_to_fine, one_grid
from rbrl.targets import label_matrix

# 10^-4, ..., 10^2: what the paper searched for each of the three weights.
PAPER_GRID = WEIGHTS


class Folds:
    """All folds of a search, and what it has found in them so far.

    Parameters
    ----------
    folds : iterable of Fold
        Made when they are asked for: the last stage of a search holds one at a time.
    n_folds : int
    n_jobs : int or None
        Folds in parallel.
    progress : Models

    Attributes
    ----------
    tables : list of list of dict
        One list per fold, its points in the same order.
    """

    def __init__(self, folds: Iterable[Fold], n_folds: int, n_jobs: int | None, progress: Models) -> None:
        self.folds, self.n_jobs, self.progress = folds, n_jobs, progress
        self.tables: list[Table] = [[] for _ in range(n_folds)]

    def search(self, stage: Stage) -> None:
        """Try the points of a stage that are not in the tables yet.

        Parameters
        ----------
        stage : Stage
        """
        there = [tuple(row["params"].values()) for row in self.tables[0]]
        n_new = sum(point not in there for point in itertools.product(*stage.axes.values()))
        self.progress.expect(len(self.tables) * (n_new + stage.n_later))
        kept = []
        for table, (fold, rows) in zip(self.tables, self._searched(stage)):
            table += rows
            kept += [] if fold is None else [fold]
        self.folds = kept

    def nuclear_reference(self, params: dict[str, Any]) -> float:
        """The mean over folds of :meth:`Fold.nuclear_reference`.

        Parameters
        ----------
        params : dict

        Returns
        -------
        float
        """
        return float(np.mean([fold.nuclear_reference(params) for fold in self.folds]))

    def _searched(self, stage: Stage) -> Iterator[tuple[Fold | None, Table]]:
        if effective_n_jobs(self.n_jobs) == 1:
            for fold in self.folds:
                rows = []
                for row in fold.search(stage.axes, stage.final):
                    rows.append(row)
                    self.progress.advance(1)
                yield (None if stage.final else fold), rows
            return
        jobs = (delayed(_search_fold)(fold, stage) for fold in self.folds)
        for fold, rows in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            self.progress.advance(len(rows))
            yield fold, rows


def _search_fold(fold: Fold, stage: Stage) -> tuple[Fold | None, Table]:
    """The fold with what it remembers, if another stage may need it, and the rows of its table."""
    rows = list(fold.search(stage.axes, stage.final))
    return (None if stage.final else fold), rows


class PathSearchCV(TakesCallbacks, NamedAnswers, Estimator):
    """Choose the parameters of a model with an objective by cross-validation.

    The design of each fold (its kernel, its decomposition) is computed once, or once for each ridge if the model is linear
    and has an `intercept_ridge`; every grid point starts from its solved
    neighbours and stops when a step is expected to gain less than `search_tol`; the best point is fitted again to the
    estimator's own tolerance.

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
        A model stops when a step is expected to gain less than this share of its objective.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Folds in parallel; the answer is the same for any number.
    verbose : int, default=0
        1 shows how many models are solved and the time left on standard error: a bar on a terminal, lines elsewhere.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own, and so does the estimator.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As in scikit-learn, with gap and evaluations of every point and fold. The gap is an estimate where `search_tol` is
        1e-5 or more and the matrix dense: products are then in single precision. That of `best_estimator_` is certified.
    best_params_, best_index_, best_score_, best_estimator_
    label_names_ : array (n_labels,), if the labels came with names

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
    best_estimator_: ObjectiveClassifier

    def __init__(
        self, estimator: ObjectiveClassifier | None, param_grid: Grid | None, *, cv: Any = 5, scoring: Scorers = None,
        refit: str | None = None, search_tol: float = 1e-4, random_state: int = 0, n_jobs: int | None = None,
        verbose: int = 0, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.estimator, self.param_grid = estimator, param_grid
        self.cv, self.scoring, self.refit = cv, scoring, refit
        self.search_tol, self.random_state = search_tol, random_state
        self.n_jobs, self.verbose, self.label_names = n_jobs, verbose, label_names

    @with_callbacks
    def fit(
        self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None, *,
        label_mask: MatrixLike | None = None,
    ) -> Self:  # fmt: skip
        """Search, then fit the best point to all rows.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : label matrix
        sample_weight : array (n_samples,) or (n_samples, n_labels), default=None
        label_mask : array (n_samples, n_labels), default=None
            As for the estimator. What a fold holds out counts alike, whatever its weight, but for entries that are not
            known: those are judged by nobody.

        Returns
        -------
        self
        """
        check_number(type(self).__name__, "search_tol", self.search_tol, strict=True)
        task = FitTask(self, X, y, "model of a fold")
        check_same_rows(X=X, y=y, sample_weight=sample_weight, label_mask=label_mask)
        check_same_columns(y=y, sample_weight=sample_weight, label_mask=label_mask)
        given, names = label_matrix(y, given_names(self))
        estimator = hand_on_names(clone(self._estimator()), names)
        X, y = checked_labelled(self, X, given)
        data = SearchData(X, y, sample_weight, label_mask)
        if not data.targets.is_matrix:
            check_joined_texts(given)
        scoring = Scoring(self.scoring)
        metric = self._deciding(scoring, data)
        self.cv_results_, self.best_index_ = self._search(estimator, data, scoring, metric, task.told)
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][self.best_index_])
        self.best_estimator_ = estimator.set_params(**self.best_params_).fit(
            X, given, sample_weight, label_mask=label_mask
        )
        self.targets_ = self.best_estimator_.targets_
        remember_columns(self, Columns(label_names=names))
        task.end()
        return self

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Scores by the best estimator.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)

        Returns
        -------
        array (n_samples, n_labels); (n_samples,) for a binary 1-D target
        """
        X = self._checked_rows(X)
        return self.best_estimator_.decision_function(X)

    def predict(self, X: MatrixLike) -> Any:
        """Labels by the best estimator.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)

        Returns
        -------
        array or sparse matrix, in the coding that `fit` received
        """
        X = self._checked_rows(X)
        return self.best_estimator_.predict(X)

    @property
    def takes_missing(self) -> bool:
        """Whether labels may be missing: as the estimator says."""
        return bool(self._estimator().takes_missing)

    def _estimator(self) -> Any:
        return self.estimator

    def _folds(self) -> Any:
        return self.cv

    def _axes(self) -> dict[str, list[Any]]:
        return {name: list(values) for name, values in (self.param_grid or {}).items()}

    def _stages(self, estimator: Any, data: SearchData, folds: Folds) -> Stages:
        return one_grid(self._axes())

    def _checked_rows(self, X: MatrixLike) -> Matrix:
        if needs_no_check(self, X):
            return cast(Matrix, X)
        check_is_fitted(self)
        return validated(self, X, reset=False)

    def _deciding(self, scoring: Scoring, data: SearchData) -> str:
        """The metric that chooses, checked."""
        default = "average_precision" if data.signed.shape[1] > 1 else "hamming_loss"
        metric = self.refit or (default if default in scoring.scorers else next(iter(scoring.scorers)))
        if metric not in scoring.scorers:
            raise ValueError(
                f"refit must be one of the metrics searched, {list(scoring.scorers)}. Got {metric!r} instead."
            )
        return metric

    def _search(
        self, estimator: ObjectiveClassifier, data: SearchData, scoring: Scoring, metric: str, told: Told | None
    ) -> tuple[dict[str, Any], int]:
        """The results of all stages, and the index of the best point among them."""
        cv = self._folds()
        cv = KFold(int(cv), shuffle=True, random_state=self.random_state) if isinstance(cv, int | np.integer) else cv
        splits = list(check_cv(cv, data.y, classifier=True).split(data.X, data.y))
        made = (Fold(estimator, data, train, test, scoring, self.search_tol) for train, test in splits)
        display = display_for(True, patience=PATIENCE_SECONDS) if self.verbose else None
        with Models(type(self).__name__, display, callback=told) as progress:
            folds = Folds(made, len(splits), self.n_jobs, progress)
            stages = self._stages(estimator, data, folds)
            stage = next(stages)
            while True:
                folds.search(stage)
                results = results_table(folds.tables, scoring)
                best, points = best_point(results, scoring, metric), results["params"]
                ties = [points[i] for i in np.flatnonzero(results[f"rank_test_{metric}"] == 1)]
                try:
                    stage = stages.send(Best(points[best], ties))
                except StopIteration:
                    return results, best

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._estimator().__sklearn_tags__().input_tags
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


# How the three weights are searched where no values are given.
GRIDS = ("auto", "paper")


class RBRLClassifierCV(PathSearchCV):
    r"""RBRL with :math:`\lambda_1, \lambda_2, \lambda_3` chosen by cross-validation.

    By default the search goes from coarse to fine, in multiples of what the data suggest. Four ridges are 3, 1, 0.3 and 0.1
    times the ridge "auto" of the rows (a kernel's is 1), with :math:`\lambda_2 = 1` and :math:`\lambda_3 = 0.1`. Then
    :math:`\lambda_2` is 0.1, 1 and 10 at the best of them. Then that ridge and a third of it go with a :math:`\lambda_3` of
    0.1, and of 0.03 and 0.1 times the weight that would leave hardly more than the intercepts. Where the best point lies at
    the edge of what was tried, up to three points beyond it follow, one at a time.

    Parameters
    ----------
    ridges, rankings, nuclears : sequences of float, default=None
        Values of :math:`\lambda_1, \lambda_2, \lambda_3`, of which all combinations are tried; None means the paper's, where
        another of the three is given.
    grid : {"auto", "paper"}, default="auto"
        Where none of the three is given: coarse to fine, or all 343 combinations of the paper's values, 1e-4, ..., 1e2 each.
    estimator : RBRLClassifier, default=None
        The model, for every parameter but these three: kernel, decision rule, tolerance. None means the linear model.
    cv : int or splitter, default=None
        None means 3 shuffled folds from coarse to fine, and 5 for all combinations.
    scoring : None, str, Metric, callable, or a list or dict of these, default=None
        None means the paper's six metrics. Ours are recorded as they are, losses not negated.
    refit : str, default=None
        The metric that chooses. None means average precision where labels can be ranked, else Hamming loss.
    search_tol : float, default=1e-4
        A model stops when a step is expected to gain less than this share of its objective.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Folds in parallel; the answer is the same for any number.
    verbose : int, default=0
        1 shows how many models are solved and the time left on standard error: a bar on a terminal, lines elsewhere.
    label_names : sequence of str, default=None
        Names of the labels, in the order of the columns of y; a data frame brings its own, and so does the estimator.

    Attributes
    ----------
    best_params_, best_index_, best_score_, best_estimator_, cv_results_
        As for :class:`PathSearchCV`; the points of all stages, in the order in which they were tried.

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
    # What a search of a model file from before this parameter has; its values are given.
    grid: str = "auto"

    def __init__(
        self, ridges: Sequence[float] | None = None, rankings: Sequence[float] | None = None,
        nuclears: Sequence[float] | None = None, *, grid: str = "auto", estimator: RBRLClassifier | None = None,
        cv: Any = None, scoring: Scorers = None, refit: str | None = None, search_tol: float = 1e-4,
        random_state: int = 0, n_jobs: int | None = None, verbose: int = 0, label_names: LabelNames = None,
    ) -> None:  # fmt: skip
        self.ridges, self.rankings, self.nuclears, self.grid = ridges, rankings, nuclears, grid
        self.estimator, self.cv, self.scoring, self.refit = estimator, cv, scoring, refit
        self.search_tol, self.random_state = search_tol, random_state
        self.n_jobs, self.verbose, self.label_names = n_jobs, verbose, label_names

    def _estimator(self) -> Any:
        return RBRLClassifier() if self.estimator is None else self.estimator

    def _is_coarse_to_fine(self) -> bool:
        check_choice(type(self).__name__, "grid", self.grid, GRIDS)
        return self.grid == "auto" and all(values is None for values in (self.ridges, self.rankings, self.nuclears))

    def _folds(self) -> Any:
        if self.cv is not None:
            return self.cv
        return 3 if self._is_coarse_to_fine() else 5

    def _axes(self) -> dict[str, list[Any]]:
        """Strong ridges, weak ranking and weak nuclear norm first: the order in which neighbours help most."""
        given = {"ridge": self.ridges, "ranking": self.rankings, "nuclear": self.nuclears}
        given = {name: PAPER_GRID if values is None else values for name, values in given.items()}
        axes = {name: np.unique(np.asarray(values, dtype=float)).tolist() for name, values in given.items()}
        return axes | {"ridge": axes["ridge"][::-1]}

    def _stages(self, estimator: Any, data: SearchData, folds: Folds) -> Stages:
        if not self._is_coarse_to_fine():
            return super()._stages(estimator, data, folds)
        problem = clone(estimator).set_params(ridge="auto").problem(data.X, data.signed, data.weights)
        return coarse_to_fine(problem.ridge, folds.nuclear_reference, ranked=data.signed.shape[1] > 1)
