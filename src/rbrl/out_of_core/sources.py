"""Sums of functions over blocks of rows, in this process or on the workers of a Dask cluster."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import iadd
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from rbrl._common.environment import import_extra
from rbrl._common.frames import check_same_rows, column_names, fill_masked_entries, label_values
from rbrl._common.progress import Passes
from rbrl._common.typing import MatrixLike
from rbrl.datasets import Columns, Dataset, Shards
from rbrl.datasets.shards import file_stamp
from rbrl.exceptions import DataFormatError
from rbrl.out_of_core.block import Block

# Function of a block and other arguments. It returns a tuple of numbers, arrays and lists, which can be added.
Summand: TypeAlias = Callable[..., tuple[Any, ...]]
# Number of blocks whose results one task of Dask adds.
TREE_BRANCHES = 8


class Blocks(ABC):
    """Rows in blocks, in any place. Training only needs sums of functions over the blocks.

    A function must depend only on its arguments, because Dask may evaluate it twice and in another process.

    Attributes
    ----------
    progress : Passes
        Progress of the current pass.
    columns : Columns or None
        Names and other properties of the columns, if they are known.
    pass_seconds, pass_processor_seconds : float
        Elapsed time and processor time of all passes. The processor time of workers is not included.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import Blocks, as_blocks
    >>> blocks = as_blocks([(np.eye(3), np.ones((3, 1))), (np.eye(4, 3), np.ones((4, 1)))])
    >>> isinstance(blocks, Blocks), len(blocks), blocks.total(lambda block: (len(block.X),))
    (True, 2, (7,))
    """

    n_blocks: int
    progress: Passes = Passes(0.0)
    columns: Columns | None = None
    pass_seconds = 0.0
    pass_processor_seconds = 0.0

    def __len__(self) -> int:
        """Return the number of blocks."""
        return self.n_blocks

    def total(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """Return the sum of ``function(block, *arguments)`` over all blocks.

        Parameters
        ----------
        function : callable
            Function that returns a tuple of numbers, arrays and lists. Lists are joined.
        *arguments
            Further arguments of the function.

        Returns
        -------
        tuple
        """
        clock_start = time.perf_counter()
        processor_start = time.process_time()
        result = self._sum(function, *arguments)
        self.pass_seconds += time.perf_counter() - clock_start
        self.pass_processor_seconds += time.process_time() - processor_start
        return result

    @abstractmethod
    def _sum(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """Return the sum of ``function(block, *arguments)``, computed where the rows are.

        It calls `progress.advance`. There is at least one block.
        """

    @abstractmethod
    def apply_to_first(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """Return ``function(block, *arguments)`` of the first block, computed where the block is."""


class LocalBlocks(Blocks):
    """Sequence of parts, such as `rbrl.datasets.Shards` or a list, which are read one at a time.

    Parameters
    ----------
    parts : sequence of pairs (X, Y) or triples (X, Y, weights)
        Features, labels, and weights of rows (n_rows,) or of entries (n_rows, n_labels).

    Attributes
    ----------
    reading_seconds : float
        Time spent on reading the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import LocalBlocks
    >>> blocks = LocalBlocks([(np.ones((3, 2)), np.ones((3, 1))), (np.ones((4, 2)), np.ones((4, 1)))])
    >>> blocks.total(lambda block: (len(block.X),))
    (7,)
    """

    def __init__(self, parts: Any) -> None:
        self._parts = parts
        self.n_blocks = len(parts)
        self.reading_seconds = 0.0
        # Size and time of the last change of each file when it was first read.
        self._stamps: dict[int, tuple[int, int]] = {}

    def _sum(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """Return the sum, computed one block at a time.

        The results of the first block are added to in place.
        """
        result: tuple[Any, ...] = ()
        for i in range(self.n_blocks):
            part = function(self._read(i), *arguments)
            result = tuple(map(iadd, result, part)) if result else part
            self.progress.advance(i + 1, self.n_blocks)
        return result

    def apply_to_first(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """Return ``function(block, *arguments)`` of the first block."""
        return function(self._read(0), *arguments)

    def _read(self, i: int) -> Block:
        """Read part i, add the time that this takes to `reading_seconds`, and return its block."""
        start = time.perf_counter()
        paths = getattr(self._parts, "paths", None)
        if paths:
            self._check_unchanged(i, paths[i])
        part = self._parts[i]
        self.reading_seconds += time.perf_counter() - start
        return _make_block(part, str(paths[i]) if paths else f"part {i}")

    def _check_unchanged(self, i: int, path: Path) -> None:
        """Raise DataFormatError if a file has changed since it was first read."""
        stamp = file_stamp(path)
        first = self._stamps.setdefault(i, stamp)
        if stamp != first:
            raise DataFormatError(
                f"{path} changed during the fit: it had {first[0]} bytes when it was first read, and now has {stamp[0]}. "
                "Every pass must read the same rows: fit again when no program writes to the file."
            )


class DaskBlocks(Blocks):
    """Blocks held by Dask: on a cluster if a `distributed.Client` is active, else by threads of this process.

    Every pass is a graph of tasks that depend only on blocks and arguments. If a worker is lost, its results
    are computed again on another worker. The order of the additions is that of the graph. The sum therefore
    does not depend on the workers.

    Parameters
    ----------
    parts : sequence of delayed or future pairs (X, Y), or triples (X, Y, weights)
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._dask = import_extra("dask", "dask", "Fitting Dask arrays")
        make_block = self._dask.delayed(_make_block, pure=False)
        blocks = [make_block(part, f"block {i} of {len(parts)}") for i, part in enumerate(parts)]
        self._blocks = self._dask.persist(*blocks)
        self.n_blocks = len(blocks)

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None, label_mask: Any = None) -> Self:
        """Return the blocks of Dask arrays or data frames that have the same rows in each block.

        Parameters
        ----------
        X : Dask array or data frame (n_samples, n_features)
        y : Dask array or data frame (n_samples, n_labels)
        sample_weight : Dask array (n_samples,) or (n_samples, n_labels), default=None
        label_mask : Dask array (n_samples, n_labels), default=None
            Mask that is True for known labels. Other entries get the weight 0.
        """
        weights = sample_weight
        if label_mask is not None:
            mask = _as_dask_array("label_mask", label_mask).astype(np.float64)
            weights = mask if weights is None else mask * (weights[:, None] if weights.ndim == 1 else weights)
        given = {"X": X, "y": y} if weights is None else {"X": X, "y": y, "sample_weight": weights}
        arrays = {name: _as_dask_array(name, array) for name, array in given.items()}
        if any(len(arrays[name].shape) != 2 for name in ("X", "y")):
            raise ValueError(
                "X and y must be Dask arrays or data frames of two dimensions. "
                f"Got shapes {arrays['X'].shape} and {arrays['y'].shape}."
            )
        for name, array in arrays.items():
            if array.ndim == 2 and array.numblocks[1] > 1:
                arrays[name] = array.rechunk({1: -1})
            _check_same_rows(name, arrays["X"].chunks[0], array.chunks[0])
        return cls(list(zip(*(array.to_delayed().ravel() for array in arrays.values()), strict=True)))

    def _sum(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """Return the sum, computed by a tree of tasks."""
        apply = self._dask.delayed(lambda block, shared: function(block, *shared), pure=False)
        add = self._dask.delayed(_add_all, pure=False)
        shared = self._dask.delayed(arguments, pure=False, traverse=False)
        level = [apply(block, shared) for block in self._blocks]
        while len(level) > 1:
            level = [add(level[i : i + TREE_BRANCHES]) for i in range(0, len(level), TREE_BRANCHES)]
        # The coefficients are part of the graph, so that they are not lost with a worker. Dask would warn
        # that the graph is large.
        with self._dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            result: tuple[Any, ...] = level[0].compute()
        self.progress.advance(1, 1)
        return result

    def apply_to_first(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """Return ``function(block, *arguments)`` of the first block, computed where the block is."""
        return self._dask.delayed(function, pure=False)(self._blocks[0], *arguments).compute()


def _make_block(part: Any, name: str) -> Block:
    """Return the block of a part (X, Y) or (X, Y, weights), with the name of its messages.

    The matrices are not copied unless entries are masked. Their shapes are checked later, in the
    survey.
    """
    X, Y, *weights = part
    if hasattr(X, "iloc"):
        check_same_rows(X=X, Y=Y)
    X = fill_masked_entries(X) if np.ma.isMaskedArray(X) else X
    return Block(X, label_values(Y).values, name, *weights)


def _as_dask_array(name: str, data: Any) -> Any:
    """Return a Dask array or data frame as a Dask array; raise ValueError for anything else."""
    if not hasattr(data, "to_delayed"):
        raise ValueError(
            f"If X is a Dask array or data frame, {name} must be one, too. Got {type(data).__name__}; use "
            f"dask.array.from_array({name}, chunks=...) or dask.dataframe.from_pandas({name}, npartitions=...)."
        )
    return data.to_dask_array() if hasattr(data, "to_dask_array") else data


def _check_same_rows(name: str, X_rows: tuple[float, ...], rows: tuple[float, ...]) -> None:
    """Raise ValueError if the blocks of an array have other numbers of rows than those of X.

    The number of rows in a block of a Dask data frame is NaN, because it is unknown.
    """
    if len(X_rows) == len(rows) and all(a == b or np.isnan([a, b]).any() for a, b in zip(X_rows, rows)):
        return
    if np.isnan([*X_rows, *rows]).any():
        way_out = f"for data frames, use {name}.repartition(divisions=X.divisions)"
    else:
        way_out = f"use {name}.rechunk({{0: X.chunks[0]}})"
    X_counts, counts = (
        f"{', '.join(map(str, numbers[:4]))}{', …' if len(numbers) > 4 else ''}" for numbers in (X_rows, rows)
    )
    raise ValueError(
        f"X and {name} must have the same number of rows in each block. The blocks of X have {X_counts} rows, those of "
        f"{name} have {counts}; {way_out}."
    )


def _add_all(results: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add the results of other tasks, in their order; lists are joined.

    The first one is copied, because tasks must not change their inputs.
    """
    first = tuple(value.copy() if hasattr(value, "copy") else value for value in results[0])
    return reduce(lambda total, result: tuple(map(iadd, total, result)), results[1:], first)


def as_blocks(X: Any, y: Any = None, sample_weight: Any = None, label_mask: Any = None) -> Blocks | None:
    """Return the blocks that were passed to `fit`, or None for arrays in memory.

    Parameters
    ----------
    X : Shards, sequence of parts, Dask array or data frame, or anything else
        Features, or parts (X, Y) or (X, Y, weights), which may be delayed objects of Dask.
    y : Dask array or data frame, or None
    sample_weight, label_mask : Dask arrays, or None
        Weights and mask of Dask arrays. Parts contain their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import as_blocks
    >>> X, Y = np.ones((3, 2)), np.ones((3, 1))
    >>> as_blocks(X, Y) is None, len(as_blocks([(X, Y), (X, Y)]))
    (True, 2)
    """
    parts = X if isinstance(X, Sequence) and not isinstance(X, str | bytes | Shards) else ()
    # The module names tell whether these are objects of Dask, which may not be installed.
    is_dask = {type(value).__module__.partition(".")[0] for value in parts or [X]} <= {"dask", "distributed"}
    blocks: Blocks
    if is_dask and parts:
        blocks = DaskBlocks(X)
    elif is_dask:
        blocks = DaskBlocks.from_arrays(X, y, sample_weight, label_mask)
        blocks.columns = Columns(feature_names=column_names(X), label_names=column_names(y))
        return blocks
    elif isinstance(X, Blocks):
        blocks = X
    elif isinstance(X, Shards) or (parts and _are_parts(parts)):
        blocks = LocalBlocks(X)
        blocks.columns = X.read(0).columns if isinstance(X, Shards) and len(X) else None
    elif isinstance(X, Iterator):
        raise ValueError(
            f"fit makes several passes over the rows, but a {type(X).__name__} can be read only once. Write the rows to "
            "files with rbrl.datasets.write_shards(batches, folder) and fit these, or call partial_fit for each batch."
        )
    else:
        return None
    if y is not None:
        raise ValueError(
            f"y must be None for blocks of rows, which contain their labels. Got y of type {type(y).__name__}."
        )
    for name, value in {"sample_weight": sample_weight, "label_mask": label_mask}.items():
        if value is not None:
            raise ValueError(
                f"{name} must be None for rows in blocks. Got {name} of type {type(value).__name__} and {len(blocks)} "
                "blocks. Pass parts (X, Y, weights), with a weight per row or per label. A missing label has weight 0, "
                "or is NaN in Y."
            )
    return blocks


def feature_blocks(X: MatrixLike | Dataset | Shards) -> Iterator[Any]:
    """Yield the features of shards or of a list of parts (X, Y), block by block.

    Any other input of `predict` is yielded in one block.
    """
    if isinstance(X, Shards):
        return (X.read(i) for i in range(len(X)))
    return (part[0] for part in X) if isinstance(X, list) and X and _are_parts(X) else iter([X])


def _are_parts(parts: Sequence[Any]) -> bool:
    """Tell whether all parts are tuples (X, Y) or (X, Y, weights)."""
    tuples = all(isinstance(part, tuple) and len(part) in (2, 3) for part in parts)
    return tuples and all(len(getattr(side, "shape", ())) == 2 for part in parts for side in part[:2])
