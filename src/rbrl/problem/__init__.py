"""The problem of every convex model: a loss of labels and scores, plus penalties on the weights, over a design."""

from rbrl.problem.design import LARGEST_DECOMPOSITION, Design, RowDesign
from rbrl.problem.kernel import FeatureMapDesign, KernelDesign, SpectralDesign
from rbrl.problem.linear import eigen_design, linear_design, with_constant
from rbrl.problem.matrix import DenseDesign, MatrixDesign, in_single_precision
from rbrl.problem.objective import NuclearNorm, Objective, Point, Ridge

__all__ = [
    "LARGEST_DECOMPOSITION", "DenseDesign", "Design", "FeatureMapDesign", "KernelDesign", "MatrixDesign", "NuclearNorm",
    "Objective", "Point", "Ridge", "RowDesign", "SpectralDesign", "eigen_design", "in_single_precision", "linear_design",
    "with_constant",
]  # fmt: skip
