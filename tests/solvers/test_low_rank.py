"""The factored solver on its own: the optimum that the default finds, or a local one of a given rank."""

import numpy as np
import pytest

from problems import DESIGNS, random_objective
from rbrl import BRLClassifier, RBRLClassifier
from rbrl._common import linalg as _linalg
from rbrl._common.linalg import leading_singular
from rbrl.losses import SquaredHinge
from rbrl.problem import MatrixDesign
from rbrl.problem.objective import Objective
from rbrl.solvers import LowRank, QuasiNewton, factored

LAMBDAS = [(1.0, 0.5, 0.3), (0.1, 1.0, 3.0), (1.0, 0.0, 30.0), (2.0, 0.1, 0.0)]


def rank(W):
    sigma = np.linalg.svd(W, compute_uv=False)
    return np.count_nonzero(sigma > 1e-6 * sigma.max(initial=0.0))


@pytest.mark.parametrize("lambdas", LAMBDAS, ids=str)
@pytest.mark.parametrize("kind", DESIGNS)
def test_it_ends_at_the_certified_optimum(kind, lambdas):
    objective = random_objective(np.random.default_rng(0), kind, lambdas, n=20, l=6)
    result, default = LowRank().solve(objective, tol=1e-6), QuasiNewton().solve(objective, tol=1e-6)
    assert result.converged
    assert result.gap <= 1e-6
    assert result.objective == pytest.approx(objective.value(result.weights), rel=1e-9)
    assert result.objective == pytest.approx(default.objective, rel=2e-6)


def test_columns_join_when_it_starts_with_too_few():
    objective = random_objective(np.random.default_rng(1), lambdas=(1.0, 0.5, 0.1), n=40, l=6)
    one = np.outer(np.ones(objective.shape[0]), np.ones(6))
    result = LowRank().solve(objective, start=one, tol=1e-6)
    assert result.gap <= 1e-6
    assert rank(result.weights) > 1


def test_partial_decompositions_find_the_same_optimum(monkeypatch):
    objective = random_objective(np.random.default_rng(7), lambdas=(1.0, 0.5, 1.0), n=60, l=6)
    whole = LowRank().solve(objective, tol=1e-6)
    monkeypatch.setattr(_linalg, "EXACT_BELOW", 0)
    monkeypatch.setattr(factored, "EXACT_BELOW", 0)
    part = LowRank(first_rank=2).solve(objective, tol=1e-6)
    assert part.gap <= 1e-6
    assert part.objective == pytest.approx(whole.objective, rel=2e-6)


@pytest.mark.parametrize("kind", DESIGNS)
def test_a_larger_rank_is_no_worse_and_the_largest_the_optimum(kind):
    objective = random_objective(np.random.default_rng(2), kind, (1.0, 0.5, 0.1), n=20, l=5)
    results = [LowRank(k).solve(objective, tol=1e-5) for k in range(1, 6)]
    assert all(rank(result.weights) <= k for k, result in enumerate(results, 1))
    assert all(result.converged for result in results)
    values = np.array([result.objective for result in results])
    assert np.all(np.diff(values) <= 1e-4 * values[:-1])
    assert results[-1].gap <= 1e-5


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_limited_rank_is_that_of_eckart_and_young_where_the_loss_is_a_square(k):
    # |w| <= sqrt(5) / 4 < 1: every hinge is active, and the problem is the best rank-k approximation of Y / (1 + ridge).
    Y = np.where(np.random.default_rng(3).random((30, 5)) < 0.5, np.int8(1), np.int8(-1))
    objective = Objective(MatrixDesign(np.eye(30)), Y, SquaredHinge(), 3.0, 0.0)
    sigma = np.linalg.svd(Y.astype(float), compute_uv=False)
    best = 0.5 * (np.sum(sigma**2) - np.sum(sigma[:k] ** 2) / 4.0)
    result = LowRank(k).solve(objective, tol=1e-8)
    assert result.objective == pytest.approx(best, rel=1e-7)
    optimum = 0.5 * np.sum(sigma**2) * 0.75
    assert result.objective <= optimum * (1 + result.gap) * (1 + 1e-9)


@pytest.mark.parametrize("exact_below", [0, 1000])
@pytest.mark.parametrize("shape", [(40, 9), (9, 40)])
def test_leading_singular_triples(shape, exact_below, monkeypatch):
    monkeypatch.setattr(_linalg, "EXACT_BELOW", exact_below)
    rng = np.random.default_rng(4)
    P, Q = np.linalg.qr(rng.standard_normal((shape[0], 4)))[0], np.linalg.qr(rng.standard_normal((shape[1], 4)))[0]
    W = (P * [5.0, 3.0, 2.0, 0.5]) @ Q.T
    left, sigma, right = leading_singular(W, 3, above=1.0)
    np.testing.assert_allclose(sigma, [5.0, 3.0, 2.0])
    np.testing.assert_allclose((left * sigma) @ right.T, (P[:, :3] * [5.0, 3.0, 2.0]) @ Q[:, :3].T, atol=1e-9)
    assert leading_singular(W, 2)[1] == pytest.approx([5.0, 3.0])
    assert leading_singular(W, 2, near=Q[:, 2:])[1] == pytest.approx([5.0, 3.0])
    assert len(leading_singular(np.zeros(shape), 3)[1]) == 0


@pytest.mark.parametrize("nuclear", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("model", [RBRLClassifier, BRLClassifier])
def test_estimators_take_a_largest_rank(model, kernel, nuclear):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 8))
    Y = (X @ rng.standard_normal((8, 6)) > 0).astype(int)
    free = model(kernel=kernel, nuclear=nuclear).fit(X, Y)
    fitted = model(kernel=kernel, nuclear=nuclear, max_rank=2).fit(X, Y)
    assert free.rank_ > 2 >= fitted.rank_
    assert free.objective_ / (1 + 1e-4) <= fitted.objective_ <= free.objective_ * (1 + fitted.gap_)


def test_rows_in_blocks_may_have_a_largest_rank():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((90, 8))
    Y = (X @ rng.standard_normal((8, 6)) > 0).astype(int)
    whole = RBRLClassifier(max_rank=2, tol=1e-5).fit(X, Y)
    parts = RBRLClassifier(max_rank=2, tol=1e-5).fit([(X[i : i + 30], Y[i : i + 30]) for i in (0, 30, 60)])
    assert parts.rank_ == whole.rank_ == 2
    assert parts.objective_ == pytest.approx(whole.objective_, rel=1e-6)


def test_a_largest_rank_needs_the_solver_that_keeps_it():
    with pytest.raises(ValueError, match=r"max_rank=2.*solver='apg'.*max_rank=None"):
        RBRLClassifier(max_rank=2, solver="apg").fit(np.eye(3), np.eye(3, dtype=int))
    with pytest.raises(ValueError, match="max_rank"):
        RBRLClassifier(max_rank=0).fit(np.eye(3), np.eye(3, dtype=int))
    with pytest.raises(ValueError, match="max_rank"):
        LowRank(0).solve(random_objective(np.random.default_rng(6)))
