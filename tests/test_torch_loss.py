"""The loss in PyTorch is the library's, and is differentiated rightly; the nuclear norm has a gradient everywhere."""

import numpy as np
import pytest

from rbrl.exceptions import InvalidLabelsError
from rbrl.losses import PairwiseSquaredHinge, SquaredHinge, WeightedSum

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
from rbrl.interop.torch import RBRLLoss, nuclear_norm  # noqa: E402

# Of the largest entry, or of one, if that is more.
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-6}


def random_batch(seed, n_labels=None):
    """Signed labels with 0 where nobody looked, scores with ties, and no weights or weights of rows or entries."""
    rng = np.random.default_rng(seed)
    n, l = rng.integers(3, 9), n_labels or rng.integers(1, 40)
    F = rng.normal(size=(n, l)) * rng.choice([0.5, 3.0, 100.0])
    Y = np.where(rng.random((n, l)) < rng.choice([0.05, 0.3, 0.8]), 1, -1).astype(np.int8)
    Y[rng.random((n, l)) < rng.choice([0.0, 0.3])] = 0
    Y[:3] = np.array([1, -1, 0])[:, None]
    # Whole numbers, so that slacks of exactly 0 are among the pairs.
    F = np.round(F) if seed % 2 else F
    weights = (None, rng.uniform(0.1, 3.0, n), rng.uniform(0.1, 3.0, (n, l)))[seed % 3]
    return Y, F, weights


def coded(Y, low=-1):
    """As users code labels: NaN where nobody looked."""
    return torch.from_numpy(np.where(Y == 0, np.nan, np.where(Y > 0, 1.0, low)))


def value_and_gradient(loss, F, targets, weights):
    scores = F.clone().requires_grad_()
    value = loss(scores, targets, None if weights is None else torch.from_numpy(weights))
    value.backward()
    return value.item(), scores.grad.numpy()


def difference(found, expected):
    return np.abs(found - expected).max() / max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_it_is_the_loss_of_the_library_on_random_batches(dtype):
    for seed in range(200):
        Y, F, weights = random_batch(seed)
        ranking, margin = (0.0, 0.1, 1.0, 5.0)[seed % 4], (2.0, 0.0, 1.5)[seed % 3]
        scores = torch.from_numpy(F).to(dtype)
        library = WeightedSum((1.0, SquaredHinge()), (ranking, PairwiseSquaredHinge(margin)))
        terms, gradient = library.evaluate(Y, scores.double().numpy(), weights)
        found = value_and_gradient(RBRLLoss(ranking, margin, "sum"), scores, coded(Y, -(seed % 2)), weights)
        assert difference(found[0], terms.value) <= TOLERANCES[dtype], seed
        assert difference(found[1], gradient) <= TOLERANCES[dtype], seed


def test_value_and_gradient_by_hand():
    """Hinges (0.5² + 1²) / 2 and twice a pair 1.5² / 2; the gradient of the hinges is (-0.5, 1), of a pair (-1.5, 1.5)."""
    found = value_and_gradient(RBRLLoss(2.0, reduction="sum"), torch.tensor([[0.5, 0.0]]), torch.tensor([[1, 0]]), None)
    assert found[0] == 0.625 + 2 * 1.125
    assert found[1].tolist() == [[-3.5, 4.0]]


@pytest.mark.parametrize("weighted", [False, True])
def test_first_and_second_derivatives(weighted):
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.normal(size=(6, 9))).requires_grad_()
    targets = coded(rng.choice([-1, 0, 1], size=(6, 9)))
    weights = torch.from_numpy(rng.uniform(0.5, 2.0, (6, 9))) if weighted else None

    def loss(scores):
        return RBRLLoss(0.7, reduction="none")(scores, targets, weights)

    assert torch.autograd.gradcheck(loss, scores)
    assert torch.autograd.gradgradcheck(loss, scores)


def test_the_hessian_is_that_of_the_library():
    Y, F, weights = random_batch(2, n_labels=12)
    D = np.random.default_rng(1).normal(size=F.shape)
    loss = RBRLLoss(0.7, reduction="sum")
    _, product = torch.autograd.functional.vhp(
        lambda scores: loss(scores, coded(Y), torch.from_numpy(weights)), torch.from_numpy(F), torch.from_numpy(D)
    )
    library = WeightedSum((1.0, SquaredHinge()), (0.7, PairwiseSquaredHinge()))
    assert difference(product.numpy(), library.hessian_product(Y, F, D, weights)) <= 1e-12


def test_with_5000_labels_it_is_exact_and_keeps_less_than_the_pairs():
    Y, F, _ = random_batch(0, n_labels=5000)
    Y[3:] = np.where(np.random.default_rng(0).random(Y[3:].shape) < 0.5, 1, -1)
    library = WeightedSum((1.0, SquaredHinge()), (1.0, PairwiseSquaredHinge()))
    terms, gradient = library.evaluate(Y, F)
    kept = {}
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.update({tensor.data_ptr(): tensor.nbytes}) or tensor, lambda tensor: tensor
    )
    with hooks:
        found = value_and_gradient(RBRLLoss(reduction="sum"), torch.from_numpy(F), coded(Y), None)
    assert difference(found[0], terms.value) <= 1e-12
    assert difference(found[1], gradient) <= 1e-12
    # A handful of matrices of the scores' size, where the pairs of a single row would be 6 million.
    assert sum(kept.values()) <= 12 * F.nbytes


def test_codings_of_labels():
    rng = np.random.default_rng(0)
    Y, F = rng.choice([-1, 1], size=(4, 6)), torch.from_numpy(rng.normal(size=(4, 6)))
    loss = RBRLLoss()
    values = [loss(F, torch.from_numpy(targets)).item() for targets in (Y, (Y + 1) // 2, Y > 0, Y.astype(np.float32))]
    assert len(set(values)) == 1
    with pytest.raises(
        InvalidLabelsError, match=r"0/1 or -1/\+1.*Got the values -1, 0, 1; .* NaN, or give it the weight 0"
    ):
        loss(F, torch.from_numpy(np.where(rng.random(Y.shape) < 0.3, 0, Y)))
    with pytest.raises(InvalidLabelsError, match=r"Got the values 0.5"):
        loss(F, torch.full((4, 6), 0.5))


def test_an_entry_of_weight_0_is_as_if_nobody_had_looked():
    Y, F, _ = random_batch(4, n_labels=10)
    known = torch.from_numpy(Y != 0).double()
    filled = torch.from_numpy(np.where(Y == 0, 1, Y))
    scores, loss = torch.from_numpy(F), RBRLLoss(reduction="none")
    torch.testing.assert_close(loss(scores, filled, known), loss(scores, coded(Y)), rtol=1e-14, atol=0)


def test_reductions_and_leading_dimensions():
    Y, F, weights = random_batch(1, n_labels=6)
    scores, targets, of_rows = torch.from_numpy(F), coded(Y), torch.from_numpy(weights)
    rows = RBRLLoss(reduction="none")(scores, targets, of_rows)
    assert rows.shape == (len(F),)
    torch.testing.assert_close(RBRLLoss(reduction="sum")(scores, targets, of_rows), rows.sum())
    torch.testing.assert_close(RBRLLoss()(scores, targets, of_rows), rows.sum() / len(F))
    deeper = RBRLLoss(reduction="none")(scores[:, None], targets[:, None], of_rows[:, None])
    assert torch.equal(deeper, rows[:, None])
    assert torch.equal(RBRLLoss()(scores[0], targets[0]), RBRLLoss()(scores[:1], targets[:1]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": torch.ones(2, 3)}, r"shape of the scores, \(2, 4\). Got \(2, 3\)"),
        ({"weights": torch.ones(4)}, r"shape \(2,\), of rows, or \(2, 4\), of entries. Got \(4,\)"),
        ({"weights": torch.tensor([1.0, -1.0])}, "finite and >= 0. Got values from -1.0 to 1.0"),
        ({"weights": torch.ones(2, requires_grad=True)}, "weights must be constants"),
    ],
)
def test_wrong_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        RBRLLoss()(**{"scores": torch.zeros(2, 4), "targets": torch.ones(2, 4)} | change)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"ranking": -1}, "ranking parameter of RBRLLoss"), ({"reduction": "max"}, "'mean', 'sum', 'none'. Got 'max'")],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        RBRLLoss(**parameters)


def test_the_nuclear_norm_and_its_gradient():
    W = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3))).requires_grad_()
    assert nuclear_norm(W).item() == pytest.approx(np.linalg.norm(W.detach().numpy(), "nuc"), rel=1e-13)
    assert torch.autograd.gradcheck(nuclear_norm, W)


@pytest.mark.parametrize("kind", ["zero", "repeated", "deficient"])
def test_where_the_nuclear_norm_has_no_gradient_there_is_a_subgradient(kind):
    rng = np.random.default_rng(0)
    low = np.outer(rng.normal(size=6), rng.normal(size=4))
    W = torch.from_numpy(
        {"zero": np.zeros((6, 4)), "repeated": 3 * np.eye(6, 4), "deficient": low}[kind]
    ).requires_grad_()
    nuclear_norm(W).backward()
    norm = nuclear_norm(W).item()
    assert torch.linalg.matrix_norm(W.grad, 2).item() <= 1 + 1e-12
    for _ in range(50):
        D = torch.from_numpy(rng.normal(size=(6, 4)) * 10 ** rng.uniform(-3, 1))
        linear = norm + (W.grad * D).sum().item()
        assert nuclear_norm(W.detach() + D).item() >= linear - 1e-12 * max(1.0, abs(linear))
    # Of all subgradients the least: nothing pulls where a singular value is 0 already.
    rank = np.linalg.matrix_rank(W.detach().numpy())
    assert (W.grad**2).sum().item() == pytest.approx(rank, abs=1e-12)


def test_the_nuclear_norm_is_of_a_matrix():
    with pytest.raises(ValueError, match=r"must be a matrix that is not empty. Got a tensor of shape \(3,\)"):
        nuclear_norm(torch.ones(3))
