"""Running a plan: rows, failures, what is reused and what is not."""

import io
import json
import sqlite3
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid
from small_comparison import timeless

from rbrl.datasets import load_file
from rbrl.estimators import RBRLClassifier
from rbrl.experiments import PlainProgress, Plan, PlanError, Progress, Store, execute
from rbrl.experiments.execute import RichProgress
from rbrl.experiments.worker import prepare
from rbrl.metrics import evaluate
from rbrl.splits import random_split


class Listener(Progress):
    def __init__(self):
        self.events, self.notes = [], []

    def noted(self, text):
        self.notes.append(text)

    def started(self, run):
        self.events.append(("started", run.dataset, run.method, run.split))

    def finished(self, run, outcome):
        self.events.append(("finished", run.dataset, run.method, run.split))

    def failed(self, run, outcome):
        self.events.append(("failed", run.dataset, run.method, run.split))


def run(table, place, store, **options):
    """Do a plan; return its summary and what happened."""
    listener = Listener()
    return execute(Plan.from_dict(table, folder=place), store, progress=listener, **options), listener


def test_rows_have_what_a_table_needs(expected):
    rows = expected.rows()
    assert list(rows.columns) == [
        *("dataset", "method", "split", "metric", "value", "status", "error", "params"),
        *("tune_seconds", "train_seconds", "test_seconds", "processor_seconds"),
        *("gap", "evaluations", "seed", "version", "machine"),
    ]
    assert len(rows) == 4 * 3 * 6
    ok = rows[rows.status == "ok"]
    assert ok.value.notna().all()
    assert (ok.train_seconds > 0).all()
    rbrl = ok[ok.method == "rbrl"]
    assert (rbrl.gap <= 1e-4).all()
    assert (rbrl.tune_seconds > 0).all()
    assert set(json.loads(rbrl.params.iloc[0])) == {"ridge", "ranking", "nuclear"}
    assert set(zip(ok.split, ok.seed)) == {(0, 0), (1, 1), (2, 2)}


def test_sizes_of_files_are_kept(expected, place):
    (row,) = expected.datasets().to_dict("records")
    Y = load_file(place / "mine.csv").Y
    sizes = {"n_samples": 90, "n_features": 6, "n_labels": 4}
    assert row == {
        "dataset": "mine",
        **sizes,
        "cardinality": pytest.approx(Y.sum() / 90),
        "density": pytest.approx(Y.mean()),
    }


def test_a_failed_run_is_a_row_with_its_error(expected):
    failed = expected.rows().query("status == 'failed'")
    assert set(failed.method) == {"broken"}
    assert set(failed.error) == {"RuntimeError: no sense in 0"}
    assert failed.value.isna().all()
    assert expected.failures().trace.str.contains("own.py").all()


def test_every_metric_of_every_grid_point_and_fold_is_kept(expected):
    tuning = expected.tuning()
    assert list(tuning.columns) == [
        *("dataset", "method", "split", "params", "fold", "metric", "value", "fit_seconds", "gap", "evaluations")
    ]
    assert len(tuning) == 3 * 2 * 6 * (4 + 2)
    assert tuning.value.notna().all()


def test_a_plain_loop_gives_the_same(expected, place):
    """One run by hand: split, standardise, cross-validate, refit, test."""
    data = load_file(place / "mine.csv")
    Y = data.Y.astype(int)
    train, test = random_split(len(Y), 1, 0.6)
    X_train, X_test = prepare(data.X, train, test, "dense")
    model = RBRLClassifier(non_empty=True, nuclear=0.1)
    points = list(ParameterGrid({"ridge": [0.1, 1.0], "ranking": [0.1, 1.0]}))
    means = []
    for point in points:
        folds = KFold(2, shuffle=True, random_state=1).split(X_train)
        found = [judged(clone(model).set_params(**point), X_train, Y[train], *fold) for fold in folds]
        means.append(pd.DataFrame(found).mean())
    ranks = pd.DataFrame(means).rank(ascending=False)
    for loss in ("hamming_loss", "ranking_loss", "coverage"):
        ranks[loss] = pd.DataFrame(means)[loss].rank()
    best = points[int(ranks.mean(axis=1).argmin())]
    model.set_params(**best).fit(X_train, Y[train])
    rows = expected.rows().query("method == 'rbrl' and split == 1")
    assert json.loads(rows.params.iloc[0]) == best | {"nuclear": 0.1}
    values = evaluate(Y[test], model.predict(X_test), model.decision_function(X_test))
    np.testing.assert_allclose(rows.value, list(values.values()), atol=1e-9)


def judged(model, X, Y, train, test):
    model.fit(X[train], Y[train])
    return evaluate(Y[test], model.predict(X[test]), model.decision_function(X[test]))


def test_nothing_is_done_twice(plan, expected, tmp_path):
    store = Store(tmp_path)
    first, second = execute(plan, store), execute(plan, store)
    assert (first.n_done, first.n_reused, first.n_failed) == (9, 0, 3)
    assert (second.n_done, second.n_reused, second.n_failed) == (0, 9, 3)
    assert second.failures[0] == ("mine", "broken", 0, "RuntimeError: no sense in 0")
    pd.testing.assert_frame_equal(timeless(store.rows()), timeless(expected.rows()))
    assert store.plan() == plan


def test_one_store_serves_several_plans(table, place, tmp_path):
    store, whole = Store(tmp_path), Plan.from_dict(table, folder=place)
    execute(whole, store)
    before, tuned = store.rows(), store.tuning()
    table["tuning"]["criterion"] = "coverage"
    other = Plan.from_dict(table, folder=place)
    assert set(store.rows(other).method) == {"forest", "broken"}, "the methods that are not tuned"
    assert execute(other.part(methods=["brl"], splits=[2]), store).n_done == 1
    assert set(store.rows().split) == {2}
    pd.testing.assert_frame_equal(store.rows(whole), before)
    pd.testing.assert_frame_equal(store.tuning(whole), tuned)
    assert len(store.failures(whole)) == 3
    assert set(zip(*(store.rows(other)[key] for key in ("method", "split")))) >= {("brl", 2)}


def test_sparse_features_are_standardised_only_if_asked_for():
    X = sparse.csr_array(np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]]))
    train, test = np.array([0, 1]), np.array([2])
    assert all(sparse.issparse(part) for part in prepare(X, train, test, "dense"))
    scaled, _ = prepare(X, train, test, "all")
    np.testing.assert_allclose(scaled, [[-1.0, 0.0], [1.0, 0.0]])


def test_effort_counts_the_fits(expected, plan):
    tuned, effort = expected.tuning().query("metric == 'coverage'"), expected.effort(plan)
    assert len(effort) == 6
    for row in effort.itertuples():
        part = tuned[(tuned.method == row.method) & (tuned.split == row.split)]
        assert (row.n_fits, row.gap) == (len(part), part.gap.max())
        assert row.seconds == pytest.approx(part.fit_seconds.sum())
        assert row.evaluations == pytest.approx(part.evaluations.mean())
        assert row.certified == pytest.approx((part.gap <= 1e-3).mean())


def test_a_part_tuned_on_the_first_split_does_that_one_too(table, place, tmp_path):
    table["methods"] = {"brl": {"grid": {"ridge": [0.1, 1.0]}, "tune_on": "first"}, "rbrl": {"tune_on": "first"}}
    plan = Plan.from_dict(table, folder=place).part(splits=[2])
    assert execute(plan, tmp_path).n_done == 3
    rows = Store(tmp_path).rows()
    assert {name: set(group.split) for name, group in rows.groupby("method")} == {"brl": {0, 2}, "rbrl": {2}}


def test_another_criterion_costs_only_refits(table, place, tmp_path):
    store = Store(tmp_path)
    run(table, place, store)
    before = store.tuning()
    table["tuning"]["criterion"] = "coverage"
    summary, listener = run(table, place, store)
    assert summary.n_done == 6
    assert "3 runs of rbrl will be repeated; changed: the criterion." in listener.notes
    pd.testing.assert_frame_equal(store.tuning(), before)


@pytest.mark.parametrize("tune_on", ["every", "first"])
def test_one_fit_judged_by_two_rules(table, place, tmp_path, tune_on):
    own = {"grid": {"C": [0.01, 1.0]}, "params": {"scores": "hard"}, "convention": "mulan", "tune_on": tune_on}
    other = {**own, "params": {"scores": "decision"}, "convention": "paper", "non_empty": True}
    rule = {key: other[key] for key in ("params", "convention", "non_empty")}
    shared, alone = Store(tmp_path / "shared"), Store(tmp_path / "alone")
    run({**table, "methods": {"br": {**own, "also_judged": [rule]}}}, place, shared)
    plan = {**table, "methods": {"br": other}}
    choices = shared.rows().params.str.replace("hard", "decision")
    summary, _ = run(plan, place, shared)
    run(plan, place, alone)
    pd.testing.assert_frame_equal(timeless(shared.rows()), timeless(alone.rows()))
    pd.testing.assert_frame_equal(timeless(shared.tuning()), timeless(alone.tuning()))
    agree = (choices.to_numpy() == shared.rows().params.to_numpy()).reshape(3, -1).all(axis=1).sum()
    assert agree > 0
    assert summary.n_reused == agree


TOUCHY = """
import sys

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Touchy(ClassifierMixin, BaseEstimator):
    decision_parameters = ("mood",)

    def __init__(self, mood="good", C=1.0):
        self.mood, self.C = mood, C

    def fit(self, X, y):
        self.n_labels_ = y.shape[1]
        return self

    def decision_function(self, X):
        if self.mood == "bad":
            raise RuntimeError("not in the mood")
        if self.mood == "worse":
            sys.exit("gone")
        return np.tile(np.arange(self.n_labels_) * self.C, (len(X), 1))

    def predict(self, X):
        return (self.decision_function(X) > 1).astype(int)
"""


@pytest.mark.parametrize("mood", ["bad", "worse"])
@pytest.mark.parametrize("grid", [{}, {"grid": {"C": [0.5, 1.0]}}])
def test_an_error_of_another_rule_is_not_the_runs_own(table, place, tmp_path, mood, grid):
    (tmp_path / "touchy.py").write_text(TOUCHY)
    table["datasets"][0]["file"] = str(place / "mine.csv")
    table["splits"]["number"] = 1
    own = {"use": "touchy.py:Touchy", **grid}
    rules = [{"params": {"mood": mood}}, {"params": {"mood": "fair"}}]
    summary, listener = run(
        {**table, "methods": {"touchy": {**own, "also_judged": rules}}}, tmp_path, tmp_path / "store"
    )
    assert (summary.n_done, summary.n_failed) == (1, 0)
    (note,) = listener.notes
    assert note.startswith("mine · touchy · split 0: the evaluation with another decision rule failed: ")
    assert note.endswith("RuntimeError: not in the mood" if mood == "bad" else "SystemExit: gone")
    fair = {**table, "methods": {"touchy": {**own, "params": {"mood": "fair"}}}}
    assert run(fair, tmp_path, tmp_path / "store")[0].n_reused == 1, "the rule beside it lost nothing"
    other = {**table, "methods": {"touchy": {**own, "params": {"mood": mood}}}}
    summary, _ = run(other, tmp_path, tmp_path / "store")
    assert (summary.n_done, summary.n_failed) == (0, 1)


LEAVER = """
import sys

from rbrl import BRLClassifier


class Leaver(BRLClassifier):
    def fit(self, X, y):
        {how}
"""


@pytest.mark.parametrize(
    ("how", "error", "jobs"),
    [
        ("sys.exit(3)", "SystemExit: 3", 1),
        ("sys.exit(3)", "SystemExit: 3", 2),
        ("sys.exit()", "SystemExit", 1),
        ("raise GeneratorExit('odd')", "GeneratorExit: odd", 1),
    ],
)
def test_a_method_that_leaves_fails_its_run_only(table, place, tmp_path, how, error, jobs):
    (tmp_path / "leaver.py").write_text(LEAVER.format(how=how))
    table["datasets"][0]["file"] = str(place / "mine.csv")
    table["splits"]["number"] = 1
    table["methods"] = {"leaver": {"use": "leaver.py:Leaver"}, "brl": {}}
    summary, listener = run(table, tmp_path, tmp_path / "store", jobs=jobs)
    assert summary.failures == [("mine", "leaver", 0, error)]
    assert summary.n_done == 1
    assert ("failed", "mine", "leaver", 0) in listener.events
    assert "leaver.py" in Store(tmp_path / "store").failures().trace.item()


def test_an_interrupt_in_this_process_stops_the_comparison(table, place, tmp_path):
    (tmp_path / "leaver.py").write_text(LEAVER.format(how="raise KeyboardInterrupt"))
    table["datasets"][0]["file"] = str(place / "mine.csv")
    table["methods"] = {"brl": {}, "leaver": {"use": "leaver.py:Leaver"}}
    with pytest.raises(KeyboardInterrupt):
        run(table, tmp_path, tmp_path / "store")
    assert set(Store(tmp_path / "store").rows().status) == {"ok"}


def test_an_interrupt_in_a_worker_ends_its_run_only(table, place, tmp_path):
    (tmp_path / "leaver.py").write_text(LEAVER.format(how="raise KeyboardInterrupt"))
    table["datasets"][0]["file"] = str(place / "mine.csv")
    table["splits"]["number"] = 1
    table["methods"] = {"leaver": {"use": "leaver.py:Leaver"}, "brl": {}}
    for _ in range(2):
        summary, listener = run(table, tmp_path, tmp_path / "store", jobs=2)
        assert summary.failures == [("mine", "leaver", 0, "KeyboardInterrupt")]
        assert ("failed", "mine", "leaver", 0) in listener.events, "a new start tries it again"


def test_a_rule_that_needs_another_fit_is_refused(table, place, tmp_path):
    table["methods"] = {"br": {"also_judged": [{"params": {"C": 2.0}}]}}
    with pytest.raises(PlanError, match="'C' would need another fit of BinaryRelevance"):
        run(table, place, Store(tmp_path))
    table["methods"] = {"forest": {"use": "own.py:Forest", "also_judged": [{"non_empty": True}]}}
    with pytest.raises(PlanError, match="Forest does not say which parameters may change after a fit"):
        run(table, place, Store(tmp_path))


def test_the_processors_time_of_a_search_done_before_counts(table, place, tmp_path):
    table["methods"] = {"brl": table["methods"]["brl"]}
    store = Store(tmp_path)
    run(table, place, store)
    with sqlite3.connect(tmp_path / "runs.sqlite") as connection:
        connection.execute("UPDATE folds SET processor_seconds = 1000")
    connection.close()
    table["tuning"]["criterion"] = "coverage"
    assert run(table, place, store)[0].n_done == 3
    assert (store.effort().processor_seconds == 1000 * 4).all(), "two points, two folds"
    again = store.rows()
    assert again.processor_seconds.between(4000, 4100).all()
    table["methods"]["brl"]["grid"]["ridge"] = [0.1, 1.0, 10.0]
    run(table, place, store)
    assert store.rows().processor_seconds.between(4000, 4100).all()
    assert (store.effort().processor_seconds > 4000).all()


def test_a_search_is_shared_out_to_its_points(expected):
    rows, effort = expected.rows().drop_duplicates(["method", "split"]), expected.effort()
    both = effort.merge(rows, on=["dataset", "method", "split"], suffixes=("", "_of_run"))
    assert (both.processor_seconds > 0).all()
    assert (both.processor_seconds <= both.processor_seconds_of_run).all()


def test_a_larger_grid_tunes_only_the_new_points(table, place, tmp_path):
    store = Store(tmp_path)
    run(table, place, store)
    before = store.tuning().query("method == 'brl'")
    table["methods"]["brl"]["grid"]["ridge"] = [0.1, 1.0, 10.0]
    summary, listener = run(table, place, store)
    after = store.tuning().query("method == 'brl'")
    assert summary.n_done == 3
    assert listener.notes == ["3 runs of brl will be repeated; changed: the grid."]
    assert len(after) == len(before) * 3 / 2
    assert set(before.fit_seconds) < set(after.fit_seconds)


def test_a_new_metric_and_a_renamed_method(table, place, tmp_path):
    store = Store(tmp_path)
    run(table, place, store)
    table["methods"]["trees"] = table["methods"].pop("forest")
    summary, _ = run(table, place, store)
    assert (summary.n_done, summary.n_reused) == (0, 9)
    assert "trees" in set(store.rows().method)
    table["metrics"] = ["hamming_loss", "one_error"]
    summary, listener = run(table, place, store)
    assert summary.n_done == 9
    assert any("now with one_error" in note for note in listener.notes)
    assert set(store.rows().metric) == {"hamming_loss", "one_error"}


def test_fewer_splits_then_more(table, place, tmp_path):
    store = Store(tmp_path)
    table["splits"]["number"] = 2
    run(table, place, store)
    table["splits"]["number"] = 1
    summary, listener = run(table, place, store)
    assert (summary.n_done, summary.n_reused) == (0, 3)
    assert listener.notes == ["4 runs of the last plan are not in this one; the store keeps them."]
    assert set(store.rows().split) == {0}
    table["splits"]["number"] = 3
    assert run(table, place, store)[0].n_done == 3


def test_tuned_on_the_first_split(table, place, tmp_path, expected):
    table["tuning"]["on"] = "first"
    store = Store(tmp_path)
    summary, _ = run(table, place, store)
    rows = store.rows().query("method == 'rbrl'")
    assert summary.n_done == 9
    assert rows.params.nunique() == 1
    assert set(store.tuning().split) == {0}
    assert (rows[rows.split > 0].tune_seconds == 0).all()
    same = expected.rows().query("method == 'rbrl' and split == 0")
    pd.testing.assert_frame_equal(timeless(rows[rows.split == 0]), timeless(same))


def test_one_method_tuned_on_the_first_split(table, place, tmp_path, expected):
    table["methods"]["rbrl"]["by_dataset"] = {"mine": {"tune_on": "first"}}
    store = Store(tmp_path)
    run(table, place, store)
    rows = store.rows()
    assert rows.query("method == 'rbrl'").params.nunique() == 1
    others = "method != 'rbrl'"
    pd.testing.assert_frame_equal(timeless(rows.query(others)), timeless(expected.rows().query(others)))


def test_runs_whose_tuning_failed_say_so(table, place, tmp_path):
    table["tuning"]["on"] = "first"
    table["methods"] = {"broken": {"use": "own.py:Broken", "grid": {"sense": [1, 2]}}}
    store = Store(tmp_path)
    assert run(table, place, store)[0].n_failed == 3
    first, *others = store.failures().error
    assert first == "RuntimeError: no sense in 1"
    assert all("RuntimeError: no sense in 1" in error and error.startswith("TuningFailed") for error in others)


def test_edited_code_runs_anew(table, place, tmp_path):
    folder = tmp_path / "plan"
    folder.mkdir()
    for file in place.glob("*.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    run(table, folder, tmp_path / "store")
    text = (folder / "own.py").read_text()
    (folder / "own.py").write_text(text.replace('raise RuntimeError(f"no sense in {self.sense}")', "raise OSError(28)"))
    _, listener = run(table, folder, tmp_path / "store")
    assert "3 runs of broken will be repeated; changed: the code of the class." in listener.notes
    assert set(Store(tmp_path / "store").failures().error) == {"OSError: 28"}


def test_failed_runs_are_retried_on_demand(table, place, tmp_path):
    run(table, place, tmp_path)
    _, listener = run(table, place, tmp_path, retry_failed=True)
    assert [event for event in listener.events if event[0] == "failed"] == [
        ("failed", "mine", "broken", i) for i in range(3)
    ]


def test_a_set_that_is_not_there_fails_alone_and_is_tried_again(table, place, tmp_path, monkeypatch):
    monkeypatch.setenv("RBRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RBRL_DATA", raising=False)
    table["datasets"].append("image")
    table["methods"] = {"brl": {}}
    for _ in range(2):
        summary, listener = run(table, place, tmp_path / "store", data_home=tmp_path)
        assert summary.n_failed == 3
        assert "image is in none of" in summary.failures[0][3]
        assert ("started", "image", "brl", 0) in listener.events


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ({"use": "rbrll"}, "no method is called 'rbrll'"),
        ({"use": "rbrll"}, "Did you mean 'rbrl'?"),
        ({"use": "rbrl", "params": {"rigde": 1}}, "RBRLClassifier has no parameter 'rigde'. Did you mean 'ridge'?"),
        ({"use": "absent.py:A"}, "the file 'absent.py' does not exist"),
        ({"use": "own.py:Forrest"}, "own.py has no 'Forrest'. Did you mean 'Forest'?"),
        ({"use": "leaving.py:A"}, "'leaving.py:A' cannot be imported: SystemExit: bye"),
        (
            {"use": "clr", "params": {"estimator": {"use": "own.py:Odd"}}},
            "cannot be made with these params: SystemExit",
        ),
        ({"use": "no_such_module:A"}, "'no_such_module:A' cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_runs(table, place, tmp_path, method, words):
    table["methods"]["other"] = method
    with pytest.raises(PlanError) as caught:
        run(table, place, tmp_path)
    assert words in str(caught.value)
    assert Store(tmp_path).rows().empty


def test_a_file_that_cannot_be_read_is_refused(table, place, tmp_path):
    table["datasets"] = ["absent.csv"]
    with pytest.raises(PlanError, match=r"the data set 'absent' cannot be read: no such file"):
        run(table, place, tmp_path)


@pytest.mark.parametrize("options", [{"jobs": 0}, {"backend": "dusk"}])
def test_odd_options_are_refused(plan, tmp_path, options):
    with pytest.raises(PlanError, match=r"0|'dusk' is not allowed. Did you mean 'dask'"):
        execute(plan, tmp_path, **options)


def test_any_classifier_by_its_import_path(table, place, tmp_path):
    inside = {"use": "sklearn.linear_model:LogisticRegression", "params": {"C": 0.5}}
    table["methods"] = {
        "ovr": {
            "use": "sklearn.multiclass:OneVsRestClassifier",
            "params": {"estimator": inside},
            "grid": {"estimator__C": [0.1, 1.0]},
            "non_empty": True,
        },
        "tree": {"use": "sklearn.tree:DecisionTreeClassifier"},
        "labels only": {"use": "sklearn.neighbors:RadiusNeighborsClassifier"},
    }
    summary, _ = run(table, place, tmp_path)
    assert summary.n_done >= 6, summary.failures
    rows = Store(tmp_path).rows()
    chosen = json.loads(rows[rows.method == "ovr"].params.iloc[0])
    assert chosen["estimator"] == inside
    assert chosen["estimator__C"] in (0.1, 1.0)


def test_stratified_splits_and_no_standardisation(table, place, tmp_path, expected):
    table["splits"]["stratified"] = True
    table["preprocessing"] = {"standardise": "none"}
    run(table, place, tmp_path)
    values, others = Store(tmp_path).rows().value, expected.rows().value
    assert not np.allclose(values.dropna(), others.dropna())


def test_plain_lines(plan, tmp_path):
    out = io.StringIO()
    execute(plan, tmp_path, progress=PlainProgress(out))
    lines = out.getvalue().splitlines()
    assert lines[0] == "12 runs, 0 of them done already"
    assert lines[1].startswith("[1/12, ")
    assert lines[-1] == "[12/12] mine · broken · split 2: FAILED: RuntimeError: no sense in 0"


def test_live_view(plan, tmp_path):
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    execute(plan, tmp_path, progress=RichProgress(console))
    text = console.file.getvalue()
    assert "of 12 runs" in text
    assert "mine, means so far" in text
    assert "RuntimeError: no sense in 0" in text


def test_the_live_view_fits_a_small_terminal(plan):
    console = Console(file=io.StringIO(), force_terminal=False, width=60)
    view = RichProgress(console)
    view.planned(plan, 12, 3)
    for i in range(2):
        view.started(SimpleNamespace(title=f"a data set of a long name · method · split {i}"))
    with console.capture() as capture:
        console.print(view._view())
    view.closed()
    bar, running = capture.get().splitlines()
    assert bar.rstrip().endswith("3 of 12 runs")
    assert running.startswith("a data set of a long name · method · split 0")
    assert running.endswith("…")


def test_a_grid_of_several_parts(table, place, tmp_path):
    parts = [{"ridge": [0.1, 1.0], "max_iter": [50]}, {"nuclear": [0.1, 1.0]}]
    table["methods"] = {"brl": {"grid": parts}}
    run(table, place, tmp_path)
    assert set(Store(tmp_path).tuning().params) == {
        *('{"max_iter": 50, "ridge": 0.1}', '{"max_iter": 50, "ridge": 1.0}', '{"nuclear": 0.1}', '{"nuclear": 1.0}')
    }


WARNER = """
import warnings

from rbrl import BRLClassifier


class Own(UserWarning):
    pass


class Warner(BRLClassifier):
    def loss(self, count_labels=None):
        for _ in range(3):
            warnings.warn("one of a kind", Own)
        return super().loss()
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_caller_gets_each_warning_of_a_run_once(table, place, tmp_path, monkeypatch, jobs):
    monkeypatch.chdir(place)
    (place / "warner.py").write_text(WARNER)
    table["methods"] = {"warner": {"use": "warner.py:Warner"}}
    table["splits"]["number"] = 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert execute(Plan.from_dict(table, place), tmp_path / "store", jobs=jobs).n_done == 2
    found = [one for one in caught if str(one.message) == "one of a kind"]
    assert [one.category for one in found] == [UserWarning] * 2, "the class of a plan's file may be unknown here"
    assert {one.filename for one in found} == {__file__}
