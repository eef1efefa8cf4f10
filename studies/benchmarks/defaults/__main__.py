"""Are the defaults good without tuning? ``python -m studies.benchmarks.defaults [--table A|B|C]``, with RBRL_DATA.

Every row is written to ``results.csv.gz`` as soon as it is known; the same command goes on where it was interrupted, and
``--again`` forgets the table. ``results.md`` is written from what is there, and says what is missing.
"""

import argparse
import itertools
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier
from studies.benchmarks.defaults import models, page
from studies.benchmarks.defaults.protocol import METRICS, SEEDS, TABLES, grid, rows_of
from studies.benchmarks.problems import read_rows, write_rows

COLUMNS = (
    "table", "data", "seed", "model", *METRICS, "bare_f1_micro", "bare_hamming_loss", "seconds", "fit_seconds", "note",
)  # fmt: skip
SINGLE = {
    "A": {
        "defaults": models.defaults,
        "logistic regression": models.logistic,
        # liblinear, often the faster one, penalises the intercept, lbfgs does not: neither is better on all data sets.
        "lbfgs": lambda rows: models.logistic(rows, "lbfgs"),
    },
    "B": {"defaults": lambda rows: models.defaults(rows, "rbf"), "SVC": models.svc},
}
FITS = {"first defaults": models.FIRST, "defaults": {}}
POINTS = [models.point(*each) for each in grid()]


def names_of(letter):
    """The models of a table."""
    return list(SINGLE[letter]) if letter in SINGLE else [*FITS, *POINTS]


def found(letter, rows, missing):
    """(model, facts) of the models that are missing."""
    if letter in SINGLE:
        for model in missing:
            yield model, SINGLE[letter][model](rows)
        return
    for model in FITS:
        if model in missing:
            yield model, models.fitted(rows, **FITS[model])
    # A point starts from the one before it, so that all of them are computed, or none.
    if set(missing) & set(POINTS):
        yield from ((model, facts) for model, facts in models.grid_points(rows) if model in missing)


def run(letter, file):
    known = read_rows(file, COLUMNS[:4])
    table = TABLES[letter]
    # All data sets with the first seed come first: what is interrupted is still balanced.
    for seed, name in itertools.product(SEEDS, table.data):
        missing = [model for model in names_of(letter) if (letter, name, str(seed), model) not in known]
        if not missing:
            continue
        faster = known.get((letter, name, str(seed), "logistic regression"), {"note": ""})
        if missing == ["lbfgs"] and faster["note"].endswith("lbfgs"):
            write_rows(file, COLUMNS, [faster | {"model": "lbfgs"}])
            continue
        for model, facts in found(letter, rows_of(table, name, seed), missing):
            row = dict.fromkeys(COLUMNS, "") | {"table": letter, "data": name, "seed": seed, "model": model} | facts
            shown = {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            write_rows(file, COLUMNS, [shown])
        print(letter, name, seed, {key: row[key] for key in ("model", "average_precision", "seconds")}, flush=True)


def warm_up():
    """Load the compiled loops."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 8)), (rng.random((40, 5)) < 0.4).astype(int)
    for rows, kernel in itertools.product((X, sparse.csr_array(np.maximum(X, 0))), ("linear", "rbf")):
        for nuclear in (0.1, 10):
            RBRLClassifier(kernel=kernel, nuclear=nuclear).fit(rows, Y)


def main():
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.defaults", description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=tuple(TABLES), action="append", help="only this one, or these")
    parser.add_argument("--again", action="store_true", help="forget what the results file has of these tables")
    parser.add_argument("--only-page", action="store_true", help="compute nothing")
    parser.add_argument("--results", type=Path, default=Path(__file__).with_name("results.csv.gz"), metavar="FILE")
    options = parser.parse_args()
    wanted = options.table or list(TABLES)
    if options.again and options.results.exists():
        known = read_rows(options.results, COLUMNS[:4])
        write_rows(options.results, COLUMNS, [row for key, row in known.items() if key[0] not in wanted], "w")
    if not options.only_page:
        warm_up()
        for letter in wanted:
            run(letter, options.results)
    page.write(read_rows(options.results, COLUMNS[:4]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
