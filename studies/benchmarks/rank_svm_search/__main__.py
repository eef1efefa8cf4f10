"""Time the C grid x 5 folds of the ranking SVMs, on 60 % parts of scene (RBF) and arts (linear).

Run ``python -m studies.benchmarks.rank_svm_search`` with RBRL_DATA set: two processes, one BLAS thread each; it rewrites
results.md beside this file. ``--quick`` runs one fold and three values of C and writes nothing.
"""

import os
import sys
import time
import warnings
from datetime import date
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rbrl import metrics
from rbrl.datasets import load
from rbrl.ranking_svm.estimators import CalibratedRankSVM, RankSVM, RankSVMz

CS = tuple(10.0**k for k in range(-4, 5))
MODELS = (RankSVM, RankSVMz, CalibratedRankSVM)
DATA = {"scene": "rbf", "arts": "linear"}


def part(name):
    """The training part of the first split; scene standardised on it."""
    train, _ = load(name).split(seed=0)
    X = StandardScaler().fit_transform(train.X) if DATA[name] == "rbf" else train.X
    return X, train.Y


def one_path(name, model, fold, Cs):
    """All C on one fold: seconds, gaps, ranking losses on the part left out."""
    X, Y = part(name)
    learn, held_out = list(KFold(5, shuffle=True, random_state=0).split(X))[fold]
    wall, processor = time.perf_counter(), time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model(kernel=DATA[name]).path(X[learn], Y[learn], Cs)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    losses = [metrics.evaluate(Y[held_out], m.predict(X[held_out]), m.decision_function(X[held_out])) for m in fitted]
    return name, model.__name__, wall, processor, [m.gap_ for m in fitted], [x["ranking_loss"] for x in losses]


def table(results, Cs):
    """One line per data set and method."""
    for name in DATA:
        for model in MODELS:
            rows = [row[2:] for row in results if row[:2] == (name, model.__name__)]
            wall, processor = (sum(row[k] for row in rows) for k in (0, 1))
            gaps, losses = (np.array([row[k] for row in rows]) for k in (2, 3))
            best = losses.mean(axis=0).argmin()
            yield (
                f"| {name} | {model.__name__} | {wall:.0f} | {processor:.0f} | {gaps.max():.1e} | "
                f"{np.count_nonzero(gaps <= 1e-3)} of {gaps.size} | {Cs[best]:g} | {losses.mean(axis=0)[best]:.4f} |"
            )


def main(quick):
    Cs, folds = (CS[::4], range(1)) if quick else (CS, range(5))
    jobs = [(name, model, fold, Cs) for name in reversed(DATA) for fold in folds for model in MODELS]
    started = time.perf_counter()
    results = []
    for row in Parallel(n_jobs=2, return_as="generator_unordered")(delayed(one_path)(*job) for job in jobs):
        results.append(row)
        print(
            f"{len(results)} of {len(jobs)}: {row[0]} {row[1]} {row[2]:.0f} s, gap {max(row[4]):.1e}", file=sys.stderr
        )
    total = time.perf_counter() - started
    lines = "\n".join(table(results, Cs))
    text = f"""# Searching C for the ranking SVMs

{date.today()}: `python -m studies.benchmarks.rank_svm_search`, {len(Cs)} values of C from {Cs[0]:g} to {Cs[-1]:g} x
{len(folds)} folds, on 60 % parts of scene (RBF, gamma = 1/m) and arts (linear, all 26 labels); two processes of one thread
on {os.cpu_count()} cores, mean load {os.getloadavg()[2]:.1f} at the end, other work included. Default parameters: relative
duality gap 1e-3; Rank-SVM and Rank-SVMz with free biases, calibrated Rank-SVM with absorbed ones.

**Total: {total / 60:.1f} minutes** of wall time; {sum(row[3] for row in results) / 60:.1f} minutes of processor time.

| data | method | wall s | processor s | largest gap | certified | best C | its ranking loss |
|---|---|---|---|---|---|---|---|
{lines}
"""
    if not quick:
        Path(__file__).with_name("results.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main("--quick" in sys.argv)
