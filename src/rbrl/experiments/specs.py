"""What a plan says of a data set and of a method."""

import math
from collections.abc import Collection, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from rbrl._common import checks
from rbrl._common.checks import Check, check_list, check_one_of, check_table, check_text, check_values, check_with, hint
from rbrl.datasets import CARDS
from rbrl.datasets.files import FORMAT_OF_ENDING
from rbrl.exceptions import PlanError
from rbrl.metrics import CONVENTIONS

MODELS = ("kernel", "linear")
TUNE_ON = ("every", "first")
FILE_KEYS = ("labels", "format", "ignore", "positive", "nominal")  # of a data set that is a file: how to read it


class Spec:
    """What a plan says of something; the fields that a plan may give have a check."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """What a plan file says: the fields that are not as they would be by default.

        Returns
        -------
        dict
        """
        own = [one for one in fields(self) if "check" in one.metadata]
        defaults = [one.default if one.default_factory is MISSING else one.default_factory() for one in own]
        said = ((one.name, getattr(self, one.name)) for one in own)
        return {name: value for (name, value), default in zip(said, defaults) if value != default}


@dataclass(frozen=True)
class DataSpec(Spec):
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
    ignore, positive : str or list of str
        Columns of the file that are not read, and words of its labels, as for `rbrl.datasets.load_file`.
    nominal : {"codes", "onehot"} or None
        What becomes of words in the file, as for `rbrl.datasets.load_file`.
    model : {"kernel", "linear"} or None
        Which `by_model` parameters apply; for the catalogue, what the card says if the plan says nothing.

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
        """Read an entry of `datasets`: a table, or text, a name of the catalogue or else a path.

        Parameters
        ----------
        entry : str or dict
        where : str
            Its place in the plan, for messages.

        Returns
        -------
        DataSpec
        """
        if isinstance(entry, str):
            check_text(where, entry)
            is_path = (
                "/" in entry or "\\" in entry or Path(entry.removesuffix(".gz")).suffix.lower() in FORMAT_OF_ENDING
            )
            entry = {"file": entry} if is_path and entry not in CARDS else {"name": entry}
        table = check_values(where, entry, checks.field_checks(cls))
        if "file" in table:
            return cls(**{"name": Path(table["file"]).name.partition(".")[0], **table})
        checks.check_keys(where, table, table, required=["name"])
        name = table["name"]
        if name not in CARDS:
            words = "is no data set of the catalogue; for a file of your own write its path, with its ending."
            raise PlanError(f"{where} = {name!r} {words}{hint(name, sorted(CARDS))}")
        for key in FILE_KEYS:
            if key in table:
                raise PlanError(f"{where}.{key} = {table[key]!r} goes with a file; {name!r} is in the catalogue.")
        return cls(**{"model": CARDS[name].model, **table})


def _params(where: str, params: Any) -> dict[str, Any]:
    for key, value in check_table(where, params).items():
        _check_value(f"{where}.{key}", value)
    return dict(params)


def _check_value(where: str, value: Any) -> None:
    """Numbers, text, true, false, lists of them, and tables that name a class: what a store can write down."""
    if isinstance(value, list | tuple):
        for one in value:
            _check_value(where, one)
    elif isinstance(value, dict):
        checks.check_keys(where, value, ("use", "params"), required=["use"])
        _params(f"{where}.params", value.get("params", {}))
    elif not isinstance(value, bool | int | float | str) or (isinstance(value, float) and math.isnan(value)):
        allowed = "numbers, text, true, false, lists of them, and tables with the keys use and params"
        raise PlanError(f"{where} = {value!r} is not allowed. Allowed: {allowed}.")


def _grids(where: str, grids: Any) -> list[dict[str, list[Any]]]:
    """One table, or a list of them; what has nothing to tune is left out."""
    several = [grids] if isinstance(grids, dict) or grids == [] else check_list(where, grids)
    return [_grid(where, grid) for grid in several if grid not in ({}, [])]


def _grid(where: str, grid: Any) -> dict[str, list[Any]]:
    for key, values in check_table(where, grid).items():
        for value in check_list(f"{where}.{key}", values):
            if isinstance(value, dict):
                raise PlanError(f"{where}.{key} has {value!r}: classes cannot be tuned over; make each a method.")
            _check_value(f"{where}.{key}", value)
    return {key: list(values) for key, values in grid.items()}


def _rules(where: str, rules: Any) -> list[dict[str, Any]]:
    allowed = _checks_of("params", "non_empty", "convention")
    read = [check_values(f"{where}[{i}]", rule, allowed) for i, rule in enumerate(rules and check_list(where, rules))]
    return [{**rule, "params": rule.get("params", {})} for rule in read]


def _layers(where: str, entries: Any, names: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """What holds for some data sets only, by the name of the data set or of the model, which is one of `names`."""
    table, allowed = check_table(where, entries), _checks_of("params", "grid", "tune_on")
    for key in table if names else ():
        check_one_of(f"a key of {where}", key, names)
    return {key: check_values(f"{where}.{key}", entry, allowed) for key, entry in table.items()}


def _checks_of(*names: str) -> dict[str, Check]:
    """The checks of some of the keys of a method."""
    return {name: check for name, check in checks.field_checks(MethodSpec).items() if name in names}


@dataclass(frozen=True)
class MethodSpec(Spec):
    """One method of a plan.

    Parameters
    ----------
    name : str
        In rows and tables.
    use : str
        A name of `rbrl.registry.REGISTRY`, "module:Class", or "file.py:Class" relative to the plan's folder.
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

    Examples
    --------
    >>> method = MethodSpec.parse("br", {"grid": {"C": [0.1, 1.0]}, "by_dataset": {"arts": {"tune_on": "first"}}})
    >>> [method.tuned_on(DataSpec(name), "every") for name in ("arts", "yeast")]
    ['first', 'every']
    """

    name: str
    use: str = field(metadata=check_with(check_text))
    params: dict[str, Any] = field(default_factory=dict, metadata=check_with(_params))
    grid: list[dict[str, list[Any]]] = field(default_factory=list, metadata=check_with(_grids))
    tune_on: str | None = field(default=None, metadata=check_with(check_one_of, allowed=TUNE_ON))
    non_empty: bool | None = field(default=None, metadata=check_with(checks.check_flag))
    convention: str | None = field(default=None, metadata=check_with(check_one_of, allowed=CONVENTIONS))
    also_judged: list[dict[str, Any]] = field(default_factory=list, metadata=check_with(_rules))
    by_model: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=check_with(_layers, names=MODELS))
    by_dataset: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=check_with(_layers))

    @classmethod
    def parse(cls, name: str, table: Any) -> Self:
        """Read the table `methods.NAME`.

        Parameters
        ----------
        name : str
        table : dict

        Returns
        -------
        MethodSpec
        """
        where = f"methods.{check_text('a method name', name)}"
        return cls(name, **{"use": name, **check_values(where, table, checks.field_checks(cls))})

    def check_datasets(self, names: Collection[str]) -> None:
        """Refuse parameters for data sets that the plan has not.

        Parameters
        ----------
        names : collection of str
        """
        for key in self.by_dataset:
            if key not in names:
                where = f"methods.{self.name}.by_dataset.{key}"
                raise PlanError(f"{where} names no data set of the plan.{hint(key, names)}")

    def restricted(self, names: Collection[str]) -> Self:
        """The same method without what it says of other data sets than these.

        Parameters
        ----------
        names : collection of str

        Returns
        -------
        MethodSpec
        """
        return replace(self, by_dataset={key: value for key, value in self.by_dataset.items() if key in names})

    def under_other_rules(self) -> list[Self]:
        """The same method with each of the rules that it is also judged by."""
        plain = replace(self, also_judged=[])
        return [replace(plain, **{**rule, "params": self.params | rule["params"]}) for rule in self.also_judged]

    def on(self, data: DataSpec) -> tuple[dict[str, Any], list[dict[str, list[Any]]]]:
        """(params, grid) on one data set.

        Parameters
        ----------
        data : DataSpec

        Returns
        -------
        params : dict
        grid : list of dict of lists
        """
        params, grid = dict(self.params), self.grid
        for layer in self._layers(data):
            params |= layer.get("params", {})
            grid = layer.get("grid", grid)
        return params, [{key: list(one[key]) for key in sorted(one)} for one in grid]

    def tuned_on(self, data: DataSpec, default: str) -> str:
        """On which splits of one data set it is tuned.

        Parameters
        ----------
        data : DataSpec
        default : {"every", "first"}
            What the plan says.

        Returns
        -------
        str
        """
        own = [layer["tune_on"] for layer in self._layers(data) if "tune_on" in layer]
        return own[-1] if own else self.tune_on or default

    def _layers(self, data: DataSpec) -> list[dict[str, Any]]:
        """What holds for this data set alone, the last entry before the others."""
        return [self.by_model.get(data.model or "", {}), self.by_dataset.get(data.name, {})]
