"""A last layer that is solved: the model of the library, put back into the network, with a gap that is true of it."""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification

from rbrl import RBRLClassifier
from rbrl.datasets import write_shards

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
from torch import nn  # noqa: E402

from rbrl.interop.torch import RBRLHead, RBRLLoss, refit_last_layer  # noqa: E402

N_FEATURES, N_LABELS = 8, 4


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(n_samples=90, n_features=N_FEATURES, n_classes=N_LABELS, random_state=0)
    return torch.from_numpy(X), torch.from_numpy(Y)


@pytest.fixture
def network():
    torch.manual_seed(0)
    body = [nn.Linear(N_FEATURES, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*body, nn.Linear(12, N_LABELS)).double()


def batches(*parts, size=32):
    return list(zip(*(part.split(size) for part in parts)))


def features(network, X):
    """What reaches the last layer, in evaluation mode."""
    body = copy.deepcopy(network[:-1]).eval()
    with torch.no_grad():
        return body(X)


def objective(head, X, Y, weights=None):
    """Loss and penalty, in float64, of the layer as it is."""
    layer = copy.deepcopy(head).double()
    with torch.no_grad():
        return (RBRLLoss(head.ranking, reduction="sum")(layer(X.double()), Y, weights) + layer.penalty()).item()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("intercept_ridge", [1.0, None])
def test_a_head_is_the_linear_model(data, bias, intercept_ridge):
    X, Y = data
    parameters = {"ridge": 5.0, "ranking": 0.5, "nuclear": 2.0, "intercept_ridge": intercept_ridge}
    head = RBRLHead(N_FEATURES, N_LABELS, **parameters, bias=bias, dtype=torch.float64)
    before = objective(head, X, Y)
    assert head.refit(X, Y, tol=1e-6) is head
    model = RBRLClassifier(**parameters, fit_intercept=bias, tol=1e-6).fit(X.numpy(), Y.numpy())
    assert np.array_equal(head.weight.detach().numpy(), model.coef_)
    np.testing.assert_allclose(head(X).detach(), model.decision_function(X.numpy()), rtol=1e-12, atol=1e-12)
    assert head.objective_ == pytest.approx(model.objective_, rel=1e-12)
    assert head.objective_before_ == pytest.approx(before, rel=1e-12)
    assert head.objective_ == pytest.approx(objective(head, X, Y), rel=1e-12)
    assert head.gap_ <= 1e-6
    assert (head.rank_, head.ridge_) == (model.rank_, 5.0)


def test_the_gap_is_that_of_the_weights_as_they_were_rounded(data):
    X, Y = data
    head = RBRLHead(N_FEATURES, N_LABELS, ridge=1.0).refit(X, Y, tol=1e-10)
    assert head.weight.dtype == torch.float32
    rows = X.float().double()
    best = RBRLHead(N_FEATURES, N_LABELS, ridge=1.0, dtype=torch.float64).refit(rows, Y, tol=1e-10).objective_
    assert objective(head, rows, Y) <= best * (1 + head.gap_) * (1 + 1e-13)


def test_a_ridge_that_follows_from_the_features(data):
    X, Y = data
    head = RBRLHead(N_FEATURES, N_LABELS, dtype=torch.float64)
    with pytest.raises(
        ValueError, match=r"ridge that is a number. Got ridge='auto'.*pass a number, or call refit first"
    ):
        head.penalty()
    assert head.refit(X, Y).ridge_ == RBRLClassifier().fit(X.numpy(), Y.numpy()).ridge_
    assert objective(head, X, Y) == pytest.approx(head.objective_, rel=1e-12)


def test_weights_and_missing_labels(data):
    X, Y = data
    rng = np.random.default_rng(0)
    targets = torch.from_numpy(np.where(rng.random(Y.shape) < 0.3, np.nan, Y.numpy()))
    for weights in (rng.uniform(0.0, 2.0, len(X)), rng.uniform(0.0, 2.0, Y.shape)):
        head = RBRLHead(N_FEATURES, N_LABELS, ridge=5.0, dtype=torch.float64).refit(X, targets, weights)
        model = RBRLClassifier(ridge=5.0, nuclear=0.1).fit(X.numpy(), targets.numpy(), sample_weight=weights)
        assert head.objective_ == pytest.approx(model.objective_, rel=1e-12)
        assert objective(head, X, targets, torch.from_numpy(weights)) == pytest.approx(head.objective_, rel=1e-12)


def test_training_never_beats_the_certified_optimum(data):
    X, Y = data
    X = (X - X.mean(dim=0)) / X.std(dim=0)
    torch.manual_seed(0)
    head, loss, values = RBRLHead(N_FEATURES, N_LABELS, ridge=5.0, nuclear=2.0, dtype=torch.float64), RBRLLoss(), []
    for _ in range(100):
        head.zero_grad()
        value = loss(head(X), Y) + head.penalty() / len(X)
        value.backward()
        with torch.no_grad():
            for parameter in head.parameters():
                parameter -= 0.1 * parameter.grad
        values.append(value.item() * len(X))
    head.refit(X, Y)
    bound = head.objective_ / (1 + head.gap_)
    assert bound <= min(values) * (1 + 1e-12)
    # Gradients lead downhill on the very objective that is solved.
    assert head.objective_before_ - bound < 0.1 * (values[0] - bound)


def test_the_last_layer_of_a_network(data, network):
    X, Y = data
    network.train()
    network[3].eval()
    before = copy.deepcopy(network.state_dict())
    head = refit_last_layer(network, batches(X, Y), ridge=2.0, ranking=0.5, nuclear=1.0)
    expected = RBRLClassifier(ridge=2.0, ranking=0.5, nuclear=1.0).fit(features(network, X).numpy(), Y.numpy())
    np.testing.assert_allclose(network[-1].weight.detach().numpy(), expected.coef_, rtol=1e-6, atol=1e-9)
    assert head.weight is network[-1].weight
    assert head.gap_ <= 1e-4
    assert head.objective_ < head.objective_before_
    # All else is as it was: the body, what its modules were at, and that nobody listens.
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items() if name[0] != "4")
    assert [module.training for module in network] == [True, True, True, False, True]
    assert not network[-1]._forward_hooks


def test_a_head_in_a_network_knows_its_gap(data, network):
    X, Y = data
    network[-1] = RBRLHead(12, N_LABELS, ridge=2.0, dtype=torch.float64)
    assert refit_last_layer(network, batches(X, Y), tol=1e-6) is network[-1]
    assert network[-1].gap_ <= 1e-6
    with pytest.raises(ValueError, match=r"has its own parameters. Got {'ridge': 1.0}; set them"):
        refit_last_layer(network, batches(X, Y), ridge=1.0)


def test_features_that_need_more_memory_go_through_files(data, network, tmp_path):
    X, Y = data
    targets = torch.where(torch.rand(Y.shape, generator=torch.Generator().manual_seed(0)) < 0.2, torch.nan, Y.double())
    inside = refit_last_layer(copy.deepcopy(network), batches(X, targets), ridge=2.0)
    outside = refit_last_layer(network, batches(X, targets), ridge=2.0, max_memory=5000, folder=str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert outside.gap_ <= 1e-4
    assert outside.objective_before_ == pytest.approx(inside.objective_before_, rel=1e-12)
    assert outside.objective_ <= inside.objective_ * (1 + outside.gap_)
    assert inside.objective_ <= outside.objective_ * (1 + inside.gap_)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_shards_have_their_labels(data, tmp_path, container):
    X, Y = data
    shards = write_shards((container(X.numpy()), container(Y.numpy())), tmp_path, rows_per_shard=40)
    inside = RBRLHead(N_FEATURES, N_LABELS, dtype=torch.float64).refit(X, Y)
    outside = RBRLHead(N_FEATURES, N_LABELS, dtype=torch.float64).refit(shards)
    assert outside.ridge_ == pytest.approx(inside.ridge_, rel=1e-10)
    assert outside.objective_ == pytest.approx(inside.objective_, rel=2e-4)


def test_weights_in_a_loader(data, network):
    X, Y = data
    rng = np.random.default_rng(0)
    for weights in (torch.from_numpy(rng.uniform(0.1, 2.0, len(X))), torch.from_numpy(rng.uniform(0.1, 2.0, Y.shape))):
        head = refit_last_layer(network, batches(X, Y, weights), ridge=2.0)
        assert objective(head, features(network, X), Y, weights) == pytest.approx(head.objective_, rel=1e-12)
    with pytest.raises(ValueError, match=r"files cannot store weights.*raise max_memory"):
        refit_last_layer(network, batches(X, Y, weights), ridge=2.0, max_memory=5000)


class Tagger(nn.Module):
    """Scores for every place of a sequence, from two arguments."""

    def __init__(self):
        super().__init__()
        self.tags, self.body = nn.Linear(6, 3), nn.Linear(5, 6)

    def forward(self, words, shift):
        return {"scores": self.tags(torch.tanh(self.body(words) + shift))}


@pytest.mark.parametrize("as_dict", [False, True])
def test_models_of_several_arguments_and_sequences(as_dict):
    torch.manual_seed(0)
    model = Tagger()
    words, shift, tags = torch.randn(7, 4, 5), torch.randn(7, 4, 6), torch.rand(7, 4, 3) < 0.4
    inputs = {"words": words, "shift": shift} if as_dict else (words, shift)
    head = refit_last_layer(model, [(inputs, tags)], layer=model.tags, ridge=1.0)
    below = torch.tanh(model.body(words) + shift).flatten(0, 1)
    assert objective(head, below, tags.flatten(0, 1)) == pytest.approx(head.objective_, rel=1e-6)
    assert head.gap_ <= 1e-4


def test_what_is_not_a_last_layer_is_refused(data, network):
    X, Y = data
    ending = nn.Sequential(network, nn.Sigmoid())
    with pytest.raises(ValueError, match=r"output of the model must be that of its last linear layer.*layer=\.\.\."):
        refit_last_layer(ending, batches(X, Y), ridge=1.0)
    assert refit_last_layer(ending, batches(X, Y), layer=network[-1], ridge=1.0).gap_ <= 1e-4
    with pytest.raises(ValueError, match=r"used once for a batch. Got a model that used Linear.* 0 times"):
        refit_last_layer(network, batches(X, Y), layer=nn.Linear(12, N_LABELS), ridge=1.0)
    with pytest.raises(ValueError, match=r"must have a linear layer. Got a ReLU without any"):
        refit_last_layer(nn.ReLU(), batches(X, Y))


def test_what_cannot_be_learned_from_is_named(data, network):
    X, Y = data
    with pytest.raises(ValueError, match=r"at least one batch\. Got none"):
        refit_last_layer(network, [])
    head = RBRLHead(N_FEATURES, N_LABELS)
    with pytest.raises(ValueError, match=r"8 features and 4 labels. Got features of shape \(90, 8\).*\(90, 3\)"):
        head.refit(X, Y[:, :3])
    with pytest.raises(ValueError, match="needs labels Y"):
        head.refit(X)
    with pytest.raises(ValueError, match=r"float32 or float64. Got torch.bfloat16; convert the model first"):
        head.to(torch.bfloat16).refit(X, Y)
    with pytest.raises(ValueError, match=r"ridge parameter of RBRLHead must be 'auto' or a finite number >= 0. Got -1"):
        RBRLHead(N_FEATURES, N_LABELS, ridge=-1)


def test_what_they_look_like():
    head = RBRLHead(3, 2, ridge=1.0)
    assert repr(head) == "RBRLHead(in_features=3, out_features=2, bias=True, ridge=1.0, ranking=1.0, nuclear=0.1)"
    assert repr(RBRLLoss()) == "RBRLLoss(ranking=1.0, margin=2.0, reduction='mean')"
