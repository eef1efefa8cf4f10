"""Search for the weights of RBRL: coarse to fine around the best point, or over a grid."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from rbrl._common.checks import check_choice
from rbrl._common.typing import LabelNames
from rbrl.estimators import RBRLClassifier
from rbrl.registry import WEIGHTS
from rbrl.selection.path import Grid, Scorers, SearchData
from rbrl.selection.path_search import Best, Folds, PathSearchCV, Stage

# Grids of the three weights if no values are given.
GRIDS = ("auto", "paper")


@dataclass(frozen=True)
class CoarseToFineSettings:
    """Values that :func:`coarse_to_fine` tries.

    Attributes
    ----------
    ridge_multiples : tuple of float
        Ridges of the first stage, as multiples of the ridge "auto".
    ranking, nuclear : float
        Weights of the ranking term and of the nuclear norm in the first stage.
    rankings : tuple of float
        Weights of the ranking term in the second stage.
    weaker_ridge : float
        Divisor of the best ridge in the third stage: a weaker ridge needs a stronger nuclear norm.
    nuclear_shares : tuple of float
        Weights of the nuclear norm in the third stage, as shares of the reference.
    ridge_step, ranking_step, nuclear_step : float
        Factors between a best value at an edge and the next value beyond it.
    max_steps : int
        Maximal number of values beyond an edge.
    nuclear_range : tuple of two floats
        Smallest and largest useful share of the reference: below the range the nuclear norm has no
        effect, and above it only the intercepts are left.
    """

    ridge_multiples: tuple[float, ...] = (3.0, 1.0, 0.3, 0.1)
    ranking: float = 1.0
    nuclear: float = 0.1
    rankings: tuple[float, ...] = (0.1, 1.0, 10.0)
    weaker_ridge: float = 3.0
    nuclear_shares: tuple[float, ...] = (0.03, 0.1)
    ridge_step: float = 3.0
    ranking_step: float = 10.0
    nuclear_step: float = 3.0
    max_steps: int = 3
    nuclear_range: tuple[float, float] = (0.01, 1.0)


SETTINGS = CoarseToFineSettings()


def coarse_to_fine(
    search: Callable[[Stage], Best], ridge: float, reference: Callable[[dict[str, Any]], float],
    ranked: bool = True,
) -> None:  # fmt: skip
    """Search over the ridge, over the ranking term, and over ridge and nuclear norm.

    After each stage, if all best points lie at an edge of an axis, the axis is extended beyond the
    edge, one point at a time. There are eleven points, or ten if the weaker ridge was tried before,
    and the points beyond edges.

    Parameters
    ----------
    search : callable
        Function that tries a stage, and returns the best point so far; see :meth:`Folds.search`.
    ridge : float
        Ridge "auto"; the ridges of the first stage are multiples of it.
    reference : callable
        Function that returns the reference weight of the nuclear norm at a point.
    ranked : bool, default=True
        If False, there is no second stage, because a single label has no ranking term.

    Examples
    --------
    >>> def search(stage):
    ...     print(stage.axes)
    ...     point = {"ridge": 3.0, "ranking": 1.0, "nuclear": max(stage.axes["nuclear"])}
    ...     return Best(point, [point])
    >>> coarse_to_fine(search, 10.0, lambda point: 100.0)
    {'ridge': [30.0, 10.0, 3.0, 1.0], 'ranking': [1.0], 'nuclear': [0.1]}
    {'ridge': [3.0], 'ranking': [0.1, 1.0, 10.0], 'nuclear': [0.1]}
    {'ridge': [3.0, 1.0], 'ranking': [1.0], 'nuclear': [0.1, 3.0, 10.0]}
    {'ridge': [3.0], 'ranking': [1.0], 'nuclear': [10.0, 30.0]}
    {'ridge': [3.0], 'ranking': [1.0], 'nuclear': [30.0, 90.0]}
    """
    s = SETTINGS
    # One point of the second stage is in the first, and one point of the third stage in the second.
    n_third = 2 * (1 + len(s.nuclear_shares)) - 1
    n_second = len(s.rankings) - 1 if ranked else 0
    tried = [multiple * ridge for multiple in s.ridge_multiples]
    first = {"ridge": list(tried), "ranking": [s.ranking], "nuclear": [s.nuclear]}
    best = search(Stage(first, n_second + n_third))
    best = _beyond_edges(search, "ridge", tried, best, s.ridge_step, n_later=n_second + n_third)
    if ranked:
        best = search(Stage(_around(best.point, ranking=s.rankings), n_third))
        rankings = list(s.rankings)
        best = _beyond_edges(search, "ranking", rankings, best, s.ranking_step, n_later=n_third)
    largest = reference(best.point)
    strong = best.point["ridge"]
    weak = strong / s.weaker_ridge
    # A ridge that differs from one tried before only by rounding is not tried again.
    ridges = [strong, next((value for value in tried if math.isclose(value, weak)), weak)]
    nuclears = sorted({s.nuclear, *(share * largest for share in s.nuclear_shares)})
    best = search(Stage(_around(best.point, ridge=ridges, nuclear=nuclears)))
    tried += ridges
    least, most = (share * largest for share in s.nuclear_range)
    best = _beyond_edges(search, "nuclear", nuclears, best, s.nuclear_step, least, most)
    _beyond_edges(search, "ridge", tried, best, s.ridge_step)


def _around(point: dict[str, Any], **axes: Iterable[float]) -> Grid:
    """Return the grid of these axes through a point."""
    return {name: list(axes.get(name, [value])) for name, value in point.items()}


def _beyond_edges(
    search: Callable[[Stage], Best], name: str, tried: list[float], best: Best, step: float,
    least: float = 0.0, most: float = math.inf, n_later: int = 0,
) -> Best:  # fmt: skip
    """Search a further value while all best points are at an edge, and add it to `tried`."""
    for _ in range(SETTINGS.max_steps):
        value = best.point[name]
        is_extreme = value in (min(tried), max(tried)) and all(point[name] == value for point in best.ties)
        further = value * step if value == max(tried) else value / step
        if not is_extreme or not least <= further <= most or further == value:
            break
        best = search(Stage(_around(best.point, **{name: [value, further]}), n_later))
        tried.append(further)
    return best


class RBRLClassifierCV(PathSearchCV):
    r"""RBRL with :math:`\lambda_1, \lambda_2, \lambda_3` chosen by cross-validation.

    By default the search goes from coarse to fine, in three stages:

    1. Four ridges: 3, 1, 0.3 and 0.1 times the ridge "auto" of the rows (1 for a kernel), with
       :math:`\lambda_2 = 1` and :math:`\lambda_3 = 0.1`.
    2. :math:`\lambda_2` = 0.1, 1 and 10 at the best ridge.
    3. The best ridge and a third of it, with :math:`\lambda_3` = 0.1 and with 0.03 and 0.1 times the
       weight above which little more than the intercepts is left.

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
        return RBRLClassifier() if self.estimator is None else self.estimator

    def _is_coarse_to_fine(self) -> bool:
        check_choice(type(self).__name__, "grid", self.grid, GRIDS)
        return self.grid == "auto" and all(values is None for values in (self.ridges, self.rankings, self.nuclears))

    def _folds(self) -> Any:
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
