"""`fit` of shards, parts and Dask collections gives the model that arrays give."""

import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification

from rbrl import CPNL, BRLClassifier, RBRLClassifier, datasets
from rbrl.datasets import open_shards, write_shards
from rbrl.exceptions import DataFormatError
from rbrl.out_of_core import LocalBlocks
from rbrl.solvers import APG, QuasiNewton

X, Y = make_multilabel_classification(120, 8, n_classes=5, n_labels=2, random_state=0)
MODELS = (
    RBRLClassifier(nuclear=0.1, tol=1e-7),
    RBRLClassifier(ridge=0.1, ranking=1.0, nuclear=5.0, tol=1e-5),
    RBRLClassifier(fit_intercept=False, nuclear=0, tol=1e-7),
    BRLClassifier(nuclear=0.1, tol=1e-7),
    CPNL(tol=1e-7),
)


def parts(X, Y, *weights, size=25):
    return [tuple(side[a : a + size] for side in (X, Y, *weights)) for a in range(0, len(Y), size)]


def assert_same_model(found, expected, atol=1e-4):
    assert found.objective_ == pytest.approx(expected.objective_, rel=found.tol + expected.tol)
    assert found.gap_ <= found.tol
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=atol)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=atol)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_parts_give_the_model_of_arrays(model, storage):
    expected, found = clone(model).fit(X, Y), clone(model).fit(parts(storage(X), Y))
    assert_same_model(found, expected, atol=2e-2 if model.nuclear > 1 else 1e-3)
    assert np.mean(found.predict(X) == expected.predict(X)) > 0.998


def random_weights(shape):
    """A third of them 0, and the first ten rows absent."""
    rng = np.random.default_rng(3)
    weights = rng.choice([0.0, 1.0, 2.5], shape)
    weights[:10] = 0
    return weights


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("shape", [(120,), (120, 5)], ids=["rows", "entries"])
def test_weights_of_parts_are_those_of_arrays(model, shape):
    weights = random_weights(shape)
    expected, found = clone(model).fit(X, Y, weights), clone(model).fit(parts(X, Y, weights))
    assert_same_model(found, expected, atol=2e-2 if model.nuclear > 1 else 1e-3)
    assert found.ridge_ == pytest.approx(expected.ridge_, rel=1e-12)
    assert found.empty_share_ == pytest.approx(expected.empty_share_)


def test_weights_of_classes_and_of_parts_multiply():
    model, weights = RBRLClassifier(class_weight="balanced", tol=1e-7), random_weights(Y.shape)
    assert_same_model(clone(model).fit(parts(X, Y, weights)), clone(model).fit(X, Y, weights), atol=1e-3)


def test_a_weight_is_a_repetition_in_parts():
    weights = np.random.default_rng(0).integers(0, 3, 120)
    repeated = parts(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    assert_same_model(RBRLClassifier(tol=1e-7).fit(parts(X, Y, weights)), RBRLClassifier(tol=1e-7).fit(repeated), 1e-3)


def test_parts_may_have_weights_of_any_kind():
    weights = random_weights(Y.shape)
    rows = weights[:50, 0]
    kinds = [(X[:50], Y[:50], rows), (X[50:90], Y[50:90], sparse.csr_array(weights[50:90])), (X[90:], Y[90:])]
    whole = np.vstack([np.tile(rows[:, None], 5), weights[50:90], np.ones((30, 5))])
    assert_same_model(RBRLClassifier(tol=1e-7).fit(kinds), RBRLClassifier(tol=1e-7).fit(X, Y, whole), atol=1e-3)


def test_weight_0_is_missing_in_parts():
    known = np.random.default_rng(0).random(Y.shape) < 0.7
    missing, weighted = parts(X, np.where(known, Y, np.nan)), parts(X, Y, known)
    found, expected = (RBRLClassifier(tol=1e-7).fit(data) for data in (weighted, missing))
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (np.ones(7), r"part 0: weights must be an array of shape \(25,\), one per row, or \(25, 5\).* Got \(7,\)"),
        ([1.0] * 25, r"part 0: weights must be an array .* Got list"),
        (np.linspace(-1, 1, 25), r"part 0: weights must be finite and >= 0. Got values from -1.0 to 1.0"),
        (np.zeros(25), r"No label of any of the 25 rows is known: all are NaN or have weight 0"),
    ],
)
def test_weights_that_are_none(weights, error):
    with pytest.raises(ValueError, match=error):
        RBRLClassifier().fit([(X[:25], Y[:25], weights)])


def test_shards_give_the_model_of_arrays(tmp_path):
    shards = write_shards((X, Y), tmp_path, rows_per_shard=50)
    expected = RBRLClassifier(tol=1e-6, solver="quasi-newton").fit(X, Y)
    found = RBRLClassifier(tol=1e-6).fit(shards)
    assert_same_model(found, expected)
    assert found.n_samples_seen_ == 120
    assert found.n_features_in_ == 8
    assert_same_model(RBRLClassifier(tol=1e-6).fit(open_shards(str(tmp_path / "*"))), expected)


@pytest.mark.parametrize("coding", ["zero", "signed", "sparse"])
def test_answers_come_in_the_coding_of_the_parts(coding):
    labels = {"zero": Y, "signed": 2 * Y - 1, "sparse": sparse.csr_array(Y)}[coding]
    expected = RBRLClassifier(tol=1e-6).fit(X, labels).predict(X)
    blocks = [(X[:60], labels[:60]), (X[60:], labels[60:])]
    found = RBRLClassifier(tol=1e-6).fit(blocks).predict(X)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    difference = abs(found - expected)
    assert difference.sum() <= 2


def test_warm_start_continues():
    model = RBRLClassifier(warm_start=True, tol=1e-6).fit(parts(X, Y))
    cold = model.n_iter_
    assert model.fit(parts(X, Y)).n_iter_ < cold
    assert RBRLClassifier(warm_start=True, tol=1e-6).fit(X, Y).fit(parts(X, Y)).n_iter_ < cold


def test_a_model_tells_its_time_in_passes_and_between():
    started, blocks = time.perf_counter(), LocalBlocks(parts(X, Y))
    model = RBRLClassifier().fit(blocks)
    taken = time.perf_counter() - started
    assert model.pass_seconds_[0] == pytest.approx(blocks.pass_seconds)
    assert min(model.pass_seconds_) > 0
    assert sum(model.pass_seconds_) <= taken
    assert blocks.pass_processor_seconds > 0
    first = model.pass_seconds_[0]
    assert model.fit(blocks).pass_seconds_[0] == pytest.approx(blocks.pass_seconds - first)
    assert not hasattr(model.fit(X, Y), "pass_seconds_")


def test_what_blocks_cannot_do_is_said():
    with pytest.raises(ValueError, match=r"learns a linear model from rows in blocks. Got kernel='rbf'"):
        RBRLClassifier(kernel="rbf").fit(parts(X, Y))
    for solver in ("apg", APG()):
        with pytest.raises(ValueError, match="must be 'auto' or 'quasi-newton' if the rows are in blocks"):
            RBRLClassifier(solver=solver).fit(parts(X, Y))
    with pytest.raises(
        ValueError, match=r"y must be None for blocks of rows, which contain their labels. Got y of type ndarray"
    ):
        RBRLClassifier().fit(parts(X, Y), Y)
    for name in ("sample_weight", "label_mask"):
        with pytest.raises(
            ValueError, match=rf"{name} must be None for rows in blocks. Got .* of type ndarray and 5 blocks"
        ):
            RBRLClassifier().fit(parts(X, Y), **{name: np.ones(Y.shape)})
    with pytest.raises(ValueError, match="requires y"):
        RBRLClassifier().fit(X)
    with pytest.raises(ValueError, match="parameter of RBRLClassifier must be"):
        RBRLClassifier(ridge=-1).fit(parts(X, Y))
    RBRLClassifier(solver=QuasiNewton(memory=5)).fit(parts(X, Y))


def test_a_shard_of_other_columns_is_named(tmp_path):
    write_shards((X, Y), tmp_path, rows_per_shard=60)
    write_shards((X[:, :7], Y), tmp_path / "thin", rows_per_shard=120)
    mixed = open_shards([*sorted(tmp_path.glob("*.npz")), *(tmp_path / "thin").glob("*")])
    with pytest.raises(
        DataFormatError, match=r"thin/part-00000\.npz: it has 7 features; part-00000\.npz, the first shard, has 8"
    ):
        RBRLClassifier().fit(mixed)


def assert_equal_out_of_core(part, folder, **parameters):
    """The objective within the certified gaps, in memory and from files."""
    shards = write_shards(part, folder, rows_per_shard=700)
    expected, found = RBRLClassifier(**parameters).fit(*part), RBRLClassifier(**parameters).fit(shards)
    tol = max(found.gap_, expected.gap_)
    assert tol <= found.tol
    assert found.objective_ == pytest.approx(expected.objective_, rel=tol)


def test_arts_in_shards(data_home, tmp_path):
    data = datasets.load("arts", data_home)
    assert_equal_out_of_core((data.X, data.Y), tmp_path, tol=1e-4)


@pytest.mark.parametrize(
    ("step", "parameters"),
    [(8, {"ridge": 30.0, "tol": 1e-3}), pytest.param(1, {"tol": 1e-4}, marks=pytest.mark.soak)],
)
def test_bibtex_in_shards(step, parameters, data_home, tmp_path):
    data = datasets.load("bibtex", data_home)
    assert_equal_out_of_core((data.X[::step], data.Y[::step]), tmp_path, **parameters)
