"""A comparison with metrics of probabilities: values where a method has them, words where it has not, and the diagram."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from rbrl.datasets import Dataset, save_file
from rbrl.experiments import Plan, PlanError, Results, Store, execute, ranks_table, write_report
from rbrl.experiments.page import render_page
from rbrl.metrics import ReliabilityBins

METRICS = ["hamming_loss", "log_loss", "expected_calibration_error"]
METHODS = {
    "br": {},
    "ml-knn": {},
    "calibrated": {"use": "rbrl:CalibratedMultiLabelClassifier", "params": {"cv": 3, "estimator": {"use": "br"}}},
    "filled": {"use": "sklearn.neighbors:KNeighborsClassifier", "non_empty": True},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("probabilities")
    X, Y = make_multilabel_classification(n_samples=120, n_features=6, n_classes=4, random_state=1)
    save_file(Dataset(X, Y), place / "shore.npz")
    return place


def plan(folder, methods, **more):
    table = {"datasets": [{"name": "shore", "file": "shore.npz"}], "methods": methods, "metrics": METRICS}
    return Plan.from_dict({**table, "splits": {"number": 2}, **more}, folder=folder)


@pytest.fixture(scope="module")
def store(folder):
    store = Store(folder / "run")
    assert not execute(plan(folder, METHODS), store).failures
    return store


def test_methods_with_probabilities_have_values_and_others_none(store):
    values = store.rows().pivot_table(index="method", columns="metric", values="value", dropna=False)
    assert values.hamming_loss.notna().all()
    assert values.log_loss.notna().to_dict() == {"br": False, "calibrated": True, "filled": True, "ml-knn": True}
    assert (store.rows().status == "ok").all()


def test_the_store_holds_the_bins_that_the_error_is_made_of(store):
    frame = store.reliability()
    assert set(frame.method) == {"calibrated", "filled", "ml-knn"}
    errors = store.rows().query("metric == 'expected_calibration_error'").set_index(["method", "split"]).value
    for key, part in frame.groupby(["method", "split"]):
        bins = ReliabilityBins(*part[["n", "foretold", "relevant"]].to_numpy(dtype=float).T)
        assert bins.n.sum() == 48 * 4
        assert bins.error == pytest.approx(errors[key], rel=1e-12)


def test_nothing_is_done_twice(store, folder):
    assert execute(plan(folder, METHODS), store).n_done == 0


def test_the_report_says_who_has_no_probabilities(store, tmp_path):
    results = Results.from_rows(store.rows(), store.datasets(), store.reliability())
    assert results.methods_without_probabilities("log_loss") == ("br",)
    assert results.methods_without_probabilities("hamming_loss") == ()
    page = render_page(results)
    assert "Reliability diagrams" in page
    assert "These methods have no probabilities, and so no values of the metrics that need them: br." in page
    table = ranks_table(results)
    assert "Overall leaves out the metrics of probabilities; methods without them: br." in table.note
    overall = table.frame.query("metric == 'Overall'").set_index("method").average_rank
    hamming = table.frame.query("metric == 'hamming_loss'").set_index("method").average_rank
    np.testing.assert_array_equal(overall, hamming)
    written = write_report(store.rows(), tmp_path, datasets=store.datasets(), reliability=store.reliability())
    assert {"reliability.svg", "reliability.png"} <= {path.name for path in written.files}


def test_a_page_without_probabilities_has_no_word_of_them(store):
    rows = store.rows()
    assert "robabilit" not in render_page(rows[rows.metric == "hamming_loss"])


def test_parameters_cannot_be_chosen_by_probabilities_that_are_not_there(folder):
    methods = {"br": {"grid": {"C": [0.1, 1.0]}}}
    with pytest.raises(
        PlanError, match=r"methods\.br: parameters cannot be chosen by log_loss: BinaryRelevance has no"
    ):
        execute(plan(folder, methods, tuning={"criterion": "log_loss", "folds": 2}), Store(folder / "refused"))
    methods = {"ml-knn": {"grid": {"n_neighbors": [3, 20]}}}
    tuned = Store(folder / "tuned")
    assert not execute(plan(folder, methods, tuning={"criterion": "log_loss", "folds": 2}), tuned).failures
    assert tuned.tuning().query("metric == 'log_loss'").value.notna().all()
