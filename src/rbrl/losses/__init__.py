"""Losses of labels and scores: sums over rows, which depend neither on features nor on model weights."""

from rbrl.losses.base import ClassWeighted, Loss, Terms, WeightedSum, entry_weights
from rbrl.losses.hinges import CostWeightedSquaredHinge, PairwiseSquaredHinge, SquaredHinge
from rbrl.losses.label_graph import LabelGraph

__all__ = [
    "ClassWeighted", "CostWeightedSquaredHinge", "LabelGraph", "Loss", "PairwiseSquaredHinge",
    "SquaredHinge", "Terms", "WeightedSum", "entry_weights",
]  # fmt: skip
