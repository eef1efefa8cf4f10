"""Rows that are elsewhere: in files, in blocks of memory, on the workers of a Dask cluster. A pass over them is one sum."""

from rbrl.out_of_core.design import BlockDesign, BlockObjective
from rbrl.out_of_core.fit import fit_blocks
from rbrl.out_of_core.sources import Block, Blocks, LocalBlocks, as_blocks
from rbrl.out_of_core.sums import BlockLoss, LabelCounts, label_counts

__all__ = [
    "Block", "BlockDesign", "BlockLoss", "BlockObjective", "Blocks", "LabelCounts", "LocalBlocks", "as_blocks", "fit_blocks",
    "label_counts",
]  # fmt: skip
