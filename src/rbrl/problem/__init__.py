"""The problem that every convex model poses: a loss of labels and scores, plus penalties on the weights, over a design."""

from rbrl.problem.design import Design, RowDesign
from rbrl.problem.kernel import BlockKernel, FeatureMapDesign, SpectralDesign
from rbrl.problem.linear import (
    LARGEST_DECOMPOSITION,
    EigenDesign,
    MatrixDesign,
    linear_design,
    with_constant,
    with_ones,
)
from rbrl.problem.objective import NuclearNorm, Objective, Point, Ridge

__all__ = [
    "LARGEST_DECOMPOSITION", "BlockKernel", "Design", "EigenDesign", "FeatureMapDesign", "MatrixDesign", "NuclearNorm",
    "Objective", "Point", "Ridge", "RowDesign", "SpectralDesign", "linear_design", "with_constant", "with_ones",
]  # fmt: skip
