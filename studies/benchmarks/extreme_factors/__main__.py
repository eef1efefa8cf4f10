"""Fit models in factors with tens of thousands of labels: ``python -m studies.benchmarks.extreme_factors``, with RBRL_DATA.

Names of cases after the command run these cases only. The rows of the other cases are kept in rows.csv.
"""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from rbrl import __version__
from studies.benchmarks.problems import read_rows, write_results, write_rows

HERE = Path(__file__).parent
COLUMNS = (
    "case", "rows x features x labels", "rank", "ranking", "tol", "iterations", "fit", "GB", "estimated GB", "gap",
    "objective", "bound", "P@1", "P@3", "P@5", "version", "date",
)  # fmt: skip


def model(max_rank, ranking=0.0, tol=0.1, **others):
    """Return the parameters of a model without a nuclear norm."""
    return {"ridge": 0.5, "ranking": ranking, "nuclear": 0.0, "max_rank": max_rank, "tol": tol, **others}


CASES = {
    "debdepends, rank 50": ("debdepends", model(50)),
    "debdepends, rank 50, ranking": ("debdepends", model(50, ranking=1.0)),
    "debdepends, rank 200": ("debdepends", model(200)),
    "wiki10-shape, rank 50": ("wiki10-shape", model(50)),
    "small-shape, rank 20": ("small-shape", model(20)),
    "wide-shape, rank 30": ("wide-shape", model(30, max_iter=12)),
    "dense-shape, rank 30": ("dense-shape", model(30, max_iter=12)),
    "tall-shape, rank 20": ("tall-shape", model(20, max_iter=12)),
}
TEXT = """debdepends: 45,000 training and 8,416 test rows of tf-idf terms, seed 0. The other data are random: words and
labels with Zipf frequencies, half of them drawn from two topics of the row (`random_texts` in worker.py). wiki10-shape has
the sizes of Wiki10-31K: rows, features, labels, and their mean numbers in a row. Ridge 0.5, no nuclear norm, one thread,
an address space of at most 16 GB. Every case runs in a process of its own. "fit" is the processor time in seconds, with the
proof. "GB" is the peak of the resident memory minus the memory after the data were loaded, and "estimated GB" is
`estimate_memory` before the fit. "gap" is certified for the stored factors. It is the distance from the lower bound on the
optimum of any rank, so that it includes what the rank limit costs. Runs with `max_iter=12` measure memory only."""


def run(name):
    """Run a case in a process of its own, and return its row."""
    data, parameters = CASES[name]
    command = [sys.executable, str(HERE / "worker.py"), json.dumps({"data": data, "model": parameters})]
    environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return row(name, json.loads(done.stdout.splitlines()[-1]))


def row(name, facts):
    """Format the facts of a case."""
    parameters = CASES[name][1]
    line = {"case": name, "rows x features x labels": " x ".join(f"{size:,}" for size in facts["shape"])}
    line |= {"rank": parameters["max_rank"], "ranking": parameters["ranking"], "tol": parameters["tol"]}
    line |= {"iterations": facts["n_iter"], "fit": f"{facts['fit']:.0f}", "GB": f"{facts['peak'] / 1e9:.2f}"}
    line |= {"estimated GB": f"{facts['estimate'] / 1e9:.2f}", "gap": f"{facts['gap']:.2f}"}
    line |= {"objective": f"{facts['objective']:.0f}", "bound": f"{facts['bound']:.0f}"}
    line |= {name: f"{facts[name]:.4f}" for name in ("P@1", "P@3", "P@5")}
    return line | {"version": __version__, "date": f"{datetime.now(UTC):%Y-%m-%d}"}


def main():
    file = HERE / "rows.csv"
    for name in sys.argv[1:] or CASES:
        rows = {key[0]: value for key, value in read_rows(file, ["case"]).items()}
        rows[name] = run(name)
        print(rows[name], flush=True)
        write_rows(file, COLUMNS, [rows[key] for key in CASES if key in rows], mode="w")
    write_results(__file__, "Low rank with tens of thousands of labels", TEXT, list(read_rows(file, ["case"]).values()))


if __name__ == "__main__":
    main()
