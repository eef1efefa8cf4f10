"""What blocks of rows are: a place that sums a function over them."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from rbrl.blocks.progress import Progress
from rbrl.datasets import Columns


class Block(NamedTuple):
    """Some rows: features, labels as the user codes them, and what to call them in an error."""

    X: Any
    Y: Any
    name: str


class Blocks(ABC):
    """Rows in blocks, wherever they are.

    Everything that training needs of them is a sum over rows, so there is one verb. A function must depend on its arguments
    alone: a block may be asked twice, in another process.

    Attributes
    ----------
    progress : Progress
        Who is told how far a pass has come.
    columns : Columns or None
        What is known of their columns, such as names.
    """

    n_blocks: int
    progress: Progress = Progress(0.0)
    columns: Columns | None = None

    def __len__(self):
        """Number of blocks."""
        return self.n_blocks

    @abstractmethod
    def total(self, function, *arguments):
        """Sum over all blocks of ``function(block, *arguments)``, a tuple of numbers, arrays, and lists, which join."""

    @abstractmethod
    def first(self, function, *arguments):
        """``function(block, *arguments)`` of the first block."""


def add(one, other):
    """Sum of two tuples, member by member; the arrays of the first are reused."""
    return tuple(_add(a, b) for a, b in zip(one, other, strict=True))


def _add(a, b):
    a += b
    return a
