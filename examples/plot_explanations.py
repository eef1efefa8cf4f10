"""Why a gene has a function, why one function rather than another, and which functions go together: three figures of yeast.

Run it with `python examples/plot_explanations.py`; the figures are written into the present folder, or into one that is
named behind it. docs/explanations.md shows them.
"""

import sys

import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, datasets, explain, label_map
from rbrl.report.figures import save_figure


def main(folder="."):
    yeast = datasets.load("yeast")
    train, test = yeast.split(seed=0)
    X, Y = pd.DataFrame(train.X, columns=yeast.feature_names), pd.DataFrame(train.Y, columns=yeast.label_names)
    model = make_pipeline(StandardScaler(), RBRLClassifier(nuclear=100)).fit(X, Y)

    gene = pd.DataFrame(test.X, columns=yeast.feature_names).iloc[126]
    why = explain(model, gene)  # of the label with the highest score
    print(why)
    rather = explain(model, gene, "Class1", against="Class4")
    print(rather)
    together = label_map(model)
    print(together)
    for name, found in {"explanation": why, "explanation-against": rather, "label-map": together}.items():
        save_figure(found.plot(), f"{folder}/{name}", formats=["png"])


if __name__ == "__main__":
    main(*sys.argv[1:])
