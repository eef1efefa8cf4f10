"""Rows that are elsewhere: in files, in blocks of memory, on the workers of a Dask cluster. A pass over them is one sum."""

from rbrl.rows.design import LARGEST_GRAM, BlockDesign, BlockObjective, GramDesign, SummedObjective
from rbrl.rows.fit import fit_blocks
from rbrl.rows.places import Block, Blocks, LocalBlocks, as_blocks
from rbrl.rows.sums import BlockLoss, LabelCounts, LossAtZero, at_zero, label_counts
from rbrl.rows.survey import Survey, take_survey

__all__ = [
    "LARGEST_GRAM", "Block", "BlockDesign", "BlockLoss", "BlockObjective", "Blocks", "GramDesign", "LabelCounts",
    "LocalBlocks", "LossAtZero", "SummedObjective", "Survey", "as_blocks", "at_zero", "fit_blocks", "label_counts",
    "take_survey",
]  # fmt: skip
