"""Which grids a search tries, one after another: a single one, or coarse to fine, each around the best of those before."""

import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from rbrl.selection.choose import Grid

# Values of the weights, by name.
Point: TypeAlias = dict[str, Any]

# The first grid: multiples of the ridge that the data suggest, at weights that suit most data.
RIDGE_MULTIPLES = (3.0, 1.0, 0.3, 0.1)
RANKING, NUCLEAR = 1.0, 0.1
# The second.
RANKINGS = (0.1, 1.0, 10.0)
# The third: a ridge weaker by this factor goes with a stronger nuclear norm, whose useful weights are these shares of the
# reference.
WEAKER_RIDGE = 3.0
NUCLEAR_SHARES = (0.03, 0.1)
# A best value at an edge is followed by factors of these sizes, as many times at most. Beyond these shares of its reference
# the nuclear norm is as good as absent, or leaves nothing else.
RIDGE_STEP, RANKING_STEP, NUCLEAR_STEP = 3.0, 10.0, 3.0
MOST_STEPS = 3
NUCLEAR_RANGE = (0.01, 1.0)


@dataclass(frozen=True)
class Stage:
    """A grid to be tried.

    Attributes
    ----------
    axes : dict of str to list
        Points that an earlier stage had are not tried again.
    n_later : int
        Points that later stages will have, as far as is known.
    final : bool
        Whether no stage will follow, whatever is found.
    """

    axes: Grid
    n_later: int = 0
    final: bool = False


class Best(NamedTuple):
    """What is best of all stages so far.

    Attributes
    ----------
    point : dict
        The point that the rule for ties takes.
    ties : list of dict
        All points that are as good as it, itself included.
    """

    point: Point
    ties: list[Point]


# Yields stages, and is sent what is best so far.
Stages: TypeAlias = Generator[Stage, Best, Best]


def one_grid(axes: Grid) -> Stages:
    """A single stage: all of a grid.

    Parameters
    ----------
    axes : dict of str to sequence

    Yields
    ------
    Stage

    Examples
    --------
    >>> [stage.axes for stage in one_grid({"ridge": [10, 1]})]
    [{'ridge': [10, 1]}]
    """
    return (yield Stage(axes, final=True))


def coarse_to_fine(ridge: float, reference: Callable[[Point], float], ranked: bool = True) -> Stages:
    """Four ridges; then three weights of the ranking term; then two ridges with three weights of the nuclear norm.

    After each stage, an axis at whose edge the best point lies, with all that tie, grows beyond it, a point at a time.

    Parameters
    ----------
    ridge : float
        What the ridges are multiples of.
    reference : callable
        From a point to what weights of the nuclear norm are shares of there.
    ranked : bool, default=True
        Whether there is a second stage: a single label has no ranking term.

    Yields
    ------
    Stage
        Eleven points in all, or ten where a third of the best ridge was tried before, and those beyond edges.

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
    # Known beforehand: of the second stage one point is of the first, of the third one of the second.
    n_third = 2 * (1 + len(NUCLEAR_SHARES)) - 1
    n_second = len(RANKINGS) - 1 if ranked else 0
    ridges = [multiple * ridge for multiple in RIDGE_MULTIPLES]
    best = yield Stage({"ridge": ridges, "ranking": [RANKING], "nuclear": [NUCLEAR]}, n_second + n_third)
    tried = list(ridges)
    best = yield from _beyond_edges("ridge", tried, best, RIDGE_STEP, n_later=n_second + n_third)
    if ranked:
        best = yield Stage(_around(best.point, ranking=RANKINGS), n_third)
        best = yield from _beyond_edges("ranking", list(RANKINGS), best, RANKING_STEP, n_later=n_third)
    largest, strong = reference(best.point), best.point["ridge"]
    weak = strong / WEAKER_RIDGE
    # Not twice what differs by rounding.
    pair = [strong, next((value for value in tried if math.isclose(value, weak)), weak)]
    nuclears = sorted({NUCLEAR, *(share * largest for share in NUCLEAR_SHARES)})
    best = yield Stage(_around(best.point, ridge=pair, nuclear=nuclears))
    tried += pair
    within = (NUCLEAR_RANGE[0] * largest, NUCLEAR_RANGE[1] * largest)
    best = yield from _beyond_edges("nuclear", list(nuclears), best, NUCLEAR_STEP, *within)
    return (yield from _beyond_edges("ridge", tried, best, RIDGE_STEP))


def _around(point: Point, **axes: Iterable[float]) -> Grid:
    """The grid of these axes through a point."""
    return {name: list(axes.get(name, [value])) for name, value in point.items()}


def _beyond_edges(
    name: str, tried: list[float], best: Best, step: float, least: float = 0.0, most: float = float("inf"),
    n_later: int = 0,
) -> Stages:  # fmt: skip
    """A further value of one parameter while the best points have an extreme one of those tried, to which it is added."""
    for _ in range(MOST_STEPS):
        value = best.point[name]
        is_extreme = value in (min(tried), max(tried)) and all(point[name] == value for point in best.ties)
        further = value * step if value == max(tried) else value / step
        if not is_extreme or not least <= further <= most or further == value:
            break
        best = yield Stage(_around(best.point, **{name: [value, further]}), n_later)
        tried.append(further)
    return best
