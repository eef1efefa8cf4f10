"""Measure exact kernel models by the number of rows: ``python -m studies.benchmarks.kernel_rows``.

RBRL_DATA names the folder of data sets. Every fit is written to results.csv at once, and the same
command continues where it was interrupted; ``--again`` measures everything anew. results.md is
written from the committed results.csv only: with another file of ``--results``, the table is shown.
"""

import argparse
import multiprocessing
from itertools import product
from pathlib import Path

from studies.benchmarks.kernel_rows.measure import METHODS, N_LABELS, N_TEST, REAL, SYNTHETIC, measure
from studies.benchmarks.problems import markdown, read_rows, write_results, write_rows

RESULTS = Path(__file__).with_name("results.csv")
SIZES = (2000, 5000, 10_000)
KEY = ("data", "rows", "method")
COLUMNS = (*KEY, "cpu", "megabytes", "average precision", "gap", "evaluations", "C", "version")
TEXT = f"""RBF kernel models with {N_LABELS} labels: {REAL} (500 sparse features) with its most
frequent labels, and synthetic rows with 10 dense features whose labels are smooth functions with
noise. "rbrl" is RBRLClassifier(kernel="rbf") with its defaults: no nuclear norm, and the solver
that it chooses. "Nystroem" is the same with approximation="nystroem", 500 components. SVC is
OneVsRestClassifier(SVC()) with the gamma of rbrl and C = 1 / ridge, where ridge is the one that
rbrl chooses: {{Cs}}. Its hinge is not squared, so that the problems are similar and not the same.
Every fit is in a process of its own with one thread. "s" is processor time of the fit, "MB" is
the peak memory of the process less its memory before the fit. "AP" is the average precision on
{N_TEST:,} other rows. "gap" is the certified relative gap; SVC certifies none, and the gap of
Nystroem is that of the approximated problem. Versions: {{versions}}."""


def measure_all(sizes, file):
    """Measure every fit that the results file does not have, each in a new process."""
    known = read_rows(file, KEY)
    for data, n_rows, method in product((SYNTHETIC, REAL), sizes, METHODS):
        if (data, str(n_rows), method) in known:
            continue
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            facts = pool.apply(measure, (method, data, n_rows))
        row = dict(zip(KEY, (data, n_rows, method))) | facts
        write_rows(file, COLUMNS, [row])
        print(row, flush=True)


def table_line(row):
    """Return the line of one fit."""
    line = {"data": row["data"], "rows": f"{int(row['rows']):,}", "method": row["method"]}
    line |= {"s": f"{float(row['cpu']):.2f}", "MB": f"{float(row['megabytes']):.0f}"}
    line["AP"] = f"{float(row['average precision']):.4f}"
    line["gap"] = f"{float(row['gap']):.0e}" if row["gap"] else ""
    line["evaluations"] = f"{float(row['evaluations']):.1f}" if row["evaluations"] else ""
    return line


def main():
    """Measure the missing fits, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.benchmarks.kernel_rows")
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES, help="of the training part")
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    options = parser.parse_args()
    if options.again:
        options.results.unlink(missing_ok=True)
    measure_all(options.rows, options.results)
    known = read_rows(options.results, KEY)
    lines = [table_line(row) for row in known.values()]
    if options.results != RESULTS:
        print(markdown(lines))
        return
    versions = ", ".join(sorted({row["version"] for row in known.values()}))
    Cs = sorted({f"C = {float(row['C']):g}" for row in known.values() if row["C"]})
    text = TEXT.format(Cs=", ".join(Cs), versions=versions)
    write_results(__file__, "Kernel models by the number of rows", text, lines)


if __name__ == "__main__":
    main()
