"""Where rows are: a place that sums a function over its blocks, and what users give that is such a place."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rbrl._common.progress import Progress
from rbrl._common.typing import ArrayLike, MatrixLike
from rbrl.datasets import Columns, Dataset, Shards


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

    def __len__(self) -> int:
        """Number of blocks."""
        return self.n_blocks

    @abstractmethod
    def total(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """Sum over all blocks of ``function(block, *arguments)``, a tuple of numbers, arrays, and lists, which join."""

    @abstractmethod
    def first(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """``function(block, *arguments)`` of the first block."""


def add(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sum of two tuples, member by member; the arrays and lists of the first are reused."""
    total = list(one)
    for i, value in enumerate(other):
        total[i] += value
    return tuple(total)


class LocalBlocks(Blocks):
    """A sequence of parts ``(X, Y)``, each fetched when its turn comes: `rbrl.datasets.Shards`, or a list.

    Attributes
    ----------
    reading_seconds, seconds : float
        Time spent fetching parts, and in all passes together.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.rows import LocalBlocks
    >>> blocks = LocalBlocks([(np.ones((3, 2)), np.ones((3, 1))), (np.ones((4, 2)), np.ones((4, 1)))])
    >>> blocks.total(lambda block: (len(block.X),))
    (7,)
    """

    def __init__(self, parts: Any) -> None:
        self._parts = parts
        self.n_blocks = len(parts)
        self.reading_seconds = self.seconds = 0.0

    def total(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """The sum, one block at a time."""
        started = time.perf_counter()
        result: tuple[Any, ...] = ()
        for i in range(self.n_blocks):
            found = function(self._fetch(i), *arguments)
            result = add(result, found) if result else found
            self.progress.advance(i + 1, self.n_blocks)
        self.seconds += time.perf_counter() - started
        return result

    def first(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """What the first part gives."""
        return function(self._fetch(0), *arguments)

    def _fetch(self, i: int) -> Block:
        started = time.perf_counter()
        X, Y = self._parts[i]
        names = getattr(self._parts, "names", None)
        self.reading_seconds += time.perf_counter() - started
        return Block(X, Y, names[i] if names else f"part {i}")


def as_blocks(X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Blocks | None:
    """The blocks that a `fit` was given, or None if these are arrays.

    Parameters
    ----------
    X : Shards, sequence of parts (X, Y), Dask array or data frame, sequence of delayed parts, or anything else
    y : Dask array or data frame, or None

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.ones((3, 2)), np.ones((3, 1))
    >>> as_blocks(X, Y) is None, len(as_blocks([(X, Y), (X, Y)]))
    (True, 2)
    """
    parts = X if isinstance(X, Sequence) and not isinstance(X, str | bytes | Shards) else ()
    blocks: Blocks
    if _is_dask(X):
        blocks = _on_dask("of_arrays", X, y)
        blocks.columns = Columns(feature_names=column_names(X), label_names=column_names(y))
    elif parts and all(_is_dask(part) for part in parts):
        blocks = _on_dask("of_delayed", _alone(X, y))
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
    return blocks


def feature_blocks(X: MatrixLike | Dataset | Shards) -> Iterator[Any] | None:
    """The features of shards, or of a list of parts (X, Y), block by block; None for anything else."""
    if isinstance(X, Shards):
        return (X.read(i) for i in range(len(X)))
    if isinstance(X, list) and X and _are_parts(X):
        return (part[0] for part in X)
    return None


def column_names(frame: Any) -> list[str] | None:
    """The names of the columns of a data frame, if they are text; None for anything else."""
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


def _is_dask(value: Any) -> bool:
    """Without importing Dask, which may not be there."""
    return type(value).__module__.partition(".")[0] in ("dask", "distributed")


def _on_dask(kind: str, *parts: Any) -> Blocks:
    # Needs this module; and Dask is only imported where its arrays are.
    from rbrl.rows.on_dask import DaskBlocks

    made: Blocks = getattr(DaskBlocks, kind)(*parts)
    return made
