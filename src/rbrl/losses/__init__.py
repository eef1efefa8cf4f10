"""Losses of labels and scores: sums over rows that know neither features nor weights."""

from rbrl.losses.hinges import (
    ClassWeighted,
    CostWeightedSquaredHinge,
    Loss,
    PairwiseSquaredHinge,
    SquaredHinge,
    Terms,
    WeightedSum,
    class_weighted,
)  # fmt: skip
from rbrl.losses.label_graph import LabelGraph

__all__ = [
    "ClassWeighted", "CostWeightedSquaredHinge", "LabelGraph", "Loss", "PairwiseSquaredHinge", "SquaredHinge", "Terms",
    "WeightedSum", "class_weighted",
]  # fmt: skip
