"""Small problems and what every estimator answers on them, by public names only."""

import functools
import tempfile
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rbrl
from rbrl import datasets, decision, metrics, selection, solvers, splits

TIGHT = 1e-11
# Answers that do not tell their iterations must agree wherever the solver stops: to the root of the gap.
TIGHT_WITHOUT_ITERATIONS = 1e-14
TIGHT_OF_KERNELS = 1e-10  # near the best that double precision proves of them
SMALL_LABELS = (0, 1, 2, 3, 5, 10, 11, 13)
LEARNED = (
    *("coef_", "intercept_", "dual_coef_", "feature_coef_", "threshold_coef_", "threshold_intercept_", "prior_"),
    *("objective_", "gap_", "rank_", "n_iter_"),
)

# The answers are those of the first defaults.
FIRST = {"ridge": 1.0, "intercept_ridge": None, "gamma": "paper", "non_empty": False}
rbrl_classifier = functools.partial(rbrl.RBRLClassifier, ranking=0.1, nuclear=0.1, **FIRST)
brl_classifier = functools.partial(rbrl.BRLClassifier, nuclear=0.1, **FIRST)
cpnl_classifier = functools.partial(rbrl.CPNL, **FIRST)


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and others to answer on."""

    X: object
    Y: np.ndarray
    X_new: object


@functools.cache
def yeast():
    """120 rows, 24 features and 8 labels of yeast; 30 rows to answer on."""
    data = datasets.load("yeast")
    X, Y = np.asarray(data.X, dtype=float)[:, :24], np.asarray(data.Y)[:, SMALL_LABELS].astype(np.int64)
    scaler = StandardScaler().fit(X[::20][:120])
    return Problem(scaler.transform(X[::20][:120]), Y[::20][:120], scaler.transform(X[7::80][:30]))


@functools.cache
def text():
    """80 sparse rows of unit length, 30 words, 5 labels; one row without a label, one with all of them."""
    rng = np.random.default_rng(11)
    counts = rng.poisson(0.25, size=(110, 30)) + np.eye(110, 30)
    Y = (np.roll(counts, 1, axis=1) @ rng.normal(size=(30, 5)) + rng.normal(size=(110, 5)) > 0.7).astype(np.int64)
    Y[0], Y[1] = 0, 1
    X = sparse.csr_array(counts / np.linalg.norm(counts, axis=1, keepdims=True))
    return Problem(X[:80], Y[:80], X[80:])


@functools.cache
def tiny():
    """32 rows, 5 features, 4 labels: small enough for model files."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(44, 5))
    Y = (X @ rng.normal(size=(5, 4)) + 0.5 * rng.normal(size=(44, 4)) > 0.2).astype(np.int64)
    return Problem(X[:32], Y[:32], X[32:])


def answers(model, problem):
    """What a fitted model has learned, scores and labels."""
    found = {name: np.asarray(getattr(model, name)) for name in LEARNED if hasattr(model, name)}
    found = {name: value for name, value in found.items() if value.dtype.kind in "fiu"}
    return found | {"scores": metrics.scores_of(model, problem.X_new), "labels": plain(model.predict(problem.X_new))}


def plain(labels):
    """Labels as an array."""
    return labels.toarray() if sparse.issparse(labels) else np.asarray(labels)


def fitted(make, problem, **more):
    """Answers of a model after `fit`."""
    made = problem()
    return answers(make().fit(made.X, made.Y, **more), made)


def _certified():
    """Models with an objective, near its optimum."""
    rbrl_, brl, cpnl = (
        functools.partial(cls, tol=TIGHT, max_iter=20000) for cls in (rbrl_classifier, brl_classifier, cpnl_classifier)
    )
    rbf = {"kernel": "rbf", "gamma": 0.02, "tol": TIGHT_OF_KERNELS}
    poly = {"kernel": "poly", "gamma": 0.05, "degree": 2, "tol": TIGHT_OF_KERNELS}
    settings = {
        "rbrl-linear": functools.partial(rbrl_, nuclear=10.0),
        "rbrl-non-empty": functools.partial(rbrl_, ridge=10.0, ranking=0.01, non_empty=True),
        "rbrl-no-intercept": functools.partial(rbrl_, ranking=1.0, nuclear=0.0, fit_intercept=False),
        "rbrl-apg": functools.partial(rbrl_, ridge=10.0, nuclear=3.0, solver="apg"),
        "rbrl-low-rank": functools.partial(rbrl_, ridge=10.0, nuclear=60.0, solver="low-rank"),
        "rbrl-rbf": functools.partial(rbrl_, **rbf),
        "rbrl-rbf-function": functools.partial(rbrl_, nuclear=0.5, low_rank="function", non_empty=True, **rbf),
        "rbrl-poly": functools.partial(rbrl_, low_rank="function", **poly),
        "rbrl-kernel-apg": functools.partial(rbrl_, solver="apg", low_rank="function", **rbf),
        "rbrl-nystroem": functools.partial(rbrl_, approximation="nystroem", n_components=20, random_state=0, **rbf),
        "rbrl-fourier": functools.partial(rbrl_, approximation="fourier", n_components=20, random_state=0, **rbf),
        "brl-linear": functools.partial(brl, nuclear=2.0),
        "brl-rbf": functools.partial(brl, low_rank="function", **rbf),
        "cpnl-linear": functools.partial(cpnl, positive=1.0),
        "cpnl-rbf": functools.partial(cpnl, negative=1.0, beta=1.0, non_empty=True, **rbf),
    }
    return {name: functools.partial(fitted, make, yeast) for name, make in settings.items()} | {
        "rbrl-sparse": functools.partial(fitted, functools.partial(rbrl_, nuclear=0.3), text),
        "rbrl-sparse-apg": functools.partial(fitted, functools.partial(rbrl_, solver="apg"), text),
        "brl-sparse": functools.partial(fitted, functools.partial(brl, non_empty=True), text),
        "cpnl-sparse": functools.partial(fitted, cpnl, text),
        "rbrl-weighted": functools.partial(
            fitted, functools.partial(rbrl_, nuclear=1.0), yeast, sample_weight=np.arange(120) % 4
        ),
        "rbrl-blocks": functools.partial(_in_blocks, functools.partial(rbrl_, nuclear=1.0)),
        "cpnl-blocks": functools.partial(_in_blocks, cpnl),
        "rbrl-shards": functools.partial(_in_shards, functools.partial(rbrl_, nuclear=1.0)),
        "rbrl-warm": functools.partial(_warm, functools.partial(rbrl_, warm_start=True)),
    }


def _in_blocks(make):
    made = yeast()
    parts = [(made.X[start : start + 50], made.Y[start : start + 50]) for start in range(0, 120, 50)]
    return answers(make().fit(parts), made)


def _in_shards(make):
    made = text()
    with tempfile.TemporaryDirectory() as folder:
        datasets.write_shards(datasets.Dataset(made.X, made.Y), folder, 30)
        return answers(make().fit(datasets.open_shards(folder)), made)


def _warm(make):
    made = yeast()
    model = make().fit(made.X, made.Y)
    return answers(model.set_params(ridge=3.0, nuclear=2.0).fit(made.X, made.Y), made)


def _pair_svms():
    ranked, zero, calibrated = (
        functools.partial(cls, C=0.01, tol=1e-9, max_iter=100_000)
        for cls in (rbrl.RankSVM, rbrl.RankSVMz, rbrl.CalibratedRankSVM)
    )
    rbf = {"kernel": "rbf", "gamma": 0.02, "C": 0.1}
    settings = {
        "rank-svm-linear": ranked,
        "rank-svm-absorbed": functools.partial(ranked, bias="absorbed", threshold="smallest", non_empty=True),
        "rank-svm-rbf": functools.partial(ranked, **rbf),
        "rank-svmz-linear": zero,
        "rank-svmz-rbf": functools.partial(zero, bias="none", **rbf),
        "calibrated-rank-svm-linear": calibrated,
        "calibrated-rank-svm-rbf": functools.partial(calibrated, **rbf),
    }
    return {name: functools.partial(fitted, make, yeast) for name, make in settings.items()} | {
        "rank-svm-sparse": functools.partial(fitted, functools.partial(ranked, C=0.1), text),
        "rank-svmz-sparse": functools.partial(fitted, functools.partial(zero, C=0.1), text),
    }


def _reductions():
    """Models around binary or multi-class ones, neighbours, and MLFE."""
    rbf = {"kernel": "rbf", "gamma": 0.05, "tol": 1e-8}
    linear = {"tol": 1e-8}
    settings = {
        "br-linear": functools.partial(rbrl.BinaryRelevance, **linear),
        "br-rbf": functools.partial(rbrl.BinaryRelevance, non_empty=True, **rbf),
        "br-votes": functools.partial(rbrl.BinaryRelevance, scores="hard", **linear),
        "clr-linear": functools.partial(rbrl.CalibratedLabelRanking, **linear),
        "clr-rbf": functools.partial(rbrl.CalibratedLabelRanking, votes="soft", **rbf),
        "rakel-linear": functools.partial(rbrl.RAkEL, random_state=3, **linear),
        "rakel-disjoint": functools.partial(rbrl.RAkEL, overlapping=False, random_state=3, non_empty=True, **rbf),
        "label-powerset-linear": functools.partial(rbrl.LabelPowerset, **linear),
        "label-powerset-rbf": functools.partial(rbrl.LabelPowerset, votes="soft", **rbf),
        "ecc-linear": functools.partial(rbrl.EnsembleOfChains, n_chains=3, random_state=3, **linear),
        "ecc-rbf": functools.partial(rbrl.EnsembleOfChains, n_chains=3, max_samples=0.8, random_state=3, **rbf),
        "ml-knn": functools.partial(rbrl.MLkNN, n_neighbors=6),
        "ml-knn-scaled": functools.partial(rbrl.MLkNN, scale="minmax", non_empty=True),
        "mlfe": rbrl.MLFE,
        "mlfe-gamma": functools.partial(rbrl.MLFE, beta1=2.0, beta2=10.0, gamma=0.05, non_empty=True),
    }
    on_text = ("br-linear", "clr-linear", "rakel-linear", "label-powerset-linear", "ecc-linear", "ml-knn", "mlfe")
    cases = {name: functools.partial(fitted, make, yeast) for name, make in settings.items()}
    cases |= {
        f"{name.removesuffix('-linear')}-sparse": functools.partial(fitted, settings[name], text) for name in on_text
    }
    return cases


def _searches():
    rule = decision.Chain([decision.GlobalThreshold(), decision.NonEmpty()])
    inner = rbrl_classifier(tol=TIGHT_WITHOUT_ITERATIONS, max_iter=20000)
    tuned = functools.partial(rbrl.TunedThresholdClassifier, inner, cv=3)
    return {
        "rbrl-cv": _cross_validated,
        "path-search": _path_searched,
        "tune": _tuned,
        "thresholds": functools.partial(fitted, functools.partial(tuned, rule=decision.LabelThresholds()), yeast),
        "thresholds-chain": functools.partial(fitted, functools.partial(tuned, rule=rule), text),
        "pipeline": functools.partial(fitted, lambda: make_pipeline(StandardScaler(), inner), tiny),
    }


def _cross_validated():
    model = rbrl.RBRLClassifierCV(
        (1.0, 10.0, 100.0), (0.1, 1.0), (0.0, 1.0), estimator=rbrl_classifier(tol=TIGHT, max_iter=20000), cv=3
    )
    made = yeast()
    return _search_answers(model.fit(made.X, made.Y), made)


def _path_searched():
    model = selection.PathSearchCV(
        cpnl_classifier(tol=TIGHT, max_iter=20000), {"ridge": [1.0, 10.0], "positive": [0.1, 1.0]}, cv=3
    )
    made = text()
    return _search_answers(model.fit(made.X, made.Y), made)


def _search_answers(model, problem):
    means = {name: np.asarray(value) for name, value in model.cv_results_.items() if name.startswith("mean_test")}
    best = {name: np.asarray(value) for name, value in model.best_params_.items()}
    return answers(model.best_estimator_, problem) | means | best


def _tuned():
    made = yeast()
    found = selection.tune(rbrl.MLkNN(), {"n_neighbors": [4, 8]}, made.X, made.Y, folds=3)
    return {name: found[name].to_numpy() for name in found if name not in ("fit_seconds", "gap", "evaluations")}


def _in_batches():
    made = yeast()
    model = rbrl_classifier(nuclear=1.0)
    for start in range(0, 120, 40):
        model.partial_fit(made.X[start : start + 40], made.Y[start : start + 40])
    return answers(model, made)


def _as_the_authors_did():
    solver = solvers.APG(lipschitz="paper", stop="paper")
    return fitted(functools.partial(rbrl_classifier, kernel="rbf", solver=solver, non_empty=True), yeast)


def _of_limited_rank():
    return fitted(functools.partial(rbrl_classifier, ridge=10.0, nuclear=0.0, max_rank=2, tol=1e-9), yeast)


def _in_single_precision():
    made = yeast()
    made = Problem(made.X.astype(np.float32), made.Y, made.X_new.astype(np.float32))
    return answers(rbrl_classifier(ridge=10.0, tol=1e-6).fit(made.X, made.Y), made)


def _codings():
    """Labels of -1/+1, sparse ones, classes and words."""
    made = tiny()
    make = functools.partial(rbrl_classifier, tol=TIGHT, max_iter=20000)
    words = np.array(["low", "middle", "high"])[made.Y[:, :2].sum(axis=1)]
    by_words = make().fit(made.X, words)
    return {
        "signed": make().fit(made.X, 2 * made.Y - 1).predict(made.X_new),
        "sparse": plain(make().fit(made.X, sparse.csr_array(made.Y)).predict(made.X_new)),
        "binary": make().fit(made.X, made.Y[:, 0]).predict(made.X_new),
        "words": by_words.predict(made.X_new),
        "scores": by_words.decision_function(made.X_new),
    }


def _scores_of_zero():
    """Labels of a row of zeros by models without an intercept: is a score of 0 relevant?"""
    made, zeros = tiny(), np.zeros((1, 5))
    models = {
        "rbrl": rbrl_classifier(fit_intercept=False),
        "rbrl_non_empty": rbrl_classifier(fit_intercept=False, non_empty=True),
        "cpnl": cpnl_classifier(fit_intercept=False),
        "rank_svm": rbrl.RankSVM(bias="none"),
        "rank_svmz": rbrl.RankSVMz(bias="none"),
        "calibrated_rank_svm": rbrl.CalibratedRankSVM(bias="none"),
    }
    return {name: model.fit(made.X, made.Y).predict(zeros) for name, model in models.items()}


def _rules():
    rng = np.random.default_rng(2)
    scores = np.round(rng.normal(size=(40, 5)), 1)  # with ties, and zeros
    scores[0], scores[1] = 0, -1
    Y = (scores + rng.normal(size=scores.shape) > 0.4).astype(np.int64)
    rules = {
        "zero": decision.ZeroThreshold(),
        "non_empty": decision.NonEmpty(),
        "top_k": decision.TopK(2),
        "row": decision.RowThreshold(),
        "row_smallest": decision.RowThreshold("smallest", ties_relevant=True),
        "global": decision.GlobalThreshold(),
        "label": decision.LabelThresholds(),
        "label_hamming": decision.LabelThresholds("hamming_loss"),
        "chain": decision.Chain([decision.LabelThresholds(), decision.NonEmpty()]),
    }
    found = {name: rule.fit(scores, Y).shift(scores) for name, rule in rules.items()}
    found |= {f"{name}_labels": rule.labels(scores) for name, rule in rules.items()}
    found["filled"] = decision.non_empty((scores > 0.5).astype(np.int64), scores)
    labels, values = decision.top_labels(scores, 2)
    return found | {
        "top_labels": labels,
        "top_values": values,
        "ideal_row": decision.thresholds.ideal_row_thresholds(scores, Y),
    }


def _metrics():
    rng = np.random.default_rng(3)
    scores = np.round(rng.normal(size=(50, 6)), 1)  # with ties
    Y = (scores + rng.normal(size=scores.shape) > 0.4).astype(np.int64)
    Y[0], Y[1] = 0, 1
    labels = (scores > 0).astype(np.int64)
    known = [name for name, metric in metrics.METRICS.items() if metric.needs != "probabilities"]
    names = [*known, "precision_at_3", "ndcg_at_3", "recall_at_3"]
    return {
        f"{name}-{convention}": np.asarray(metrics.evaluate(Y, labels, scores, [name], convention)[name])
        for name in dict.fromkeys(names)
        for convention in metrics.CONVENTIONS
    }


def _splits():
    Y = yeast().Y
    train, test = splits.random_split(120, 4)
    stratified = next(splits.IterativeStratifiedShuffleSplit(1, 0.6, random_state=4).split(Y, Y))
    folds = [test for _, test in splits.IterativeStratifiedKFold(3, random_state=4).split(Y, Y)]
    found = {"train": train, "test": test, "stratified_train": stratified[0], "stratified_test": stratified[1]}
    return found | {f"fold{i}": fold for i, fold in enumerate(folds)}


CERTIFIED = _certified()
PAIRS = _pair_svms()
CASES = {
    **CERTIFIED,
    **PAIRS,
    **_reductions(),
    **_searches(),
    "rbrl-partial-fit": _in_batches,
    "rbrl-authors": _as_the_authors_did,
    "rbrl-max-rank": _of_limited_rank,
    "rbrl-float32": _in_single_precision,
    "codings": _codings,
    "scores-of-zero": _scores_of_zero,
    "rules": _rules,
    "metrics": _metrics,
    "splits": _splits,
}


def models():
    """One small fitted model of every class, by the name of its file."""
    made = tiny()
    few = {"random_state": 0, "kernel": "rbf"}
    rule = decision.Chain([decision.LabelThresholds(), decision.NonEmpty()])
    unfitted = {
        "rbrl": rbrl_classifier(solver=solvers.APG(lipschitz="paper", stop="paper"), non_empty=True),
        "rbrl-rbf": rbrl_classifier(kernel="rbf", low_rank="function", solver=solvers.QuasiNewton()),
        "rbrl-nystroem": rbrl_classifier(kernel="rbf", approximation="nystroem", n_components=6, random_state=0),
        "brl": brl_classifier(solver=solvers.LowRank()),
        "cpnl": cpnl_classifier(),
        "rank-svm": rbrl.RankSVM(C=0.1),
        "rank-svmz": rbrl.RankSVMz(C=0.1, kernel="rbf"),
        "calibrated-rank-svm": rbrl.CalibratedRankSVM(C=0.1),
        "br": rbrl.BinaryRelevance(),
        "br-rbf": rbrl.BinaryRelevance(kernel="rbf"),
        "clr": rbrl.CalibratedLabelRanking(),
        "rakel": rbrl.RAkEL(n_subsets=2, **few),
        "label-powerset": rbrl.LabelPowerset(),
        "ecc": rbrl.EnsembleOfChains(n_chains=2, random_state=0),
        "ml-knn": rbrl.MLkNN(n_neighbors=4),
        "mlfe": rbrl.MLFE(),
        "rbrl-cv": rbrl.RBRLClassifierCV((1.0, 10.0), (0.1,), (0.0, 1.0), estimator=rbrl_classifier(), cv=2),
        "path-search": selection.PathSearchCV(brl_classifier(), {"ridge": [1.0, 10.0]}, cv=2),
        "thresholds": rbrl.TunedThresholdClassifier(brl_classifier(), rule=decision.LabelThresholds(), cv=2),
        "thresholds-chain": rbrl.TunedThresholdClassifier(brl_classifier(), rule=rule, cv=2),
        "thresholds-global": rbrl.TunedThresholdClassifier(brl_classifier(), rule=decision.GlobalThreshold(), cv=2),
        "thresholds-top": rbrl.TunedThresholdClassifier(brl_classifier(), rule=decision.TopK(2), cv=2),
        "calibrated": rbrl.CalibratedMultiLabelClassifier(brl_classifier(), cv=2),
        "calibrated-isotonic": rbrl.CalibratedMultiLabelClassifier(brl_classifier(), method="isotonic", cv=2),
        "pipeline": make_pipeline(StandardScaler(), rbrl_classifier()),
    }
    found = {name: model.fit(made.X, made.Y) for name, model in unfitted.items()}
    found["partial-fit"] = brl_classifier().partial_fit(made.X, made.Y)
    return found
