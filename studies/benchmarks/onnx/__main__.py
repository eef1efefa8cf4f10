"""Do graphs answer as our models do, and how fast? ``python -m studies.benchmarks.onnx [DATASET ...]``, with RBRL_DATA."""

import sys
import time
import warnings
from functools import partial

import numpy as np
import onnxruntime
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rbrl import CalibratedMultiLabelClassifier, RBRLClassifier, to_onnx
from studies.benchmarks.problems import dataset, folder, write_results

MODELS = {
    "linear": RBRLClassifier(),
    "rbf": RBRLClassifier(kernel="rbf"),
    "calibrated": CalibratedMultiLabelClassifier(RBRLClassifier(), cv=3),
}
TRAINING_ROWS, TEST_ROWS, ENTRIES, REPEATS, SINGLES = 1000, 1000, 10_000_000, 5, 40
TEXT = f"""Models of {TRAINING_ROWS:,} training rows (fewer where rows x features exceed {ENTRIES:,}) of every data set,
their graphs in onnxruntime {onnxruntime.__version__} on one thread, and up to {TEST_ROWS:,} other rows, dense; features of
dense sets are standardised. "labels" are entries of `predict` that differ, "scores" the largest difference from
`decision_function`, as a share of the largest score; first in double precision, which is the default, then in single.
Labels that are equal in every training row have the same score up to rounding, which then decides which of them a row
without a positive score gets. Time is of the processor, in microseconds: a row alone, and each of many rows in one call; the
shortest of {REPEATS} alternating runs, ours and the graph's."""


def main(wanted):
    warnings.simplefilter("ignore")
    names = wanted or sorted(path.stem for path in folder("RBRL_DATA").glob("*.npz"))
    rows = [line for name in names for line in compared(name)]
    write_results(__file__, "Models in onnxruntime", TEXT, rows, after=summary(rows))


def compared(name):
    """Lines of the table, one for each model."""
    X, Y, test = data(name)
    print(f"{name}: {X.shape}, {Y.shape[1]} labels, {len(test)} rows to predict", file=sys.stderr, flush=True)
    for kind, model in MODELS.items():
        model.fit(X, Y)
        double, single = (session(model, dtype) for dtype in ("float64", "float32"))
        yield {
            "data": name,
            "features": X.shape[1],
            "labels": Y.shape[1],
            "model": kind,
            **agreement(model, double, test, "double"),
            **agreement(model, single, test, "single"),
            **times(model, double, test),
        }


def data(name):
    """Training rows and labels, and rows to predict."""
    train, test = dataset(name).split(0)
    n_rows = min(TRAINING_ROWS, ENTRIES // train.X.shape[1])
    X, Y, new = train.X[:n_rows], np.asarray(train.Y[:n_rows]), test.X[: min(TEST_ROWS, n_rows)]
    if sparse.issparse(X):
        return X.astype(np.float64), Y, new.toarray().astype(np.float64)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), Y, scaler.transform(new)


def session(model, dtype):
    """A model's graph on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    running = onnxruntime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString(), options)
    return lambda rows: running.run(["labels", "scores"], {"X": rows.astype(dtype, copy=False)})


def agreement(model, graph, test, precision):
    labels, scores = graph(test)
    expected = model.decision_function(test)
    different = np.count_nonzero(labels != model.predict(test))
    distance = np.abs(scores - expected).max() / np.abs(expected).max()
    return {f"{precision}: labels": f"{different} of {labels.size:,}", f"{precision}: scores": f"{distance:.0e}"}


def times(model, graph, test):
    one = test[:1]
    tasks = {
        "a row: predict": (partial(model.predict, one), SINGLES, 1),
        "a row: graph": (partial(graph, one), SINGLES, 1),
        "many: predict": (partial(model.predict, test), 1, len(test)),
        "many: graph": (partial(graph, test), 1, len(test)),
    }
    runs = [{name: microseconds(*task) for name, task in tasks.items()} for _ in range(REPEATS)]
    return {name: f"{min(run[name] for run in runs):.3g}" for name in tasks}


def microseconds(task, n_calls, n_rows):
    started = time.process_time()
    for _ in range(n_calls):
        task()
    return 1e6 * (time.process_time() - started) / (n_calls * n_rows)


def summary(rows):
    """The worst of each model."""
    lines = []
    for kind in MODELS:
        those = [row for row in rows if row["model"] == kind]
        different = sum(int(row["double: labels"].split()[0]) for row in those)
        single = sum(int(row["single: labels"].split()[0]) for row in those)
        worst, worst_single = (max(float(row[f"{p}: scores"]) for row in those) for p in ("double", "single"))
        ratios = [float(row["a row: predict"]) / float(row["a row: graph"]) for row in those]
        lines.append(
            f"- {kind}: {different} labels differ in double precision and {single} in single; scores by {worst:.0e} and "
            f"{worst_single:.0e} at most. A row alone takes `predict` {np.median(ratios):.1f} times as long as the graph "
            "(median)."
        )
    return "\n".join(lines)


if __name__ == "__main__":
    with threadpool_limits(1):
        main(sys.argv[1:])
