"""
Serving a model as an ONNX graph
================================

A program that serves predictions does not need Python, scikit-learn or rbrl: :func:`rbrl.to_onnx` writes a fitted
model, with its labels and thresholds, as a graph that any ONNX runtime computes. How close are its answers, and how long
do they take?

Needs the extra ``onnx``.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, datasets, to_onnx
from rbrl.experiments.figures import plain_powers, use_style

train, test = datasets.load("yeast").split(seed=0)
scaler = StandardScaler().fit(train.X)
X, rows = scaler.transform(train.X), scaler.transform(test.X)
models = {kernel: RBRLClassifier(kernel=kernel).fit(X, train.Y) for kernel in ("linear", "rbf")}

# %%
# From a model to a graph
# -----------------------
# The graph takes rows and returns labels and scores. With ``dtype="float32"`` it computes in single precision, which
# most runtimes prefer.


def graph_of(model, dtype="float64"):
    """A model's graph on one thread, as a function of rows."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString(), options)
    return lambda rows: session.run(["labels", "scores"], {"X": rows.astype(dtype, copy=False)})


def differences(model, dtype):
    """Return the relative differences between the scores of the graph and the model, and the labels that differ."""
    labels, scores = graph_of(model, dtype)(rows)
    expected = model.decision_function(rows)
    return np.sort(np.abs(scores - expected).ravel()) / np.abs(expected).max(), (labels != model.predict(rows)).sum()


distances = {
    (kernel, dtype): differences(models[kernel], dtype) for kernel in models for dtype in ("float64", "float32")
}
for (kernel, dtype), (distance, n_wrong) in distances.items():
    print(f"{kernel}, {dtype}: {n_wrong} of {distance.size} labels differ, scores by {distance[-1]:.0e} at most")

# %%
# Time of a call
# --------------
# The shortest of alternating runs counts. A pipeline checks its rows in every step; its graph checks nothing.

SIZES, REPEATS = (1, 4, 16, 64, 256, 900), 5


def seconds(task, rows, enough=0.005):
    """Return the seconds of one call, averaged over enough calls for the clock."""
    started, n_calls = time.process_time(), 0
    while (passed := time.process_time() - started) < enough:
        task(rows)
        n_calls += 1
    return passed / n_calls


def microseconds(model, rows):
    """Return the microseconds of a call of `predict`, and of the graph."""
    tasks = (model.predict, graph_of(model))
    return 1e6 * np.min([[seconds(task, rows) for task in tasks] for _ in range(REPEATS)], axis=0)


times = {kernel: np.array([microseconds(model, rows[:size]) for size in SIZES]) for kernel, model in models.items()}
pipeline = make_pipeline(StandardScaler(), RBRLClassifier()).fit(train.X, train.Y)
alone = {kernel: found[0] for kernel, found in times.items()} | {"pipeline": microseconds(pipeline, test.X[:1])}
for name, (ours, graph) in alone.items():
    print(f"{name}: a row alone takes predict {ours:.0f} and the graph {graph:.0f} microseconds")

# %%
# Differences and times
# ---------------------
# In double precision the scores are equal up to rounding. In single precision they differ by less than 1e-5, which
# changes a label only if its score is nearly 0. For few rows the graph is faster, since it has less overhead.

with use_style() as palette:
    figure, (near, quick) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    lines = dict(zip(models, ("-", "--")))
    for (kernel, dtype), (distance, _) in distances.items():
        share = np.arange(1, distance.size + 1) / distance.size
        colour = {"float64": palette.ink, "float32": palette.accent}[dtype]
        near.plot(np.maximum(distance, 1e-18), share, lines[kernel], color=colour, label=f"{kernel}, {dtype}")
    near.axvline(1e-5, color=palette.muted, lw=1)
    near.set(
        xscale="log", xlim=(1e-18, 1e-4), ylim=(0, 1), xlabel="difference / largest score", ylabel="share of scores"
    )
    near.set_title("Scores of graph and model differ by less than 10⁻⁵")
    near.legend(loc="center", bbox_to_anchor=(0.42, 0.5))
    for kernel, found in times.items():
        for values, name, colour in zip(found.T, ("predict", "graph"), (palette.ink, palette.accent)):
            quick.plot(SIZES, values, lines[kernel], marker="o", ms=3, color=colour, label=f"{kernel}, {name}")
    quick.set(xscale="log", yscale="log", xlabel="rows per call", ylabel="processor microseconds")
    quick.set_title("Time of a call")
    quick.legend(loc="upper left")
    plain_powers(near.xaxis, quick.xaxis, quick.yaxis)
plt.show()
