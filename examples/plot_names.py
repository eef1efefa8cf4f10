"""Labels by name on yeast: sets, best labels, a report, and a figure of what tuned thresholds do for every label.

Run it with `python examples/plot_names.py`; the figure is written into the present folder, or into one that is named
behind it. docs/names.md shows it.
"""

import sys

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import (
    RBRLClassifier,
    TunedThresholdClassifier,
    classification_report,
    datasets,
    evaluate,
    predict_sets,
    predict_top,
)  # fmt: skip
from rbrl.report.figures import INK, MUTED, save_figure, styled


def main(folder="."):
    yeast = datasets.load("yeast")
    train, test = yeast.split(seed=0)
    Y, truth = (pd.DataFrame(part.Y, columns=yeast.label_names) for part in (train, test))

    models = {
        "cut at 0": RBRLClassifier(),
        "thresholds tuned": TunedThresholdClassifier(RBRLClassifier()),
    }
    models = {name: make_pipeline(StandardScaler(), model).fit(train.X, Y) for name, model in models.items()}

    plain = models["cut at 0"]
    print("labels of the first gene:", predict_sets(plain, test.X[:1])[0])
    names, scores = predict_top(plain, test.X[:1], 3)
    print("best three:", ", ".join(f"{name} {score:+.2f}" for name, score in zip(names[0], scores[0])))
    print(classification_report(truth, plain.predict(test.X)))

    judged = {name: evaluate(truth, model.predict(test.X), per_label=True) for name, model in models.items()}
    (path,) = save_figure(draw(judged), f"{folder}/labels-by-name", formats=["png"])
    print(path)


def draw(judged):
    """F1 of every label, frequent ones first: a bar for each model."""
    supports = next(iter(judged.values()))["support"].sort_values()
    places, height = np.arange(len(supports)), 0.8 / len(judged)
    with styled({"axes.grid.axis": "x"}):
        figure = Figure(figsize=(6.4, 4.8), layout="constrained")
        axes = figure.add_subplot()
        for i, (name, frame) in enumerate(judged.items()):
            at, values = places + (0.5 - i) * height, frame.loc[supports.index, "f1"]
            axes.barh(at, values, height, label=name, color=("#b8c2d0", "#0b5fa5")[i], edgecolor=INK, linewidth=0.4)
        axes.set_yticks(places, supports.index, color=INK)
        for place, support in zip(places, supports):
            axes.annotate(
                f"{support} rows",
                (1.01, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=7.5,
                color=MUTED,
            )
        axes.set(
            title="F1 of every label of yeast, of 967 test rows",
            xlabel="F1",
            xlim=(0, 1),
            ylim=(-0.6, len(places) - 0.4),
        )
        axes.legend(loc="lower right")
    return figure


if __name__ == "__main__":
    main(*sys.argv[1:])
