"""Losses of labels and scores: sums over rows that know neither features nor weights."""

from rbrl.losses.base import Loss, Terms, entry_weights
from rbrl.losses.composed import ClassWeighted, WeightedSum, class_weighted
from rbrl.losses.hinge import CostWeightedSquaredHinge, SquaredHinge
from rbrl.losses.label_graph import LabelGraph
from rbrl.losses.pairwise import PairwiseSquaredHinge

__all__ = [
    "ClassWeighted", "CostWeightedSquaredHinge", "LabelGraph", "Loss", "PairwiseSquaredHinge", "SquaredHinge", "Terms",
    "WeightedSum", "class_weighted", "entry_weights",
]  # fmt: skip
