"""Measure the gain of the nuclear norm of RBF models: ``python -m studies.benchmarks.nuclear.kernels``.

RBRL_DATA names the folder of data sets. Every fit is written to ``kernels.csv.gz`` at once, and the
same command continues where it was interrupted; ``--again`` measures everything anew. The page is
``kernels.md``.
"""

import argparse
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier, __version__, evaluate
from studies.benchmarks.nuclear.__main__ import CHOOSING, METRICS, REPORTING
from studies.benchmarks.problems import dataset, markdown, read_rows, write_rows

RESULTS = Path(__file__).with_suffix(".csv.gz")
SEEDS = (0, 1, 2)
MOST_KERNEL_ROWS = 1000
WEIGHTS = (0.1, 1.0, 10.0)
KINDS = ("coefficients", "function")
NO_NORM = ("coefficients", 0.0)
MODELS = (NO_NORM, *((kind, weight) for kind in KINDS for weight in WEIGHTS))
KEY = ("data", "seed", "low_rank", "nuclear")
COLUMNS = (*KEY, *METRICS, "evaluations", "gap", "rank")
# Larger is better for average precision and micro-F1, smaller for the two losses.
SIGNS = np.array([1, -1, 1, -1])
# Bounds of the two rules: average precision of each set, mean of each metric over the sets.
BOUND_OF_SET = 0.001
BOUND_OF_MEAN = 0.002
# Sets on which rule 1 failed at three splits, and how many splits were looked at afterwards.
MORE_SPLITS = {"flags": 100, "bibtex": 10}
TEXT = """# The nuclear norm of kernel models

Command: `python -m studies.benchmarks.nuclear.kernels`, rbrl {version}, {date}, one thread.

`RBRLClassifier(kernel="rbf")` on the data sets of `studies.benchmarks.nuclear`: three 60/40 splits, and the
first 1,000 rows of each training part at most, so that the study is quick. Dense sets are
standardised, sparse sets are used as they are. All parameters except `nuclear` and `low_rank` have
their defaults; with `nuclear=0`, `low_rank` has no effect. Every difference is paired: same set,
same splits.

The rules were written down before the run.

1. `nuclear="auto"` becomes 0 for kernels if, from `nuclear=0.1` to `nuclear=0`, the average
   precision changes by less than .001 on every set, and the mean of no metric changes by more than
   .002.
2. `low_rank="function"` becomes the default if, at each of `nuclear=0.1`, 1 and 10, its average
   precision is not lower than that of "coefficients" by .001 or more on any set, and the mean of no
   metric is worse by more than .002."""

AFTERWARDS = """More splits of the sets that broke rule 1 were looked at afterwards. The table has
the change of the average precision from `nuclear=0.1` to `nuclear=0`; above zero, 0 is better.
Splits of one set share rows, so that the standard error is too small. The default became
`nuclear=0` after this, although rule 1 as it was written does not hold: over more splits, the loss
on flags is below .001, and the set that changes by more, bibtex, is better without the norm.
`low_rank` keeps its default."""


def load(name, seed):
    """Return the training rows, their labels, the test rows and their labels."""
    (X, Y), (X_test, Y_test) = dataset(name).split(seed)
    X = X[:MOST_KERNEL_ROWS]
    if not sparse.issparse(X):
        scaler = StandardScaler().fit(X)
        X = scaler.transform(X)
        X_test = scaler.transform(X_test)
    return X, Y[:MOST_KERNEL_ROWS], X_test, Y_test


def measure(name, seed, low_rank, nuclear, rows):
    """Fit one model and return its row of the table."""
    X, Y, X_test, Y_test = rows
    model = RBRLClassifier(kernel="rbf", low_rank=low_rank, nuclear=nuclear).fit(X, Y)
    values = evaluate(Y_test, model.predict(X_test), model.decision_function(X_test), METRICS)
    facts = {"evaluations": model.n_evaluations_, "gap": model.gap_, "rank": model.rank_}
    row = dict(zip(KEY, (name, seed, low_rank, nuclear)))
    return row | {metric: values[metric] for metric in METRICS} | facts


def run_all(names, seeds=SEEDS, models=MODELS):
    """Measure every fit that the results file does not have."""
    known = read_rows(RESULTS, KEY)
    for name in names:
        for seed in seeds:
            wanted = [model for model in models if (name, str(seed), *map(str, model)) not in known]
            rows = load(name, seed) if wanted else None
            for model in wanted:
                write_rows(RESULTS, COLUMNS, [measure(name, seed, *model, rows)])
        print(name, flush=True)


def means(names, columns):
    """Return the means over the splits, by model: arrays (n_sets, n_columns)."""
    known = read_rows(RESULTS, KEY)
    found = {}
    for model in MODELS:
        keys = [[(name, str(seed), *map(str, model)) for seed in SEEDS] for name in names]
        values = [[[float(known[key][c]) for c in columns] for key in of_set] for of_set in keys]
        found[model] = np.mean(values, axis=1)
    return found


def change_tables(names, found):
    """Return a table of differences from nuclear=0, and one of "function" from "coefficients"."""
    none = found[NO_NORM]
    changes = {model: found[model] - none for model in MODELS[1:]}
    gains = {w: found["function", w] - found["coefficients", w] for w in WEIGHTS}
    n = len(CHOOSING)
    groups = {name: slice(i, i + 1) for i, name in enumerate(names)}
    groups |= {"**mean, choosing**": slice(0, n), "**mean, reporting**": slice(n, None)}
    groups |= {"**mean, all**": slice(None)}
    first = []
    second = []
    for title, places in groups.items():
        base = none[places].mean(axis=0)
        line = {"data set": title, "AP": f"{base[0]:.4f}", "micro-F1": f"{base[2]:.4f}"}
        weak = changes["coefficients", 0.1][places].mean(axis=0)
        line |= {f".1: {metric}": f"{value:+.5f}" for metric, value in zip(METRICS, weak)}
        for kind, weight in MODELS[2:]:
            value = changes[kind, weight][places, 0].mean()
            line[f"{kind} {weight:g}: AP"] = f"{value:+.4f}"
        first.append(line)
        line = {"data set": title}
        for weight, gain in gains.items():
            values = gain[places].mean(axis=0)
            line |= {f"{weight:g}: {metric}": f"{v:+.4f}" for metric, v in zip(METRICS, values)}
        second.append(line)
    return first, second


def decide(names, found):
    """Apply both rules and return the decisions as text."""
    paragraphs = [decide_on_zero(names, found[NO_NORM] - found["coefficients", 0.1])]
    for weight in WEIGHTS:
        gain = (found["function", weight] - found["coefficients", weight]) * SIGNS
        paragraphs.append(decide_on_function(names, weight, gain))
    return "\n\n".join(paragraphs)


def decide_on_zero(names, change):
    """Apply rule 1 to the changes (n_sets, n_metrics) from nuclear=0.1 to nuclear=0."""
    large = np.abs(change[:, 0]) >= BOUND_OF_SET
    of_mean = np.abs(change.mean(axis=0))
    holds = not large.any() and of_mean.max() <= BOUND_OF_MEAN
    return (
        f"Rule 1 {'holds' if holds else 'does not hold'}. From `nuclear=0.1` to `nuclear=0`, the\n"
        f"average precision changes by .001 or more on {listed(names, change[:, 0], large)}. The\n"
        f"largest change of a mean is {of_mean.max():.5f} ({METRICS[of_mean.argmax()]})."
    )


def decide_on_function(names, weight, gain):
    """Apply rule 2 to the gains (n_sets, n_metrics) of "function", for which more is better."""
    worse = gain[:, 0] <= -BOUND_OF_SET
    better = gain[:, 0] >= BOUND_OF_SET
    of_mean = gain.mean(axis=0)
    holds = not worse.any() and of_mean.min() >= -BOUND_OF_MEAN
    return (
        f"Rule 2 {'holds' if holds else 'does not hold'} at `nuclear={weight:g}`. The average\n"
        f'precision of "function" is lower by .001 or more on {listed(names, gain[:, 0], worse)}.\n'
        f"It is higher by .001 or more on {listed(names, gain[:, 0], better)}. The mean gain is\n"
        f"{of_mean[0]:+.5f}. The smallest mean gain of a metric is {of_mean.min():+.5f} "
        f"({METRICS[of_mean.argmin()]})."
    )


def listed(names, values, chosen):
    """Return the number of chosen sets, and their names with their values."""
    found = [f"{name} {value:+.4f}" for name, value, is_in in zip(names, values, chosen) if is_in]
    return f"{len(found)} of {len(names)} sets" + (f" ({', '.join(found)})" if found else "")


def look_again():
    """Return a table of rule 1 over more splits, of the sets on which it failed."""
    lines = []
    models = (("coefficients", 0.1), NO_NORM)
    for name, count in MORE_SPLITS.items():
        run_all([name], range(count), models)
        known = read_rows(RESULTS, KEY)
        keys = [[(name, str(seed), *map(str, model)) for model in models] for seed in range(count)]
        values = [[float(known[place]["average_precision"]) for place in pair] for pair in keys]
        change = np.diff(values, axis=1).ravel()
        line = {"data set": name, "splits": count, "change of AP": f"{change.mean():+.5f}"}
        lines.append(line | {"standard error": f"{change.std(ddof=1) / np.sqrt(count):.5f}"})
    return lines


def costs(names):
    """Return a table of evaluations, ranks and gaps, by model."""
    lines = []
    for (kind, weight), values in means(names, ("evaluations", "rank", "gap")).items():
        line = {"low_rank": "" if weight == 0 else kind, "nuclear": f"{weight:g}"}
        line |= {"evaluations, mean": f"{values[:, 0].mean():.1f}"}
        line |= {"rank, mean": f"{values[:, 1].mean():.1f}"}
        lines.append(line | {"largest gap of a set": f"{values[:, 2].max():.0e}"})
    return lines


def main():
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.nuclear.kernels")
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    if parser.parse_args().again:
        RESULTS.unlink(missing_ok=True)
    names = [*CHOOSING, *REPORTING]
    with threadpool_limits(1):
        run_all(names)
        again = look_again()
    found = means(names, METRICS)
    first, second = change_tables(names, found)
    text = TEXT.format(version=__version__, date=f"{datetime.now(UTC):%Y-%m-%d}")
    parts = [text, "## What the rules say", decide(names, found), "## Changes from `nuclear=0`"]
    parts[3:3] = [AFTERWARDS, markdown(again)]
    parts.append('AP is the average precision. ".1" is `nuclear=0.1` on the coefficients.')
    parts.append(markdown(first))
    parts += ['## "function" less "coefficients", by `nuclear`', markdown(second)]
    parts += ["## Cost, mean over all sets", markdown(costs(names))]
    page = "\n\n".join(parts) + "\n"
    RESULTS.with_suffix(".md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
