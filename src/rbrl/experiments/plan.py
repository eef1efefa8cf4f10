"""`Plan`: the data sets, methods, splits and metrics of a comparison, read from TOML and checked."""

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

from rbrl._common import checks
from rbrl._common.checks import Check, check_list, check_one_of, check_text, check_values, check_whole, check_with
from rbrl.exceptions import PlanError
from rbrl.experiments.specs import TUNE_ON, DataSpec, MethodSpec
from rbrl.metrics import CONVENTIONS, METRICS, PAPER_METRICS, get_metric

PAPER_NAMES = tuple(metric.name for metric in PAPER_METRICS)
# Keys that need no quotes in TOML.
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
Spec = TypeVar("Spec", DataSpec, MethodSpec)
CHECK_STANDARDISE = partial(check_one_of, allowed=("dense", "all", "none"))


@dataclass(frozen=True)
class Splits:
    """Repeated random splits of the rows; split i is drawn with seed + i.

    Parameters
    ----------
    number, seed : int
        Number of splits, and seed of the first one.
    train_fraction : float
        Share of the rows in the training part.
    stratified : bool
        If True, both parts have about the same share of each label.
    only : tuple of int
        Numbers of the splits that are used; empty for all splits.
    """

    number: int = field(default=10, metadata=check_with(check_whole, at_least=1))
    seed: int = field(default=0, metadata=check_with(check_whole, at_least=0))
    train_fraction: float = field(default=0.6, metadata=check_with(checks.check_share))
    stratified: bool = field(default=False, metadata=check_with(checks.check_flag))
    only: tuple[int, ...] = ()

    def part(self, only: Collection[int]) -> Self:
        """Return the same splits, of which only those with the numbers in `only` are used; all if it is empty."""
        for split in only:
            if check_whole("a split", split, 0) >= self.number:
                raise PlanError(f"a split must be a number from 0 to {self.number - 1}. Got {split!r} instead.")
        return replace(self, only=tuple(sorted(set(only))))

    @property
    def chosen(self) -> tuple[int, ...]:
        """Numbers of the splits that are used."""
        return self.only or tuple(range(self.number))


@dataclass(frozen=True)
class Tuning:
    """Choice of parameters from the grids, by cross-validation on the training part.

    Parameters
    ----------
    folds : int
        Number of folds.
    criterion : str or list of str
        Name of a metric. For a list of names, the mean rank of a grid point over these metrics
        counts; for "mean_rank", its mean rank over all metrics of the plan.
    on : {"every", "first"}
        Splits on which the method is tuned: every split, or the first one for all.
    """

    folds: int = field(default=5, metadata=check_with(check_whole, at_least=2))
    # `check_criterion` checks it, because the metrics of the plan must be known.
    criterion: str | list[str] = field(default="mean_rank", metadata=check_with(checks.accept_any))
    on: str = field(default="every", metadata=check_with(check_one_of, allowed=TUNE_ON))

    def check_criterion(self, metrics: Sequence[str]) -> None:
        """Refuse a criterion that is not among the `metrics` of the plan."""
        if isinstance(self.criterion, list):
            for name in check_list("tuning.criterion", self.criterion):
                check_one_of("a metric of tuning.criterion", name, metrics)
        else:
            check_one_of("tuning.criterion", self.criterion, ("mean_rank", *metrics))


def _read_metrics(where: str, names: Any) -> tuple[str, ...]:
    """Return the full names of metrics or abbreviations; refuse unknown and repeated ones."""
    for name in check_list(where, names):
        try:
            get_metric(name)
        except ValueError:
            check_one_of("a metric", name, METRICS)
    return tuple(_check_distinct(where, [get_metric(name).name for name in names]))


def _read_datasets(where: str, entries: Any) -> tuple[DataSpec, ...]:
    """Return the data sets of a list of entries; refuse two with the same name."""
    datasets = tuple(DataSpec.parse(entry, f"{where}[{i}]") for i, entry in enumerate(check_list(where, entries)))
    _check_distinct(where, [data.name for data in datasets])
    return datasets


def _read_methods(where: str, tables: Any) -> tuple[MethodSpec, ...]:
    """Read a list of names of methods, or a dict of tables by name; there must be at least one."""
    if isinstance(tables, list):
        tables = {check_text(f"a method of the list {where}", name): {} for name in tables}
    if not checks.check_table(where, tables):
        raise PlanError(f"{where} must name at least one method. Got {tables!r} instead.")
    return tuple(MethodSpec.parse(name, table) for name, table in tables.items())


def _check_distinct(where: str, names: list[str]) -> list[str]:
    """Return the names themselves; refuse a name that occurs more than once."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PlanError(f"{where} has {twice[0]!r} more than once; each must have a name of its own.")
    return names


@dataclass(frozen=True)
class Plan:
    """Plan of a comparison: data sets, methods, splits, tuning and metrics.

    Use :meth:`from_toml` or :meth:`from_dict`, which check the plan. Methods are looked up when the plan is run.

    Parameters
    ----------
    datasets : tuple of DataSpec
        Data sets.
    methods : tuple of MethodSpec
        Methods.
    splits : Splits
        Splits into a training part and a test part.
    tuning : Tuning
        Choice of parameters from grids.
    metrics : tuple of str
        Names of the metrics.
    convention : {"paper", "mulan", "sklearn"}
        Rule of the metrics for ties and for samples without a label pair.
    standardise : {"dense", "all", "none"}
        Data sets whose features get mean 0 and variance 1 on the training part: those with dense
        features, all (sparse features become dense), or none.
    seed : int
        Seed of folds and random methods; split i uses seed + i.
    title : str
        Title of the comparison.
    folder : Path
        Folder of the plan file, where relative paths start.

    Examples
    --------
    >>> from rbrl.experiments import Plan
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}}, "splits": {"number": 3}})
    >>> plan.n_runs, plan.metrics[0]
    (3, 'hamming_loss')
    """

    datasets: tuple[DataSpec, ...] = field(metadata=check_with(_read_datasets))
    methods: tuple[MethodSpec, ...] = field(metadata=check_with(_read_methods))
    splits: Splits = field(default=Splits(), metadata=check_with(checks.read_as, cls=Splits))
    tuning: Tuning = field(default=Tuning(), metadata=check_with(checks.read_as, cls=Tuning))
    metrics: tuple[str, ...] = field(default=PAPER_NAMES, metadata=check_with(_read_metrics))
    convention: str = field(default="paper", metadata=check_with(check_one_of, allowed=CONVENTIONS))
    standardise: str = "dense"
    seed: int = field(default=0, metadata=check_with(check_whole, at_least=0))
    title: str = field(default="", metadata=check_with(check_text))
    folder: Path = field(default=Path(), compare=False)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Read a plan file; raise PlanError with the name of the file if it has a mistake.

        Parameters
        ----------
        path : path
            Path of the file; relative paths in the plan start at its folder.

        Returns
        -------
        Plan

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from rbrl.experiments import Plan
        >>> path = Path(mkdtemp(), "plan.toml")
        >>> _ = path.write_text('datasets = ["yeast"]\\nmethods = { rbrl = {}, br = {} }')
        >>> Plan.from_toml(path).n_runs
        20
        """
        path = Path(path)
        try:
            return cls.from_text(path.read_text(encoding="utf-8"), path.resolve().parent)
        except OSError as error:
            raise PlanError(f"the plan {str(path)!r} cannot be read: {error.strerror or error}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PlanError(f"{path}: this is not TOML: {error}.") from error
        except PlanError as error:
            raise PlanError(f"{path}: {error}") from error

    @classmethod
    def from_text(cls, text: str, folder: str | PathLike[str]) -> Self:
        """Read a plan from TOML text.

        With ``extends = "other.toml"``, the text changes some keys of another plan.

        Parameters
        ----------
        text : str
            Text of a plan file.
        folder : path
            Folder where relative paths start.

        Returns
        -------
        Plan
        """
        return cls.from_dict(_merge_with_base(tomllib.loads(text), Path(folder)), folder=folder)

    @classmethod
    def from_dict(cls, table: dict[str, Any], folder: str | PathLike[str] | None = None) -> Self:
        """Read a plan from nested dicts.

        Parameters
        ----------
        table : dict
            Content of a plan file.
        folder : path, optional
            Folder where relative paths start; the working directory by default.

        Returns
        -------
        Plan

        Examples
        --------
        >>> from rbrl.experiments import Plan
        >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}, "br": {}}, "splits": {"number": 3}})
        >>> plan.n_runs
        6
        """
        keys = check_values("", table, KEY_CHECKS, required=["datasets", "methods"])
        only = keys.pop("only", {})
        preprocessing = keys.pop("preprocessing", {})
        plan = cls(**keys, **preprocessing, folder=Path(folder or Path.cwd()))
        plan.tuning.check_criterion(plan.metrics)
        for method in plan.methods:
            method.check_datasets([data.name for data in plan.datasets])
        return plan.part(**only)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as nested dicts, with all defaults.

        Returns
        -------
        dict
        """
        table: dict[str, Any] = {"title": self.title} if self.title else {}
        if self.splits.only:
            table["only"] = {"splits": list(self.splits.only)}
        return table | {
            "datasets": [data.to_dict() for data in self.datasets],
            "metrics": list(self.metrics),
            "convention": self.convention,
            "seed": self.seed,
            "splits": {key: value for key, value in self.splits.__dict__.items() if key != "only"},
            "tuning": dict(self.tuning.__dict__),
            "preprocessing": {"standardise": self.standardise},
            "methods": {method.name: method.to_dict() for method in self.methods},
        }

    def to_toml(self) -> str:
        """Return the text of a plan file.

        Returns
        -------
        str

        Examples
        --------
        >>> from rbrl.experiments import Plan
        >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}}})
        >>> Plan.from_text(plan.to_toml(), folder=".").n_runs == plan.n_runs
        True
        """
        return _toml_sections(self.to_dict())

    @property
    def n_runs(self) -> int:
        """Number of runs: data sets x methods x splits."""
        return len(self.datasets) * len(self.methods) * len(self.splits.chosen)

    def part(
        self, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None,
        splits: Sequence[int] | None = None,
    ) -> Self:  # fmt: skip
        """Return the plan for some data sets, methods and splits only; it shares its runs with the whole plan.

        Parameters
        ----------
        datasets, methods : sequence of str, optional
            Names; by default all.
        splits : sequence of int, optional
            Numbers of splits; by default all splits of the plan.

        Returns
        -------
        Plan

        Examples
        --------
        >>> from rbrl.experiments import Plan
        >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}, "brl": {}}})
        >>> plan.n_runs, plan.part(methods=["brl"], splits=[0, 3]).n_runs
        (20, 2)
        """
        some_data = _select_specs("data set", self.datasets, datasets)
        names = {data.name for data in some_data}
        some_methods = tuple(method.restrict(names) for method in _select_specs("method", self.methods, methods))
        some_splits = self.splits.part(splits or self.splits.only)
        return replace(self, datasets=some_data, methods=some_methods, splits=some_splits)


# The check of each key of a plan.
KEY_CHECKS: dict[str, Check] = {
    **checks.field_checks(Plan),
    "preprocessing": partial(check_values, checks={"standardise": CHECK_STANDARDISE}),
    "only": partial(check_values, checks=dict.fromkeys(("datasets", "methods", "splits"), check_list)),
}


def _select_specs(what: str, specs: Iterable[Spec], names: Collection[str] | None) -> tuple[Spec, ...]:
    """Return the specifications with these names, in the order of the plan; all without names."""
    known = {spec.name: spec for spec in specs}
    for name in names or ():
        if name not in known:
            raise PlanError(f"the plan has no {what} {name!r}.{checks.hint(name, known)}")
    return tuple(spec for name, spec in known.items() if not names or name in names)


def _merge_with_base(table: dict[str, Any], folder: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Merge a plan in `folder` into the plan that it extends; `seen` has the plans that led to it."""
    if "extends" not in table:
        return table
    name = table["extends"]
    path = folder / str(name)
    if not isinstance(name, str) or path in seen:
        rule = "must be the path of another plan that does not itself extend this plan"
        raise PlanError(f"extends {rule}. Got {name!r} instead.")
    try:
        base = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"extends = {name!r}: the plan cannot be read: {error}.") from error
    own = {key: value for key, value in table.items() if key != "extends"}
    return _merge_tables(_merge_with_base(base, path.parent, (*seen, path)), own)


def _merge_tables(base: Any, change: Any) -> Any:
    """Return a new table: `base` with the values of `change`; inner tables are merged, too."""
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return change
    return base | {key: _merge_tables(base.get(key), value) for key, value in change.items()}


def _toml_sections(table: dict[str, Any], prefix: str = "") -> str:
    """Return the TOML of a table, with plain values first; `prefix` is its name with a point, or ""."""
    sections = {key: value for key, value in table.items() if isinstance(value, dict)}
    text = "".join(f"{_toml_key(key)} = {_toml_value(table[key])}\n" for key in table if key not in sections)
    for key, value in sections.items():
        name = f"{prefix}{_toml_key(key)}"
        has_header = not value or any(not isinstance(one, dict) for one in value.values())
        text += (f"\n[{name}]\n" if has_header else "") + _toml_sections(value, f"{name}.")
    return text


def _toml_key(key: str) -> str:
    """Return a key as TOML writes it, in quotes if it needs them."""
    return key if BARE_KEY.fullmatch(key) else _toml_value(key)


def _toml_value(value: Any) -> str:
    """Return the TOML text of a value: text, a number, a flag, or a list or table of these."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml_value(one) for one in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_toml_key(key)} = {_toml_value(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, float):
        # TOML has the words inf and nan as well. A float64 of NumPy is a float, but shows its type.
        return repr(float(value))
    # JSON and TOML write text, whole numbers and flags alike, except for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
