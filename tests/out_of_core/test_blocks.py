"""Rows in blocks give the same sums, the same solver steps and the same certificates as arrays do."""

import numpy as np
import pytest
from scipy import sparse

from problems import ALL_LOSSES, random_labels, rbrl_loss
from rbrl.exceptions import DataFormatError, InvalidLabelsError
from rbrl.out_of_core import BlockDesign, BlockLoss, LocalBlocks
from rbrl.out_of_core.design import take_survey
from rbrl.out_of_core.objective import BlockObjective
from rbrl.problem import eigen_design, with_constant
from rbrl.problem.linear import rotated_design
from rbrl.problem.objective import Objective
from rbrl.solvers import QuasiNewton
from rbrl.solvers.line_search import Iterate, NewtonLineSearch, Ray

CUTS = ((0, 3), (3, 3), (3, 20), (20, 31), (31, 60))  # one block is empty


def rows(seed=0, n=60, m=7, l=5, storage="dense"):
    """Features, signed labels, and both in blocks."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, m)) < 0.6, rng.standard_normal((n, m)), 0.0) * 3.0 ** rng.integers(-1, 2, m)
    X = sparse.csr_array(X) if storage == "sparse" else X
    Y = random_labels(rng, n, l)
    return X, Y, LocalBlocks([(X[a:b], Y[a:b]) for a, b in CUTS])


def weights(design, l=5, seed=1):
    return 0.3 * np.random.default_rng(seed).standard_normal((design.shape[1], l))


def pair(storage="dense", whitened=True, loss=None, seed=0, lambdas=(0.5, 0.2)):
    """The same objective over arrays and over blocks."""
    X, Y, blocks = rows(seed, storage=storage)
    loss = loss or rbrl_loss(0.5)
    arrays = (eigen_design if whitened else rotated_design)(with_constant(X))
    design = BlockDesign(blocks, survey=take_survey(blocks, 100 if whitened else 0))
    return Objective(arrays, Y, loss, *lambdas), BlockObjective(design, loss, *lambdas)


def same_weights(arrays, blocks, W):
    """W of the blocks' coordinates in those of the arrays: eigenvectors are known up to a sign."""
    return arrays.design.weights(blocks.design.coefficients(W))


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("whitened", [True, False])
@pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
def test_one_pass_gives_what_arrays_give(loss, whitened, storage):
    arrays, blocks = pair(storage, whitened, loss)
    W = weights(blocks.design)
    expected, found = arrays.at(same_weights(arrays, blocks, W)), blocks.at(W)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.loss == pytest.approx(expected.loss, rel=1e-12)
    adjoint = arrays.design.coefficients(arrays.design.adjoint(expected.residual))
    np.testing.assert_allclose(blocks.design.coefficients(found.residual.adjoint), adjoint, atol=1e-9)
    hessian = loss.label_hessian(arrays.Y, expected.scores)
    np.testing.assert_allclose(blocks.loss.label_hessian(blocks.Y, found.scores), hessian, atol=1e-9)
    assert blocks.evaluations == 1
    blocks.at(W)
    assert blocks.evaluations == 1, "what is known costs no second pass"


@pytest.mark.parametrize("whitened", [True, False])
def test_the_design_knows_its_gram_matrix(whitened):
    arrays, blocks = pair(whitened=whitened)
    # Which axes make room for the leading directions, rounding may decide.
    found, expected = (np.sort(objective.design.gram_diagonal) for objective in (blocks, arrays))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    W = weights(blocks.design)
    np.testing.assert_allclose(blocks.design.weights(blocks.design.coefficients(W)), W, atol=1e-12)


def test_tall_matrices_by_their_small_images():
    """Every operation on scores and residuals that solvers use is the one on arrays."""
    arrays, blocks = pair()
    rng = np.random.default_rng(3)
    W, D, U, V = (rng.standard_normal(s) for s in ((blocks.shape), (blocks.shape), (blocks.shape[0], 2), (5, 2)))
    t = rng.random(5)
    Z = with_constant(rows()[0]) @ blocks.design.coefficients(np.eye(blocks.shape[0]))
    scores = blocks.design.scores
    moved = scores(W) + scores(D) * t - 0.5 * scores(D)
    np.testing.assert_allclose(Z @ moved.weights, Z @ W + (Z @ D) * t - 0.5 * (Z @ D))
    np.testing.assert_allclose(Z @ (scores(U) @ V.T).weights, (Z @ U) @ V.T)
    np.testing.assert_allclose(scores(U).T @ scores(U), (Z @ U).T @ (Z @ U), rtol=1e-9)
    R = arrays.loss.gradient(arrays.Y, Z @ W)
    _, residual = blocks.loss.evaluate(blocks.Y, scores(W))
    np.testing.assert_allclose(blocks.design.adjoint(residual @ V), Z.T @ (R @ V), atol=1e-9)
    np.testing.assert_allclose(residual.T @ scores(U), R.T @ (Z @ U), atol=1e-9)
    assert np.vdot(residual @ V, scores(U)) == pytest.approx(np.vdot(R @ V, Z @ U))
    assert len(scores(W)) == 60
    assert scores(W).shape == (60, 5)
    with pytest.raises(TypeError):
        np.linalg.norm(residual)


@pytest.mark.parametrize("lambdas", [(0.5, 0.2), (0.01, 0.01), (1.0, 5.0), (1.0, 0.0), (0.1, 100.0)])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("whitened", [True, False])
def test_the_solver_takes_the_same_way(lambdas, storage, whitened):
    arrays, blocks = pair(storage, whitened, lambdas=lambdas)
    expected, found = (QuasiNewton(newton=None).solve(objective, tol=1e-6) for objective in (arrays, blocks))
    assert found.gap <= 1e-6
    assert found.objective == pytest.approx(expected.objective, rel=2e-6)
    assert found.n_iter <= 1.5 * expected.n_iter + 5


@pytest.mark.parametrize("seed", range(4))
def test_the_certificate_is_that_of_arrays(seed):
    arrays, blocks = pair(seed=seed)
    tight = QuasiNewton().solve(arrays, tol=1e-10)
    loose = QuasiNewton().solve(blocks, tol=1e-2)
    assert loose.objective <= tight.objective * (1 + loose.gap) * (1 + 1e-12)
    exact = arrays.value(same_weights(arrays, blocks, loose.weights))
    assert loose.objective == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("whole", [True, False])
def test_a_line_is_exact_where_it_starts_and_everywhere_if_the_sample_is_whole(whole, monkeypatch):
    if not whole:
        monkeypatch.setattr("rbrl.out_of_core.design.SURVEY_ROWS", 20)
    arrays, blocks = pair()
    W, D, t = weights(blocks.design), weights(blocks.design, seed=5), np.linspace(0.1, 2, 5)
    X, Y = arrays.design.transform(with_constant(rows()[0])), arrays.Y
    F, along = X @ same_weights(arrays, blocks, W), X @ same_weights(arrays, blocks, D)
    handles = blocks.design.scores(W), blocks.design.scores(D)
    blocks.loss.line(blocks.Y, *handles, t)
    passes = blocks.evaluations
    for at in (np.zeros(5), t):
        expected, found = arrays.loss.line(Y, F, along, at), blocks.loss.line(blocks.Y, *handles, at)
        if whole or not at.any():
            np.testing.assert_allclose(found.slopes, expected.slopes, atol=1e-9)
            assert found.value == pytest.approx(expected.value, rel=1e-12)
        if whole:
            np.testing.assert_allclose(found.curvatures, expected.curvatures, atol=1e-9)
            assert found.joint_curvature == pytest.approx(expected.joint_curvature)
    assert blocks.evaluations == passes, "a line costs no pass"
    assert blocks.design.sample[2].sum() == pytest.approx(60)
    exact = blocks.loss.exact_line(blocks.Y, *handles, t)
    expected = arrays.loss.line(Y, F, along, t)
    assert exact.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(exact.slopes, expected.slopes, atol=1e-9)


@pytest.mark.parametrize("joint", [True, False])
def test_a_step_that_misleads_is_shortened(joint):
    _, blocks = pair()
    start = blocks.at(weights(blocks.design))
    now = Iterate(blocks, start.W, start.scores, 1e-3)
    D = -now.gradient
    ray, uphill = (Ray(blocks, now, V, blocks.design.scores(V)) for V in (D, -D))
    ray.line = uphill.line = blocks.loss.exact_line
    search = NewtonLineSearch(max_corrections=0)
    t = search.step_lengths(ray, -1.0, joint, np.full(5, 1e3))
    assert t.any()
    assert ray(t)[0] <= now.smooth_value
    assert not search.step_lengths(uphill, -1.0, joint).any()


def test_a_sample_of_few_rows_still_finds_the_way(monkeypatch):
    monkeypatch.setattr("rbrl.out_of_core.design.SURVEY_ROWS", 5)
    arrays, blocks = pair()
    found = QuasiNewton().solve(blocks, tol=1e-6)
    assert len(blocks.design.sample[1]) <= 10
    assert found.objective == pytest.approx(QuasiNewton().solve(arrays, tol=1e-8).objective, rel=1e-6)


def test_lines_see_part_of_the_sample_and_move_along_with_the_weights(monkeypatch):
    monkeypatch.setattr("rbrl.out_of_core.objective.LINE_SCORES", 75)
    arrays, blocks = pair()
    assert len(blocks.loss._sample[1]) == 15
    assert blocks.loss._sample[2].sum() == pytest.approx(60)
    at, along = (blocks.design.scores(weights(blocks.design, seed=seed)) for seed in (1, 5))
    assert (at + along).sampled is None
    blocks.loss.line(blocks.Y, at, along, np.ones(5))
    moved = at + along * np.linspace(0.1, 2, 5)
    np.testing.assert_allclose(moved.sampled, blocks.loss._sample_scores(blocks.design.scores(moved.weights)))
    found = QuasiNewton().solve(blocks, tol=1e-6)
    assert found.objective == pytest.approx(QuasiNewton().solve(arrays, tol=1e-8).objective, rel=1e-6)


@pytest.mark.parametrize("nuclear", [0.0, 0.1])
def test_columns_of_very_different_sizes_cost_few_passes(nuclear):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 20)) @ rng.standard_normal((20, 120)) / 4 + rng.standard_normal((600, 120))
    Y = np.where(X[:, :6] + rng.standard_normal((600, 6)) > 0.5, 1, -1).astype(np.int8)
    sizes = 10 ** rng.uniform(-2, 2, 120)
    found = []
    for A in (X, X * sizes):
        blocks = LocalBlocks([(A[:250], Y[:250]), (A[250:], Y[250:])])
        design = BlockDesign(blocks, survey=take_survey(blocks, 0))
        found.append(QuasiNewton().solve(BlockObjective(design, rbrl_loss(1.0), 1.0, nuclear), tol=1e-3))
    arrays = Objective(eigen_design(with_constant(X * sizes)), Y, rbrl_loss(1.0), 1.0, nuclear)
    assert found[1].objective == pytest.approx(QuasiNewton().solve(arrays, tol=1e-6).objective, rel=1e-3)
    assert found[1].evaluations <= 2 * found[0].evaluations


def test_zero_weights_cost_half_a_pass_once():
    _, blocks = pair()
    for _ in range(2):
        blocks.at(blocks.zeros())
        assert blocks.evaluations == 0.5


def test_only_a_few_points_are_remembered():
    _, blocks = pair()
    for k in range(6):
        blocks.at((k + 1.0) * weights(blocks.design))
    assert len(blocks.loss.evaluations) == 3
    assert isinstance(blocks.loss, BlockLoss)


X, Y = np.ones((4, 3)), np.array([[0, 1]] * 4)
BAD = [
    ([], ValueError, "at least one block of rows. Got 0 blocks"),
    ([(X[:0], Y[:0])], ValueError, "at least one row. Got 1 empty blocks"),
    (
        [(X, Y), (X[:, :2], Y)],
        DataFormatError,
        "part 1 has 2 features and 2 labels, part 0 has 3 features and 2 labels",
    ),
    ([(X, Y), (X, Y[:, :1])], DataFormatError, "part 1 has 3 features and 1 labels"),
    ([(X, Y), (X[:3], Y)], DataFormatError, r"part 1 must be a matrix of features.*\(3, 3\) and \(4, 2\)"),
    ([(X, Y[:, 0])], DataFormatError, r"part 0 must be a matrix of features.*\(4,\)"),
    ([(X, Y), (np.where(X > 0, np.nan, X), Y)], DataFormatError, "part 1 holds NaN"),
    ([(X, Y), (sparse.csr_array(X * np.inf), Y)], DataFormatError, "part 1 holds NaN or infinite"),
    ([(X, Y), (X, 2 * Y)], InvalidLabelsError, "part 1: labels must be 0/1 or -1/[+]1. Got the values 0, 2"),
    ([(X, Y), (X, 2 * Y - 1)], InvalidLabelsError, "Got 0 in part 0, and -1 in part 1"),
    ([(X.astype(str), Y)], DataFormatError, "part 0 must hold numbers"),
]


@pytest.mark.parametrize(("parts", "error", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_blocks_are_named(parts, error, message):
    with pytest.raises(error, match=message):
        take_survey(LocalBlocks(parts), 10)


def test_the_survey_knows_the_labels():
    signed = take_survey(LocalBlocks([(X, 2 * Y - 1)]), 10)
    assert (signed.low, signed.sparse_labels, signed.label_type) == (-1, False, Y.dtype)
    thin = take_survey(LocalBlocks([(sparse.csr_array(X), sparse.csr_array(Y))]), 0)
    assert (thin.low, thin.sparse_labels, thin.n_samples) == (0, True, 4)
    np.testing.assert_array_equal(thin.gram, np.sum(X**2, axis=0))
