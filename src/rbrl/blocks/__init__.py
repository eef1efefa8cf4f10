"""Rows in blocks: in memory, in files, on the workers of a Dask cluster. A pass over them is one sum."""

from rbrl.blocks.base import Block, Blocks
from rbrl.blocks.local import LocalBlocks
from rbrl.blocks.loss import BlockLoss
from rbrl.blocks.products import label_products
from rbrl.blocks.scores import BlockResidual, BlockScores
from rbrl.blocks.statistics import LossAtZero, at_zero
from rbrl.blocks.survey import Survey, take_survey

__all__ = [
    "Block",
    "BlockLoss",
    "BlockResidual",
    "BlockScores",
    "Blocks",
    "LocalBlocks",
    "LossAtZero",
    "Survey",
    "at_zero",
    "label_products",
    "take_survey",
]
