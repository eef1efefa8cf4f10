"""Blocks that are visited one after the other in this process."""

import time

from rbrl.blocks.base import Block, Blocks, add


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
