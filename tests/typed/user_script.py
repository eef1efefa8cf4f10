"""A user's script, as `mypy --strict` has to see it: what is right has no error, what is wrong has one.

`make lint` checks it. A line that is wrong on purpose carries the error that it must have; `--strict` reports an
`ignore` that nothing needs, so an error that mypy no longer finds fails here.
"""

import numpy as np
from numpy.typing import NDArray

import rbrl
from rbrl import BinaryRelevance, RBRLClassifier, RBRLClassifierCV, datasets, metrics


def learn(X: NDArray[np.float64], Y: NDArray[np.int64]) -> dict[str, float]:
    """Fit, predict and judge."""
    model = RBRLClassifier(ridge=1.0, ranking=0.1, nuclear=0.1).fit(X, Y)
    labels = model.predict(X)
    scores = model.decision_function(X)
    found: list[float] = [model.gap_, model.objective_, float(model.coef_.sum()), model.n_iter_]
    assert BinaryRelevance(C=2.0).fit(X, Y).predict(X).shape == Y.shape, found
    return metrics.evaluate(Y, labels, scores)


def names(X: NDArray[np.float64], Y: NDArray[np.int64]) -> list[str] | None:
    """Labels by name."""
    model = RBRLClassifier(label_names=["sea", "sun"]).set_output(predict="pandas").fit(X, Y)
    sets: list[list[str]] = rbrl.predict_sets(model, X) + model.predict_sets(X)
    best, scores = model.predict_top(X, 1)
    report: str = rbrl.classification_report(Y, Y, scores, label_names=np.array(["sea", "sun"]))
    table = rbrl.evaluate(Y, Y, per_label=True)
    return rbrl.label_names(model) if sets and best.size and report and len(table) else None


def wrong(X: NDArray[np.float64], Y: NDArray[np.int64]) -> None:
    """Mistakes that a type checker has to find before the program runs."""
    RBRLClassifier(ridge="ten")  # type: ignore[arg-type]
    _ = RBRLClassifier().fit(X, Y).coeff_  # type: ignore[attr-defined]
    BinaryRelevance(c=2.0)  # type: ignore[call-arg]
    RBRLClassifier().set_output(transform="pandas")  # type: ignore[call-arg]
    rbrl.load(3.5)  # type: ignore[arg-type]


data = datasets.load("yeast")
train, test = data.split(seed=0)
values = learn(np.asarray(data.X), np.asarray(data.Y))
best = RBRLClassifierCV().fit(np.asarray(data.X), np.asarray(data.Y)).best_params_
rbrl.save(RBRLClassifier().fit(np.asarray(data.X), np.asarray(data.Y)), "model.rbrl")
