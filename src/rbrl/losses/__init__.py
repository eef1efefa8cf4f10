"""Losses of labels and scores: sums over rows that know neither features nor weights."""

from rbrl.losses.base import ClassWeighted, Loss, Terms, WeightedSum
from rbrl.losses.hinges import CostWeightedSquaredHinge, PairwiseSquaredHinge, SquaredHinge
from rbrl.losses.label_graph import LabelGraph
from rbrl.losses.weights import class_weighted, entry_weights

__all__ = [
    "ClassWeighted", "CostWeightedSquaredHinge", "LabelGraph", "Loss", "PairwiseSquaredHinge", "SquaredHinge", "Terms",
    "WeightedSum", "class_weighted", "entry_weights",
]  # fmt: skip
