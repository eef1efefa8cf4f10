"""The models and thresholds compared: each function yields (rule, facts)."""

import numpy as np

from rbrl import RBRLClassifier
from rbrl.decision import (
    GlobalThreshold,
    LabelThresholds,
    best_global_threshold,
    best_label_thresholds,
    relevant_labels,
)
from rbrl.estimators.training_scores import TrainingRows, estimate_held_out_scores
from rbrl.metrics import evaluate
from rbrl.selection.thresholds import held_out_scores
from rbrl.targets import SignedTargets
from studies.benchmarks.thresholds.protocol import METRICS

TOL = 1e-3


def report(rows):
    """The thresholds of `RBRLClassifier`, and those that cross-validation learns around it."""
    model = RBRLClassifier().fit(rows.X, rows.Y)
    # The next fits differ in the threshold alone, and start from the solution.
    model.set_params(warm_start=True)
    scores, filled = model.decision_function(rows.X_test), bool(rows.Y.any(axis=1).all())
    yield "0, filled if no row is empty", facts(rows, scores, filled, model)
    yield "0", facts(rows, scores, model.non_empty_, model)
    training = model.decision_function(rows.X)
    for metric in ("f1_micro", "f1_samples", "f1_macro"):
        learned = model.set_params(threshold=metric).fit(rows.X, rows.Y)
        yield metric, facts(rows, learned.decision_function(rows.X_test), model.non_empty_, model)
    held_out = held_out_scores(RBRLClassifier(), rows.X, rows.Y, SignedTargets().fit(rows.Y), 5)
    for name, source in (("f1_micro of training scores", training), ("f1_micro in five folds", held_out)):
        threshold = best_global_threshold(source, rows.Y, never_empty=model.non_empty_)
        yield name, facts(rows, scores - threshold, model.non_empty_, model)
    for name, rule in (("tuned per label", LabelThresholds()), ("tuned globally", GlobalThreshold())):
        yield name, facts(rows, rule.fit(held_out, rows.Y).shift(scores), False, model)


def filling(rows, kept):
    """Predictions at threshold 0 and at the best one for micro-F1, filled and not, with some of the labels only."""
    n_labels = rows.Y.shape[1]
    order = np.random.default_rng(int(100 * kept)).permutation(n_labels)
    chosen = np.sort(order[: max(2, round(kept * n_labels))])
    rows = rows._replace(Y=rows.Y[:, chosen], Y_test=rows.Y_test[:, chosen])
    if not rows.Y.any():
        return
    for threshold in (0.0, "f1_micro"):
        for filled in (False, True):
            model = RBRLClassifier(threshold=threshold, non_empty=filled, tol=TOL).fit(rows.X, rows.Y)
            scores = model.decision_function(rows.X_test)
            yield f"{threshold}, {'filled' if filled else 'as it is'}", facts(rows, scores, filled, model)


def sources(rows, kernel, ridge):
    """Thresholds from training scores, from corrected ones, from cross-validation, and the best ones for the test rows."""
    if isinstance(ridge, str):
        unit = RBRLClassifier().problem(rows.X, rows.Y).ridge
        ridge = unit if ridge == "auto" else 100 * unit
    model = RBRLClassifier(kernel=kernel, ridge=ridge, tol=TOL, non_empty=False).fit(rows.X, rows.Y)
    problem = model.problem(rows.X, rows.Y)
    training, scores = model.decision_function(rows.X), model.decision_function(rows.X_test)
    n_parameters = problem.count_parameters()
    corrected = estimate_held_out_scores(model.loss(), TrainingRows(problem.Y, training), n_parameters)
    held_out = held_out_scores(model, rows.X, rows.Y, SignedTargets().fit(rows.Y), 5, fitted=model)
    found = {"training": training, "corrected": corrected, "five folds": held_out}
    note = f"{n_parameters / len(rows.Y):.3f}"
    yield "0", cut(rows, scores, 0.0, 0.0, note)
    for name, source in found.items():
        thresholds = best_global_threshold(source, rows.Y), best_label_thresholds(source, rows.Y)
        yield name, cut(rows, scores, *thresholds, note)
    best = best_global_threshold(scores, rows.Y_test), best_label_thresholds(scores, rows.Y_test)
    yield "best for the test rows", cut(rows, scores, *best, note)


def cut(rows, scores, threshold, thresholds, note):
    """Micro-F1 with a threshold for all labels, and macro-F1 with one for each."""
    micro, macro = ((scores > each).astype(int) for each in (threshold, thresholds))
    return {
        "f1_micro": evaluate(rows.Y_test, micro, None, ["f1_micro"])["f1_micro"],
        "f1_macro": evaluate(rows.Y_test, macro, None, ["f1_macro"])["f1_macro"],
        "note": note,
    }


def facts(rows, scores, filled, model):
    labels = relevant_labels(scores, filled).astype(int)
    values = evaluate(rows.Y_test, labels, scores, [*METRICS, "average_precision"])
    no_label = float((labels.sum(axis=1) == 0).mean())
    return values | {"no_label": no_label, "note": f"empty {model.empty_share_:.4f}"}
