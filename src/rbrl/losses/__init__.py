"""Losses of labels and scores: sums over rows that know neither features nor weights."""

from rbrl.losses.hinges import CostWeightedSquaredHinge, Loss, PairwiseSquaredHinge, SquaredHinge, Terms, WeightedSum
from rbrl.losses.label_graph import LabelGraph

__all__ = [
    "CostWeightedSquaredHinge", "LabelGraph", "Loss", "PairwiseSquaredHinge", "SquaredHinge", "Terms", "WeightedSum",
]  # fmt: skip
