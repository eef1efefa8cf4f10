"""What a plan says of a data set and of a method."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rbrl._common.checks import check_flag, check_keys, check_list, check_one_of, check_table, check_text, hint
from rbrl.datasets import CARDS
from rbrl.datasets.files import ENDINGS
from rbrl.exceptions import PlanError
from rbrl.metrics import CONVENTIONS

MODELS = ("kernel", "linear")
DATA_KEYS = ("name", "file", "labels", "format", "nominal", "model")


@dataclass(frozen=True)
class DataSpec:
    """One data set of a plan.

    Parameters
    ----------
    name : str
        In rows and tables; of the catalogue if there is no file.
    file : str or None
        Relative to the plan's folder.
    labels : int, list of str, str or None
        Which columns of the file are labels, as for `rbrl.datasets.load_file`.
    format : str or None
        Of the file, where its ending does not say.
    nominal : {"codes", "onehot"}
        What becomes of words in the file, as for `rbrl.datasets.load_file`.
    model : {"kernel", "linear"} or None
        Which `by_model` parameters apply; for the catalogue, what the card says if the plan says nothing.
    """

    name: str
    file: str | None = None
    labels: Any = None
    format: str | None = None
    nominal: str = "codes"
    model: str | None = None

    @classmethod
    def parse(cls, entry, where):
        """Read an entry of `datasets`: text, or a table."""
        table = _from_text(entry, where) if isinstance(entry, str) else entry
        check_keys(where, table, DATA_KEYS)
        if "file" in table:
            check_text(f"{where}.file", table["file"])
            name = table.get("name", Path(table["file"]).name.partition(".")[0])
        else:
            name = _catalogue_name(table, where)
        model = table.get("model", CARDS[name].model if "file" not in table else None)
        if model is not None:
            check_one_of(f"{where}.model", model, MODELS)
        if "nominal" in table:
            check_one_of(f"{where}.nominal", table["nominal"], ("codes", "onehot"))
        return cls(**{**table, "name": check_text(f"{where}.name", name), "model": model})

    def to_dict(self):
        """What a plan file says."""
        table = {key: getattr(self, key) for key in DATA_KEYS if getattr(self, key) is not None}
        if self.nominal == "codes":
            del table["nominal"]
        return table

    @property
    def options(self):
        """How the file is to be read, for its identity and for `load_file`."""
        return {"labels": self.labels, "format": self.format, "nominal": self.nominal}


def _from_text(text, where):
    """A name of the catalogue, or else a path."""
    check_text(where, text)
    is_file = "/" in text or "\\" in text or Path(text.removesuffix(".gz")).suffix.lower() in ENDINGS
    return {"file": text} if is_file and text not in CARDS else {"name": text}


def _catalogue_name(table, where):
    check_keys(where, table, DATA_KEYS, required=["name"])
    name = table["name"]
    if name not in CARDS:
        raise PlanError(
            f"{where} = {name!r} is no data set of the catalogue; for a file of your own write its path, with its "
            f"ending.{hint(name, sorted(CARDS))}"
        )
    for key in ("labels", "format", "nominal"):
        if key in table:
            raise PlanError(f"{where}.{key} = {table[key]!r} goes with a file; {name!r} is in the catalogue.")
    return name


METHOD_KEYS = ("use", "params", "grid", "tune_on", "non_empty", "convention", "also_judged", "by_model", "by_dataset")
OVERRIDES = ("params", "grid", "tune_on")
RULE_KEYS = ("params", "non_empty", "convention")
TUNE_ON = ("every", "first")


@dataclass(frozen=True)
class MethodSpec:
    """One method of a plan.

    Parameters
    ----------
    name : str
        In rows and tables.
    use : str
        A name of `rbrl.estimators.REGISTRY`, "module:Class", or "file.py:Class" relative to the plan's folder.
    params : dict
        Fixed parameters.
    grid : list of dict of lists
        Each dict is a grid of its own, as in scikit-learn's `ParameterGrid`; empty: nothing is tuned.
    tune_on : {"every", "first"} or None
        On which splits it is tuned; None leaves it to the plan.
    non_empty : bool or None
        Whether a row without a positive score gets its best label; None leaves it to the method.
    convention : {"paper", "mulan", "sklearn"} or None
        Rule for ties, where this method was judged by another; None leaves it to the plan.
    also_judged : list of dict
        Other decision rules, each with `params`, `non_empty` and `convention` in place of the method's: the same fits
        are judged by them too, so that a plan with such a rule finds its work done.
    by_model, by_dataset : dict of dict
        `params`, `grid` and `tune_on` for some data sets only. Parameters are added to the general ones, or
        replace them; a grid replaces the general one. A data set's own entry goes before that of its model.
    """

    name: str
    use: str
    params: dict = field(default_factory=dict)
    grid: list = field(default_factory=list)
    tune_on: str | None = None
    non_empty: bool | None = None
    convention: str | None = None
    also_judged: list = field(default_factory=list)
    by_model: dict = field(default_factory=dict)
    by_dataset: dict = field(default_factory=dict)

    @classmethod
    def parse(cls, name, table):
        """Read the table `methods.NAME`."""
        where = f"methods.{check_text('a method name', name)}"
        check_keys(where, table, METHOD_KEYS)
        _check_rule(where, table)
        for key in check_table(f"{where}.by_model", table.get("by_model", {})):
            check_one_of(f"a key of {where}.by_model", key, MODELS)
        return cls(
            name=name,
            use=check_text(f"{where}.use", table.get("use", name)),
            non_empty=table.get("non_empty"),
            convention=table.get("convention"),
            also_judged=_other_rules(f"{where}.also_judged", table.get("also_judged", [])),
            by_model=_overrides(f"{where}.by_model", table.get("by_model", {})),
            by_dataset=_overrides(f"{where}.by_dataset", table.get("by_dataset", {})),
            **_settings(where, {key: table[key] for key in OVERRIDES if key in table}),
        )

    def to_dict(self):
        """What a plan file says."""
        table = {key: getattr(self, key) for key in METHOD_KEYS}
        return {key: value for key, value in table.items() if value not in (None, {}, [])}

    def check_datasets(self, names):
        """Refuse parameters for data sets that the plan has not."""
        for key in self.by_dataset:
            if key not in names:
                raise PlanError(
                    f"methods.{self.name}.by_dataset.{key} names no data set of the plan.{hint(key, names)}"
                )

    def restricted(self, names):
        """The same method without what it says of other data sets than these."""
        return replace(self, by_dataset={key: value for key, value in self.by_dataset.items() if key in names})

    def under_other_rules(self):
        """The same method with each of the rules that it is also judged by."""
        plain = replace(self, also_judged=[])
        return [replace(plain, **{**rule, "params": self.params | rule.get("params", {})}) for rule in self.also_judged]

    def on(self, data):
        """(params, grid) on one data set."""
        params, grid = dict(self.params), self.grid
        for layer in self._layers(data):
            params |= layer.get("params", {})
            grid = layer.get("grid", grid)
        return params, [_sorted(one) for one in grid]

    def tuned_on(self, data, default):
        """On which splits of one data set it is tuned."""
        own = [layer["tune_on"] for layer in self._layers(data) if "tune_on" in layer]
        return own[-1] if own else self.tune_on or default

    def _layers(self, data):
        """What holds for this data set alone, the last entry before the others."""
        return [self.by_model.get(data.model, {}), self.by_dataset.get(data.name, {})]


def _sorted(grid):
    return {key: list(grid[key]) for key in sorted(grid)}


def _overrides(where, table):
    entries = check_table(where, table).items()
    for key, entry in entries:
        check_keys(f"{where}.{key}", entry, OVERRIDES)
    return {key: _settings(f"{where}.{key}", entry) for key, entry in entries}


def _other_rules(where, rules):
    for i, rule in enumerate(rules and check_list(where, rules)):
        check_keys(f"{where}[{i}]", check_table(f"{where}[{i}]", rule), RULE_KEYS)
        _check_rule(f"{where}[{i}]", rule)
    return [{**rule, **_settings(where, {"params": rule.get("params", {})})} for rule in rules]


def _check_rule(where, table):
    if "non_empty" in table:
        check_flag(f"{where}.non_empty", table["non_empty"])
    if "convention" in table:
        check_one_of(f"{where}.convention", table["convention"], CONVENTIONS)


def _settings(where, table):
    read: dict[str, Any] = {}
    if "params" in table:
        read["params"] = dict(check_table(f"{where}.params", table["params"]))
        for key, value in read["params"].items():
            _check_value(f"{where}.params.{key}", value)
    if "tune_on" in table:
        read["tune_on"] = check_one_of(f"{where}.tune_on", table["tune_on"], TUNE_ON)
    if "grid" in table:
        grid = table["grid"]
        grids = [grid] if isinstance(grid, dict) or grid == [] else check_list(f"{where}.grid", grid)
        read["grid"] = [_grid(f"{where}.grid", one) for one in grids if one not in ({}, [])]
    return read


def _grid(where, grid):
    for key, values in check_table(where, grid).items():
        for value in check_list(f"{where}.{key}", values):
            if isinstance(value, dict):
                raise PlanError(f"{where}.{key} has {value!r}: classes cannot be tuned over; make each a method.")
            _check_value(f"{where}.{key}", value)
    return {key: list(values) for key, values in grid.items()}


def _check_value(where, value):
    """Numbers, text, true, false, lists of them, and tables that name a class: what a store can write down."""
    if isinstance(value, list | tuple):
        for one in value:
            _check_value(where, one)
    elif isinstance(value, dict):
        check_keys(where, value, ("use", "params"), required=["use"])
        for key, one in check_table(f"{where}.params", value.get("params", {})).items():
            _check_value(f"{where}.params.{key}", one)
    elif not isinstance(value, bool | int | float | str) or (isinstance(value, float) and math.isnan(value)):
        raise PlanError(
            f"{where} = {value!r} is not possible. Allowed: numbers, text, true, false, lists of them, and tables with "
            "the keys use and params."
        )
