"""Losses of labels and scores. `ALL_LOSSES` holds one example of each; the tests run over it."""

from rbrl.losses.base import LineValue, Loss, Terms
from rbrl.losses.pairwise import PairwiseSquaredHinge
from rbrl.losses.pointwise import SquaredHinge
from rbrl.losses.weighted_sum import WeightedSum

ALL_LOSSES = (
    SquaredHinge(),
    PairwiseSquaredHinge(),
    PairwiseSquaredHinge(margin=1.0),
    WeightedSum((1.0, SquaredHinge()), (0.3, PairwiseSquaredHinge())),
)

__all__ = ["ALL_LOSSES", "LineValue", "Loss", "PairwiseSquaredHinge", "SquaredHinge", "Terms", "WeightedSum"]
