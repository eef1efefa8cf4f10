"""`DataSpec` and `MethodSpec`: a data set and a method of a plan; `DatasetLoader` loads the data sets."""

import hashlib
import json
import math
import os
from collections.abc import Collection, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from rbrl._common import checks
from rbrl._common.checks import Check, check_list, check_one_of, check_table, check_text, check_values, check_with, hint
from rbrl._common.typing import Array, Matrix, issparse
from rbrl.datasets import CARDS, load, load_file
from rbrl.datasets.files import FORMAT_OF_ENDING
from rbrl.exceptions import PlanError
from rbrl.metrics import CONVENTIONS

MODELS = ("kernel", "linear")
TUNE_ON = ("every", "first")
# Keys that say how the file of a data set is read.
FILE_KEYS = ("labels", "format", "ignore", "positive", "nominal")


class Spec:
    """Base of data sets and methods of a plan; each field that a plan may set has a check."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as in a plan file."""
        own = [one for one in fields(self) if "check" in one.metadata]
        defaults = [one.default if one.default_factory is MISSING else one.default_factory() for one in own]
        values = ((one.name, getattr(self, one.name)) for one in own)
        return {name: value for (name, value), default in zip(values, defaults) if value != default}


@dataclass(frozen=True)
class DataSpec(Spec):
    """One data set of a plan.

    Parameters
    ----------
    name : str
        Name in rows and tables; a name of the catalogue if there is no file.
    file : str or None
        Path of the file, relative to the plan's folder.
    labels : int, list of str, str or None
        Columns of the file that are labels, as for `rbrl.datasets.load_file`.
    format : str or None
        Format of the file, if its ending does not say it.
    ignore, positive : str or list of str
        Columns of the file to leave out, and words for relevant labels, as for
        `rbrl.datasets.load_file`.
    nominal : {"codes", "onehot"} or None
        Encoding of words in the file, as for `rbrl.datasets.load_file`.
    model : {"kernel", "linear"} or None
        Key of the `by_model` parameters that apply. The default is the model on the data set's
        card in the catalogue.

    Examples
    --------
    >>> DataSpec.parse("birds.csv", "datasets[0]")
    DataSpec(name='birds', file='birds.csv', labels=None, format=None, ignore=(), positive=(), nominal=None, model=None)
    """

    name: str = field(metadata=check_with(check_text))
    file: str | None = field(default=None, metadata=check_with(check_text))
    # The reader of the file checks these.
    labels: int | list[str] | str | None = field(default=None, metadata=check_with(checks.accept_any))
    format: str | None = field(default=None, metadata=check_with(checks.accept_any))
    ignore: str | Sequence[str] = field(default=(), metadata=check_with(checks.accept_any))
    positive: str | Sequence[str] = field(default=(), metadata=check_with(checks.accept_any))
    nominal: str | None = field(default=None, metadata=check_with(check_one_of, allowed=("codes", "onehot")))
    model: str | None = field(default=None, metadata=check_with(check_one_of, allowed=MODELS))

    @classmethod
    def parse(cls, entry: Any, where: str) -> Self:
        """Read an entry of `datasets`: a table, a name of the catalogue, or a path.

        Messages name the entry by `where`, its place in the plan.
        """
        if isinstance(entry, str):
            check_text(where, entry)
            ending = Path(entry.removesuffix(".gz")).suffix.lower()
            is_path = "/" in entry or "\\" in entry or ending in FORMAT_OF_ENDING
            entry = {"file": entry} if is_path and entry not in CARDS else {"name": entry}
        table = check_values(where, entry, checks.field_checks(cls))
        if "file" in table:
            return cls(**{"name": Path(table["file"]).name.partition(".")[0], **table})
        checks.check_keys(where, table, table, required=["name"])
        name = table["name"]
        if name not in CARDS:
            rule = "is no data set of the catalogue; for a file of your own write its path, with its ending."
            raise PlanError(f"{where} = {name!r} {rule}{hint(name, sorted(CARDS))}")
        for key in FILE_KEYS:
            if key in table:
                raise PlanError(f"{where}.{key} = {table[key]!r} goes with a file; {name!r} is in the catalogue.")
        return cls(**{"model": CARDS[name].model, **table})


class DatasetLoader:
    """Loader that reads each data set of a plan at most once, when its rows are needed.

    Parameters
    ----------
    folder : Path
        Folder where relative file paths start.
    data_home : path or None
        Folder of the data sets of the catalogue.

    Examples
    --------
    >>> from rbrl.experiments import Plan, DatasetLoader
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": ["br"]})
    >>> loader, (yeast,) = DatasetLoader(plan.folder), plan.datasets
    >>> X, Y = loader.get(yeast)
    >>> X.shape, Y.shape, loader.fingerprint(yeast)[:6]
    ((2417, 103), (2417, 14), 'b3a063')
    """

    def __init__(self, folder: Path, data_home: str | PathLike[str] | None = None) -> None:
        self.folder = folder
        self.data_home = None if data_home is None else os.fspath(data_home)
        self._loaded: dict[str, tuple[Matrix, Array]] = {}

    def get(self, spec: DataSpec) -> tuple[Matrix, Array]:
        """Return (X, Y); Y is int64, or float64 with NaN if labels are missing.

        The arrays are not copies: do not modify them. scikit-learn fails on int8 labels with more than
        128 columns.
        """
        if spec.name not in self._loaded:
            if spec.file is None:
                data = load(spec.name, self.data_home)
            else:
                labels = str(Path(self.folder, spec.labels)) if isinstance(spec.labels, str) else spec.labels
                options = {key: getattr(spec, key) for key in FILE_KEYS if key != "labels"}
                data = load_file(Path(self.folder, spec.file), labels, **options)
            Y = data.Y.toarray() if issparse(data.Y) else data.Y
            self._loaded[spec.name] = data.X, Y.astype(np.float64 if Y.dtype.kind == "f" else np.int64)
        return self._loaded[spec.name]

    def fingerprint(self, spec: DataSpec) -> str:
        """Return a hash of the content: of the catalogue's card, or of the arrays of a file."""
        if spec.file is None:
            return CARDS[spec.name].sha256[:20]
        X, Y = self.get(spec)
        digest = hashlib.sha256(json.dumps([X.shape, Y.shape]).encode())
        for array in (*((X.indptr, X.indices, X.data) if issparse(X) else (X,)), Y):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:20]

    def sizes(self, spec: DataSpec) -> tuple[int, int, int, float, float]:
        """Return (samples, features, labels, labels per sample, density) of a data set."""
        X, Y = self.get(spec)
        return X.shape[0], X.shape[1], Y.shape[1], float(np.nansum(Y) / Y.shape[0]), float(np.nanmean(Y))

    def drop(self, names: set[str]) -> None:
        """Forget all data sets except those with these names."""
        for name in set(self._loaded) - names:
            del self._loaded[name]


# Name in rbrl 0.1.0.
Shelf = DatasetLoader


def _read_params(where: str, params: Any) -> dict[str, Any]:
    """Return a copy of parameters; refuse values that a store cannot record."""
    for key, value in check_table(where, params).items():
        _check_value(f"{where}.{key}", value)
    return dict(params)


def _check_value(where: str, value: Any) -> None:
    """Refuse a value that a store cannot record."""
    if isinstance(value, list | tuple):
        for one in value:
            _check_value(where, one)
    elif isinstance(value, dict):
        checks.check_keys(where, value, ("use", "params"), required=["use"])
        _read_params(f"{where}.params", value.get("params", {}))
    elif not isinstance(value, bool | int | float | str) or (isinstance(value, float) and math.isnan(value)):
        allowed = "numbers, text, true, false, lists of them, and tables with the keys use and params"
        raise PlanError(f"{where} = {value!r} is not allowed. Allowed: {allowed}.")


def _read_grids(where: str, grids: Any) -> list[dict[str, list[Any]]]:
    """Return the grids of one table or of a list of tables, as copies without empty ones."""
    several = [grids] if isinstance(grids, dict) or grids == [] else check_list(where, grids)
    return [_read_grid(where, grid) for grid in several if grid not in ({}, [])]


def _read_grid(where: str, grid: Any) -> dict[str, list[Any]]:
    """Return a copy of a grid; refuse values that a store cannot record, and tables of classes."""
    for key, values in check_table(where, grid).items():
        for value in check_list(f"{where}.{key}", values):
            if isinstance(value, dict):
                raise PlanError(f"{where}.{key} has {value!r}: classes cannot be tuned over; make each a method.")
            _check_value(f"{where}.{key}", value)
    return {key: list(values) for key, values in grid.items()}


def _read_rules(where: str, rules: Any) -> list[dict[str, Any]]:
    """Return checked decision rules, each with the key `params`."""
    allowed = _method_field_checks("params", "non_empty", "convention")
    read = [check_values(f"{where}[{i}]", rule, allowed) for i, rule in enumerate(rules and check_list(where, rules))]
    return [{**rule, "params": rule.get("params", {})} for rule in read]


def _read_layers(where: str, entries: Any, names: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the tables for some data sets only, by data set or model.

    `names` are the allowed keys; without names, every key is allowed.
    """
    table = check_table(where, entries)
    for key in table if names else ():
        check_one_of(f"a key of {where}", key, names)
    allowed = _method_field_checks("params", "grid", "tune_on")
    return {key: check_values(f"{where}.{key}", entry, allowed) for key, entry in table.items()}


def _method_field_checks(*names: str) -> dict[str, Check]:
    """Return the checks of some fields of a method; unknown names are ignored."""
    return {name: check for name, check in checks.field_checks(MethodSpec).items() if name in names}


@dataclass(frozen=True)
class MethodSpec(Spec):
    """One method of a plan.

    Parameters
    ----------
    name : str
        Name in rows and tables.
    use : str
        A name of `rbrl.registry.REGISTRY`, "module:Class", or "file.py:Class" relative to the plan's folder.
    params : dict
        Fixed parameters.
    grid : list of dict of lists
        Grids, as in scikit-learn's `ParameterGrid`; if empty, nothing is tuned.
    tune_on : {"every", "first"} or None
        Splits on which the method is tuned; None for the rule of the plan.
    non_empty : bool or None
        If True, a row without a positive score gets its best label; None for the default of the method.
    convention : {"paper", "mulan", "sklearn"} or None
        Rule for ties in this method's metrics; None for the rule of the plan.
    also_judged : list of dict
        Other decision rules, each with `params`, `non_empty` and `convention` in place of the
        method's. The same fits are evaluated with each rule, so that a plan with such a rule finds
        its runs done.
    by_model, by_dataset : dict of dict
        `params`, `grid` and `tune_on` for some data sets only. Parameters are added to the general
        ones or replace them; a grid replaces the general one. `by_dataset` takes precedence.

    Examples
    --------
    >>> method = MethodSpec.parse("br", {"grid": {"C": [0.1, 1.0]}, "by_dataset": {"arts": {"tune_on": "first"}}})
    >>> [method.tuned_on(DataSpec(name), "every") for name in ("arts", "yeast")]
    ['first', 'every']
    """

    name: str
    use: str = field(metadata=check_with(check_text))
    params: dict[str, Any] = field(default_factory=dict, metadata=check_with(_read_params))
    grid: list[dict[str, list[Any]]] = field(default_factory=list, metadata=check_with(_read_grids))
    tune_on: str | None = field(default=None, metadata=check_with(check_one_of, allowed=TUNE_ON))
    non_empty: bool | None = field(default=None, metadata=check_with(checks.check_flag))
    convention: str | None = field(default=None, metadata=check_with(check_one_of, allowed=CONVENTIONS))
    also_judged: list[dict[str, Any]] = field(default_factory=list, metadata=check_with(_read_rules))
    by_model: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=check_with(_read_layers, names=MODELS))
    by_dataset: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=check_with(_read_layers))

    @classmethod
    def parse(cls, name: str, table: Any) -> Self:
        """Read the table `methods.NAME`."""
        where = f"methods.{check_text('a method name', name)}"
        return cls(name, **{"use": name, **check_values(where, table, checks.field_checks(cls))})

    def check_datasets(self, names: Collection[str]) -> None:
        """Refuse parameters for data sets other than those with these names."""
        for key in self.by_dataset:
            if key not in names:
                where = f"methods.{self.name}.by_dataset.{key}"
                raise PlanError(f"{where} names no data set of the plan.{hint(key, names)}")

    def restrict(self, names: Collection[str]) -> Self:
        """Return the same method without parameters for data sets other than those with these names."""
        return replace(self, by_dataset={key: value for key, value in self.by_dataset.items() if key in names})

    def under_other_rules(self) -> list[Self]:
        """Return the same method with each of its other decision rules."""
        plain = replace(self, also_judged=[])
        return [replace(plain, **{**rule, "params": self.params | rule["params"]}) for rule in self.also_judged]

    def on(self, data: DataSpec) -> tuple[dict[str, Any], list[dict[str, list[Any]]]]:
        """Return new (parameters, grids) on one data set; the names in a grid are sorted."""
        params = dict(self.params)
        grid = self.grid
        for layer in self._layers(data):
            params |= layer.get("params", {})
            grid = layer.get("grid", grid)
        return params, [{key: list(one[key]) for key in sorted(one)} for one in grid]

    def tuned_on(self, data: DataSpec, default: str) -> str:
        """Return the splits of one data set on which the method is tuned; `default` is the rule of the plan."""
        own = [layer["tune_on"] for layer in self._layers(data) if "tune_on" in layer]
        return own[-1] if own else self.tune_on or default

    def _layers(self, data: DataSpec) -> list[dict[str, Any]]:
        """Return the tables for this data set only; the last one takes precedence.

        They are the plan's own dicts, perhaps empty, and must not be changed.
        """
        return [self.by_model.get(data.model or "", {}), self.by_dataset.get(data.name, {})]
