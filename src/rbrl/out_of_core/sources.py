"""Where rows are: a place that sums a function over its blocks, in this process or on the workers of a Dask cluster."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import iadd
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from scipy import sparse

from rbrl._common.extras import import_extra
from rbrl._common.frames import check_same_rows, column_names, fill_masked_entries, label_values
from rbrl._common.progress import Passes
from rbrl._common.typing import FloatArray, IntArray, Matrix, MatrixLike, issparse
from rbrl.datasets import Columns, Dataset, Shards
from rbrl.targets import encode_matrix

# From a block, and other arguments, to a tuple of what can be added: numbers, arrays, lists.
Summand: TypeAlias = Callable[..., tuple[Any, ...]]
# Results of this many blocks are added on one worker.
BRANCHES = 8


# Scores of this many entries at a time stay in the processor's cache.
SLICE_CELLS = 2**18


class Block(NamedTuple):
    """Some rows: features, labels as the user codes them, what to call them in an error, and weights of rows or entries.

    Attributes
    ----------
    X : array or sparse matrix (n_rows, n_features)
    Y : array or sparse matrix (n_rows, n_labels)
    name : str
    weights : array (n_rows,) or (n_rows, n_labels), or None

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import Block
    >>> block = Block(np.eye(3), np.array([[1.0], [0.0], [np.nan]]), "part 1")
    >>> labels, weights = block.labels()
    >>> labels.ravel().tolist(), weights is None
    ([1, -1, 0], True)
    """

    X: Any
    Y: Any
    name: str
    weights: Any = None

    def labels(self, rows: Any = slice(None)) -> tuple[IntArray, FloatArray | None]:
        """Labels in {-1, 0, +1}, with 0 where nobody looked or the weight is 0; and the weights.

        Parameters
        ----------
        rows : slice or array, default=slice(None)

        Returns
        -------
        Y : array (n_rows, n_labels)
        weights : array (n_rows,) or (n_rows, n_labels), or None
        """
        Y = encode_matrix(self.Y[rows])
        if self.weights is None:
            return Y, None
        weights = self.weights[rows]
        weights = np.asarray(weights.toarray() if issparse(weights) else weights, dtype=np.float64)
        return np.where((weights if weights.ndim == 2 else weights[:, None]) > 0, Y, np.int8(0)), weights

    def slices(self) -> Iterator[tuple[Matrix, IntArray, FloatArray | None]]:
        """Features, labels and weights, as of `labels`, of a few rows at a time.

        Yields
        ------
        X, Y, weights
        """
        X = sparse.csr_array(self.X) if issparse(self.X) else np.asarray(self.X)
        step = max(1, SLICE_CELLS // max(self.Y.shape[1], 1))
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            yield X[rows], *self.labels(rows)


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
    """A sequence of parts, each fetched when its turn comes: `rbrl.datasets.Shards`, or a list.

    Parameters
    ----------
    parts : sequence of pairs (X, Y), or of triples with weights of rows (n_rows,) or entries (n_rows, n_labels)

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
        part = self._parts[i]
        names = getattr(self._parts, "names", None)
        self.reading_seconds += time.perf_counter() - started
        return _block(part, names[i] if names else f"part {i}")


class DaskBlocks(Blocks):
    """Blocks kept by Dask: on a cluster if a `distributed.Client` is in use, else by Dask's threads in this process.

    Every pass is a graph of pure tasks of blocks and arguments, which the scheduler holds; so what is lost with a worker is
    computed again on another, and the sum is the same: its order is that of the tree, not of the workers.

    Parameters
    ----------
    parts : sequence of delayed or future pairs (X, Y), or triples (X, Y, weights)
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._dask = import_extra("dask", "dask", "Fitting Dask arrays")
        named = self._dask.delayed(_block, pure=False)
        blocks = [named(part, f"block {i} of {len(parts)}") for i, part in enumerate(parts)]
        self._blocks = self._dask.persist(*blocks)
        self.n_blocks = len(blocks)

    @classmethod
    def of_arrays(cls, X: Any, y: Any, sample_weight: Any = None, label_mask: Any = None) -> Self:
        """Blocks of Dask arrays or data frames with the same rows in each block.

        Parameters
        ----------
        X : Dask array or data frame (n_samples, n_features)
        y : Dask array or data frame (n_samples, n_labels)
        sample_weight : Dask array (n_samples,) or (n_samples, n_labels), default=None
        label_mask : Dask array (n_samples, n_labels), default=None
            True where a label is known: a weight of 0 elsewhere.

        Returns
        -------
        DaskBlocks
        """
        weights = sample_weight
        if label_mask is not None:
            mask = _of_dask("label_mask", label_mask).astype(np.float64)
            weights = mask if weights is None else mask * (weights[:, None] if weights.ndim == 1 else weights)
        sides = {"X": X, "y": y} if weights is None else {"X": X, "y": y, "sample_weight": weights}
        arrays = {name: _of_dask(name, side) for name, side in sides.items()}
        if any(len(arrays[name].shape) != 2 for name in ("X", "y")):
            raise ValueError(
                "X and y must be Dask arrays or data frames of two dimensions. "
                f"Got shapes {arrays['X'].shape} and {arrays['y'].shape}."
            )
        whole = [
            side.rechunk({1: -1}) if side.ndim == 2 and side.numblocks[1] > 1 else side for side in arrays.values()
        ]
        for name, side in zip(list(arrays)[1:], whole[1:]):
            _check_same_rows(name, whole[0].chunks[0], side.chunks[0])
        return cls(list(zip(*(side.to_delayed().ravel() for side in whole), strict=True)))

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


def _block(part: Any, name: str) -> Block:
    """The block of a part (X, Y) or (X, Y, weights), its labels in the form that all labels have."""
    X, Y, *weights = part
    check_same_rows(X=X, Y=Y)
    return Block(fill_masked_entries(X), label_values(Y).values, name, *weights)


def _of_dask(name: str, side: Any) -> Any:
    """A Dask array, of one or of a data frame."""
    if not hasattr(side, "to_delayed"):
        raise ValueError(
            f"With X of Dask, {name} must be so too. Got {type(side).__name__}; dask.array.from_array({name}, chunks=...) "
            f"makes an array, dask.dataframe.from_pandas({name}, npartitions=...) a data frame."
        )
    return side.to_dask_array() if hasattr(side, "to_dask_array") else side


def _check_same_rows(name: str, of_X: tuple[float, ...], of_side: tuple[float, ...]) -> None:
    """Refuse blocks of `name` whose numbers of rows are not those of X; NaN is a number that a data frame does not know."""
    if len(of_X) == len(of_side) and all(a == b or np.isnan([a, b]).any() for a, b in zip(of_X, of_side)):
        return
    alike = f"cut both alike, data frames with {name}.repartition(divisions=X.divisions)"
    way_out = alike if np.isnan([*of_X, *of_side]).any() else f"{name}.rechunk({{0: X.chunks[0]}}) would do"
    shown = (f"{', '.join(map(str, side[:4]))}{', …' if len(side) > 4 else ''}" for side in (of_X, of_side))
    raise ValueError(f"X and {name} must have the same rows in each block. Got {' and '.join(shown)} rows; {way_out}.")


def _joined(results: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Results of other tasks are theirs: what is added to is a copy."""
    return reduce(_add, results[1:], tuple(value.copy() if hasattr(value, "copy") else value for value in results[0]))


def as_blocks(X: Any, y: Any = None, sample_weight: Any = None, label_mask: Any = None) -> Blocks | None:
    """The blocks that a `fit` was given, or None if these are arrays.

    Parameters
    ----------
    X : Shards, sequence of parts, Dask array or data frame, or anything else
        Parts are (X, Y) or (X, Y, weights), or delayed ones.
    y : Dask array or data frame, or None
    sample_weight, label_mask : Dask arrays, or None
        Refused with parts, which have their weights with them.

    Returns
    -------
    Blocks or None

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.out_of_core import as_blocks
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
        blocks = DaskBlocks.of_arrays(X, y, sample_weight, label_mask)
        sample_weight = label_mask = None
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
    for name, given in {"sample_weight": sample_weight, "label_mask": label_mask}.items():
        if given is not None:
            raise ValueError(
                f"{name} goes with arrays. Rows in {len(blocks)} blocks have their weights with them: pass parts (X, Y, "
                f"weights), with a weight per row or per label. Got {name} of type {type(given).__name__}; a label that is "
                "not known has weight 0, or is NaN in Y."
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


def _are_parts(parts: Sequence[Any]) -> bool:
    """Whether these are all rows with their labels, (X, Y), or (X, Y, weights)."""
    tuples = all(isinstance(part, tuple) and len(part) in (2, 3) for part in parts)
    return tuples and all(len(getattr(side, "shape", ())) == 2 for part in parts for side in part[:2])


def _alone(X: Any, y: Any) -> Any:
    if y is not None:
        raise ValueError(f"Blocks of rows have their labels with them: pass no y. Got y of type {type(y).__name__}.")
    return X
