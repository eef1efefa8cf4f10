"""RBRL on yeast, linear and with an RBF kernel: the paper's six metrics, and how near the optimum each model is.

Run it with `make demo`. The data are real and come with the package's dependencies; nothing is downloaded.
"""

import sys
import threading
import time
from contextlib import contextmanager

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier, datasets, evaluate
from rbrl.metrics import PAPER_METRICS

LINEAR = RBRLClassifier(ridge=1, ranking=0.1, nuclear=30)
RBF = RBRLClassifier(kernel="rbf", ridge=1, ranking=0.1, nuclear=10)
MODELS = {"linear": LINEAR, "RBF": make_pipeline(StandardScaler(), RBF)}


def main():
    data = datasets.load("yeast")
    train, test = data.split(seed=0)
    print(f"yeast: {data.n_samples} genes, {data.n_features} features, {data.n_labels} labels; ", end="")
    print(f"{len(train.Y)} rows to learn from, {len(test.Y)} to test on\n", flush=True)
    with progress("compiling the inner loops (first run only)"):
        RBRLClassifier().fit(train.X[:20], train.Y[:20])
    reports = {name: learn(name, model, train, test) for name, model in MODELS.items()}
    print_table(reports, data.n_labels)


def learn(name, model, train, test):
    """Fit and test one model; return what the table shows of it."""
    started = time.perf_counter()
    # With so few labels the products are small: several threads of linear algebra wait for each other most of the time.
    with progress(f"fitting the {name} model"), threadpool_limits(1):
        model.fit(train.X, train.Y)
    seconds = time.perf_counter() - started
    values = evaluate(test.Y, model.predict(test.X), model.decision_function(test.X))
    classifier = model[-1] if hasattr(model, "steps") else model
    return {"values": values, "seconds": seconds, "rank": classifier.rank_, "gap": classifier.gap_}


def print_table(reports, n_labels):
    rows = [(f"{m.title} {m.arrow}", [f"{r['values'][m.name]:.4f}" for r in reports.values()]) for m in PAPER_METRICS]
    rows += [
        (f"rank of the weights, of {n_labels}", [str(r["rank"]) for r in reports.values()]),
        ("certified gap", [f"{r['gap']:.1e}" for r in reports.values()]),
        ("seconds to fit", [f"{r['seconds']:.1f}" for r in reports.values()]),
    ]
    print(f"{'':26}" + "".join(f"{name:>10}" for name in reports))
    for title, cells in rows:
        print(f"{title:26}" + "".join(f"{cell:>10}" for cell in cells))
    worst = max(report["gap"] for report in reports.values())
    print(f"\nProved: the objectives found are within {100 * worst:.2g} % of the lowest there are.")


@contextmanager
def progress(what):
    """Show `what` with the seconds it takes: a running line on a terminal, one line each elsewhere."""
    live, done, started = sys.stderr.isatty(), threading.Event(), time.perf_counter()

    def line():
        return f"{what} … {time.perf_counter() - started:.0f} s"

    def tick():
        while not done.wait(0.2):
            sys.stderr.write(f"\r\033[K{line()}")
            sys.stderr.flush()

    ticker = threading.Thread(target=tick, daemon=True)
    if live:
        ticker.start()
    try:
        yield
    finally:
        done.set()
        if live:
            ticker.join()
        sys.stderr.write("\r\033[K" if live else f"{line()}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
