"""Where rows are: a place that sums a function over its blocks, in this process or on the workers of a Dask cluster."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import iadd
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from rbrl._common.extras import import_extra
from rbrl._common.progress import Passes
from rbrl._common.typing import ArrayLike, MatrixLike
from rbrl.datasets import Columns, Dataset, Shards

# From a block, and other arguments, to a tuple of what can be added: numbers, arrays, lists.
Summand: TypeAlias = Callable[..., tuple[Any, ...]]
# Results of this many blocks are added on one worker.
BRANCHES = 8


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
    pass_seconds, pass_processor_seconds : float
        Time that passes have taken, by the clock, and of this process's processor: that of workers is not in it.
    """

    n_blocks: int
    progress: Passes = Passes(0.0)
    columns: Columns | None = None
    pass_seconds = 0.0
    pass_processor_seconds = 0.0

    def __len__(self) -> int:
        """Number of blocks."""
        return self.n_blocks

    def total(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """Sum over all blocks of ``function(block, *arguments)``, a tuple of numbers, arrays, and lists, which join.

        Parameters
        ----------
        function : callable
            From a block, and the arguments, to a tuple.
        *arguments

        Returns
        -------
        tuple
        """
        clock, processor = time.perf_counter(), time.process_time()
        result = self._sum(function, *arguments)
        self.pass_seconds += time.perf_counter() - clock
        self.pass_processor_seconds += time.process_time() - processor
        return result

    @abstractmethod
    def _sum(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """The same, where the rows are."""

    @abstractmethod
    def first(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """``function(block, *arguments)`` of the first block.

        Parameters
        ----------
        function : callable
            From a block, and the arguments, to a tuple.
        *arguments

        Returns
        -------
        tuple
        """


def _add(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sum of two tuples, member by member; the arrays and lists of the first are reused."""
    return tuple(map(iadd, one, other))


class LocalBlocks(Blocks):
    """A sequence of parts ``(X, Y)``, each fetched when its turn comes: `rbrl.datasets.Shards`, or a list.

    Parameters
    ----------
    parts : sequence of pairs (X, Y)

    Attributes
    ----------
    reading_seconds : float
        Time spent fetching parts.

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

    def _sum(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """The sum, one block at a time."""
        result: tuple[Any, ...] = ()
        for i in range(self.n_blocks):
            found = function(self._fetch(i), *arguments)
            result = _add(result, found) if result else found
            self.progress.advance(i + 1, self.n_blocks)
        return result

    def first(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """What the first part gives.

        Parameters
        ----------
        function : callable
            From a block, and the arguments, to a tuple.
        *arguments

        Returns
        -------
        tuple
        """
        return function(self._fetch(0), *arguments)

    def _fetch(self, i: int) -> Block:
        started = time.perf_counter()
        X, Y = self._parts[i]
        names = getattr(self._parts, "names", None)
        self.reading_seconds += time.perf_counter() - started
        return Block(X, Y, names[i] if names else f"part {i}")


class DaskBlocks(Blocks):
    """Blocks kept by Dask: on a cluster if a `distributed.Client` is in use, else by Dask's threads in this process.

    Every pass is a graph of pure tasks of blocks and arguments, which the scheduler holds; so what is lost with a worker is
    computed again on another, and the sum is the same: its order is that of the tree, not of the workers.

    Parameters
    ----------
    parts : sequence of delayed or future pairs (X, Y)
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._dask = import_extra("dask", "dask", "Fitting Dask arrays")
        named = self._dask.delayed(lambda part, name: Block(part[0], part[1], name), pure=False)
        blocks = [named(part, f"block {i} of {len(parts)}") for i, part in enumerate(parts)]
        self._blocks = self._dask.persist(*blocks)
        self.n_blocks = len(blocks)

    @classmethod
    def of_arrays(cls, X: Any, y: Any) -> Self:
        """Blocks of two Dask arrays or data frames with the same rows in each block.

        Parameters
        ----------
        X : Dask array or data frame (n_samples, n_features)
        y : Dask array or data frame (n_samples, n_labels)

        Returns
        -------
        DaskBlocks
        """
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
        rows = X.chunks[0], y.chunks[0]
        # A data frame does not know how many rows its blocks have: NaN.
        unknown = np.isnan([*rows[0], *rows[1]]).any()
        if len(rows[0]) != len(rows[1]) or any(a != b and not np.isnan([a, b]).any() for a, b in zip(*rows)):
            alike = "cut both alike, data frames with y.repartition(divisions=X.divisions)"
            way_out = alike if unknown else "y.rechunk({0: X.chunks[0]}) would do"
            shown = (f"{', '.join(map(str, side[:4]))}{', …' if len(side) > 4 else ''}" for side in rows)
            raise ValueError(
                f"X and y must have the same rows in each block. Got {' and '.join(shown)} rows; {way_out}."
            )
        return cls(list(zip(X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)))

    def _sum(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """The sum, by a tree of tasks."""
        apply = self._dask.delayed(lambda block, shared: function(block, *shared), pure=False)
        join = self._dask.delayed(_joined, pure=False)
        shared = self._dask.delayed(arguments, pure=False, traverse=False)
        level = [apply(block, shared) for block in self._blocks]
        while len(level) > 1:
            level = [join(level[i : i + BRANCHES]) for i in range(0, len(level), BRANCHES)]
        # Coefficients travel with the graph, so that no worker takes them along when it dies; Dask warns of such graphs.
        with self._dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            result: tuple[Any, ...] = level[0].compute()
        self.progress.advance(1, 1)
        return result

    def first(self, function: Summand, *arguments: Any) -> tuple[Any, ...]:
        """What the first block gives, computed where it is.

        Parameters
        ----------
        function : callable
            From a block, and the arguments, to a tuple.
        *arguments

        Returns
        -------
        tuple
        """
        return self._dask.delayed(function, pure=False)(self._blocks[0], *arguments).compute()


def _joined(results: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Results of other tasks are theirs: what is added to is a copy."""
    return reduce(_add, results[1:], tuple(value.copy() if hasattr(value, "copy") else value for value in results[0]))


def as_blocks(
    X: Any, y: Any = None, sample_weight: ArrayLike | None = None, label_mask: MatrixLike | None = None
) -> Blocks | None:
    """The blocks that a `fit` was given, or None if these are arrays.

    Parameters
    ----------
    X : Shards, sequence of parts (X, Y), Dask array or data frame, sequence of delayed parts, or anything else
    y : Dask array or data frame, or None
    sample_weight, label_mask : arrays or None
        Refused with blocks.

    Returns
    -------
    Blocks or None

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.ones((3, 2)), np.ones((3, 1))
    >>> as_blocks(X, Y) is None, len(as_blocks([(X, Y), (X, Y)]))
    (True, 2)
    """
    parts = X if isinstance(X, Sequence) and not isinstance(X, str | bytes | Shards) else ()
    # By name, without importing Dask, which may not be there.
    of_dask = {type(value).__module__.partition(".")[0] for value in parts or [X]} <= {"dask", "distributed"}
    blocks: Blocks
    if of_dask and parts:
        blocks = DaskBlocks(_alone(X, y))
    elif of_dask:
        blocks = DaskBlocks.of_arrays(X, y)
        blocks.columns = Columns(feature_names=column_names(X), label_names=column_names(y))
    elif isinstance(X, Blocks):
        blocks = _alone(X, y)
    elif isinstance(X, Shards) or (parts and _are_parts(parts)):
        blocks = LocalBlocks(_alone(X, y))
        blocks.columns = X.read(0).columns if isinstance(X, Shards) and len(X) else None
    elif isinstance(X, Iterator):
        raise ValueError(
            f"fit makes several passes over its rows, and a {type(X).__name__} gives them once: write them to files with "
            "rbrl.datasets.write_shards(batches, folder) and fit those, or call partial_fit for each batch."
        )
    else:
        return None
    if sample_weight is not None:
        raise ValueError(
            f"sample_weight goes with arrays; for rows in {len(blocks)} blocks there is none. Repeat rows instead."
        )
    if label_mask is not None:
        raise ValueError(
            f"label_mask goes with arrays; for rows in {len(blocks)} blocks there is none. Labels that are NaN are missing "
            "there."
        )
    return blocks


def feature_blocks(X: MatrixLike | Dataset | Shards) -> Iterator[Any]:
    """The features of shards, or of a list of parts (X, Y), block by block; of anything else, that itself.

    Parameters
    ----------
    X : anything that predictions are made for

    Yields
    ------
    features of some rows
    """
    if isinstance(X, Shards):
        return (X.read(i) for i in range(len(X)))
    return (part[0] for part in X) if isinstance(X, list) and X and _are_parts(X) else iter([X])


def column_names(frame: Any) -> list[str] | None:
    """The names of the columns of a data frame, if they are text; None for anything else.

    Parameters
    ----------
    frame : data frame, or anything else

    Returns
    -------
    list of str or None

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"sea": [1], "sand": [0]}))
    ['sea', 'sand']
    """
    columns = getattr(frame, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def _are_parts(parts: Sequence[Any]) -> bool:
    """Whether these are all rows with their labels, (X, Y)."""
    pairs = all(isinstance(part, tuple) and len(part) == 2 for part in parts)
    return pairs and all(len(getattr(side, "shape", ())) == 2 for part in parts for side in part)


def _alone(X: Any, y: Any) -> Any:
    if y is not None:
        raise ValueError(f"Blocks of rows have their labels with them: pass no y. Got y of type {type(y).__name__}.")
    return X
