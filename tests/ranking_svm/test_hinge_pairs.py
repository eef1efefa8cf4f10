"""Pairs of the ranking SVMs, worked out by hand."""

import numpy as np
import pytest

from problems import random_labels
from rbrl.ranking_svm.pairs import calibrated_pairs, ranking_pairs, zero_label_pairs

Y = np.array([[1, 1, -1], [1, 1, 1], [-1, -1, -1]], np.int8)
F = np.array([[0.5, 3.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
WITH_ZERO = np.hstack([F, [[1.0], [0.25], [0.25]]])
BUILDERS = (ranking_pairs, zero_label_pairs, calibrated_pairs)


@pytest.mark.parametrize(
    ("build", "scores", "value"),
    [
        # pairs (0, 2) and (1, 2) of row 0 lack 1 - (0.5 - 2) = 2.5 and 0, at the price 4 / 2
        (ranking_pairs, F, 2 * 2.5),
        # row 0: 1 - (0.5 - 1), 0 at the price 4 / 2, and 1 - (1 - 2) at 4; rows 1, 2: 1.25 and 0.75 on average
        (zero_label_pairs, WITH_ZERO, 2 * 1.5 + 4 * 2 + 4 * 1.25 + 4 * 0.75),
        # row 0 at 4 / 2: (0, 2), (1, 2) lack 3.5 and 1, (0, zero) 1.5, (zero, 2) 2; rows 1, 2 at 4 / 3
        (calibrated_pairs, WITH_ZERO, 2 * (3.5 + 1 + 1.5 + 2) + 4 / 3 * (3 * 1.25 + 3 * 0.75)),
    ],
)
def test_values_worked_out_by_hand(build, scores, value):
    assert build(Y, 4.0).value(scores) == pytest.approx(value)
    assert build(Y, 2.0, [2, 2, 2]).value(scores) == pytest.approx(value)
    assert build(np.repeat(Y, 2, axis=0), 2.0).value(np.repeat(scores, 2, axis=0)) == pytest.approx(value)


@pytest.mark.parametrize("build", BUILDERS)
def test_blocks_of_rows_give_the_same_pairs(build, monkeypatch):
    labels = random_labels(np.random.default_rng(0), 20, 5)
    whole = build(labels, 1.0)
    monkeypatch.setattr("rbrl.ranking_svm.pairs.COMPARED_PAIRS", 60)
    for one, other in zip(whole.arrays, build(labels, 1.0).arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_pair_at_all():
    pairs = ranking_pairs(Y[1:], 1.0)
    assert pairs.value(F[1:]) == 0
    assert not pairs.coefficients(np.empty(0)).any()
