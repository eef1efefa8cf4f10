"""Losses of labels and scores: sums over rows that know neither features nor weights."""

from rbrl.losses.base import Loss, Terms, WeightedSum
from rbrl.losses.hinge import CostWeightedSquaredHinge, PairwiseSquaredHinge, SquaredHinge
from rbrl.losses.label_graph import LabelGraph

__all__ = [
    "CostWeightedSquaredHinge", "LabelGraph", "Loss", "PairwiseSquaredHinge", "SquaredHinge", "Terms", "WeightedSum",
]  # fmt: skip
