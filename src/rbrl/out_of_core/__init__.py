"""Fits on rows in blocks: in files, in memory or on the workers of a Dask cluster."""

from rbrl.out_of_core.block import Block as Block
from rbrl.out_of_core.design import BlockDesign as BlockDesign
from rbrl.out_of_core.fit import fit_blocks as fit_blocks
from rbrl.out_of_core.objective import BlockLoss as BlockLoss
from rbrl.out_of_core.objective import BlockObjective as BlockObjective
from rbrl.out_of_core.sources import Blocks as Blocks
from rbrl.out_of_core.sources import LocalBlocks
from rbrl.out_of_core.sources import as_blocks as as_blocks

__all__ = ["LocalBlocks"]
