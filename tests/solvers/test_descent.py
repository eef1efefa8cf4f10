"""The descent without certificate: where it ends, when it stops, and what it says of it."""

import numpy as np
import pytest

from problems import DESIGNS, random_labels, random_objective, rbrl_loss
from rbrl.out_of_core import BlockDesign, LocalBlocks
from rbrl.out_of_core.objective import BlockObjective
from rbrl.solvers import Descent, QuasiNewton
from rbrl.solvers.line_search import NewtonLineSearch


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("start", ["zeros", "own"])
def test_to_a_small_tolerance_it_is_the_optimum(kind, start):
    objective = random_objective(np.random.default_rng(0), kind, (0.1, 1.0, 0.1))
    best = QuasiNewton().solve(objective, tol=1e-9)
    result = Descent().solve(objective, objective.zeros() if start == "zeros" else None, tol=1e-10)
    assert result.converged
    assert result.objective == pytest.approx(best.objective, rel=1e-5)
    assert best.objective <= result.objective * (1 + 1e-9)
    assert result.objective <= best.objective * (1 + result.gap)
    assert np.all(np.diff(result.history) <= 1e-15 * result.history[:-1])
    assert len(result.history) == len(result.costs) == result.n_iter
    assert result.history[-1] == result.objective == pytest.approx(objective.value(result.weights), rel=1e-8)


def test_a_step_that_would_gain_too_little_is_not_taken():
    objective = random_objective(np.random.default_rng(0))
    best = QuasiNewton().solve(objective, tol=1e-10)
    again = Descent().solve(objective, best.weights, scores=best.scores)
    assert again.converged
    assert again.n_iter == 1
    assert again.evaluations == 0.5, "one product for the gradient"
    assert Descent().solve(objective, best.weights).evaluations == 1.0


def test_a_gap_is_valid_however_early_it_stops():
    for seed in range(10):
        objective = random_objective(np.random.default_rng(seed), DESIGNS[seed % 6], (0.01, 1.0, 0.01))
        quick, best = Descent().solve(objective, tol=1e-3), QuasiNewton().solve(objective, tol=1e-7)
        assert quick.converged
        assert quick.evaluations < best.evaluations
        assert best.objective <= quick.objective * (1 + 1e-7) <= best.objective * (1 + quick.gap) * (1 + 2e-7)


def test_running_out_of_iterations_returns_a_message():
    objective = random_objective(np.random.default_rng(5), lambdas=(1e-4, 1.0, 1e-4))
    result = Descent().solve(objective, tol=1e-12, max_iter=3)
    assert "The descent stopped after 3 iterations (max_iter=3)" in result.messages[0]
    assert "start nearer" in result.messages[0]
    assert not result.converged
    assert len(result.history) == 3


def test_where_nothing_descends_it_forgets_its_steps_and_then_ends(monkeypatch):
    objective = random_objective(np.random.default_rng(0), lambdas=(0.01, 1.0, 0.01))
    taken, step_lengths = [], NewtonLineSearch.step_lengths

    def first_only(search, ray, slope, joint, *options):
        taken.append(slope)
        return step_lengths(search, ray, slope, joint, *options) if len(taken) == 1 else np.zeros(4)

    monkeypatch.setattr(NewtonLineSearch, "step_lengths", first_only)
    result = Descent().solve(objective, objective.zeros(), tol=1e-12)
    assert "after 2 iterations" in result.messages[0]
    assert len(taken) == 3, "a step, one with its memory, one without"
    assert not result.converged


def test_rows_in_blocks_descend_too():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 5)), random_labels(rng, 40, 4)
    blocks = LocalBlocks([(X[:15], Y[:15]), (X[15:], Y[15:])])
    objective = BlockObjective(BlockDesign(blocks, intercept=True), rbrl_loss(0.5), 0.5, 0.2)
    best = QuasiNewton().solve(objective, tol=1e-8)
    result = Descent().solve(objective, tol=1e-10)
    assert result.objective == pytest.approx(best.objective, rel=1e-5)
    assert np.all(np.diff(result.history) <= 1e-12 * result.history[:-1])
