"""`fit` of rows in blocks: files, lists of parts, Dask arrays."""

from collections.abc import Sequence

from rbrl.blocks import Blocks, LocalBlocks
from rbrl.datasets import Shards


def as_blocks(X, y=None, sample_weight=None):
    """The blocks that `fit` was given, or None if these are arrays.

    Parameters
    ----------
    X : Shards, sequence of parts (X, Y), Dask array, sequence of delayed parts, or anything else
    y : Dask array or None
    """
    if _is_dask(X):
        blocks = _dask_blocks().of_arrays(X, y)
    elif _is_sequence(X) and len(X) and all(_is_dask(part) for part in X):
        blocks = _dask_blocks().of_delayed(_alone(X, y))
    elif isinstance(X, Blocks):
        blocks = _alone(X, y)
    elif isinstance(X, Shards) or (_is_sequence(X) and len(X) and all(_is_part(part) for part in X)):
        blocks = LocalBlocks(_alone(X, y))
    else:
        return None
    if sample_weight is not None:
        raise ValueError(
            f"sample_weight goes with arrays; for rows in {len(blocks)} blocks there is none. Repeat rows instead."
        )
    return blocks


def _dask_blocks():
    from rbrl.blocks.on_dask import DaskBlocks

    return DaskBlocks


def _alone(X, y):
    if y is not None:
        raise ValueError(f"Blocks of rows have their labels with them: pass no y. Got y of type {type(y).__name__}.")
    return X


def _is_sequence(X):
    return isinstance(X, Sequence) and not isinstance(X, str | bytes)


def _is_part(part):
    return isinstance(part, tuple) and len(part) == 2 and all(len(getattr(side, "shape", ())) == 2 for side in part)


def _is_dask(value):
    """Without importing Dask, which may not be there."""
    return type(value).__module__.partition(".")[0] in ("dask", "distributed")
