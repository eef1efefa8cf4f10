"""Where rows are: a place that sums a function over its blocks, in this process."""

import time
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from rbrl._common.progress import Passes
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
    progress : Passes
        Who is told how far a pass has come.
    columns : Columns or None
        What is known of their columns, such as names.
    """

    n_blocks: int
    progress: Passes = Passes(0.0)
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


class LocalBlocks(Blocks):
    """A sequence of parts ``(X, Y)``, each fetched when its turn comes: `rbrl.datasets.Shards`, or a list.

    Attributes
    ----------
    reading_seconds, seconds : float
        Time spent fetching parts, and in all passes together.
    """

    def __init__(self, parts):
        self._parts = parts
        self.n_blocks = len(parts)
        self.reading_seconds = self.seconds = 0.0

    def total(self, function, *arguments):
        started, result = time.perf_counter(), None
        for i in range(self.n_blocks):
            found = function(self._fetch(i), *arguments)
            result = found if result is None else add(result, found)
            self.progress.advance(i + 1, self.n_blocks)
        self.seconds += time.perf_counter() - started
        return result

    def first(self, function, *arguments):
        return function(self._fetch(0), *arguments)

    def _fetch(self, i):
        started = time.perf_counter()
        X, Y = self._parts[i]
        names = getattr(self._parts, "names", None)
        self.reading_seconds += time.perf_counter() - started
        return Block(X, Y, names[i] if names else f"part {i}")
