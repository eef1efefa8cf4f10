"""`partial_fit`: the same model in any order and any batches, near the optimum, and a start on the way there."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification

import rbrl
from rbrl import BRLClassifier, RBRLClassifier
from rbrl.exceptions import InvalidLabelsError
from rbrl.out_of_core import batches as streaming

X, Y = make_multilabel_classification(300, 10, n_classes=5, n_labels=2, random_state=0)
X = X - X.mean(axis=0)


def ranker(**parameters):
    """With a ridge that does not wait for all rows."""
    return RBRLClassifier(**{"ridge": 1.0, "ranking": 0.1} | parameters)


def streamed(model, X=X, Y=Y, size=37, **options):
    model = clone(model)
    for start in range(0, len(Y), size):
        model.partial_fit(X[start : start + size], Y[start : start + size], **options)
    return model


@pytest.mark.parametrize("model", [ranker(), BRLClassifier(ridge=10.0), ranker(nuclear=5.0)], ids=str)
@pytest.mark.parametrize("size", [1, 37, 300])
def test_batches_and_order_do_not_matter(model, size):
    expected = streamed(model)
    order = np.random.default_rng(0).permutation(300)
    found = streamed(model, X[order], Y[order], size)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-9)
    assert found.n_samples_seen_ == 300


def test_it_is_the_minimiser_of_the_quadratic_model():
    """Without penalties between labels: ridge regression of the signs, in closed form."""
    Z, signs = np.hstack([X, np.ones((300, 1))]), 2.0 * Y - 1
    expected = np.linalg.solve(Z.T @ Z + np.diag([2.0] * 10 + [0.5]), Z.T @ signs)
    found = streamed(BRLClassifier(ridge=2.0, nuclear=0.0, intercept_ridge=0.5))
    np.testing.assert_allclose(np.column_stack([found.coef_, found.intercept_]), expected.T, atol=1e-9)


def test_it_is_near_the_optimum_and_leads_there():
    best = ranker(tol=1e-8).fit(X, Y)
    model = streamed(ranker(warm_start=True, tol=1e-8))
    assert not hasattr(model, "gap_"), "there is no certificate"
    at_start = ranker(warm_start=True, max_iter=1, tol=1e-8)
    at_start.targets_, at_start.coef_, at_start.intercept_ = model.targets_, model.coef_, model.intercept_
    with pytest.warns(rbrl.exceptions.ConvergenceWarning):
        value = at_start.fit(X, Y).objective_
    assert value < 1.05 * best.objective_
    assert np.mean(model.predict(X) == best.predict(X)) > 0.95
    model.fit([(X[:100], Y[:100]), (X[100:], Y[100:])])
    assert model.gap_ <= 1e-8
    assert model.objective_ == pytest.approx(best.objective_, rel=1e-7)
    assert not hasattr(model, "stream_"), "fit begins anew"


def test_weights_are_repetitions():
    weights = np.random.default_rng(0).integers(0, 3, 300)
    expected = streamed(ranker(), np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    found = ranker().partial_fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-9)


@pytest.mark.parametrize("coding", ["sparse features", "signed", "sparse labels", "no intercept"])
def test_codings(coding):
    expected = streamed(ranker(fit_intercept=coding != "no intercept")).decision_function(X)
    rows = sparse.csr_array(X) if coding == "sparse features" else X
    labels = {"signed": 2 * Y - 1, "sparse labels": sparse.csr_array(Y)}.get(coding, Y)
    model = ranker(fit_intercept=coding != "no intercept").partial_fit(rows[:100], labels[:100])
    model.partial_fit(rows[100:], labels[100:])
    np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-9)
    assert type(model.predict(rows)) is type(labels)


def test_classes_of_one_dimension():
    rows, classes = load_iris(return_X_y=True)
    model = ranker()
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        model.partial_fit(rows[:40], classes[:40])
    for start in range(0, 150, 50):
        model.partial_fit(rows[start : start + 50], classes[start : start + 50], classes=[0, 1, 2])
    assert np.mean(model.predict(rows) == classes) > 0.75
    with pytest.raises(InvalidLabelsError, match=r"classes among \[0 1 2\]. Got \[7\]"):
        model.partial_fit(rows[:2], [0, 7])


def test_a_later_batch_must_fit():
    model = streamed(ranker())
    with pytest.raises(ValueError, match="10 features"):
        model.partial_fit(X[:, :9], Y)
    with pytest.raises(InvalidLabelsError, match=r"5 columns of 0/1. Got a batch of 4 columns"):
        model.partial_fit(X, Y[:, :4])
    with pytest.raises(InvalidLabelsError, match="of -1/1"):
        model.partial_fit(X, 2 * Y - 1)
    with pytest.raises(AttributeError, match=r"no attribute 'partial_fit': it learns a linear model. Got kernel='rbf'"):
        RBRLClassifier(kernel="rbf").partial_fit(X, Y)


def test_a_ridge_of_all_rows_needs_them():
    with pytest.raises(AttributeError, match="no attribute 'partial_fit': ridge='auto' depends on all rows"):
        RBRLClassifier().partial_fit(X, Y)
    model = RBRLClassifier().fit(X, Y)
    assert not hasattr(model, "partial_fit")
    model.set_params(ridge=model.ridge_).partial_fit(X[:50], Y[:50])
    expected = RBRLClassifier(ridge=model.ridge_).partial_fit(X[:50], Y[:50])
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.set_params(ridge="auto").coef_, expected.coef_)


def test_rows_without_a_label_are_counted():
    rows, empty = np.flatnonzero(Y.any(axis=1)), np.flatnonzero(~Y.any(axis=1))
    model = ranker().partial_fit(X[rows], Y[rows])
    assert model.non_empty_
    assert not model.partial_fit(X[empty], Y[empty]).non_empty_
    assert model.empty_share_ == pytest.approx(len(empty) / len(Y))
    while model.empty_share_ > 0.02:
        assert not model.non_empty_
        model.partial_fit(X[rows], Y[rows])
    assert model.non_empty_
    # A file from before the share says only whether all rows had a label.
    del model.empty_share_, model.weight_seen_
    model.all_labelled_ = False
    assert not model.partial_fit(X[rows], Y[rows]).non_empty_


def test_weights_of_classes_do_not_change_the_share_of_empty_rows():
    share = ranker().partial_fit(X, Y).empty_share_
    assert share > 0
    for class_weight in ({0: (0.01, 9.0)}, dict.fromkeys(range(Y.shape[1]), 9.0)):
        weighted = ranker(class_weight=class_weight).partial_fit(X, Y)
        assert weighted.empty_share_ == pytest.approx(share)


@pytest.fixture
def by_steps(monkeypatch):
    """As with too many features for sums."""
    monkeypatch.setattr(streaming, "LARGEST_GRAM", 5)


@pytest.mark.usefixtures("by_steps")
@pytest.mark.parametrize("coding", ["plain", "sparse features", "signed", "no intercept"])
def test_steps_come_near_the_optimum_and_lead_there(coding):
    rows = sparse.csr_array(X) if coding == "sparse features" else X
    labels = 2 * Y - 1 if coding == "signed" else Y
    parameters = {"fit_intercept": coding != "no intercept", "warm_start": True, "tol": 1e-6}
    best = ranker(**parameters).fit(rows, labels)
    model = streamed(ranker(**parameters), rows, labels)
    assert set(vars(model)) & {"gap_", "objective_"} == set(), "there is no certificate"
    assert np.mean(model.predict(rows) == best.predict(rows)) > 0.9
    assert model.fit([(rows[:100], labels[:100]), (rows[100:], labels[100:])]).gap_ <= 1e-6
    assert model.objective_ == pytest.approx(best.objective_, rel=1e-5)


@pytest.mark.usefixtures("by_steps")
@pytest.mark.parametrize("intercept_ridge", [1e-2, 1.0, 100.0, None])
def test_steps_come_near_the_optimum_with_any_penalty_of_the_intercept(intercept_ridge):
    rows = X + 3.0  # so that the intercept counts
    parameters = {"ridge": 30.0, "intercept_ridge": intercept_ridge, "warm_start": True, "tol": 1e-6}
    best, model = ranker(**parameters).fit(rows, Y), streamed(ranker(**parameters), rows)
    assert np.mean(model.predict(rows) == best.predict(rows)) > 0.9
    assert model.fit(rows, Y).objective_ == pytest.approx(best.objective_, rel=1e-5)


@pytest.mark.usefixtures("by_steps")
def test_steps_do_not_see_rows_without_weight():
    weights = np.tile([1.0, 0.0], 150)
    found, expected = ranker(), ranker()
    for a in range(0, 300, 100):
        batch = slice(a, a + 100)
        found.partial_fit(X[batch], Y[batch], sample_weight=weights[batch])
        expected.partial_fit(X[batch][::2], Y[batch][::2])
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-12)


@pytest.mark.usefixtures("by_steps")
def test_many_rows_at_once_are_several_batches(monkeypatch):
    monkeypatch.setattr(streaming, "BATCH_ROWS", 37)
    found = ranker().partial_fit(X, Y)
    assert found.stream_["n_batches"] == 9
    assert found.stream_["n_samples"] == 300


@pytest.mark.usefixtures("by_steps")
def test_a_model_of_steps_is_saved_and_goes_on(tmp_path):
    model = streamed(ranker(), X[:200], Y[:200], size=100)
    rbrl.save(model, tmp_path / "model")
    again = rbrl.load(tmp_path / "model").partial_fit(X[200:], Y[200:])
    np.testing.assert_allclose(again.coef_, streamed(ranker(), size=100).coef_, atol=1e-12)


def test_ten_thousand_sparse_features():
    rng = np.random.default_rng(0)
    rows = sparse.random_array((900, 10_000), density=0.005, format="csr", rng=rng)
    labels = (rows @ rng.standard_normal((10_000, 5)) > 0.5).astype(int)
    model = streamed(ranker(), rows, labels, size=300)
    assert model.coef_.shape == (5, 10_000)
    assert sum(np.size(value) for value in model.stream_.values()) < 10_001 * (3 * 5 + 52)
    scores = model.decision_function(rows)
    assert scores[labels == 1].mean() > scores[labels == 0].mean() + 0.1


def test_an_iterator_is_not_for_fit():
    with pytest.raises(ValueError, match=r"several passes over the rows, but a generator.*write_shards.*partial_fit"):
        ranker().fit(part for part in [(X, Y)])


def test_a_streamed_model_is_saved_and_goes_on(tmp_path):
    model = streamed(ranker(), X[:200], Y[:200])
    rbrl.save(model, tmp_path / "model")
    again = rbrl.load(tmp_path / "model").partial_fit(X[200:], Y[200:])
    np.testing.assert_allclose(again.coef_, streamed(ranker()).coef_, atol=1e-9)


def test_no_attribute_is_made_up():
    with pytest.raises(AttributeError, match="'RBRLClassifier' object has no attribute 'coef_'"):
        ranker().coef_  # noqa: B018
