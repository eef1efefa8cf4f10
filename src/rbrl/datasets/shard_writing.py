"""`write_shards`: rows from anywhere into shards that are read fast."""

from pathlib import Path

import numpy as np
from scipy import sparse

from rbrl._validation import check_number
from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats.npz import write_npz
from rbrl.datasets.parts import load_parts
from rbrl.datasets.shards import Shards

ROWS_PER_SHARD = 50_000


def write_shards(source, folder, rows_per_shard=ROWS_PER_SHARD, labels=None, **options):
    """Write rows as NPZ files part-00000.npz, part-00001.npz, …, uncompressed, with bounded memory.

    Parameters
    ----------
    source : Dataset, (X, Y), path of a data file, Shards, or iterable of (X, Y)
        CSV, svmlight, ARFF and Parquet files are read block by block; NPZ and MATLAB files whole. Of an iterable, one part
        and one shard are in memory at a time.
    folder : path
        Made if it is not there; it must not hold shards of other data.
    rows_per_shard : int, default=50000
        The last shard may have fewer.
    labels, **options
        Of a file: as for :func:`load_file`.

    Returns
    -------
    Shards
    """
    check_number("write_shards", "rows_per_shard", rows_per_shard, low=1, integer=True)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    present = next(iter(sorted(folder.glob("part-*.npz"))), None)
    if present is not None:
        raise FileExistsError(
            f"{folder} holds shards already, such as {present.name}: name another folder, or empty it"
        )
    paths = []
    for X, Y, names in _regrouped(_parts(source, rows_per_shard, labels, options), rows_per_shard):
        path = folder / f"part-{len(paths):05d}.npz"
        write_npz(Dataset(X, Y, *names), path, compressed=False)
        paths.append(path)
    if not paths:
        raise ValueError(f"There are no rows to write to {folder}: the source is empty.")
    return Shards(paths)


def _parts(source, rows, labels, options):
    """Yield (X, Y, names of columns)."""
    if isinstance(source, str | Path):
        for dataset in load_parts(source, labels, rows=rows, **options):
            yield dataset.X, dataset.Y, (dataset.feature_names, dataset.label_names)
    elif isinstance(source, Shards):
        for i in range(len(source)):
            dataset = source.read(i)
            yield dataset.X, dataset.Y, (dataset.feature_names, dataset.label_names)
    elif isinstance(source, Dataset):
        yield source.X, source.Y, (source.feature_names, source.label_names)
    elif isinstance(source, tuple) and len(source) == 2 and getattr(source[0], "ndim", 0) == 2:
        yield *source, (None, None)
    else:
        for X, Y in source:
            yield X, Y, (None, None)


def _regrouped(parts, rows):
    """Yield parts of `rows` rows each, the last one perhaps smaller."""
    kept: list = []
    n_kept = 0
    for X, Y, names in parts:
        start = 0
        while start < X.shape[0]:
            stop = min(X.shape[0], start + rows - n_kept)
            kept.append((X[start:stop], Y[start:stop]))
            n_kept, start = n_kept + stop - start, stop
            if n_kept == rows:
                yield *_stacked(kept), names
                kept, n_kept = [], 0
    if kept:
        yield *_stacked(kept), names


def _stacked(parts):
    if len(parts) == 1:
        return parts[0]
    return tuple((sparse.vstack if sparse.issparse(side[0]) else np.vstack)(side) for side in zip(*parts))
