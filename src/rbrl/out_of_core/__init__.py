"""Fits on rows in blocks: in files, in memory or on the workers of a Dask cluster."""

from rbrl.out_of_core.design import BlockDesign, BlockObjective
from rbrl.out_of_core.fit import fit_blocks
from rbrl.out_of_core.sources import Block, Blocks, LocalBlocks, as_blocks
from rbrl.out_of_core.sums import BlockLoss

__all__ = ["Block", "BlockDesign", "BlockLoss", "BlockObjective", "Blocks", "LocalBlocks", "as_blocks", "fit_blocks"]
