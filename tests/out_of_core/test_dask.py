"""Blocks on Dask: the same model with any number of workers, also when one of them dies."""

import os
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification

from rbrl import RBRLClassifier, datasets
from rbrl.losses import WeightedSum
from rbrl.out_of_core import LocalBlocks

dask = pytest.importorskip("dask", reason="the extra `dask` is not installed")
distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

X, Y = make_multilabel_classification(200, 8, n_classes=5, n_labels=2, random_state=0)
TOL = 1e-6


def arrays(X=X, Y=Y, rows=17):
    return da.from_array(X, chunks=(rows, 3)), da.from_array(Y, chunks=(rows, Y.shape[1]))


def cluster(n_workers, processes=False):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=None, silence_logs=50
    )


@pytest.fixture(scope="module")
def expected():
    return RBRLClassifier(tol=TOL, solver="quasi-newton").fit(X, Y)


def assert_same_model(found, expected):
    assert found.gap_ <= TOL
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-10)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    # The proof of arrays takes one evaluation, that of blocks is of passes already made.
    assert found.n_evaluations_ + 1 == expected.n_evaluations_


def test_without_a_cluster(expected):
    assert_same_model(RBRLClassifier(tol=TOL).fit(*arrays()), expected)


def test_delayed_parts(expected):
    read = dask.delayed(lambda start: (X[start : start + 30], Y[start : start + 30]))
    assert_same_model(RBRLClassifier(tol=TOL).fit([read(start) for start in range(0, 200, 30)]), expected)


def test_missing_labels_and_class_weights():
    labels = np.where(np.random.default_rng(0).random(Y.shape) < 0.7, Y, np.nan)
    model = RBRLClassifier(tol=TOL, class_weight={0: 3.0, 1: (0.5, 2.0)})
    expected = clone(model).fit(X, labels)
    for data in (arrays(Y=labels), frames(labels)):
        found = clone(model).fit(*data)
        assert found.gap_ <= TOL
        assert found.objective_ == pytest.approx(expected.objective_, rel=2 * TOL)


@pytest.mark.parametrize("name", ["sample_weight", "label_mask"])
def test_weights_and_masks(name):
    given = np.random.default_rng(0).random(Y.shape) < 0.7
    expected = RBRLClassifier(tol=TOL).fit(X, Y, **{name: given})
    found = RBRLClassifier(tol=TOL).fit(*arrays(), **{name: da.from_array(given, chunks=(17, 2))})
    assert found.objective_ == pytest.approx(expected.objective_, rel=2 * TOL)
    assert found.gap_ <= TOL


def test_masks_and_weights_of_rows_multiply():
    known, weights = np.random.default_rng(0).random(Y.shape) < 0.7, np.linspace(0, 2, len(Y))
    expected = RBRLClassifier(tol=TOL).fit(X, Y, weights, label_mask=known)
    dask_known, dask_weights = da.from_array(known, chunks=(17, 5)), da.from_array(weights, chunks=17)
    found = RBRLClassifier(tol=TOL).fit(*arrays(), dask_weights, label_mask=dask_known)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2 * TOL)


def test_weights_that_do_not_fit_are_named():
    with pytest.raises(
        ValueError, match=r"If X is a Dask array or data frame, sample_weight must be one, too. Got ndarray"
    ):
        RBRLClassifier().fit(*arrays(), np.ones(len(Y)))
    with pytest.raises(
        ValueError, match=r"sample_weight must have the same number of rows in each block. .* use sample_weight.rechunk"
    ):
        RBRLClassifier().fit(*arrays(), da.ones(len(Y), chunks=7))


def frames(labels, n_parts=4):
    """As Dask data frames."""
    y = pd.DataFrame(labels, columns=list("abcde"))
    return dd.from_pandas(pd.DataFrame(X), npartitions=n_parts), dd.from_pandas(y, npartitions=n_parts)


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_number_of_workers(n_workers, expected):
    with cluster(n_workers) as local, distributed.Client(local):
        assert_same_model(RBRLClassifier(tol=TOL).fit(*arrays()), expected)


def test_futures_stay_where_they_are(expected):
    with cluster(2) as local, distributed.Client(local) as client:
        parts = client.map(lambda start: (X[start : start + 50], Y[start : start + 50]), range(0, 200, 50))
        assert_same_model(RBRLClassifier(tol=TOL).fit(parts), expected)


def test_a_sum_does_not_depend_on_the_place():
    from rbrl.out_of_core.sources import DaskBlocks

    def count(block, factor):
        return len(block.Y), factor * block.Y.sum(axis=0), [block.name]

    parts = [(X[a : a + 9], Y[a : a + 9]) for a in range(0, 200, 9)]
    n, counts, names = DaskBlocks([dask.delayed(part) for part in parts]).total(count, 2.0)
    assert n == 200
    np.testing.assert_array_equal(counts, LocalBlocks(parts).total(count, 2.0)[1])
    assert names == [f"block {i} of 23" for i in range(23)]


def test_large_coefficients_bring_no_warning():
    from rbrl.out_of_core.sources import DaskBlocks

    with cluster(1) as local, distributed.Client(local), warnings.catch_warnings():
        blocks = DaskBlocks([dask.delayed((X, Y))])
        warnings.simplefilter("error", UserWarning)
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1B"}):
            assert blocks.total(lambda block, factor: (factor.sum(),), np.ones(10)) == (10.0,)


class DeadlyLoss(WeightedSum):
    """Kills the worker that evaluates it, once, in the middle of training."""

    def __init__(self, loss, flag):
        object.__setattr__(self, "terms", loss.terms)
        object.__setattr__(self, "flag", flag)
        object.__setattr__(self, "home", os.getpid())

    def evaluate(self, Y, F, weights=None):
        if F.any() and os.getpid() != self.home and not os.path.exists(self.flag):
            open(self.flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().evaluate(Y, F, weights)


class Deadly(RBRLClassifier):
    def loss(self, count_labels=None):
        return DeadlyLoss(super().loss(), self.flag)


@pytest.mark.skipif(os.name == "nt", reason="needs kill")
def test_a_worker_that_dies_is_survived(expected, tmp_path):
    import sys

    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    model = Deadly(tol=TOL)
    model.flag = str(tmp_path / "dead")
    with cluster(2, processes=True) as local, distributed.Client(local) as client:
        before = set(client.run(os.getpid).values())
        model.fit(*arrays(rows=25))
        assert os.path.exists(model.flag)
        assert set(client.run(os.getpid).values()) != before
    assert_same_model(model, expected)


def test_bad_arrays_are_named():
    Xd, Yd = arrays()
    with pytest.raises(ValueError, match=r"X have 17, 17, 17, 17, … rows, those of y have 50, 50, 50, 50; use y\.rech"):
        RBRLClassifier().fit(Xd, Yd.rechunk((50, 5)))
    with pytest.raises(ValueError, match=r"two dimensions. Got shapes \(200, 8\) and \(200,\)"):
        RBRLClassifier().fit(Xd, Yd[:, 0])
    with pytest.raises(ValueError, match=r"If X is a Dask array or data frame, y must be one, too. Got NoneType"):
        RBRLClassifier().fit(Xd)
    with pytest.raises(ValueError, match=r"y must be one, too. Got ndarray"):
        RBRLClassifier().fit(Xd, Y)
    with pytest.raises(ValueError, match="block 2 of 12 holds NaN"):
        RBRLClassifier().fit(da.where(da.arange(200, chunks=17)[:, None] == 40, np.nan, Xd), Yd)


def test_data_frames_are_learned_from_with_their_names():
    features, labels = [f"f{j}" for j in range(X.shape[1])], [f"label {j}" for j in range(Y.shape[1])]
    frames = pd.DataFrame(X, columns=features), pd.DataFrame(Y, columns=labels)
    model = RBRLClassifier().fit(*(dd.from_pandas(frame, npartitions=4) for frame in frames))
    alone = RBRLClassifier().fit(X, Y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=2e-4)
    assert list(model.feature_names_in_) == features
    assert list(model.label_names_) == labels
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frames[0].rename(columns={"f0": "other"}))


def test_data_frames_cut_differently_are_refused_with_a_way_out():
    frames = [dd.from_pandas(pd.DataFrame(side), npartitions=n) for side, n in ((X, 4), (Y, 3))]
    with pytest.raises(
        ValueError, match=r"same number of rows in each block.*y\.repartition\(divisions=X\.divisions\)"
    ):
        RBRLClassifier().fit(*frames)
    with pytest.raises(ValueError, match=r"y must be one, too. Got ndarray; .*dask\.dataframe\.from_pandas"):
        RBRLClassifier().fit(frames[0], Y)


def test_dask_missing_is_said_plainly(monkeypatch):
    Xd, Yd = arrays()
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(ImportError, match=r"rbrl\[dask\]"):
        RBRLClassifier().fit(Xd, Yd)


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_arts_on_workers(n_workers, data_home):
    data = datasets.load("arts", data_home)
    reference = RBRLClassifier(tol=1e-4).fit(data.X, data.Y)
    parts = [dask.delayed((data.X[a : a + 900], data.Y[a : a + 900])) for a in range(0, 5000, 900)]
    with cluster(n_workers) as local, distributed.Client(local):
        model = RBRLClassifier(tol=1e-4).fit(parts)
    assert max(model.gap_, reference.gap_) <= 1e-4
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-4)
