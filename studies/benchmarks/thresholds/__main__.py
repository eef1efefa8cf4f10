"""Measure what a learned threshold gains: ``python -m studies.benchmarks.thresholds [--table NAME]``, with RBRL_DATA.

Every row is written to ``results.csv.gz`` as soon as it is known; the same command goes on where it was interrupted, and
``--again`` forgets the table. ``results.md`` is written from what is there.
"""

import argparse
import itertools
import warnings
from pathlib import Path

from threadpoolctl import threadpool_limits

from studies.benchmarks.defaults.protocol import CHOOSING
from studies.benchmarks.problems import read_rows, write_rows
from studies.benchmarks.thresholds import models, page
from studies.benchmarks.thresholds.protocol import KEPT, METRICS, REPORTING, RIDGES, SEEDS, rows_of

COLUMNS = ("table", "data", "seed", "case", "rule", *METRICS, "no_label", "average_precision", "note")
KEY = COLUMNS[:4]


def tasks(table):
    """(data set, seed, case, function of its rows that yields (rule, facts)) of a table."""
    if table == "report":
        for seed, name in itertools.product(SEEDS, REPORTING):
            yield name, seed, "", models.report
    elif table == "filling":
        for name, kept in itertools.product(CHOOSING, KEPT):
            yield name, 0, f"{kept:g} of the labels", lambda rows, kept=kept: models.filling(rows, kept)
    else:
        for name, (kernel, ridge) in itertools.product(CHOOSING, RIDGES):
            yield name, 0, f"{kernel}, ridge {ridge}", lambda rows, k=kernel, r=ridge: models.sources(rows, k, r)


def run(table, file):
    known = read_rows(file, KEY)
    sizes = {"report": {}, "filling": {"train_rows": 1500}, "scores": {"train_rows": 1000}}[table]
    for name, seed, case, measure in tasks(table):
        if (table, name, str(seed), case) in known:
            continue
        found = list(measure(rows_of(name, seed, **sizes)))
        place = {"table": table, "data": name, "seed": seed, "case": case}
        rows = [dict.fromkeys(COLUMNS, "") | place | {"rule": rule} | facts for rule, facts in found]
        shown = [
            {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()} for row in rows
        ]
        write_rows(file, COLUMNS, shown)
        print(table, name, seed, case, flush=True)


def main():
    names = ("filling", "scores", "report")
    parser = argparse.ArgumentParser(
        prog="python -m studies.benchmarks.thresholds", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--table", choices=names, action="append", help="only this one, or these")
    parser.add_argument("--again", action="store_true", help="forget what the results file has of these tables")
    parser.add_argument("--only-page", action="store_true", help="compute nothing")
    parser.add_argument("--results", type=Path, default=Path(__file__).with_name("results.csv.gz"), metavar="FILE")
    options = parser.parse_args()
    wanted = options.table or names
    if options.again and options.results.exists():
        kept = [row for key, row in read_rows(options.results, COLUMNS[:5]).items() if key[0] not in wanted]
        write_rows(options.results, COLUMNS, kept, "w")
    if not options.only_page:
        for table in wanted:
            run(table, options.results)
    page.write(read_rows(options.results, COLUMNS[:5]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
