"""Data sets: a catalogue, `load`, data files of several formats, and the class `Dataset`.

Examples
--------
>>> from rbrl import datasets
>>> datasets.load("yeast")
Dataset 'yeast': 2417 samples, 103 features (dense), 14 labels
  labels per sample 4.237
  features  Att1, Att2, Att3, Att4, Att5, Att6, … (103)
  labels    Class1, Class2, Class3, Class4, Class5, Class6, … (14)
"""

from rbrl.datasets.catalogue import CARDS, catalogue, load
from rbrl.datasets.catalogue import Card as Card
from rbrl.datasets.catalogue import table as table
from rbrl.datasets.columns import Columns as Columns
from rbrl.datasets.dataset import Dataset, Part
from rbrl.datasets.files import convert as convert
from rbrl.datasets.files import load_file, load_parts, read_blocks, save_file
from rbrl.datasets.shards import Shards, open_shards, write_shards

__all__ = [
    "CARDS", "Dataset", "Part", "Shards", "catalogue", "load", "load_file", "load_parts", "open_shards", "read_blocks",
    "save_file", "write_shards",
]  # fmt: skip
