"""Models of yeast as ONNX graphs: how near their scores are to ours, and how long a call takes, in one figure.

Run it with `python examples/plot_onnx.py`, with the extra `onnx`; the figure is written into the present folder, or into one
that is named behind it. docs/serving.md shows it.
"""

import sys
import time

import numpy as np
import onnxruntime
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, datasets, to_onnx
from rbrl.report.figures import INK, MUTED, plain_powers, save_figure, styled

BLUE = "#0b5fa5"
SIZES, REPEATS = (1, 4, 16, 64, 256, 1024), 20


def main(folder="."):
    train, test = datasets.load("yeast").split(seed=0)
    scaler = StandardScaler().fit(train.X)
    X, rows = scaler.transform(train.X), np.tile(scaler.transform(test.X), (2, 1))
    models = {kernel: RBRLClassifier(kernel=kernel).fit(X, train.Y) for kernel in ("linear", "rbf")}
    with styled():
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        near, fast = figure.subplots(1, 2)
        draw_agreement(near, models, rows[: len(test.X)])
        draw_times(fast, models, rows)
    save_figure(figure, f"{folder}/onnx", formats=["png"])
    pipeline = make_pipeline(StandardScaler(), RBRLClassifier()).fit(train.X, train.Y)
    say_alone("linear, behind a StandardScaler", times(pipeline, test.X[:1]))


def graph_of(model, dtype="float64"):
    """A model's graph on one thread, as a function of rows."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString(), options)
    return lambda rows: session.run(["labels", "scores"], {"X": rows.astype(dtype, copy=False)})


def draw_agreement(axes, models, rows):
    """How many scores differ by how much from `decision_function`, in both precisions."""
    for kernel, line in zip(models, ("-", "--")):
        labels, scores = models[kernel].predict(rows), models[kernel].decision_function(rows)
        for dtype, colour in {"float64": INK, "float32": BLUE}.items():
            answers, found = graph_of(models[kernel], dtype)(rows)
            distance = np.sort(np.abs(found - scores).ravel() / np.abs(scores).max())
            share = np.arange(1, len(distance) + 1) / len(distance)
            axes.plot(np.maximum(distance, 1e-18), share, line, color=colour, label=f"{kernel}, {dtype}")
            print(f"{kernel}, {dtype}: {np.count_nonzero(answers != labels)} of {labels.size} labels differ,",
                  f"scores by {distance[-1]:.0e} at most")  # fmt: skip
    axes.axvline(1e-5, color=MUTED, lw=1)
    axes.set(
        xscale="log", xlim=(1e-18, 1e-4), ylim=(0, 1), xlabel="difference / largest score", ylabel="share of scores"
    )
    plain_powers(axes.xaxis)
    axes.set_title("Scores of graph and model differ by less than 10⁻⁵")
    axes.legend(loc="center", bbox_to_anchor=(0.42, 0.5))


def draw_times(axes, models, rows):
    """Processor time of a call with so many rows."""
    for kernel, line in zip(models, ("-", "--")):
        found = [times(models[kernel], rows[:size]) for size in SIZES]
        for name, colour in {"predict": INK, "graph": BLUE}.items():
            values = [one[name] for one in found]
            axes.plot(SIZES, values, line, color=colour, marker="o", ms=3, label=f"{kernel}, {name}")
        say_alone(kernel, found[0])
    axes.set(xscale="log", yscale="log", xlabel="rows of a call", ylabel="microseconds of the processor")
    plain_powers(axes.xaxis, axes.yaxis)
    axes.set_title("Time of a call")
    axes.legend(loc="upper left")


def times(model, rows):
    """Microseconds of a call, by our `predict` and by the graph: the shortest of alternating runs."""
    tasks = {"predict": model.predict, "graph": graph_of(model)}
    runs = [{name: seconds(task, rows) for name, task in tasks.items()} for _ in range(REPEATS)]
    return {name: 1e6 * min(run[name] for run in runs) for name in tasks}


def say_alone(what, found):
    print(f"{what}: a row alone takes predict {found['predict']:.0f} and the graph {found['graph']:.0f} microseconds")


def seconds(task, rows, enough=0.005):
    """Of one call; as many are made as fill the clock's ticks."""
    started, n_calls = time.process_time(), 0
    while (passed := time.process_time() - started) < enough:
        task(rows)
        n_calls += 1
    return passed / n_calls


if __name__ == "__main__":
    main(*sys.argv[1:])
