"""A comparison on labels of which some are missing."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from rbrl.datasets import Dataset, load_file, save_file
from rbrl.estimators import BinaryRelevance
from rbrl.experiments import Plan, PlanError, Store, execute
from rbrl.metrics import evaluate
from rbrl.splits import random_split

METHODS = {"br": {}, "tuned": {"use": "br", "grid": {"C": [0.1, 1.0]}}}
OWN = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Always(ClassifierMixin, BaseEstimator):
    takes_missing = True

    def fit(self, X, y):
        self.share_ = np.nanmean(y, axis=0)
        return self

    def decision_function(self, X):
        return np.tile(self.share_ - 0.5, (len(X), 1))

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


class Plain(Always):
    takes_missing = False
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a data set that has missing labels, one that has none, and two methods."""
    folder = tmp_path_factory.mktemp("plan")
    X, Y = make_multilabel_classification(90, 6, n_classes=4, random_state=0)
    save_file(Dataset(X, Y), folder / "whole.csv")
    hidden = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
    save_file(Dataset(X, hidden), folder / "hidden.csv")
    (folder / "own.py").write_text(OWN)
    return folder


def plan(place, methods, files=("hidden.csv",), **more):
    table = {"datasets": [{"file": file} for file in files], "methods": methods, "splits": {"number": 2}, **more}
    return Plan.from_dict(table, folder=place)


@pytest.mark.parametrize("stratified", [False, True])
def test_metrics_leave_them_out(place, tmp_path, stratified):
    own = {"always": {"use": "own.py:Always"}, "filled": {"use": "own.py:Always", "non_empty": True}}
    splits = {"number": 2, "stratified": stratified}
    summary = execute(plan(place, METHODS | own, splits=splits), tmp_path)
    assert (summary.n_done, summary.n_failed) == (8, 0)
    rows = Store(tmp_path).rows()
    assert rows.value.notna().all()
    if not stratified:
        data = load_file(place / "hidden.csv")
        (train, test), mean = random_split(len(data), 0), data.X[random_split(len(data), 0)[0]].mean(axis=0)
        X = (data.X - mean) / data.X[train].std(axis=0)
        model = BinaryRelevance().fit(X[train], data.Y[train].astype(float))
        expected = evaluate(
            data.Y[test], model.predict(X[test]).astype(int), model.decision_function(X[test]), missing="ignore"
        )
        mine = rows[(rows.method == "br") & (rows.split == 0)].set_index("metric").value.to_dict()
        assert mine == pytest.approx(expected, rel=1e-6)


def test_methods_that_need_all_labels_are_refused_before_anything_runs(place, tmp_path):
    methods = {
        "br": {},
        "ml-knn": {},
        "plain": {"use": "own.py:Plain"},
        "knn": {"use": "sklearn.neighbors:KNeighborsClassifier"},
    }
    with pytest.raises(PlanError, match=r"'hidden' has \d+ of 360 labels missing.* ml-knn, plain, knn\. .*br"):
        execute(plan(place, methods), tmp_path / "store")
    assert not (tmp_path / "store").exists() or not len(Store(tmp_path / "store").rows())
    assert execute(plan(place, methods, ["whole.csv"]), tmp_path / "whole").n_failed == 0


def test_they_are_part_of_a_run_s_identity(place, tmp_path):
    execute(plan(place, {"br": {}}), tmp_path)
    again = execute(plan(place, {"br": {}}), tmp_path)
    assert (again.n_done, again.n_reused) == (0, 2)
    other = tmp_path / "other"
    other.mkdir()
    data = load_file(place / "hidden.csv")
    save_file(Dataset(data.X, np.nan_to_num(data.Y), data.feature_names, data.label_names), other / "hidden.csv")
    assert execute(plan(other, {"br": {}}), tmp_path).n_done == 2


def test_sizes_count_what_is_known(place, tmp_path):
    execute(plan(place, {"br": {}}), tmp_path)
    (row,) = Store(tmp_path).datasets().to_dict("records")
    Y = load_file(place / "hidden.csv").Y
    assert row["density"] == pytest.approx(np.nanmean(Y))
    assert row["cardinality"] == pytest.approx(np.nansum(Y) / len(Y))
