"""Measure what solving for the last layer of a trained network gains.

``python -m studies.benchmarks.last_layer``, with RBRL_DATA and the extra `torch`.
"""

import time
import warnings
from statistics import mean

import numpy as np
import torch
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from torch import nn

from rbrl import RBRLClassifier, evaluate
from rbrl.decision import relevant_labels
from rbrl.interop.torch import RBRLHead, RBRLLoss, refit_last_layer
from studies.benchmarks.problems import dataset, markdown, write_results

DATA, SEEDS, HIDDEN, BATCH = {"yeast": 30, "scene": 30, "tmc2007_500": 10}, (0, 1), 128, 64
METRICS = ("hamming_loss", "subset_accuracy", "f1_example", "ranking_loss", "average_precision")
TEXT = """A network of one hidden layer (%d units, ReLU, dropout 0.2) is trained by Adam (learning rate 1e-3, batches of %d,
epochs: %s), then its last layer is solved for. "RBRL": trained with RBRLLoss and the penalty of an
RBRLHead, its ridge what "auto" comes to for the untrained body, and solved with the same: the objective is one and the same
before and after. "BCE": trained with BCEWithLogitsLoss and weight decay 1e-4, and solved with ridge="auto": the objective
before is that of weights made for another loss. Metrics of the test rows, means over %d splits (60/40); every method gives
a row without a positive score its best label. Objectives are those of the first split, "gap" is the largest certified one.
"seconds" is processor time: of the training, of the refit with the pass through the body."""
AFTER = "For comparison, without a network: the linear model, certified within 1e-4.\n\n%s"


def parts(name, seed):
    """Rows of float32, dense features standardised; labels of 0/1."""
    (X, Y), (X_test, Y_test) = dataset(name).split(seed)
    if sparse.issparse(X):
        X, X_test = X.toarray(), X_test.toarray()
    else:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X.astype(np.float32), np.asarray(Y), X_test.astype(np.float32), np.asarray(Y_test)


def batches(X, Y, generator):
    rows = torch.randperm(len(X), generator=generator).split(BATCH)
    return ((X[some], Y[some]) for some in rows)


def trained(last, loss, penalty, X, Y, epochs, seed, weight_decay=0.0):
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(X.shape[1], HIDDEN), nn.ReLU())
    model = nn.Sequential(body, nn.Dropout(0.2), last(body))
    optimiser, generator = torch.optim.Adam(model.parameters(), weight_decay=weight_decay), torch.Generator()
    generator.manual_seed(seed)
    for _ in range(epochs):
        for x, y in batches(X, Y, generator):
            optimiser.zero_grad()
            (loss(model(x), y) + penalty(model[-1]) / len(X)).backward()
            optimiser.step()
    return model


def judged(model, X, Y):
    model.eval()
    with torch.no_grad():
        scores = model(X).numpy()
    return evaluate(Y, relevant_labels(scores, never_empty=True), scores, METRICS)


def split_rows(name, epochs, seed):
    X, Y, X_test, Y_test = parts(name, seed)
    x, y, x_test, n_labels = torch.from_numpy(X), torch.from_numpy(Y).float(), torch.from_numpy(X_test), Y.shape[1]

    def untrained(body):
        with torch.no_grad():
            return body(x).numpy()

    ways = {
        "RBRL": {
            "last": lambda body: RBRLHead(HIDDEN, n_labels, ridge=RBRLClassifier().problem(untrained(body), Y).ridge),
            "loss": RBRLLoss(),
            "penalty": RBRLHead.penalty,
        },
        "BCE": {
            "last": lambda body: nn.Linear(HIDDEN, n_labels),
            "loss": nn.BCEWithLogitsLoss(),
            "penalty": lambda layer: 0.0,
            "weight_decay": 1e-4,
        },
    }
    for way, how in ways.items():
        started = time.process_time()
        model = trained(**how, X=x, Y=y, epochs=epochs, seed=seed)
        seconds, before = time.process_time() - started, judged(model, x_test, Y_test)
        started = time.process_time()
        head = refit_last_layer(model, zip(x.split(1024), y.split(1024)))
        refit_seconds, after = time.process_time() - started, judged(model, x_test, Y_test)
        common = {"data": name, "trained with": way}
        yield common | {"last layer": "trained", "objective": head.objective_before_} | before | {"seconds": seconds}
        values = {"gap": head.gap_, "seconds": refit_seconds}
        yield common | {"last layer": "solved", "objective": head.objective_} | after | values
    started = time.process_time()
    linear = RBRLClassifier().fit(X, Y)
    seconds, scores = time.process_time() - started, linear.decision_function(X_test)
    metrics = evaluate(Y_test, relevant_labels(scores, never_empty=True), scores, METRICS)
    yield {"data": name, "trained with": "linear"} | metrics | {"gap": linear.gap_, "seconds": seconds}


def summary(rows):
    """Means over the splits of each cell."""
    keys = [key for key in ("data", "trained with", "last layer") if key in rows[0]]
    for key in dict.fromkeys(tuple(row[k] for k in keys) for row in rows):
        cell = [row for row in rows if tuple(row[k] for k in keys) == key]
        objective = {"objective": f"{cell[0]['objective']:,.1f}"} if "objective" in cell[0] else {}
        gaps = [row["gap"] for row in cell if "gap" in row]
        yield (
            dict(zip(keys, key))
            | objective
            | {"gap": f"{max(gaps):.0e}" if gaps else ""}
            | {metric: f"{mean(row[metric] for row in cell):.3f}" for metric in METRICS}
            | {"seconds": f"{mean(row['seconds'] for row in cell):.2f}"}
        )


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows = []
    for name, epochs in DATA.items():
        for seed in SEEDS:
            rows += split_rows(name, epochs, seed)
            print(name, seed, flush=True)
    networks, linear = ([row for row in rows if ("objective" in row) == kind] for kind in (True, False))
    epochs = ", ".join(f"{name} {n}" for name, n in DATA.items())
    text = TEXT % (HIDDEN, BATCH, epochs, len(SEEDS))
    write_results(
        __file__, "A last layer that is solved", text, list(summary(networks)), AFTER % markdown(list(summary(linear)))
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
