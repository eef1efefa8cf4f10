"""The problem of every convex model: a loss of labels and scores, plus penalties on the weights, over a design."""

from rbrl.problem.design import LARGEST_DECOMPOSITION as LARGEST_DECOMPOSITION
from rbrl.problem.design import Design as Design
from rbrl.problem.design import RowDesign as RowDesign
from rbrl.problem.kernel import FeatureMapDesign as FeatureMapDesign
from rbrl.problem.kernel import KernelDesign as KernelDesign
from rbrl.problem.kernel import SpectralDesign
from rbrl.problem.linear import eigen_design as eigen_design
from rbrl.problem.linear import linear_design
from rbrl.problem.linear import with_constant as with_constant
from rbrl.problem.matrix import DenseDesign as DenseDesign
from rbrl.problem.matrix import MatrixDesign
from rbrl.problem.matrix import in_single_precision as in_single_precision
from rbrl.problem.objective import NuclearNorm as NuclearNorm
from rbrl.problem.objective import Objective
from rbrl.problem.objective import Point as Point
from rbrl.problem.objective import Ridge as Ridge

__all__ = ["MatrixDesign", "Objective", "SpectralDesign", "linear_design"]
