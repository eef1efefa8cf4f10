"""Every loss is the function it says: derivatives, curvature, sums over rows, dual terms."""

import numpy as np
import pytest

from problems import ALL_LOSSES, central_differences, random_entries, random_scores
from rbrl.losses import (
    CostWeightedSquaredHinge,
    LabelGraph,
    Loss,
    PairwiseSquaredHinge,
    SquaredHinge,
    WeightedSum,
)
from rbrl.losses.weights import row_weights

every_loss = pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
# What is looked at, and how it is weighed.
every_weighting = pytest.mark.parametrize("weighting", ["none", "rows", "missing", "missing, rows", "entries"])


def weighted(weighting, seed, n=7):
    """Labels, scores and weights."""
    Y, F, weights = random_entries(seed, n)
    if "missing" not in weighting and weighting != "entries":
        Y, F = random_scores(seed, n)
    of_rows = np.linspace(0, 3, n) if "rows" in weighting else None
    return Y, F, weights if weighting == "entries" else of_rows


@every_loss
@every_weighting
@pytest.mark.parametrize("seed", range(3))
def test_gradient_matches_finite_differences(loss, weighting, seed):
    Y, F, weights = weighted(weighting, seed)
    numeric = central_differences(lambda f: loss.value(Y, f, weights), F).reshape(F.shape)
    np.testing.assert_allclose(loss.gradient(Y, F, weights), numeric, atol=1e-7)


def dense_hessian(loss, Y, F, weights=None):
    return central_differences(lambda f: loss.gradient(Y, f, weights).ravel(), F)


@every_loss
@every_weighting
@pytest.mark.parametrize("seed", range(3))
def test_hessians_match_the_dense_hessian(loss, weighting, seed):
    Y, F, weights = weighted(weighting, seed)
    D = np.random.default_rng(seed).standard_normal(F.shape)
    H = dense_hessian(loss, Y, F, weights)
    np.testing.assert_allclose(loss.hessian_product(Y, F, D, weights).ravel(), H @ D.ravel(), atol=2e-7)
    np.testing.assert_allclose(loss.hessian_diagonal(Y, F, weights).ravel(), np.diag(H), atol=2e-7)
    of_rows = np.einsum("ijik->jk", H.reshape(*F.shape, *F.shape))
    np.testing.assert_allclose(loss.label_hessian(Y, F, weights), of_rows, atol=1e-6)


def largest_row_eigenvalues(loss, Y, F, weights=None):
    n, l = F.shape
    H = dense_hessian(loss, Y, F, weights).reshape(n, l, n, l)
    return np.array([np.linalg.eigvalsh(H[i, :, i, :])[-1] for i in range(n)])


@every_loss
@every_weighting
@pytest.mark.parametrize("spread", [0.0, 0.3, 1.5])
def test_curvature_bounds_the_hessian_of_every_row(loss, weighting, spread):
    Y, F, weights = weighted(weighting, seed=0, n=30)
    assert np.all(largest_row_eigenvalues(loss, Y, spread * F, weights) <= loss.curvature(Y, weights) + 1e-6)


@pytest.mark.parametrize(
    "loss", [SquaredHinge(), PairwiseSquaredHinge(), WeightedSum((2, SquaredHinge()), (3, PairwiseSquaredHinge()))]
)
def test_curvature_is_attained_at_zero_scores(loss):
    for Y, F in (random_scores(1), random_entries(1)[:2]):
        np.testing.assert_allclose(largest_row_eigenvalues(loss, Y, 0 * F), loss.curvature(Y), atol=1e-6)


@every_loss
def test_entries_of_equal_weight_are_a_row_of_that_weight(loss):
    for Y, F in (random_scores(5), random_entries(5)[:2]):
        of_rows = np.linspace(0.2, 3, len(F))
        of_entries = np.where(Y != 0, of_rows[:, None], 0.0)
        D, t = np.random.default_rng(5).standard_normal(F.shape), np.linspace(0.1, 1, F.shape[1])
        for method, more in (("evaluate", ()), ("hessian_diagonal", ()), ("hessian_product", (D,)), ("line", (D, t))):
            one, other = (getattr(loss, method)(Y, F, *more, weights) for weights in (of_rows, of_entries))
            for mine, its in zip(one, other, strict=True):
                np.testing.assert_allclose(mine, its, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(loss.label_hessian(Y, F, of_rows), loss.label_hessian(Y, F, of_entries), atol=1e-12)
        np.testing.assert_allclose(loss.curvature(Y, of_rows), loss.curvature(Y, of_entries), rtol=1e-12)


@pytest.mark.parametrize("loss", [loss for loss in ALL_LOSSES if "LabelGraph" not in repr(loss)], ids=repr)
def test_scores_of_entries_that_nobody_looked_at_do_not_matter(loss):
    Y, F, weights = random_entries(6)
    other = np.where(Y == 0, 9.0, F)
    for w in (None, weights):
        assert loss.value(Y, F, w) == loss.value(Y, other, w)
        assert not loss.gradient(Y, other, w)[Y == 0].any()
        assert not loss.hessian_diagonal(Y, other, w)[Y == 0].any()


def test_weights_of_entries_by_hand():
    """Row (+, +, -, missing) with weights (1, 3, 2, .): sums 4 and 2, mean 2."""
    Y, F = np.array([[1, 1, -1, 0]], dtype=np.int8), np.array([[0.5, 1.0, -0.5, 7.0]])
    weights = np.array([[1.0, 3.0, 2.0, 0.0]])
    assert SquaredHinge().value(Y, F, weights) == pytest.approx(0.5 * (1 * 0.25 + 3 * 0 + 2 * 0.25))
    pairs = 1 * 2 * (2 - 1.0) ** 2 + 3 * 2 * (2 - 1.5) ** 2
    assert PairwiseSquaredHinge().value(Y, F, weights) == pytest.approx(0.5 * 2 * pairs / (4 * 2))
    # A score of 7 counts in a graph, at the mean weight of the entries that are there.
    assert LabelGraph(np.eye(4)).value(Y, F, weights) == pytest.approx(0.5 * 2 * (F**2).sum())


@every_loss
@every_weighting
def test_loss_is_a_sum_over_rows(loss, weighting):
    Y, F, weights = weighted(weighting, seed=2)
    blocks = [slice(0, 2), slice(2, 3), slice(3, 7)]
    whole, R = loss.evaluate(Y, F, weights)
    parts = [loss.evaluate(Y[b], F[b], None if weights is None else weights[b]) for b in blocks]
    for k in range(3):
        assert sum(terms[k] for terms, _ in parts) == pytest.approx(whole[k], rel=1e-14)
    np.testing.assert_allclose(np.vstack([G for _, G in parts]), R, atol=1e-14)


@every_loss
def test_a_row_weight_counts_the_row_that_often(loss):
    Y, F = random_scores(3)
    times = np.array([2, 1, 0, 3, 1, 1, 2])
    whole, R = loss.evaluate(Y, F, times)
    repeated, _ = loss.evaluate(np.repeat(Y, times, axis=0), np.repeat(F, times, axis=0))
    np.testing.assert_allclose(whole[:3], repeated[:3], rtol=1e-13)
    np.testing.assert_allclose(R, times[:, None] * loss.gradient(Y, F), atol=1e-13)
    np.testing.assert_allclose(loss.curvature(Y, times), times * loss.curvature(Y))


@every_loss
@every_weighting
def test_line_is_the_generic_one(loss, weighting):
    Y, F, weights = weighted(weighting, seed=4)
    rng = np.random.default_rng(4)
    D, t = rng.standard_normal(F.shape), rng.standard_normal(F.shape[1])
    for mine, generic in zip(loss.line(Y, F, D, t, weights), Loss.line(loss, Y, F, D, t, weights), strict=True):
        np.testing.assert_allclose(mine, generic, rtol=1e-12, atol=1e-12)


@every_loss
@every_weighting
@pytest.mark.parametrize("seed", range(5))
def test_dual_terms_bound_the_conjugate(loss, weighting, seed):
    """theta <R, F'> - loss(F') <= -(theta linear - theta^2 quadratic) for all F' (Fenchel-Young)."""
    Y, F, weights = weighted(weighting, seed)
    terms, R = loss.evaluate(Y, F, weights)
    for theta in min(1.0, terms.reach) * np.array([0.0, 0.3, 0.9, 1.0, 1.7 if np.isinf(terms.reach) else 1.0]):
        bound = -(theta * terms.linear - theta**2 * terms.quadratic)
        for other in [*np.random.default_rng(seed).standard_normal((20, *F.shape)) * 2, F, Y - theta * (Y - F)]:
            assert theta * np.vdot(R, other) - loss.value(Y, other, weights) <= bound + 1e-10
    tight = np.vdot(R, F) - terms.value
    assert terms.linear - terms.quadratic == pytest.approx(-tight, rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "value", "gradient"),
    [
        # slacks 1 - y f: 0.5, 0, 3
        (SquaredHinge(), 0.5 * (0.25 + 0 + 9), [-0.5, 0, 3]),
        # pairs (relevant 0 or 1, irrelevant 2), slacks 2 - (f_p - f_q): 3.5, 1; halved by |Y+||Y-| = 2
        (PairwiseSquaredHinge(), 0.25 * (12.25 + 1), [-1.75, -0.5, 2.25]),
        (PairwiseSquaredHinge(margin=1.0), 0.25 * 6.25, [-1.25, 0, 1.25]),
        # the cost of a label counts where it is relevant
        (CostWeightedSquaredHinge(np.array([2.0, 1.0, 5.0])), 0.5 * (2 * 0.25 + 0 + 9), [-1, 0, 3]),
        # half the squared difference of labels 0 and 1
        (LabelGraph(np.array([[1.0, -1, 0], [-1, 1, 0], [0, 0, 0]])), 0.5 * 6.25, [-2.5, 2.5, 0]),
    ],
)
def test_values_worked_out_by_hand(loss, value, gradient):
    Y, F = np.array([[1, 1, -1]], np.int8), np.array([[0.5, 3.0, 2.0]])
    assert loss.value(Y, F) == pytest.approx(value)
    np.testing.assert_allclose(loss.gradient(Y, F), [gradient])


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_row_of_one_kind_has_no_pair(sign):
    Y, F = np.full((2, 3), sign, np.int8), np.random.default_rng(0).standard_normal((2, 3))
    loss = PairwiseSquaredHinge()
    terms, R = loss.evaluate(Y, F)
    everything = [
        R,
        loss.hessian_product(Y, F, F),
        loss.hessian_diagonal(Y, F),
        loss.curvature(Y),
        *loss.line(Y, F, F, F[0]),
    ]
    assert terms[:3] == (0, 0, 0)
    assert all(not np.any(part) for part in everything)


def test_terms_of_weight_zero_are_left_out():
    Y, F = random_scores(0)
    assert WeightedSum((1, SquaredHinge()), (0, PairwiseSquaredHinge())).terms == ((1.0, SquaredHinge()),)
    nothing = WeightedSum((0, SquaredHinge()))
    assert nothing.value(Y, F) == 0
    assert nothing.line(Y, F, F, F[0]).value == 0


def test_what_is_done_to_the_ones_of_no_weights_changes_no_other_loss():
    row_weights(None, 4)[:] = 7
    assert row_weights(None, 4).tolist() == [1, 1, 1, 1]


def test_a_label_graph_does_not_mind_large_scores_that_are_equal():
    laplacian = np.array([[2.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    F = np.array([[1e9, 1e9, 1e9 + 1.0]])
    assert LabelGraph(laplacian).value(np.ones((1, 3), np.int8), F) == 0.5
