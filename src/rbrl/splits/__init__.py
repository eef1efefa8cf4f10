"""Seeded splits of samples: at random, or with the frequency of every label kept."""

from rbrl.splits._random import RandomSplits, random_split
from rbrl.splits._stratified import IterativeStratifiedKFold, IterativeStratifiedShuffleSplit

__all__ = ["IterativeStratifiedKFold", "IterativeStratifiedShuffleSplit", "RandomSplits", "random_split"]
