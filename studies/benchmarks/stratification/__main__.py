"""Compare stratified folds with the `iterative-stratification` package and with random folds.

Run ``python -m studies.benchmarks.stratification``; RBRL_DATA names the folder with arts.npz. Rewrites results.md.
"""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from iterstrat.ml_stratifiers import MultilabelStratifiedKFold
from sklearn.model_selection import KFold

from rbrl.splits import IterativeStratifiedKFold

SEEDS = range(10)
METHODS = {
    "rbrl": lambda k, seed: IterativeStratifiedKFold(k, random_state=seed),
    "iterative-stratification": lambda k, seed: MultilabelStratifiedKFold(k, shuffle=True, random_state=seed),
    "random": lambda k, seed: KFold(k, shuffle=True, random_state=seed),
}


def long_tail(n_samples=50_000, n_labels=500, seed=0):
    """Random labels whose frequency falls with their number, about 19 per sample."""
    frequency = np.minimum(1.0, 1.5 / np.arange(1, n_labels + 1) ** 0.8)
    return (np.random.default_rng(seed).random((n_samples, n_labels)) < frequency).astype(np.int8)


def measure(splitter, Y):
    """Mean |label frequency in a fold - overall|, mean |fold size - n/k|, and seconds."""
    start = time.perf_counter()
    folds = [test for _, test in splitter.split(np.zeros((len(Y), 1)), Y)]
    seconds = time.perf_counter() - start
    label = np.mean([np.abs(Y[fold].mean(axis=0) - Y.mean(axis=0)).mean() for fold in folds])
    size = np.mean([abs(len(fold) - len(Y) / len(folds)) for fold in folds])
    return label, size, seconds


def row(name, Y, k, method, seeds):
    """One line of the table: means over seeds."""
    label, size, seconds = np.mean([measure(METHODS[method](k, seed), Y) for seed in seeds], axis=0)
    return f"| {name} | {k} | {method} | {label:.5f} | {size:.1f} | {seconds:.3f} |"


def main():
    """Measure, and rewrite the table."""
    arts = (np.load(Path(os.environ["RBRL_DATA"]) / "arts.npz")["Y"] > 0).astype(np.int8)
    big = long_tail()
    lines = [row("arts", arts, k, method, SEEDS) for k in (5, 10) for method in METHODS]
    lines += [row("arts, seed 0 only", arts, 5, method, [0]) for method in METHODS]
    lines += [row("50,000 x 500", big, 10, method, [0]) for method in METHODS]
    text = f"""# Stratified folds

Command: `python -m studies.benchmarks.stratification`, {datetime.now(UTC):%Y-%m-%d}, NumPy {np.__version__}, one process.

Label deviation: mean over folds and labels of |label frequency in the fold - overall|. Size deviation: mean
|fold size - n/k|, in samples. Means over {len(SEEDS)} seeds on arts, one seed on the large random set.

| data | folds | method | label deviation | size deviation | seconds |
|---|---|---|---|---|---|
"""
    (Path(__file__).parent / "results.md").write_text(text + "\n".join(lines) + "\n")
    print(text + "\n".join(lines))


if __name__ == "__main__":
    main()
