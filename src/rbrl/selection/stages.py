"""Grids that a search tries in sequence: a single grid, or coarse-to-fine stages around the best point."""

import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from rbrl.selection.choose import Grid

# Values of the weights, by name.
Point: TypeAlias = dict[str, Any]


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


@dataclass(frozen=True)
class Stage:
    """A grid to try.

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

    point: Point
    ties: list[Point]


# A generator that yields stages, and receives the best point so far.
Stages: TypeAlias = Generator[Stage, Best, Best]


def one_grid(axes: Grid) -> Stages:
    """Yield a single stage with the whole grid."""
    return (yield Stage(axes, final=True))


def coarse_to_fine(ridge: float, reference: Callable[[Point], float], ranked: bool = True) -> Stages:
    """Yield grids over the ridge, over the ranking term, and over ridge and nuclear norm.

    After each stage, if all best points lie at an edge of an axis, the axis is extended beyond the
    edge, one point at a time. There are eleven points, or ten if the weaker ridge was tried before,
    and the points beyond edges.

    Parameters
    ----------
    ridge : float
        Ridge "auto"; the ridges of the first stage are multiples of it.
    reference : callable
        Function that returns the reference weight of the nuclear norm at a point.
    ranked : bool, default=True
        If False, there is no second stage, because a single label has no ranking term.

    Yields
    ------
    Stage

    Examples
    --------
    >>> def found(*values):
    ...     point = dict(zip(("ridge", "ranking", "nuclear"), values))
    ...     return Best(point, [point])
    >>> stages = coarse_to_fine(10.0, lambda point: 100.0)
    >>> next(stages).axes
    {'ridge': [30.0, 10.0, 3.0, 1.0], 'ranking': [1.0], 'nuclear': [0.1]}
    >>> stages.send(found(3.0, 1.0, 0.1)).axes
    {'ridge': [3.0], 'ranking': [0.1, 1.0, 10.0], 'nuclear': [0.1]}
    >>> stages.send(found(3.0, 1.0, 0.1)).axes
    {'ridge': [3.0, 1.0], 'ranking': [1.0], 'nuclear': [0.1, 3.0, 10.0]}
    >>> stages.send(found(3.0, 1.0, 10.0)).axes
    {'ridge': [3.0], 'ranking': [1.0], 'nuclear': [10.0, 30.0]}
    """
    s = SETTINGS
    # One point of the second stage is in the first, and one point of the third stage in the second.
    n_third = 2 * (1 + len(s.nuclear_shares)) - 1
    n_second = len(s.rankings) - 1 if ranked else 0
    tried = [multiple * ridge for multiple in s.ridge_multiples]
    first = {"ridge": list(tried), "ranking": [s.ranking], "nuclear": [s.nuclear]}
    best = yield Stage(first, n_second + n_third)
    best = yield from _beyond_edges("ridge", tried, best, s.ridge_step, n_later=n_second + n_third)
    if ranked:
        best = yield Stage(_around(best.point, ranking=s.rankings), n_third)
        best = yield from _beyond_edges("ranking", list(s.rankings), best, s.ranking_step, n_later=n_third)
    largest = reference(best.point)
    strong = best.point["ridge"]
    weak = strong / s.weaker_ridge
    # A ridge that differs from one tried before only by rounding is not tried again.
    ridges = [strong, next((value for value in tried if math.isclose(value, weak)), weak)]
    nuclears = sorted({s.nuclear, *(share * largest for share in s.nuclear_shares)})
    best = yield Stage(_around(best.point, ridge=ridges, nuclear=nuclears))
    tried += ridges
    least, most = (share * largest for share in s.nuclear_range)
    best = yield from _beyond_edges("nuclear", nuclears, best, s.nuclear_step, least, most)
    return (yield from _beyond_edges("ridge", tried, best, s.ridge_step))


def _around(point: Point, **axes: Iterable[float]) -> Grid:
    """Return the grid of these axes through a point."""
    return {name: list(axes.get(name, [value])) for name, value in point.items()}


def _beyond_edges(
    name: str, tried: list[float], best: Best, step: float, least: float = 0.0, most: float = float("inf"),
    n_later: int = 0,
) -> Stages:  # fmt: skip
    """Yield stages with a further value while all best points are at an edge; add it to `tried`."""
    for _ in range(SETTINGS.max_steps):
        value = best.point[name]
        is_extreme = value in (min(tried), max(tried)) and all(point[name] == value for point in best.ties)
        further = value * step if value == max(tried) else value / step
        if not is_extreme or not least <= further <= most or further == value:
            break
        best = yield Stage(_around(best.point, **{name: [value, further]}), n_later)
        tried.append(further)
    return best
