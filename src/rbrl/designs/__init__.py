"""Designs: linear maps from weights to scores."""

from rbrl.designs.base import Design
from rbrl.designs.block_kernel import BlockKernel
from rbrl.designs.choose import LARGEST_DECOMPOSITION, linear_design, rows_tell_columns
from rbrl.designs.eigen import EigenDesign
from rbrl.designs.feature_map import FeatureMapDesign
from rbrl.designs.in_blocks import LARGEST_GRAM, BlockDesign, GramDesign
from rbrl.designs.matrix import MatrixDesign, with_ones
from rbrl.designs.rotated import RotatedDesign
from rbrl.designs.row_space import RowSpaceDesign
from rbrl.designs.spectral import SpectralDesign

__all__ = [
    "LARGEST_DECOMPOSITION",
    "LARGEST_GRAM",
    "BlockDesign",
    "BlockKernel",
    "Design",
    "EigenDesign",
    "FeatureMapDesign",
    "GramDesign",
    "MatrixDesign",
    "RotatedDesign",
    "RowSpaceDesign",
    "SpectralDesign",
    "linear_design",
    "rows_tell_columns",
    "with_ones",
]
