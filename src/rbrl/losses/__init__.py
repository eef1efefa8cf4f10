"""Losses of labels and scores: sums over rows, which depend neither on features nor on model weights."""

from rbrl.losses.base import ClassWeighted as ClassWeighted
from rbrl.losses.base import Loss, Terms, WeightedSum
from rbrl.losses.hinges import CostWeightedSquaredHinge as CostWeightedSquaredHinge
from rbrl.losses.hinges import PairwiseSquaredHinge, SquaredHinge
from rbrl.losses.label_graph import LabelGraph as LabelGraph
from rbrl.losses.weights import entry_weights as entry_weights

__all__ = ["Loss", "PairwiseSquaredHinge", "SquaredHinge", "Terms", "WeightedSum"]
