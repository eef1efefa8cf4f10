"""The sklearn convention equals scikit-learn on thousands of small cases with ties."""

import numpy as np
import pytest
from sklearn import metrics as sk

from rbrl.metrics import METRICS

LABEL_METRICS = {
    "hamming_loss": sk.hamming_loss,
    "subset_accuracy": sk.accuracy_score,
    "f1_example": lambda Y, L: sk.f1_score(Y, L, average="samples", zero_division=0),
    "accuracy_example": lambda Y, L: sk.jaccard_score(Y, L, average="samples", zero_division=0),
    "f1_micro": lambda Y, L: sk.f1_score(Y, L, average="micro", zero_division=0),
    "f1_macro": lambda Y, L: sk.f1_score(Y, L, average="macro", zero_division=0),
    "f1_weighted": lambda Y, L: sk.f1_score(Y, L, average="weighted", zero_division=0),
}
SCORE_METRICS = {
    "ranking_loss": sk.label_ranking_loss,
    "coverage": sk.coverage_error,
    "average_precision": sk.label_ranking_average_precision_score,
    "ndcg_at_3": lambda Y, F: sk.ndcg_score(Y, F, k=3),
}
N_CASES = 1000


@pytest.mark.parametrize("name", LABEL_METRICS)
def test_label_metrics(name, random_prediction):
    rng = np.random.default_rng(0)
    for _ in range(N_CASES // 5):
        Y, labels, _ = random_prediction(rng)
        ours = METRICS[name].value(Y, labels=labels, convention="sklearn")
        assert ours == pytest.approx(LABEL_METRICS[name](Y, labels), abs=1e-12), (Y, labels)


@pytest.mark.parametrize("name", SCORE_METRICS)
def test_score_metrics(name, random_prediction):
    rng = np.random.default_rng(1)
    for _ in range(N_CASES):
        Y, _, scores = random_prediction(rng)
        ours = METRICS[name].value(Y, scores=scores, convention="sklearn")
        assert ours == pytest.approx(SCORE_METRICS[name](Y, scores), abs=1e-12), (Y, scores)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_auc_where_every_label_is_defined(average, random_prediction):
    rng = np.random.default_rng(2)
    for _ in range(N_CASES // 5):
        Y, _, scores = random_prediction(rng, n_samples=8)
        Y[0], Y[1] = 0, 1
        ours = METRICS[f"auc_{average}"].value(Y, scores=scores, convention="sklearn")
        assert ours == pytest.approx(sk.roc_auc_score(Y, scores, average=average), abs=1e-12), (Y, scores)


def test_conventions_agree_where_definitions_do(random_prediction):
    """Without ties, and with a pair in every row, only coverage differs, by an affine map."""
    rng = np.random.default_rng(4)
    for _ in range(N_CASES // 5):
        Y, labels, _ = random_prediction(rng)
        Y[:, 0], Y[:, 1] = 1, 0
        scores = rng.permuted(np.arange(Y.size)).reshape(Y.shape) / Y.size
        for name in ("ranking_loss", "average_precision", "f1_example", "ndcg_at_3", "one_error"):
            paper, sklearn = (METRICS[name].value(Y, labels, scores, c) for c in ("paper", "sklearn"))
            assert paper == pytest.approx(sklearn, abs=1e-12), name
        paper, sklearn = (METRICS["coverage"].value(Y, labels, scores, c) for c in ("paper", "sklearn"))
        assert paper == pytest.approx((sklearn - 1) / Y.shape[1], abs=1e-12)
