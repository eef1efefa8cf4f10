"""
Rows that do not fit in memory
==============================

The loss is a sum over rows, so a fit can read them file by file, with one file in memory at a time. Model and certificate
are the same as in memory; only the memory use differs.
"""

import tempfile
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

from rbrl import RBRLClassifier
from rbrl.datasets import open_shards, write_shards
from rbrl.experiments.figures import use_style

# %%
# Batches become files
# --------------------
# ``write_shards`` takes an iterator of batches, so the rows are never in memory together. They may also come from one
# large file of any format.

N_FEATURES, N_LABELS, BATCH = 50, 6, 2000
directions = np.random.default_rng(0).normal(size=(N_FEATURES, N_LABELS))


def batches(n_rows):
    for seed in range(n_rows // BATCH):
        random = np.random.default_rng(seed)
        X = random.normal(size=(BATCH, N_FEATURES))
        yield X, (X @ directions + 8 * random.normal(size=(BATCH, N_LABELS)) > 4).astype(np.int8)


# %%
# Fit from files and from memory
# ------------------------------
# ``open_shards`` reads nothing yet. ``fit`` reads the files until the certificate reaches the tolerance.


def peak_megabytes(task):
    """Return the result of a task, and the peak memory during it."""
    tracemalloc.start()
    value = task()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return value, peak


def fit_files(folder):
    return RBRLClassifier(ridge=100).fit(open_shards(folder))


def fit_memory(folder):
    blocks = list(open_shards(folder))
    X, Y = (np.concatenate([block[part] for block in blocks]) for part in range(2))
    return RBRLClassifier(ridge=100).fit(X, Y)


SIZES = (10_000, 20_000, 30_000, 40_000)
memory = {"in memory": [], "from files": []}
for n_rows in SIZES:
    with tempfile.TemporaryDirectory() as folder:
        write_shards(batches(n_rows), folder, rows_per_shard=BATCH)
        whole, peak_whole = peak_megabytes(lambda: fit_memory(folder))
        parts, peak_parts = peak_megabytes(lambda: fit_files(folder))
    memory["in memory"].append(peak_whole)
    memory["from files"].append(peak_parts)
    apart = abs(parts.objective_ / whole.objective_ - 1)
    print(f"{n_rows} rows: both certified {max(parts.gap_, whole.gap_) <= 1e-4}, "
          f"objectives apart by less than the gap {apart <= 1e-4}")  # fmt: skip

# %%
# Memory against rows
# -------------------
# With files, memory holds one file, the weights, and a sample of rows for the solver. More rows need no more memory.

with use_style():
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for (name, values), style in zip(memory.items(), ("o-", "s-")):
        axes.plot(np.array(SIZES) / 1000, values, style, ms=5, label=name)
        axes.annotate(name, (SIZES[-1] / 1000, values[-1]), xytext=(-4, 8), textcoords="offset points", ha="right",
                      color=axes.lines[-1].get_color())  # fmt: skip
    axes.set(xlabel="thousand rows", ylabel="peak megabytes", xlim=(0, None), ylim=(0, None))
    axes.set_title("Memory of a fit")
plt.show()
