"""The default solver as a whole: certified, quick, deterministic, and steady at the edges."""

import json

import numpy as np
import pytest
from scipy import sparse

from problems import DESIGNS, random_gram, random_labels, random_objective, rbrl_loss
from rbrl import RBRLClassifier
from rbrl.kernels import gram
from rbrl.losses import SquaredHinge
from rbrl.problem import MatrixDesign, SpectralDesign, linear_design, with_constant
from rbrl.problem.objective import Objective
from rbrl.solvers import APG, QuasiNewton, factored, quasi_newton
from rbrl.solvers.line_search import Iterate
from rbrl.solvers.newton import NewtonDirection
from rbrl.solvers.quasi_newton import QuasiNewtonRun

LAMBDAS = (0.0, 1e-4, 1e-2, 1.0, 1e2)
KINDS = (
    "tall",
    "wide",
    "square",
    "deficient",
    "matrix",
    "sparse",
    "sparse matrix",
    "coefficients",
    "function",
    "low_rank",
)
LABELS = ("random", "random", "random", "constant label", "one label", "all relevant", "none relevant")


def design_of(rng, kind, n):
    """Kernels, and features of unequal scales in every shape and storage."""
    if kind in ("coefficients", "function"):
        return SpectralDesign(random_gram(rng, n), kind)
    if kind == "low_rank":
        return SpectralDesign(random_gram(rng, n, "low_rank"))
    m = {"wide": 2 * n, "square": n}.get(kind, max(n // 3, 1))
    X = rng.standard_normal((n, m)) * np.exp(rng.standard_normal(m))
    if kind == "deficient":
        X = X @ np.diag(rng.random(m) < 0.6) @ rng.standard_normal((m, m))
    thin = sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
    if kind.endswith("matrix"):
        return MatrixDesign(thin if kind == "sparse matrix" else X)
    return linear_design(thin if kind == "sparse" else X)


def labels_of(rng, n, l):
    kind, Y = LABELS[rng.integers(len(LABELS))], random_labels(rng, n, l)
    if kind == "constant label":
        Y[:, 0], Y[:, 1] = 1, -1
    elif kind == "one label":
        Y = Y[:, :1]
    elif kind != "random":
        Y[:] = 1 if kind == "all relevant" else -1
    return np.ascontiguousarray(Y)


def random_problem(seed):
    """A problem of any kind with any penalties; a third of them with row weights."""
    rng = np.random.default_rng(seed)
    n, l = int(rng.choice([1, 2, 5, 12, 30])), int(rng.choice([2, 4, 7]))
    ridge, ranking, nuclear = rng.choice(LAMBDAS, 3)
    weights = rng.random(n) * rng.choice([1, 100]) if seed % 3 == 0 else None
    design = design_of(rng, KINDS[seed % len(KINDS)], n)
    return Objective(design, labels_of(rng, n, l), rbrl_loss(ranking), ridge, nuclear, weights)


def solve_raising(solver, objective, **options):
    with np.errstate(all="raise", under="ignore"):
        return solver.solve(objective, **options)


def check(seeds, tighten=300):
    """The certified gap covers the true one, and with a ridge is small; return the seeds that missed it without."""
    missed = []
    for seed in seeds:
        objective = random_problem(seed)
        result = solve_raising(QuasiNewton(), objective)
        best = min(
            solve_raising(QuasiNewton(), objective, start=result.weights, tol=1e-10, max_iter=tighten).objective,
            solve_raising(APG(restart=True, check_every=50), objective, start=result.weights, max_iter=50).objective,
        )
        assert result.objective <= best * (1 + result.gap) * (1 + 1e-11) + 1e-25, seed
        assert result.objective == pytest.approx(objective.value(result.weights), rel=1e-9, abs=1e-25), seed
        assert result.n_iter <= 1000
        assert result.converged == (result.gap <= 1e-4)
        assert result.converged or not objective.ridge.weight, seed
        if objective.nuclear.weight and not result.converged:
            missed.append(seed)
    return missed


@pytest.mark.parametrize(
    "first", [0, 50, 100, 150, *(pytest.param(first, marks=pytest.mark.soak) for first in range(200, 500, 50))]
)
def test_random_problems_end_certified(first):
    """Kernel, linear, sparse, few rows, degenerate labels, row weights, penalties from 0 to 100.

    Without a ridge, and where singular values vanish at the optimum that the gradient would let grow, one may not.
    """
    assert len(check(range(first, first + 50))) <= 1


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 7000, 500))
def test_thousands_of_problems_end_certified_but_for_a_few(first):
    assert len(check(range(first, first + 500))) <= 5


@pytest.fixture(scope="module")
def emotions(golden):
    """The designs of the golden split, and its labels."""
    split = np.load(golden / "emotions-split.npz")
    X, Y = split["X_train"], split["Y_train"]
    K = gram(X, None, kernel="rbf", gamma=1 / 72, degree=3, coef0=1.0)
    return {"kernel": SpectralDesign(K), "linear": linear_design(with_constant(X))}, Y


# Evaluations to true gaps of 1e-3, 1e-4, 1e-6 that were the best known before this solver.
BEST_KNOWN = [
    ("kernel", (1, 0.01, 0.1), (2.5, 3.5, 5.5)),
    ("kernel", (0.1, 1, 1), (10, 12, 18)),
    ("kernel", (0.01, 0.01, 0.01), (20, 30, 48)),
    ("kernel", (10, 1, 100), (8, 15, 17)),
    ("linear", (1, 0.01, 0.1), (8.5, 12.5, 22.5)),
    ("linear", (0.01, 0.01, 0.01), (36, 84, 182)),
]


@pytest.mark.parametrize(("kind", "lambdas", "allowed"), BEST_KNOWN, ids=str)
def test_evaluations_on_emotions(emotions, kind, lambdas, allowed):
    designs, Y = emotions
    ridge, ranking, nuclear = lambdas
    result = QuasiNewton().solve(Objective(designs[kind], Y, rbrl_loss(ranking), ridge, nuclear), tol=1e-9)
    true = (result.history - result.objective) / result.objective
    assert result.gap <= 1e-9
    for gap, most in zip((1e-3, 1e-4, 1e-6), allowed, strict=True):
        assert result.costs[np.argmax(true <= gap)] <= most
    assert np.all(np.diff(result.costs) >= 0)


@pytest.mark.parametrize(("kind", "name"), [("kernel", "kernel_1_0.01_0.1"), ("linear", "linear_1_0.01_0.1")])
def test_golden_optima(golden, emotions, kind, name):
    optimum = json.loads((golden / "optima.json").read_text())[name]["optimum"]
    designs, Y = emotions
    result = QuasiNewton().solve(Objective(designs[kind], Y, rbrl_loss(0.01), 1.0, 0.1), tol=1e-9)
    assert result.objective == pytest.approx(optimum, rel=1e-9)
    expected = np.loadtxt(golden / name / "optimum.csv", delimiter=",")
    np.testing.assert_allclose(designs[kind].coefficients(result.weights), expected, atol=1e-3)


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("lambdas", [(1.0, 0.5, 0.3), (0.5, 2.0, 6.0), (1.0, 0.0, 0.0)])
def test_agrees_with_apg_in_objective_rank_and_scores(kind, lambdas):
    objective = random_objective(np.random.default_rng(0), kind, lambdas, weights=np.linspace(0.5, 2, 12))
    slow = APG(restart=True).solve(objective, tol=1e-9, max_iter=50_000)
    fast = QuasiNewton().solve(objective, tol=1e-9)
    assert fast.objective == pytest.approx(slow.objective, rel=2e-9)
    np.testing.assert_allclose(fast.scores, slow.scores, atol=1e-3)
    assert np.linalg.matrix_rank(fast.weights, tol=1e-6) == np.linalg.matrix_rank(slow.weights, tol=1e-6)
    assert fast.evaluations < 2 * slow.evaluations


@pytest.mark.parametrize(
    ("nuclear", "rank", "tol"), [(0.1, 5, 1e-4), (8.0, 4, 1e-4), (12.0, 3, 1e-6), (16.0, 2, 1e-4), (1e3, 0, 1e-4)]
)
def test_the_rank_is_that_of_the_optimum(nuclear, rank, tol):
    objective = low_rank_problem(nuclear)
    best = APG(restart=True).solve(objective, tol=1e-11, max_iter=50_000)
    assert np.linalg.matrix_rank(best.weights) == rank
    assert np.linalg.matrix_rank(QuasiNewton().solve(objective, tol=tol).weights, tol=1e-6) == rank


def low_rank_problem(nuclear):
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((40, 8)), random_labels(rng, 40, 5)
    return Objective(linear_design(X), Y, rbrl_loss(0.5), 1.0, nuclear)


@pytest.mark.parametrize("kind", ["dense", "coefficients"])
@pytest.mark.parametrize("nuclear", [0.0, 3.0])
def test_the_same_problem_gives_the_same_bits(kind, nuclear):
    results = [
        QuasiNewton().solve(random_objective(np.random.default_rng(2), kind, (0.1, 1.0, nuclear))) for _ in range(2)
    ]
    np.testing.assert_array_equal(results[0].weights, results[1].weights)
    np.testing.assert_array_equal(results[0].history, results[1].history)


def test_a_start_at_the_optimum_is_kept():
    objective = random_objective(np.random.default_rng(3), "coefficients", (0.1, 1.0, 0.5))
    best = QuasiNewton().solve(objective, tol=1e-8)
    again = QuasiNewton().solve(objective, start=best.weights, tol=1e-7)
    assert again.n_iter == 1
    assert again.evaluations == 1.0
    known = QuasiNewton().solve(objective, start=best.weights, scores=best.scores, tol=1e-7)
    assert known.evaluations == 0.5


def test_without_penalties_the_message_says_that_there_is_no_certificate():
    rng = np.random.default_rng(4)
    X, Y = rng.standard_normal((20, 3)), random_labels(rng, 20, 2)
    result = QuasiNewton().solve(Objective(linear_design(X), Y, rbrl_loss(0.5), 0.0, 0.0))
    (message,) = result.messages
    assert "ridge=0 and nuclear=0 no weights have a certificate. Use a small ridge" in message
    assert "certified relative gap" not in message
    assert np.isinf(result.gap)
    reference = solve_raising(APG(restart=True), Objective(linear_design(X), Y, rbrl_loss(0.5), 0.0, 0.0))
    assert result.objective <= reference.objective * (1 + 1e-9)


def test_running_out_of_iterations_returns_a_message_that_names_the_gap():
    objective = random_objective(np.random.default_rng(5), lambdas=(1e-4, 1.0, 1e-4))
    result = QuasiNewton().solve(objective, tol=1e-12, max_iter=3)
    assert "after 3 iterations (max_iter=3) with a certified relative gap of" in result.messages[0]
    assert not result.converged
    assert result.n_iter == 3
    # Singular values are dropped where that costs a tenth of `tol`, not more, before the gap is reached as well.
    assert result.history[-1] <= min(result.history[:-1]) * (1 + 1e-12)


@pytest.mark.parametrize("lambdas", [(1.0, 0.5, 0.3), (0.0, 0.5, 0.3), (1.0, 0.0, 0.0), (1e-4, 1e2, 1e2)])
@pytest.mark.parametrize(("n", "l"), [(1, 3), (5, 1), (1, 1), (2, 2)])
def test_one_sample_or_one_label(n, l, lambdas):
    rng = np.random.default_rng(6)
    for design in (MatrixDesign(rng.standard_normal((n, 4))), SpectralDesign(random_gram(rng, n))):
        ridge, ranking, nuclear = lambdas
        objective = Objective(design, random_labels(rng, n, l), rbrl_loss(ranking), ridge, nuclear)
        assert QuasiNewton().solve(objective).gap <= 1e-4


def test_a_loss_that_reaches_zero():
    objective = Objective(MatrixDesign(np.ones((2, 1))), np.array([[1], [1]]), SquaredHinge(), 0.0, 0.0)
    result = QuasiNewton().solve(objective)
    assert (result.objective, result.gap, result.converged) == (0.0, 0.0, True)


def test_columns_of_zeros_get_no_weight():
    rng = np.random.default_rng(7)
    X, Y = rng.standard_normal((20, 5)), random_labels(rng, 20, 3)
    X[:, 2] = 0.0
    for design in (MatrixDesign(X), linear_design(X)):
        result = QuasiNewton().solve(Objective(design, Y, rbrl_loss(0.5), 0.0, 1.0))
        assert result.gap <= 1e-4
        np.testing.assert_allclose(design.coefficients(result.weights)[2], 0.0, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_float32_features_give_the_model_of_float64(kernel):
    rng = np.random.default_rng(8)
    X, Y = rng.standard_normal((30, 4)).astype(np.float32), random_labels(rng, 30, 3)
    models = [RBRLClassifier(kernel=kernel, tol=1e-8).fit(A, Y) for A in (X, X.astype(np.float64))]
    assert models[0].gap_ <= 1e-8
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-5)
    scores = [model.decision_function(X.astype(dtype)) for model, dtype in zip(models, ("f4", "f8"), strict=True)]
    assert scores[0].dtype == np.float32
    np.testing.assert_allclose(*scores, atol=1e-4)


def run_at(rank_share, gaps=(1.0,), settings=None):
    """Return a run at zero weights, with a share of the singular values and gaps as given."""
    objective = random_objective(np.random.default_rng(0))
    run = QuasiNewtonRun(objective, settings or QuasiNewton(), objective.zeros(), 1e-4, 10**6)
    run.now.rank_share = lambda negligible: rank_share
    run.gaps = list(gaps)
    return run


def falling(rate, n=30):
    return np.exp(-rate * np.arange(n))


def test_factors_follow_where_few_singular_values_are_left_or_the_gap_falls_slowly():
    cost = run_at(1.0).newton_cost()
    assert run_at(0.5).is_factored_round_due()
    assert not run_at(0.95).is_factored_round_due()
    assert run_at(0.95, falling(0.5 / cost)).is_factored_round_due()
    assert not run_at(0.95, falling(2.0 / cost)).is_factored_round_due()
    assert not run_at(1.0, falling(0.5 / cost)).is_factored_round_due()
    assert not run_at(0.5, settings=QuasiNewton(low_rank=0.0)).is_factored_round_due()
    run = run_at(0.5)
    run.round_tol = 0.0
    assert not run.is_factored_round_due()


def test_newtons_method_takes_over_where_the_gap_falls_slowly():
    cost = run_at(1.0).newton_cost()
    assert run_at(1.0, falling(0.5 / cost)).is_slow()
    assert not run_at(1.0, falling(2.0 / cost)).is_slow()
    assert not run_at(1.0, falling(0.5 / cost, n=5)).is_slow(), "a few gaps say nothing"
    assert not run_at(1.0, falling(0.5 / cost), QuasiNewton(newton=None)).is_slow()
    run = run_at(1.0, falling(0.5 / cost))
    run.newton = NewtonDirection()
    assert not run.is_slow()


def test_evaluations_are_bounded_as_iterations_are():
    """One step of Newton's method may take fifty of them."""
    objective = random_problem(371)
    found = solve_raising(QuasiNewton(evaluations_per_iteration=0.5, small_size=0), objective, tol=1e-14)
    assert 500 <= found.evaluations <= 600
    assert not found.converged
    assert found.n_iter < 100
    assert found.objective <= objective.value(objective.zeros())


def test_rounds_in_factors_keep_within_the_evaluations_left(monkeypatch):
    """They are .01 * 1,000; the iterations left would be hundreds."""
    allowed = []

    def descend(objective, U, V, small, max_iter, *rest):
        allowed.append(max_iter)
        return factored.descend(objective, U, V, small, max_iter, *rest)

    monkeypatch.setattr(quasi_newton, "descend", descend)
    found = solve_raising(QuasiNewton(evaluations_per_iteration=0.01, small_size=0), low_rank_problem(12.0), tol=1e-14)
    assert allowed
    assert max(allowed) <= 10
    assert found.evaluations <= 10 + 2


def test_where_no_step_descends_the_past_is_forgotten_before_the_other_direction_is_tried():
    run = QuasiNewtonRun(random_objective(np.random.default_rng(0)), QuasiNewton(), None, 1e-4, 100)
    run.now.rank_share = lambda negligible: 1.0
    moved = 2 * run.now.W
    there = Iterate(run.objective, moved, run.objective.design.scores(moved), 1e-4)
    run.direction.memory.visit(there.W, there.gradient)
    seen = []
    for _ in range(3):
        run.recover_from_failed_step()
        seen.append((run.newton is not None, run.stopped_by))
    assert seen == [(False, ""), (True, ""), (True, "itself")]


def test_where_no_step_descends_and_singular_values_vanish_factors_are_tried():
    run = QuasiNewtonRun(low_rank_problem(12.0), QuasiNewton(), None, 1e-4, 100)
    run.now.rank_share = lambda negligible: 0.8
    run.recover_from_failed_step()
    assert run.round_tol < 0.3e-4
    assert run.gap() <= 1e-3


def test_newtons_method_certifies_what_the_quasi_newton_method_does_not():
    objective = random_objective(np.random.default_rng(6), "coefficients", (1e-4, 1.0, 1e-4), n=40)
    found = QuasiNewton().solve(objective, tol=1e-6)
    assert found.gap <= 1e-6
    slow = random_objective(np.random.default_rng(6), "coefficients", (1e-4, 1.0, 1e-4), n=40)
    assert QuasiNewton(newton=None).solve(slow, tol=1e-6, max_iter=found.n_iter).gap > 1e-6


def test_labels_that_do_not_couple_need_no_products_with_matrices_over_labels():
    free, coupled = (random_objective(np.random.default_rng(0), lambdas=(1.0, r, 0.0)) for r in (0.0, 10.0))
    seeds = []
    for objective in (free, coupled):
        run = QuasiNewtonRun(objective, QuasiNewton(), None, 1e-4, 100)
        seeds.append(run.direction.has_diagonal_seed)
    assert seeds == [True, False]
