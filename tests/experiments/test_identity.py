"""A run's identity: results of any version are reused as long as the method still has the parameters that gave them."""

import functools
import inspect

import pytest

from rbrl import BinaryRelevance, BRLClassifier
from rbrl.experiments import Plan, execute
from rbrl.experiments.methods import first_defaults, resolve_params
from rbrl.experiments.runs import expand
from rbrl.experiments.specs import DatasetLoader
from rbrl.registry import REGISTRY


@pytest.fixture
def change_default(monkeypatch):
    """Give a class other defaults, as a later version might."""

    def change(cls, **changed):
        original, signature = cls.__init__, inspect.signature(cls.__init__)

        @functools.wraps(original)
        def init(self, *values, **params):
            original(self, *values, **{**changed, **params})

        new = [one.replace(default=changed.get(one.name, one.default)) for one in signature.parameters.values()]
        init.__signature__ = signature.replace(parameters=new)
        monkeypatch.setattr(cls, "__init__", init)

    return change


def keys(method, folder=".", **options):
    """Keys of the run and of the tuning of a method on yeast."""
    table = {"datasets": ["yeast"], "splits": {"number": 1}, "methods": {"it": {**method, **options}}}
    plan = Plan.from_dict(table, folder=folder)
    (run,) = expand(plan, DatasetLoader(plan.folder))
    return run.key, run.tune_key


BRL = {"use": "brl"}
# What BRL's parameters were by default at first, in a plan's words.
FIRST = {"ridge": 1.0, "nuclear": 0.1, "intercept_ridge": "ridge", "gamma": "paper", "non_empty": False}
BR = {"use": "br", "params": {"scores": "hard"}, "grid": {"C": [0.1, 1.0]}}
RAKEL = {"use": "rakel", "params": {"estimator": {"use": "br", "params": {"C": 2.0}}}}


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (BRL | {"params": FIRST}, ("2bb05e469f6fe69c06fac805", None)),
        (BR, ("4adc2edcb79b7dc67fe30814", "35698b876c68b76b2fdc5474")),
        (RAKEL, ("8a8f347c1fb41d9924f5f0cd", None)),
    ],
)
def test_keys_are_those_of_the_first_version(method, expected):
    assert keys(method) == expected


# Defaults that fit themselves to the data came later.
FITTING = {"ridge": "auto", "gamma": "median", "intercept_ridge": 1.0, "non_empty": "auto"}
LOW_RANK = {**FITTING, "nuclear": "auto"}
CHANGED = {"rbrl": {**LOW_RANK, "ranking": 1.0}, "brl": LOW_RANK, "cpnl": FITTING}


@pytest.mark.parametrize("name", REGISTRY)
def test_first_defaults_are_recorded_for_every_parameter(name):
    """Of a new parameter, or one that has changed: see `first_defaults`."""
    cls = REGISTRY[name]
    named = {one.name for one in inspect.signature(cls.__init__).parameters.values() if one.default is not one.empty}
    first = first_defaults()[cls.__name__]
    assert named <= set(first)
    assert resolve_params(name, {}, ".") == CHANGED.get(name, {})
    if name in CHANGED:
        words = {"intercept_ridge": "ridge", "gamma": "paper"}
        stated = {one: words.get(one, first[one]) for one in CHANGED[name]}
        assert resolve_params(name, stated, ".") == {}, (
            "a plan that states the first defaults has the runs of that time"
        )


def test_what_was_done_by_other_defaults_is_another_run():
    assert keys(BRL) != keys(BRL, params=FIRST)
    for name, value in FIRST.items():
        assert keys(BRL, params=FIRST) != keys(BRL, params={one: FIRST[one] for one in FIRST if one != name}), value
    assert keys(BRL, params={"ridge": "auto"}) == keys(BRL), "a default may be stated"


def test_the_search_of_another_default_grid_is_another_run():
    searched = {"use": "rbrl", "params": resolve_params("rbrl", {"ridge": 2.0, "ranking": 2.0, "nuclear": 2.0}, ".")}
    del searched["params"]["ridge"], searched["params"]["ranking"], searched["params"]["nuclear"]
    grid = {"ridges": None, "rankings": None, "nuclears": None, "cv": None}
    now = grid | {"estimator": searched}
    assert resolve_params("rbrl:RBRLClassifierCV", {}, ".") == now
    assert resolve_params("rbrl:RBRLClassifierCV", {"grid": "paper"}, ".") == now | {"grid": "paper"}
    first = {name: first_defaults()["RBRLClassifierCV"][name] for name in grid}
    assert resolve_params("rbrl:RBRLClassifierCV", first, ".") == {"estimator": searched}, (
        "the model has other defaults too"
    )


def test_a_changed_default_is_a_new_run(change_default):
    ways = [{}, {"params": {"tol": 0.1}}, {"params": {"nuclear": "auto"}}, {"grid": {"nuclear": [0.1]}}]
    ways += [{"params": {"nuclear": 1.0}}]
    before = [keys(BRL, **way) for way in ways]
    change_default(BRLClassifier, nuclear=2.0)
    assert resolve_params("brl", {"tol": 0.1}, ".") == {**LOW_RANK, "tol": 0.1, "nuclear": 2.0}
    after = [keys(BRL, **way) for way in ways]
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert before[0] == after[2], "who states what was the default has what was done then"
    assert before[3:] == after[3:], "what the plan says, or tries at every point, does not depend on the default"


def test_a_changed_default_is_a_new_tuning(change_default):
    parts = [{"ridge": [1.0]}, {"nuclear": [1.0]}]
    before = keys(BRL, grid={"nuclear": [1.0]}), keys(BRL, grid=parts)
    change_default(BRLClassifier, ridge=2.0)
    after = keys(BRL, grid={"nuclear": [1.0]}), keys(BRL, grid=parts)
    for old, new in zip(before, after):
        assert old[0] != new[0]
        assert old[1] != new[1]


def test_the_decision_rule_and_the_seed_are_set_in_other_ways(change_default):
    before = keys(BRL), keys(BRL, non_empty=True)
    change_default(BRLClassifier, random_state=7, non_empty=True)
    after = keys(BRL), keys(BRL, non_empty=True)
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_defaults_of_an_estimator_inside_count(change_default):
    before, other = keys(RAKEL), keys(BRL)
    change_default(BinaryRelevance, kernel="rbf")
    assert keys(RAKEL) != before
    assert keys(BRL) == other


def test_defaults_that_a_class_of_a_file_inherits_count(change_default, tmp_path):
    names = "from rbrl import BRLClassifier\n\n\nclass Same(BRLClassifier):\n    pass\n"
    own = "\n\nclass Own(BRLClassifier):\n    def __init__(self, ridge=3.0):\n        super().__init__(ridge)\n"
    (tmp_path / "own.py").write_text(names + own)
    before = [keys({"use": f"own.py:{name}"}, tmp_path) for name in ("Same", "Own")]
    change_default(BRLClassifier, ridge=2.0)
    after = [keys({"use": f"own.py:{name}"}, tmp_path) for name in ("Same", "Own")]
    assert before[0] != after[0]
    assert before[1] == after[1], "parameters of its own are told by the hash of its file"


def test_a_store_after_a_default_has_changed(table, place, tmp_path, change_default, monkeypatch):
    table["methods"], table["splits"]["number"] = {"brl": {"grid": {"ridge": [0.1, 1.0]}}}, 1
    plan = Plan.from_dict(table, folder=place)
    assert execute(plan, tmp_path).n_done == 1
    change_default(BRLClassifier, nuclear=1.0)
    summary = execute(plan, tmp_path)
    assert (summary.n_done, summary.notes) == (1, ["1 run of brl will be repeated; changed: the parameters."])
    monkeypatch.undo()
    assert execute(plan, tmp_path).n_reused == 1, "what the first default gave is still there"
