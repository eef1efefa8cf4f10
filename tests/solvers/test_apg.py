"""APG: the constants, the stops, what a result says."""

import numpy as np
import pytest

from problems import DESIGNS, random_design, random_labels, random_objective, rbrl_loss
from rbrl.losses import CostWeightedSquaredHinge, LabelGraph, SquaredHinge, WeightedSum
from rbrl.problem import MatrixDesign
from rbrl.problem.objective import Objective
from rbrl.solvers import APG, SOLVERS
from rbrl.solvers.apg import paper, rigorous


def counterexample():
    """One row, one pair: the paper's constant is 4.243, the true one 6, the optimum 5/6 at W = (5/6, -5/6)."""
    return Objective(MatrixDesign(np.array([[1.0]])), np.array([[1, -1]]), rbrl_loss(2.0), ridge=1.0, nuclear=0.0)


def test_the_rigorous_constant_solves_the_counterexample():
    assert rigorous(counterexample()) == pytest.approx(6.0)
    result = APG().solve(counterexample(), tol=1e-10)
    assert result.converged
    assert result.objective == pytest.approx(5 / 6, rel=1e-10)
    np.testing.assert_allclose(result.weights, [[5 / 6, -5 / 6]], rtol=1e-5)


def test_the_papers_constant_oscillates_on_the_counterexample():
    assert paper(counterexample()) == pytest.approx(np.sqrt(18))
    result = APG(lipschitz="paper", stop="paper").solve(counterexample())
    assert "after 1999 iterations" in result.messages[0]
    assert result.gap > 1e-3
    tail = result.history[-100:]
    assert tail.max() - tail.min() > 1e-3
    assert np.count_nonzero(np.diff(tail) > 0) > 10


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", DESIGNS)
def test_a_result_describes_itself(name, kind):
    objective = random_objective(np.random.default_rng(0), kind, weights=np.arange(12.0) / 6)
    if name == "dual-ascent" and not isinstance(objective.design, MatrixDesign):
        pytest.skip("dual ascent visits the rows of features")
    before = objective.evaluations
    result = SOLVERS[name]().solve(objective, tol=1e-6, max_iter=20_000)
    assert result.evaluations == objective.evaluations - before
    assert result.converged
    assert result.gap <= 1e-6
    assert len(result.history) == result.n_iter
    assert result.objective == pytest.approx(objective.value(result.weights), rel=1e-12)
    assert result.history[-1] == pytest.approx(result.objective, rel=1e-12)
    if name == "dual-ascent":
        assert result.scores is None
    else:
        np.testing.assert_allclose(result.scores, objective.design.scores(result.weights), atol=1e-8)


def test_an_iteration_costs_one_evaluation():
    costs = []
    for n_iter in (20, 70):
        objective = random_objective(np.random.default_rng(0))
        result = APG(check_every=10**9).solve(objective, tol=1e-15, max_iter=n_iter)
        assert result.messages
        costs.append(result.evaluations)
    assert costs[1] - costs[0] == 50


def test_an_unmet_tolerance_returns_a_message_with_the_gap_and_the_way_out():
    result = APG().solve(random_objective(np.random.default_rng(0)), tol=1e-12, max_iter=3)
    (message,) = result.messages
    assert f"APG stopped after 3 iterations (max_iter=3) with a certified relative gap of {result.gap:.1e}" in message
    assert "above tol=1e-12. Raise max_iter or tol" in message
    assert not result.converged


def test_a_paper_stop_without_convergence_does_not_compare_the_gap_with_its_tolerance():
    """Its 1e-6 is a change of the objective, not a gap."""
    (message,) = APG(lipschitz="paper", stop="paper").solve(counterexample(), tol=0.5).messages
    assert "certified relative gap of" in message
    assert "above tol" not in message
    assert "lipschitz='rigorous' with stop='gap'" in message


def test_a_good_start_is_used():
    objective = random_objective(np.random.default_rng(1), "coefficients")
    best = APG(restart=True).solve(objective, tol=1e-9, max_iter=50_000)
    again = APG(restart=True).solve(objective, start=best.weights, tol=1e-8)
    assert again.n_iter <= 10 < best.n_iter


def test_restart_never_needs_many_more_iterations():
    objective = random_objective(np.random.default_rng(2), lambdas=(1.0, 0.5, 0.3))
    plain, restarted = (APG(restart=r).solve(objective, tol=1e-9, max_iter=20_000).n_iter for r in (False, True))
    assert restarted < plain


@pytest.mark.parametrize("stop", ["gap", "paper"])
@pytest.mark.parametrize("kind", ["dense", "coefficients"])
@pytest.mark.parametrize("lambdas", [(0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1e2, 0.0, 1e2), (0.0, 0.0, 1e2)])
def test_no_division_by_zero_at_the_edges(stop, kind, lambdas):
    """Penalties of zero, weights that stay zero, a loss that reaches zero."""
    rng = np.random.default_rng(3)
    ridge, ranking, nuclear = lambdas
    design, Y = random_design(rng, kind, n=6, m=8), random_labels(rng, 6, 3)
    objective = Objective(design, Y, rbrl_loss(ranking), ridge, nuclear)
    with np.errstate(all="raise", under="ignore"):
        result = APG(stop=stop, restart=True).solve(objective, tol=1e-6)
    assert np.isfinite(result.objective)
    assert np.isfinite(result.weights).all()
    assert not np.isnan(result.gap)


@pytest.mark.parametrize("stop", ["gap", "paper"])
def test_a_loss_that_reaches_zero_and_a_design_of_zeros(stop):
    Y = np.array([[1], [1]])
    perfect = Objective(MatrixDesign(np.ones((2, 1))), Y, SquaredHinge(), 0.0, 0.0)
    assert APG(stop=stop).solve(perfect).objective == 0
    nothing = Objective(MatrixDesign(np.zeros((2, 3))), Y, SquaredHinge(), 0.0, 0.0)
    assert APG(stop=stop).solve(nothing).objective == pytest.approx(1.0)
    assert APG(stop=stop).solve(nothing).gap == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("name", "value"), [("lipschitz", "tight"), ("stop", "never")])
def test_unknown_options_are_refused(name, value):
    with pytest.raises(ValueError, match=f"The {name} parameter of APG must be one of .* Got '{value}'"):
        APG(**{name: value}).solve(counterexample())


def test_the_papers_constant_is_for_the_papers_loss():
    objective = Objective(MatrixDesign(np.eye(2)), np.array([[1], [-1]]), "exponential", 1.0, 0.0)
    with pytest.raises(
        ValueError, match=r"lipschitz='paper' is defined for the losses of RBRL and CPNL only. Got 'exponential'"
    ):
        paper(objective)


def test_cpnls_constant_by_hand():
    """X = (3, 4)': squares 25, X'X = 25. Costs 2 and 5, of which only the first has a relevant label; graph norm 0.5 * 6."""
    X, Y = np.array([[3.0], [4.0]]), np.array([[1, -1], [-1, -1]])
    loss = WeightedSum((1.0, CostWeightedSquaredHinge(np.array([2.0, 5.0]))), (0.5, LabelGraph(np.diag([6.0, 0.0]))))
    objective = Objective(MatrixDesign(X), Y, loss, ridge=10.0, nuclear=0.0)
    expected = 2 * np.sqrt((25 * 2) ** 2 + 10**2 + (0.5 * 6 * 25) ** 2)
    assert paper(objective) == pytest.approx(expected)
    assert paper(objective) >= rigorous(objective)
