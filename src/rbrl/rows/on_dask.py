"""Blocks on the workers of a Dask cluster, where they stay; sums come back by a tree."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from rbrl.rows.places import Block, Blocks, add

# Results of this many blocks are added on one worker.
BRANCHES = 8


class DaskBlocks(Blocks):
    """Blocks kept by Dask: on a cluster if a `distributed.Client` is in use, else by Dask's threads in this process.

    Every pass is a graph of pure tasks of blocks and arguments, which the scheduler holds; so what is lost with a worker is
    computed again on another, and the sum is the same: its order is that of the tree, not of the workers.

    Parameters
    ----------
    parts : list of delayed pairs (X, Y)
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._dask = _dask()
        named = self._dask.delayed(_named, pure=False)
        blocks = [named(part, f"block {i} of {len(parts)}") for i, part in enumerate(parts)]
        self._blocks = self._dask.persist(*blocks)
        self.n_blocks = len(blocks)

    @classmethod
    def of_arrays(cls, X: Any, y: Any) -> Self:
        """Blocks of two Dask arrays or data frames with the same rows in each block."""
        X, y = (side.to_dask_array() if hasattr(side, "to_dask_array") else side for side in (X, y))
        shapes = [getattr(side, "shape", None) for side in (X, y)]
        if any(shape is None or len(shape) != 2 for shape in shapes):
            raise ValueError(
                f"X and y must be Dask arrays or data frames of two dimensions. Got shapes {shapes[0]} and {shapes[1]}."
            )
        if not hasattr(y, "to_delayed"):
            raise ValueError(
                f"With X of Dask, y must be so too. Got {type(y).__name__}; dask.array.from_array(y, chunks=...) makes an "
                "array, dask.dataframe.from_pandas(y, npartitions=...) a data frame."
            )
        X, y = (side.rechunk({1: -1}) if side.numblocks[1] > 1 else side for side in (X, y))
        if X.numblocks[0] != y.numblocks[0] or not _same_rows(X.chunks[0], y.chunks[0]):
            way_out = "y.rechunk({0: X.chunks[0]}) would do"
            if np.isnan([*X.chunks[0], *y.chunks[0]]).any():
                way_out = "cut both alike, data frames with y.repartition(divisions=X.divisions)"
            raise ValueError(
                f"X and y must have the same rows in each block. Got {_shown(X.chunks[0])} and {_shown(y.chunks[0])} rows; "
                f"{way_out}."
            )
        return cls(list(zip(X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)))

    @classmethod
    def of_delayed(cls, parts: Iterable[Any]) -> Self:
        """Blocks of delayed or future pairs (X, Y)."""
        return cls(list(parts))

    def total(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """The sum, by a tree of tasks."""
        apply, join = (self._dask.delayed(task, pure=False) for task in (_apply, _joined))
        shared = self._dask.delayed(arguments, pure=False, traverse=False)
        level = [apply(function, block, shared) for block in self._blocks]
        while len(level) > 1:
            level = [join(level[i : i + BRANCHES]) for i in range(0, len(level), BRANCHES)]
        # Coefficients travel with the graph, so that no worker takes them along when it dies; Dask warns of such graphs.
        with self._dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            result: tuple[Any, ...] = level[0].compute()
        self.progress.advance(1, 1)
        return result

    def first(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """What the first block gives, computed where it is."""
        return self._dask.delayed(_apply, pure=False)(function, self._blocks[0], arguments).compute()


def _dask() -> Any:
    try:
        import dask
    except ImportError as error:
        raise ImportError(f"Dask arrays need Dask ({error}): pip install 'rbrl[dask]'.") from error
    return dask


def _named(part: tuple[Any, Any], name: str) -> Block:
    return Block(*part, name)


def _apply(function: Callable[..., tuple[Any, ...]], block: Block, arguments: Iterable[Any]) -> tuple[Any, ...]:
    return function(block, *arguments)


def _joined(results: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Results of other tasks are theirs: what is added to is a copy."""
    total = tuple(value.copy() if hasattr(value, "copy") else value for value in results[0])
    for result in results[1:]:
        total = add(total, result)
    return total


def _same_rows(first: Iterable[float], second: Iterable[float]) -> bool:
    """Whether blocks have as many rows, where that is known."""
    return all(a == b or np.isnan(a) or np.isnan(b) for a, b in zip(first, second, strict=True))


def _shown(rows: Sequence[float]) -> str:
    return f"{', '.join(map(str, rows[:4]))}{', …' if len(rows) > 4 else ''}"
