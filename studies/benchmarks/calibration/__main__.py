"""Can the probabilities be trusted, and what do they cost? ``python -m studies.benchmarks.calibration``, with RBRL_DATA.

Every row is written to ``results.csv`` as soon as it is known; the same command goes on where it was interrupted, and
``--again`` forgets all. ``results.md`` is written from what is there.
"""

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from rbrl.metrics import evaluate
from studies.benchmarks.calibration.models import MODELS
from studies.benchmarks.defaults.__main__ import warm_up
from studies.benchmarks.defaults.protocol import REPORTING, SEEDS, Table, rows_of
from studies.benchmarks.problems import read_rows, write_results, write_rows

# Fixed before the first run. How maps are shrunk was chosen on the ten other sets, `CHOOSING` of
# studies.benchmarks.defaults.
DATA = Table("calibration", REPORTING, 2000, 3000)
METRICS = ("expected_calibration_error", "calibration_error_macro", "log_loss", "brier_score")
# The bars: calibration errors below, on this share of the sets; log loss not above logistic regression's, on that share.
LARGEST_ERROR, SHARE_OF_ERRORS, SHARE_OF_LOSSES = 0.03, 3 / 4, 2 / 3
COLUMNS = ("data", "seed", "model", *METRICS, "seconds")
OURS, RIVAL = "calibrated", "logistic regression"
# On the first split only.
SLOW = "CalibratedClassifierCV"
TEXT = """Probabilities of `CalibratedMultiLabelClassifier(RBRLClassifier())` (sigmoid, five folds; "isotonic": the same
with that method) beside one-vs-rest `LogisticRegression(max_iter=1000)`, the sigmoid of RBRL's raw scores, and
scikit-learn's `CalibratedClassifierCV(LinearSVC(), cv=5, ensemble=False)` one label at a time (on the first
split). Nothing is tuned. A label that is constant in the training rows, or has fewer than five rows of a kind
where scikit-learn wants five, has its share as probability in all of them. 60/40 splits with seeds 0, 1, 2, the
first 2,000 rows to train on and 3,000 to test; dense data standardised on the training rows; figures are means
over the splits. ECE: expected calibration error of all entries together, 15 bins of equal width; macro: of each
label by itself, averaged. Seconds are processor time of fitting and of probabilities, one thread."""


def run(file):
    known = read_rows(file, COLUMNS[:3])
    for seed, name in itertools.product(SEEDS, DATA.data):
        wanted = [model for model in MODELS if seed == SEEDS[0] or model != SLOW]
        missing = [model for model in wanted if (name, str(seed), model) not in known]
        rows = rows_of(DATA, name, seed) if missing else None
        for model in missing:
            started = time.process_time()
            P = MODELS[model](rows)
            facts = {"seconds": time.process_time() - started}
            if model != "RBRL alone":
                facts |= evaluate(rows.Y_test, metrics=METRICS, probabilities=P)
            shown = {key: f"{value:.6g}" for key, value in facts.items()}
            write_rows(
                file, COLUMNS, [dict.fromkeys(COLUMNS, "") | {"data": name, "seed": seed, "model": model} | shown]
            )
            print(name, seed, model, shown, flush=True)


def mean(known, name, model, column):
    """Over the splits that are known; None if none is."""
    found = [known.get((name, str(seed), model)) for seed in SEEDS]
    values = [float(row[column]) for row in found if row]
    return float(np.mean(values)) if values else None


def page(known):
    names = [name for name in DATA.data if all(mean(known, name, model, "seconds") is not None for model in MODELS)]
    judged = [model for model in MODELS if model != "RBRL alone"]
    rows = []
    for name in names:
        row = {"data": name, "splits": sum((name, str(seed), OURS) in known for seed in SEEDS)}
        for title, column in (("ECE", METRICS[0]), ("macro", METRICS[1]), ("log loss", METRICS[2])):
            row |= {f"{title}: {model}": f"{mean(known, name, model, column):.4f}" for model in judged[:4]}
        timed = (OURS, RIVAL, SLOW)
        rows.append(row | {f"seconds: {model}": f"{mean(known, name, model, 'seconds'):.1f}" for model in timed})
    write_results(
        __file__, "Can the probabilities be trusted, and what do they cost?", TEXT, rows, verdict(known, names)
    )


def verdict(known, names):
    n = len(names)
    small = [name for name in names if mean(known, name, OURS, METRICS[0]) < LARGEST_ERROR]
    macro = [name for name in names if mean(known, name, OURS, METRICS[1]) < LARGEST_ERROR]
    losses = {name: tuple(mean(known, name, model, "log_loss") for model in (OURS, RIVAL)) for name in names}
    not_worse = [name for name, (ours, theirs) in losses.items() if ours <= theirs]
    lines = [
        f"- Bar, calibration error below {LARGEST_ERROR} on three quarters: **{held(small, n, SHARE_OF_ERRORS)}**, "
        f"{len(small)} of {n}{but(small, names)}. Of each label by itself: {len(macro)} of {n}{but(macro, names)}.",
        f"- Bar, log loss not above logistic regression's on two thirds: **{held(not_worse, n, SHARE_OF_LOSSES)}**, "
        f"{len(not_worse)} of {n}{but(not_worse, names)}.",
        f"- Largest calibration errors: {largest(known, names)}.",
        f"- Seconds, sum over the sets: {seconds(known, names)}.",
    ]
    return "\n".join(lines)


def held(found, n, share):
    return "held" if len(found) >= share * n else "MISSED"


def but(found, names):
    others = [name for name in names if name not in found]
    return f"; not so on {', '.join(others)}" if others else ""


def largest(known, names):
    models = [model for model in MODELS if model != "RBRL alone"]
    return ", ".join(f"{model} {max(mean(known, name, model, METRICS[0]) for name in names):.3f}" for model in models)


def seconds(known, names):
    return ", ".join(f"{model} {sum(mean(known, name, model, 'seconds') for name in names):.1f}" for model in MODELS)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m studies.benchmarks.calibration", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--again", action="store_true", help="forget what the results file has")
    parser.add_argument("--only-page", action="store_true", help="compute nothing")
    parser.add_argument("--results", type=Path, default=Path(__file__).with_name("results.csv"), metavar="FILE")
    options = parser.parse_args()
    if options.again:
        options.results.unlink(missing_ok=True)
    if not options.only_page:
        warm_up()
        run(options.results)
    page(read_rows(options.results, COLUMNS[:3]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        main()
