"""Rows that are elsewhere: in files, in blocks of memory, on the workers of a Dask cluster. A pass over them is one sum."""

from rbrl.rows.design import LARGEST_GRAM, BlockDesign, BlockObjective, GramDesign, SummedObjective
from rbrl.rows.places import Block, Blocks, LocalBlocks
from rbrl.rows.sums import BlockLoss, BlockResidual, BlockScores, LossAtZero, at_zero
from rbrl.rows.survey import Survey, take_survey

__all__ = [
    "LARGEST_GRAM",
    "Block",
    "BlockDesign",
    "BlockLoss",
    "BlockObjective",
    "BlockResidual",
    "BlockScores",
    "Blocks",
    "GramDesign",
    "LocalBlocks",
    "LossAtZero",
    "SummedObjective",
    "Survey",
    "at_zero",
    "take_survey",
]
