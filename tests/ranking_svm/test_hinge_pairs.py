"""Pairs of the ranking SVMs: worked out by hand, and the compiled loops against their definition."""

import inspect

import numpy as np
import pytest
from scipy import sparse

from problems import random_labels
from rbrl._loops import reference
from rbrl.ranking_svm.pairs import calibrated_pairs, ranking_pairs, zero_label_pairs

compiled = pytest.importorskip("rbrl._loops.compiled")
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
    monkeypatch.setattr("rbrl.ranking_svm.pairs.BLOCK", 60)
    for one, other in zip(whole.arrays, build(labels, 1.0).arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_pair_at_all():
    pairs = ranking_pairs(Y[1:], 1.0)
    assert pairs.value(F[1:]) == 0
    assert not pairs.coefficients(np.empty(0)).any()


KERNELS = (
    "ascend_gram", "ascend_rows", "gram_blocks", "pair_hinge", "pair_products", "pair_slacks", "pair_sums", "project_pairs",
)  # fmt: skip


def arguments(function, seed=0, n=9):
    """One array for each argument's name."""
    rng = np.random.default_rng(seed)
    pairs = calibrated_pairs(random_labels(rng, n, 4), 1.0)
    X = sparse.csr_array(rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.5))
    X[0] = 0.0
    K, l = (X @ X.T).toarray(), pairs.n_labels
    alpha = rng.random(len(pairs.cap)) * pairs.cap
    values = dict(zip(("start", "winner", "loser", "margin", "cap"), pairs.arrays, strict=True))
    values |= {"alpha": alpha, "new": np.zeros_like(alpha), "out": np.zeros_like(alpha)}
    values |= {"curvatures": rng.random(len(alpha)), "values": rng.random(len(alpha)), "sign": -1.0}
    values |= {"data": X.data, "indices": X.indices, "indptr": X.indptr, "norms": np.diag(K).copy(), "K": K}
    values |= {"biases": rng.standard_normal(l), "lift": 0.0, "order": rng.permutation(n), "inner": 3}
    values |= {"F": rng.standard_normal((n, l)), "R": rng.random((n, l)), "steps": 0.1 + rng.random(n)}
    values |= {"r": rng.random(l), "scores": rng.standard_normal((l, n)), "W": rng.standard_normal((6, l))}
    values["H"] = rng.random((l, l) if function.__name__ == "project_pairs" else (n, l))
    values["G"] = rng.random((6, 6, l))
    return {name: values[name] for name in inspect.signature(function).parameters}


@pytest.mark.parametrize("name", KERNELS)
def test_both_modules_hold_the_same_functions(name):
    ours, theirs = (tuple(inspect.signature(getattr(module, name)).parameters) for module in (reference, compiled))
    assert ours == theirs


@pytest.mark.parametrize("name", KERNELS)
def test_compiled_equals_reference(name):
    defined, fast = getattr(reference, name), getattr(compiled, name)
    expected, got = arguments(defined), arguments(defined)
    values = [f(*a.values()) for f, a in ((defined, expected), (fast, got))]
    assert (values[0] is None) == (values[1] is None)
    if values[0] is not None:
        assert values[1] == pytest.approx(values[0], rel=1e-12)
    for key, value in got.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-11, atol=1e-12, err_msg=key)
