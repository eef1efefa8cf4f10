"""Dual ascent over rows: it reaches the optimum of the quasi-Newton solver, its dual values never fall, and it says what it
does not take."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from problems import random_entries, random_labels, random_objective, rbrl_loss, row_design
from rbrl import RBRLClassifier
from rbrl._loops import COMPILED
from rbrl.losses import CostWeightedSquaredHinge, LabelGraph, PairwiseSquaredHinge, SquaredHinge, WeightedSum
from rbrl.problem import MatrixDesign, Objective, SpectralDesign
from rbrl.solvers import DualAscent, QuasiNewton
from rbrl.solvers.dual_ascent import Ascent
from rbrl.solvers.solve import SolverRule

LOSSES = {
    "hinge": SquaredHinge(),
    "pairs": PairwiseSquaredHinge(),
    "both": rbrl_loss(1.0),
    "strong ranking": rbrl_loss(100.0),
    "costs": CostWeightedSquaredHinge(np.array([0.5, 1.0, 2.0, 4.0])),
}
PENALTIES = [(1.0, 0.0), (1.0, 0.5), (30.0, 3.0), (0.01, 0.0), (0.01, 0.1), (1.0, 100.0)]


def objective_of(seed, loss="both", ridge=1.0, nuclear=0.3, kind="dense", weights=None, n=20, m=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    X[3] = 0.0
    if kind == "sparse":
        X = sparse.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0.0))
    return Objective(row_design(X), random_labels(rng, n, 4), LOSSES[loss], ridge, nuclear, weights)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(("ridge", "nuclear"), PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_reaches_the_optimum(loss, ridge, nuclear, kind):
    objective = objective_of(0, loss, ridge, nuclear, kind)
    result = DualAscent().solve(objective, tol=1e-7, max_iter=20_000)
    best = QuasiNewton().solve(objective, tol=1e-9, max_iter=20_000)
    assert result.gap <= 1e-7
    assert best.objective * (1 - 1e-9) <= result.objective <= best.objective * (1 + 2e-7)
    assert result.objective == pytest.approx(objective.value(result.weights), rel=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_more_columns_than_rows_and_more_labels_than_columns(kind):
    for n, m in ((8, 30), (30, 3)):
        objective = objective_of(1, nuclear=0.5, kind=kind, n=n, m=m)
        result = DualAscent().solve(objective, tol=1e-8, max_iter=20_000)
        assert result.objective <= QuasiNewton().solve(objective, tol=1e-9).objective * (1 + 1e-8)


@pytest.mark.parametrize("ranking", [0.0, 2.0])
def test_missing_labels_and_weights_of_entries(ranking):
    Y, _, weights = random_entries(0, n=20, l=5)
    X = np.random.default_rng(0).standard_normal((20, 6))
    kept = Y.any(axis=1)
    objective = Objective(row_design(X[kept]), Y[kept], rbrl_loss(ranking), 1.0, 0.2, weights[kept])
    result = DualAscent().solve(objective, tol=1e-8, max_iter=5000)
    best = QuasiNewton().solve(objective, tol=1e-9, max_iter=5000)
    assert result.gap <= 1e-8
    assert result.objective == pytest.approx(best.objective, rel=2e-8)


@pytest.mark.parametrize("ridge", [1.0, 0.01])
def test_weights_of_rows_are_repeated_rows(ridge):
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((10, 4)), random_labels(rng, 10, 3)
    counts = rng.integers(1, 4, 10)
    one, other = (
        Objective(row_design(rows), labels, rbrl_loss(1.0), ridge, 0.1, weights)
        for rows, labels, weights in ((X, Y, counts.astype(float)), (X.repeat(counts, 0), Y.repeat(counts, 0), None))
    )
    found = [DualAscent().solve(objective, tol=1e-10, max_iter=50_000).objective for objective in (one, other)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def visit_rows(ascent):
    order = np.arange(len(ascent.dual_scores), dtype=np.int32)
    ascent.objective.design.visit_rows(order, *ascent.data, ascent.points.total, ascent.W, ascent.dual_scores)


@pytest.mark.parametrize("nuclear", [0.0, 1.0])
def test_dual_values_never_fall(nuclear):
    """A step maximises D over one block: of a strong ridge, where no centre moves."""
    objective = objective_of(3, ridge=30.0, nuclear=nuclear)
    ascent = Ascent(DualAscent(), objective, None, 1e-12, 100)
    values = []
    for _ in range(15):
        visit_rows(ascent)
        if nuclear:
            ascent.update_nuclear_block()
        loss = objective.loss.evaluate(objective.Y, ascent.dual_scores, objective.sample_weight)[0]
        values.append(loss.linear - loss.quadratic - objective.ridge.value(ascent.W))
    assert np.all(np.diff(values) >= -1e-12 * abs(values[-1]))
    assert values[-1] <= QuasiNewton().solve(objective, tol=1e-10).objective * (1 + 1e-12)


def test_the_weights_belong_to_the_dual_variables():
    objective = objective_of(4, ridge=0.01, nuclear=0.0)
    ascent = Ascent(DualAscent(), objective, None, 1e-12, 100)
    for _ in range(4):
        visit_rows(ascent)
        ascent.points.move(ascent.W)
    W = ascent.points.add_centre(objective.design.adjoint(ascent.dual_variables()))
    np.testing.assert_allclose(ascent.W, W / ascent.points.total, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_no_order_of_rows_stalls(seed):
    """Rows whose squared lengths differ by 1e4, in twenty orders."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 5)) * np.geomspace(0.1, 10, 30)[:, None]
    objective = Objective(row_design(X), random_labels(rng, 30, 4), rbrl_loss(3.0), 1.0, 0.1)
    assert DualAscent(seed=seed).solve(objective, tol=1e-5).gap <= 1e-5


def test_equal_seeds_give_equal_weights():
    one, other, third = (DualAscent(seed=seed).solve(objective_of(6)).weights for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, third)


def test_dual_scores_of_an_earlier_result_are_gone_on_from():
    objective = objective_of(7, ridge=0.1)
    first = DualAscent().solve(objective, tol=1e-6)
    again = DualAscent(dual_scores=first.dual_scores).solve(objective, start=first.weights, tol=1e-6)
    assert again.n_iter <= 2 < first.n_iter
    assert again.objective == pytest.approx(first.objective, rel=1e-6)
    # Where the weights of losses have changed, the same scores are another dual point.
    other = objective_of(7, loss="strong ranking", ridge=0.2, nuclear=0.1)
    moved = DualAscent(dual_scores=first.dual_scores).solve(other, start=first.weights, tol=1e-6)
    assert moved.objective <= QuasiNewton().solve(other, tol=1e-7).objective * (1 + 1e-6)
    assert moved.gap <= 1e-6


def test_empty_columns_are_left_out_and_have_no_weight():
    rng = np.random.default_rng(8)
    dense = np.zeros((12, 9))
    dense[:, [1, 4, 7]] = rng.standard_normal((12, 3))
    design = row_design(sparse.csr_array(dense))
    assert design.shape == (12, 3)
    coefficients = design.coefficients(rng.standard_normal((3, 2)))
    assert np.flatnonzero(coefficients.any(axis=1)).tolist() == [1, 4, 7]
    np.testing.assert_allclose(design.coefficients(design.weights(coefficients)), coefficients)
    np.testing.assert_allclose(design.transform(sparse.csr_array(dense)).toarray(), dense[:, [1, 4, 7]])


def test_running_out_of_passes_returns_a_message():
    result = DualAscent().solve(objective_of(9, ridge=1e-4), tol=1e-12, max_iter=3)
    assert not result.converged
    assert len(result.history) == result.n_iter == 3
    assert "Dual ascent stopped after 3 iterations (max_iter=3)" in result.messages[0]


def test_a_callback_stops_it():
    objective = objective_of(10, ridge=1e-3)
    seen = []
    objective.on_gap = lambda gap: seen.append(gap) or len(seen) == 2
    result = DualAscent().solve(objective, tol=1e-12)
    assert len(seen) == 2
    assert "A callback asked it to stop." in result.messages[0]


class UnknownLoss(SquaredHinge):
    """A loss with terms that dual ascent does not know."""

    def row_terms(self, n_labels):
        return None


@pytest.mark.parametrize("nuclear", [0.0, 0.5])
@pytest.mark.parametrize("ridge", [1.0, 0.01])
@pytest.mark.parametrize("weights", ["rows", "entries"])
def test_a_graph_of_labels_has_the_optimum_of_the_other_solver(ridge, nuclear, weights):
    rng = np.random.default_rng(13)
    X, Y = rng.standard_normal((40, 6)), random_labels(rng, 40, 5)
    counts = rng.random(40) + 0.1
    if weights == "entries":
        Y[rng.random(Y.shape) < 0.2] = 0
        counts = rng.random(Y.shape) + 0.1
    factor = rng.standard_normal((5, 3))
    loss = WeightedSum((1.0, SquaredHinge()), (0.5, PairwiseSquaredHinge()), (2.0, LabelGraph(factor @ factor.T)))
    found = [
        solver.solve(Objective(MatrixDesign(X), Y, loss, ridge, nuclear, counts), tol=1e-8, max_iter=5000)
        for solver in (DualAscent(), QuasiNewton())
    ]
    assert max(result.gap for result in found) <= 1e-8
    assert found[0].objective == pytest.approx(found[1].objective, rel=3e-8)


def test_what_it_does_not_take_is_refused():
    kernel = Objective(SpectralDesign(np.eye(3)), np.ones((3, 2)), SquaredHinge(), 1.0, 0.0)
    with pytest.raises(
        ValueError, match="Got a SpectralDesign; use kernel='linear', low_rank='function', or the solver"
    ):
        DualAscent().solve(kernel)
    with pytest.raises(ValueError, match="needs a loss of squared hinges and quadratic forms"):
        DualAscent().solve(Objective(MatrixDesign(np.eye(3)), np.ones((3, 2)), UnknownLoss(), 1.0, 0.0))
    with pytest.raises(ValueError, match=r"needs a ridge above 0\. Got 0"):
        DualAscent().solve(random_objective(np.random.default_rng(0), lambdas=(0.0, 1.0, 1.0)))
    with pytest.raises(ValueError, match="use kernel='linear', low_rank='function', or the solver 'auto'"):
        RBRLClassifier(kernel="rbf", nuclear=0.1, solver="dual-ascent").fit(np.eye(4), [[0, 1], [1, 0], [1, 1], [0, 1]])


@pytest.mark.skipif(not COMPILED, reason="without the compiled loop another solver is chosen")
def test_the_choice_of_a_solver():
    assert isinstance(SolverRule().choose(objective_of(0)), DualAscent)
    assert isinstance(SolverRule().choose(objective_of(0, ridge=1e-9, kind="sparse")), QuasiNewton)
    # A weak ridge is left to the other solver where dense data have few columns, and not elsewhere.
    assert isinstance(SolverRule().choose(objective_of(0, ridge=0.01)), QuasiNewton)
    assert isinstance(SolverRule().choose(objective_of(0, ridge=0.01, m=60)), DualAscent)
    assert isinstance(SolverRule().choose(objective_of(0, ridge=0.01, kind="sparse")), DualAscent)
    assert isinstance(SolverRule().choose(objective_of(0, ridge=0.0)), QuasiNewton)
    objective = objective_of(0)
    assert isinstance(
        SolverRule().choose(Objective(objective.design, objective.Y, UnknownLoss(), 1.0, 0.0)), QuasiNewton
    )


@pytest.mark.parametrize("nuclear", [0.0, 0.1])
def test_both_solvers_can_be_named(nuclear):
    rng = np.random.default_rng(11)
    X, Y = rng.standard_normal((60, 8)), (rng.random((60, 5)) < 0.4).astype(int)
    found = [
        RBRLClassifier(nuclear=nuclear, solver=name, tol=1e-6).fit(X, Y) for name in ("dual-ascent", "quasi-newton")
    ]
    assert found[0].objective_ == pytest.approx(found[1].objective_, rel=2e-6)
    assert found[0].rank_ == found[1].rank_
    assert max(model.gap_ for model in found) <= 1e-6


@pytest.mark.skipif(not COMPILED, reason="without the compiled loop another solver is chosen")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_quasi_newton_solver_goes_on_where_dual_ascent_gives_up(kernel):
    """Labels that can be separated, and a weak ridge."""
    rng = np.random.default_rng(14)
    X = sparse.random_array((60, 80), density=0.2, rng=rng, format="csr")
    Y = (rng.random((60, 5)) < 0.4).astype(int)
    model = RBRLClassifier(kernel=kernel, ridge=1e-3, tol=1e-5, max_iter=1000)
    problem = model.problem(X, Y)
    assert isinstance(problem.solver, DualAscent)
    problem.solver = replace(problem.solver, give_up=0.01)
    solution = problem.solve()
    assert solution.proof.gap <= 1e-5
    assert solution.result.n_iter == len(solution.result.history) > 10
    named = model.set_params(solver="quasi-newton").fit(X, Y)
    assert solution.proof.objective == pytest.approx(named.objective_, rel=2e-5)


def test_a_callback_that_stops_dual_ascent_stops_the_fit():
    objective = objective_of(0, ridge=1e-3)
    objective.on_gap = lambda gap: True
    result = DualAscent(give_up=0.0).solve(objective, tol=1e-9)
    assert not result.gave_up
    assert "A callback asked it to stop" in result.messages[0]


def test_a_warm_start_keeps_its_dual_scores_to_itself():
    import pickle

    rng = np.random.default_rng(12)
    X, Y = rng.standard_normal((60, 8)), (rng.random((60, 5)) < 0.4).astype(int)
    model = RBRLClassifier(warm_start=True).fit(X, Y)
    assert model._dual_scores.shape == Y.shape
    copy = pickle.loads(pickle.dumps(model))
    assert "_dual_scores" not in vars(copy)
    assert copy.fit(X, Y).gap_ <= 1e-4
