"""Tasks, cells and the run: equal rows for all methods, budgets that are kept, failures that are rows."""

import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from rbrl import MLkNN
from studies.comparison import cell, rows, rules, run
from studies.comparison.cell import do_cell, fit_and_predict
from studies.comparison.methods import BY_NAME, Method
from studies.comparison.tasks import Task, make_task


@pytest.fixture(scope="module")
def task():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4))
    Y = (X[:, :3] + random.normal(scale=0.5, size=(90, 3)) > 0.3).astype(int)
    Y[:60, 0] |= ~Y[:60].any(axis=1)
    folds = tuple(np.array_split(random.permutation(60), 2))
    return Task("toy", 0, X[:60], Y[:60], X[60:], Y[60:], folds)


def method(build, points=({}, {"n_neighbors": 5}, {"n_neighbors": 3}), name="toy"):
    return Method(name, "Toy", "toy", "neighbours", build, points)


NEIGHBOURS = method(lambda point, seed: MLkNN(**point))


def test_a_task_follows_the_rules():
    """yeast needs no download."""
    first, again, other = make_task("yeast", 0), make_task("yeast", 0), make_task("yeast", 1)
    assert (first.X.shape[0], first.X_test.shape[0]) == (rules.TRAIN_ROWS, min(rules.TEST_ROWS, 2417 - 1450))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    assert sorted(np.concatenate(first.folds)) == list(range(rules.TRAIN_ROWS))
    assert first.Y.any(axis=0).all()
    assert not first.Y.all(axis=0).any()
    np.testing.assert_allclose(first.X.mean(axis=0), 0, atol=1e-12)


def test_a_cell_has_both_variants_and_every_column(task):
    default, tuned = do_cell(NEIGHBOURS, task)
    assert (default["variant"], tuned["variant"]) == rules.VARIANTS
    assert (default["n_points"], default["search_seconds"], default["params"]) == (1, 0.0, {})
    assert tuned["n_points"] == 3
    for row in (default, tuned):
        assert {*rules.METRIC_COLUMNS, *rows.FACTS} <= {*row}
        assert all(np.isfinite(row[name]) for name in rules.METRIC_COLUMNS)


def test_the_search_stops_where_the_budget_ends(task, monkeypatch):
    monkeypatch.setattr(rules, "BUDGET_SECONDS", 0.0)
    default, tuned = do_cell(NEIGHBOURS, task)
    assert tuned["n_points"] == 1
    assert default["average_precision"] == tuned["average_precision"]


def test_the_chosen_point_has_the_best_ranks():
    def tried(point, precision, f1):
        return cell.Tried(point, None, values={"average_precision": [precision], "f1_micro": [f1]})

    assert cell.best([tried(0, 0.5, 0.6), tried(1, 0.6, 0.7), tried(2, 0.4, 0.5)]).point == 1
    assert cell.best([tried(0, 0.5, 0.7), tried(1, 0.6, 0.6)]).point == 0  # equal ranks: the earlier


def test_a_label_that_does_not_vary_is_first_or_last_and_not_fitted(task):
    Y = np.column_stack([np.zeros(60, int), task.Y, np.ones(60, int)])
    logistic = method(lambda point, seed: OneVsRestClassifier(LogisticRegression()))
    found = fit_and_predict(logistic, {}, 0, task.X, Y, task.X_test)
    assert (found.scores.argmin(axis=1) == 0).all()
    assert (found.scores.argmax(axis=1) == 4).all()
    assert not found.labels[:, 0].any()
    assert found.labels[:, 4].all()
    assert (found.probabilities[:, 0] == 0).all()
    assert (found.probabilities[:, 4] == 1).all()
    plain = fit_and_predict(logistic, {}, 0, task.X, task.Y, task.X_test)
    np.testing.assert_array_equal(found.scores[:, 1:4], plain.scores)


class Fails(MLkNN):
    """Raises when it is fitted."""

    def fit(self, X, y):
        raise ValueError("no luck")


class Forever(MLkNN):
    """Works for ever."""

    def fit(self, X, y):
        while True:
            time.sleep(0)


@pytest.fixture
def two_methods(task, monkeypatch):
    monkeypatch.setattr(rules, "BUDGET_SECONDS", 0.2)
    monkeypatch.setattr(run, "_task", lambda dataset, split: task)
    for name, cls in (("fails", Fails), ("forever", Forever)):
        monkeypatch.setitem(BY_NAME, name, method(lambda point, seed, cls=cls: cls(), name=name))


def test_failures_are_rows_with_reasons_and_are_not_repeated(two_methods, tmp_path, capsys):
    cells = [("toy", 0, "fails"), ("toy", 0, "forever")]
    run.run(cells, jobs=2, folder=tmp_path)
    found = rows.read(tmp_path).set_index(["method", "variant"])
    assert (found.status == "failed").all()
    assert found.reason["fails", "tuned"] == "ValueError: no luck"
    assert found.reason["forever", "tuned"] == "over budget: more than 1 s"
    capsys.readouterr()
    run.run(cells, folder=tmp_path)
    assert capsys.readouterr().out == ""


def test_rows_come_back_as_they_were(tmp_path):
    row = {"dataset": "yeast", "split": 1, "method": "br", "variant": "tuned", "status": "ok", "params": {"C": 0.1}}
    rows.append([row | {"average_precision": 0.123456789, "gap": float("nan")}], tmp_path)
    found = rows.read(tmp_path).iloc[0]
    assert (found.params, found.average_precision, found.reason) == ('{"C": 0.1}', 0.123457, "")
    assert np.isnan(found.gap)
    assert rows.done(tmp_path) == {("yeast", 1, "br")}
    assert rows.done(tmp_path / "nowhere") == set()
