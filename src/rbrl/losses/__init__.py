"""Losses of labels and scores. `ALL_LOSSES` holds one example of each; the tests run over it."""

import numpy as np

from rbrl.losses.base import LineValue, Loss, Terms, WeightedSum
from rbrl.losses.hinge import CostWeightedSquaredHinge, PairwiseSquaredHinge, SquaredHinge
from rbrl.losses.label_graph import LabelGraph

ALL_LOSSES = (
    SquaredHinge(),
    PairwiseSquaredHinge(),
    PairwiseSquaredHinge(margin=1.0),
    WeightedSum((1.0, SquaredHinge()), (0.3, PairwiseSquaredHinge())),
    CostWeightedSquaredHinge(np.array([0.0, 0.5, 1.0, 2.0, 4.0])),
    LabelGraph(5.0 * np.eye(5) - 1.0),
    WeightedSum((1.0, CostWeightedSquaredHinge(np.full(5, 2.0))), (0.1, LabelGraph(3.0 * np.eye(5) + 1.0))),
)

__all__ = [
    "ALL_LOSSES",
    "CostWeightedSquaredHinge",
    "LabelGraph",
    "LineValue",
    "Loss",
    "PairwiseSquaredHinge",
    "SquaredHinge",
    "Terms",
    "WeightedSum",
]
