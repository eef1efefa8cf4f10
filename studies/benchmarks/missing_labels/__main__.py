"""Measure the cost of missing labels: ``python -m studies.benchmarks.missing_labels``, with RBRL_DATA.

Every row is written to ``results.csv`` as soon as it is known; the same command goes on where it was interrupted.
"""

import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier
from rbrl.metrics import average_precision
from studies.benchmarks.problems import dataset, read_rows, write_results, write_rows

DATA = ("emotions", "yeast", "scene", "image", "flags", "enron", "arts", "slashdot")
SHARES = (0.0, 0.2, 0.5, 0.8)
SEEDS = (0, 1)
COLUMNS = ("data", "hidden", "seed", "masked", "zeros", "one_vs_rest", "gap")
RESULTS = Path(__file__).with_name("results.csv")
TEXT = """Average precision on the test rows, means over %d splits (60/40) and masks, of RBRLClassifier() with a share of the
training labels hidden at random: NaN ("masked"), or called irrelevant ("zeros"); and of one-vs-rest LogisticRegression()
learned for each label from the rows where it is known. Dense features standardised. "gap" is the largest certified one of
the masked fits (tol = 1e-4). Masked is better than zeros in %d of %d cells with hidden labels, and than one-vs-rest in
%d."""


def parts(name, seed):
    (X, Y), (X_test, Y_test) = dataset(name).split(seed)
    if not sparse.issparse(X):
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X, np.asarray(Y, dtype=float), X_test, np.asarray(Y_test)


def one_vs_rest(X, Y, X_test):
    """Scores of a logistic regression per label, from the rows where it is known; a constant where one class is."""
    scores = np.empty((X_test.shape[0], Y.shape[1]))
    for j, y in enumerate(Y.T):
        known = np.flatnonzero(~np.isnan(y))
        classes = np.unique(y[known])
        if len(classes) < 2:
            scores[:, j] = 10.0 * (2 * classes[0] - 1 if len(classes) else -1)
        else:
            scores[:, j] = LogisticRegression(max_iter=1000).fit(X[known], y[known]).decision_function(X_test)
    return scores


def row(name, share, seed):
    X, Y, X_test, Y_test = parts(name, seed)
    hidden = np.random.default_rng(seed).random(Y.shape) < share
    labels = np.where(hidden, np.nan, Y)
    masked, zeros = RBRLClassifier().fit(X, labels), RBRLClassifier().fit(X, np.nan_to_num(labels))
    found = [model.decision_function(X_test) for model in (masked, zeros)] + [one_vs_rest(X, labels, X_test)]
    values = [f"{average_precision(Y_test, scores):.4f}" for scores in found]
    return dict(zip(COLUMNS, (name, f"{share:g}", str(seed), *values, f"{masked.gap_:.1e}"), strict=True))


def main():
    warnings.simplefilter("ignore")
    done = read_rows(RESULTS, COLUMNS[:3])
    for name in DATA:
        for share in SHARES:
            for seed in SEEDS:
                if (name, f"{share:g}", str(seed)) not in done:
                    found = row(name, share, seed)
                    print(found, flush=True)
                    write_rows(RESULTS, COLUMNS, [found])
    rows = list(read_rows(RESULTS, COLUMNS[:3]).values())
    table = [summary(name, share, rows) for name in DATA for share in SHARES]
    cells = [r for r in table if r["hidden"] != "0"]
    wins = [sum(float(r["masked"]) > float(r[other]) for r in cells) for other in ("zeros", "one_vs_rest")]
    text = TEXT % (len(SEEDS), wins[0], len(cells), wins[1])
    write_results(__file__, "Missing labels", text, table)


def summary(name, share, rows):
    cell = [r for r in rows if (r["data"], r["hidden"]) == (name, f"{share:g}")]
    means = {
        method: f"{np.mean([float(r[method]) for r in cell]):.3f}" for method in ("masked", "zeros", "one_vs_rest")
    }
    return {"data": name, "hidden": f"{share:g}"} | means | {"gap": f"{max(float(r['gap']) for r in cell):.0e}"}


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
