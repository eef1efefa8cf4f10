"""Plans: what is read is what was said, and what makes no sense is refused in words that help."""

import re
from pathlib import Path

import numpy as np
import pytest

from rbrl.experiments import Plan, PlanError
from rbrl.experiments.runs import expand
from rbrl.experiments.specs import DatasetLoader

ROOT = Path(__file__).resolve().parents[2]
PLANS = sorted([*(ROOT / "examples").glob("*.toml"), *(ROOT / "studies" / "reproduction" / "plans").glob("*.toml")])
PAPER = {"rbrl", "brl", "rank-svm", "rank-svmz", "br", "ml-knn", "clr", "rakel", "cpnl", "mlfe"}


def changed(table, path, value):
    *keys, last = path.split("/")
    for key in keys:
        table = table.setdefault(key, {})
    table[last] = value


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("metrix", [], "'metrix' (value []) is unknown. Did you mean 'metrics'?"),
        ("datasets", ["yaest"], "datasets[0] = 'yaest' is no data set of the catalogue"),
        ("datasets", ["yaest"], "Did you mean 'yeast'?"),
        ("datasets", ["yeast", "yeast"], "datasets has 'yeast' more than once"),
        ("datasets", [], "datasets must be a list that is not empty. Got []"),
        ("datasets", [{"name": "yeast", "labels": 3}], "datasets[0].labels = 3 goes with a file"),
        (
            "datasets",
            [{"file": "a.csv", "model": "kernal"}],
            "datasets[0].model = 'kernal' is not allowed. Did you mean",
        ),
        ("metrics", ["haming_loss"], "a metric = 'haming_loss' is not allowed. Did you mean 'hamming_loss'?"),
        (
            "convention",
            "papers",
            "convention = 'papers' is not allowed. Did you mean 'paper'? Allowed: paper, mulan, sklearn.",
        ),
        ("seed", -1, "seed must be a whole number >= 0. Got -1"),
        ("splits/number", 0, "splits.number must be a whole number >= 1. Got 0"),
        ("splits/number", True, "splits.number must be a whole number >= 1. Got True"),
        ("splits/train_fraction", 1.0, "splits.train_fraction must lie between 0 and 1, both excluded. Got 1.0"),
        ("splits/stratified", "yes", "splits.stratified must be true or false. Got 'yes'"),
        ("splits", 3, "splits must be a table. Got 3"),
        ("only/splits", [], "only.splits must be a list that is not empty. Got []"),
        ("only/splits", [3], "a split must be a number from 0 to 2. Got 3 instead"),
        ("only/method", ["rbrl"], "the key 'method' in only (value ['rbrl']) is unknown. Did you mean 'methods'?"),
        ("methods/rbrl/convention", "weka", "methods.rbrl.convention = 'weka' is not allowed"),
        ("tuning/folds", 1, "tuning.folds must be a whole number >= 2. Got 1"),
        ("tuning/criterion", "f1_macro", "tuning.criterion = 'f1_macro' is not allowed"),
        ("tuning/criterion", ["coverage", "f1_macro"], "a metric of tuning.criterion = 'f1_macro' is not allowed"),
        ("tuning/criterion", [], "tuning.criterion must be a list that is not empty"),
        ("tuning/on", "frist", "tuning.on = 'frist' is not allowed. Did you mean 'first'?"),
        ("methods/rbrl/tune_on", "all", "methods.rbrl.tune_on = 'all' is not allowed"),
        ("preprocessing/standardise", "some", "preprocessing.standardise = 'some' is not allowed"),
        ("methods", {}, "methods must name at least one method"),
        ("methods/rbrl/gird", {}, "the key 'gird' in methods.rbrl (value {}) is unknown. Did you mean 'grid'?"),
        ("methods/rbrl/non_empty", 1, "methods.rbrl.non_empty must be true or false. Got 1"),
        ("methods/rbrl/also_judged", [{"grid": {}}], "the key 'grid' in methods.rbrl.also_judged[0]"),
        ("methods/rbrl/also_judged", [{"non_empty": 1}], "methods.rbrl.also_judged[0].non_empty must be true or false"),
        ("methods/rbrl/grid", {"ridge": 1.0}, "methods.rbrl.grid.ridge must be a list that is not empty. Got 1.0"),
        ("methods/rbrl/grid", {"ridge": [{"use": "a"}]}, "classes cannot be tuned over"),
        ("methods/rbrl/params/ridge", float("nan"), "methods.rbrl.params.ridge = nan is not allowed"),
        ("methods/rbrl/by_model/rbf/params", {}, "a key of methods.rbrl.by_model = 'rbf' is not allowed"),
        ("methods/rbrl/by_dataset/yeats/params", {}, "methods.rbrl.by_dataset.yeats names no data set of the plan"),
    ],
)
def test_mistakes_are_named(table, path, value, words):
    changed(table, path, value)
    with pytest.raises(PlanError, match=re.escape(words)):
        Plan.from_dict(table)


@pytest.mark.parametrize("key", ["datasets", "methods"])
def test_what_must_be_there(table, key):
    del table[key]
    with pytest.raises(PlanError, match=f"the key '{key}' is missing"):
        Plan.from_dict(table)


def test_a_file_that_is_no_plan(tmp_path):
    with pytest.raises(PlanError, match="cannot be read"):
        Plan.from_toml(tmp_path / "absent.toml")
    (tmp_path / "odd.toml").write_text("a = [")
    with pytest.raises(PlanError, match=r"odd\.toml: this is not TOML"):
        Plan.from_toml(tmp_path / "odd.toml")
    (tmp_path / "odd.toml").write_text("a = 1")
    with pytest.raises(PlanError, match=r"odd\.toml: the key 'a'"):
        Plan.from_toml(tmp_path / "odd.toml")


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_our_plans_can_be_run_and_read_back_what_they_write(path):
    plan = Plan.from_toml(path)
    assert len(expand(plan, DatasetLoader(plan.folder))) == plan.n_runs
    assert Plan.from_text(plan.to_toml(), plan.folder) == plan


def test_a_plan_with_numbers_of_numpy_is_read_back():
    method = {"params": {"ridge": np.float64(0.1)}, "grid": {"ranking": list(np.logspace(-1, 1, 3))}}
    plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": method}})
    assert Plan.from_text(plan.to_toml(), plan.folder) == plan


def test_a_plan_extends_another(tmp_path):
    base = 'datasets = ["yeast"]\n[splits]\nnumber = 3\n[methods.rbrl]\nparams = { tol = 0.1, ridge = 1.0 }\n'
    (tmp_path / "base.toml").write_text(base)
    own = 'extends = "base.toml"\nsplits.seed = 7\nonly.splits = [2]\n[methods.rbrl]\nparams.tol = 0.2\n[methods.brl]\n'
    (tmp_path / "own.toml").write_text(own)
    plan = Plan.from_toml(tmp_path / "own.toml")
    assert (plan.splits.number, plan.splits.seed, plan.splits.chosen) == (3, 7, (2,))
    assert [(method.name, method.params) for method in plan.methods] == [
        ("rbrl", {"tol": 0.2, "ridge": 1.0}),
        ("brl", {}),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('extends = "absent.toml"', "extends = 'absent.toml': the plan cannot be read"),
        ('extends = "own.toml"', "that does not itself extend this plan. Got 'own.toml'"),
        ("extends = 3", "Got 3 instead"),
    ],
)
def test_what_a_plan_cannot_extend(tmp_path, text, words):
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(PlanError, match=re.escape(words)):
        Plan.from_toml(tmp_path / "own.toml")


def test_a_part_of_a_plan(table):
    table["datasets"] = ["yeast", "emotions"]
    table["methods"]["rbrl"]["by_dataset"] = {"yeast": {"params": {"tol": 0.3}}}
    part = Plan.from_dict(table).part(["emotions"], ["rbrl"], [2, 1])
    assert (part.n_runs, part.splits.chosen, part.methods[0].by_dataset) == (2, (1, 2), {})
    assert Plan.from_text(part.to_toml(), part.folder) == part
    with pytest.raises(PlanError, match=r"the plan has no data set 'yeats'\. Did you mean 'yeast'\?"):
        Plan.from_dict(table).part(["yeats"])


def test_odd_names_and_values_survive_writing(table):
    table["methods"]['my "method" é\n\x7f'] = {
        "use": "a:B",
        "params": {"x": [1, 2.5, "c"], "inside": {"use": "a:C", "params": {"flag": True}}, "far": float("inf")},
        "by_dataset": {"mine": {"grid": []}},
    }
    plan = Plan.from_dict(table)
    assert Plan.from_text(plan.to_toml(), plan.folder) == plan


def test_the_papers_plan_is_the_papers():
    plan = Plan.from_toml(ROOT / "studies" / "reproduction" / "plans" / "paper.toml")
    methods = {method.name: method for method in plan.methods}
    assert len(plan.datasets) == 10
    assert set(methods) == PAPER
    assert (plan.splits.number, plan.splits.train_fraction, plan.tuning.folds) == (10, 0.6, 5)
    tuned = {(m.name, m.tuned_on(data, plan.tuning.on)) for m in plan.methods for data in plan.datasets}
    assert {("rbrl", "every"), ("brl", "every")} < tuned
    assert not {("rbrl", "first"), ("brl", "first")} & tuned
    mulan = {name for name, method in methods.items() if method.convention == "mulan"}
    assert mulan == {"br", "ml-knn", "clr", "rakel"}
    assert {name for name, method in methods.items() if method.non_empty} == {"rbrl", "brl", "cpnl"}
    emotions, arts = (next(d for d in plan.datasets if d.name == name) for name in ("emotions", "arts"))
    stated = {"intercept_ridge": "ridge", "gamma": "paper"}
    assert methods["rbrl"].on(emotions)[0] == {"kernel": "rbf", **stated}
    assert methods["rbrl"].on(arts)[0] == stated


def test_the_fair_plan_has_one_rule():
    plan = Plan.from_toml(ROOT / "studies" / "reproduction" / "plans" / "paper-fair.toml")
    added = {"clr-soft", "ensemble-of-chains", "label-powerset", "br-one-threshold"}
    assert {method.name for method in plan.methods} == PAPER | added
    assert all(method.non_empty for method in plan.methods)
    assert {method.convention or plan.convention for method in plan.methods} == {"paper"}
    scores = {method.name: method.params.get("votes") or method.params.get("scores") for method in plan.methods}
    assert (scores["br"], scores["clr"], scores["rakel"]) == ("decision", "hard", "soft"), "each by its better score"


def test_parameters_by_model_and_data_set(table):
    table["datasets"] = ["yeast", "emotions", "arts"]
    table["methods"] = {
        "rbrl": {
            "params": {"tol": 0.1, "ridge": 1.0},
            "grid": {"ridge": [1.0]},
            "by_model": {"kernel": {"params": {"kernel": "rbf", "tol": 0.2}}},
            "by_dataset": {"yeast": {"params": {"tol": 0.3}, "grid": {"nuclear": [2.0]}}},
        }
    }
    plan = Plan.from_dict(table)
    found = [plan.methods[0].on(data) for data in plan.datasets]
    assert found == [
        ({"tol": 0.3, "ridge": 1.0, "kernel": "rbf"}, [{"nuclear": [2.0]}]),
        ({"tol": 0.2, "ridge": 1.0, "kernel": "rbf"}, [{"ridge": [1.0]}]),
        ({"tol": 0.1, "ridge": 1.0}, [{"ridge": [1.0]}]),
    ]
