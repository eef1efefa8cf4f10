"""Measure fits of many rows, and how the cost grows with rows: ``python -m studies.benchmarks.rows``, with RBRL_DATA.

LIBMULTILABEL_PYTHON names a Python that has libmultilabel; without it, that line is left out.
"""

import multiprocessing
import os

import numpy as np

from studies.benchmarks.problems import markdown, write_results
from studies.benchmarks.rows.measure import LML, RBRL, STREAM, SVC, measure

SHARES = (0.1, 0.2, 0.5, 1.0)
TEXT = """imdb: 120,919 rows, 1001 sparse features, 28 labels; 80 % of the rows to learn from, the rest to
judge by. RBRL with the parameters of the paper (ridge 1, ranking 0.1, nuclear 0.1), LinearSVC and LibMultiLabel's
`train_1vsrest` (options `-s 1 -c 0.5 -B 1 -m 1`) with the C of the same ridge and their default tolerances, labels
as int64. `-s 1`, dual coordinate descent, is LibMultiLabel's own choice; scikit-learn takes LIBLINEAR's primal solver
for so many rows. Every line is a process of its own; seconds are processor time of `fit` with one thread, memory is the
peak of the process with the data. Training rows are a share of the 96,735, at random.

{grown}"""


def alone(method, share):
    """`measure` in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        row = pool.apply(measure, (method, share))
    print(shown(row), flush=True)
    return row


def exponent(rows, key="cpu seconds"):
    """Slope of log cost over log rows."""
    return np.polyfit(np.log([r["rows"] for r in rows]), np.log([r[key] for r in rows]), 1)[0]


def shown(row):
    formats = {"rows": "{:,}", "evaluations": "{:.1f}", "certified gap": "{:.1e}", "ranking loss": "{:.4f}"}
    cells = {key: formats.get(key, "{:.2f}").format(v) if not isinstance(v, str) else v for key, v in row.items()}
    return {key: "" if cell == "nan" else cell for key, cell in cells.items()}


def main():
    runs = {method: [alone(method, share) for share in SHARES] for method in (RBRL, STREAM)}
    others = [alone(method, 1.0) for method in (SVC, LML) if method != LML or "LIBMULTILABEL_PYTHON" in os.environ]
    slopes = [
        {"method": method, "exponent of cpu seconds in rows": f"{exponent(rows):.2f}"} for method, rows in runs.items()
    ]
    rows = [row for of_method in runs.values() for row in of_method] + others
    write_results(__file__, "Many rows", TEXT.format(grown=markdown(slopes)), [shown(row) for row in rows])


if __name__ == "__main__":
    main()
