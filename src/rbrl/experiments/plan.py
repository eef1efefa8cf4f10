"""`Plan`: what is to be compared, read from TOML and checked."""

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
# Keys that TOML takes without quotes.
BARE = re.compile(r"[A-Za-z0-9_-]+")
Spec = TypeVar("Spec", DataSpec, MethodSpec)


@dataclass(frozen=True)
class Splits:
    """Repeated splits; split i is drawn with seed + i, so each can be had alone: `only` has the numbers of some.

    Parameters
    ----------
    number, seed : int
    train_fraction : float
    stratified : bool
    only : tuple of int
        Numbers of the splits that are used; all if there are none.
    """

    number: int = field(default=10, metadata=check_with(check_whole, at_least=1))
    seed: int = field(default=0, metadata=check_with(check_whole, at_least=0))
    train_fraction: float = field(default=0.6, metadata=check_with(checks.check_share))
    stratified: bool = field(default=False, metadata=check_with(checks.check_flag))
    only: tuple[int, ...] = ()

    def part(self, only: Collection[int]) -> Self:
        """The same splits, of which only some are used; all if `only` is empty.

        Parameters
        ----------
        only : collection of int

        Returns
        -------
        Splits
        """
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
    """How parameters are chosen from the grids: by cross-validation on the training part.

    `criterion` is the name of a metric, a list of them, of which the mean of a grid point's ranks counts, or
    "mean_rank": all metrics of the plan.
    `on` is "every" split, or only the "first", whose choice then serves all splits.

    Parameters
    ----------
    folds : int
    criterion : str or list of str
    on : {"every", "first"}
    """

    folds: int = field(default=5, metadata=check_with(check_whole, at_least=2))
    # Checked when the metrics are known.
    criterion: str | list[str] = field(default="mean_rank", metadata=check_with(checks.accept_any))
    on: str = field(default="every", metadata=check_with(check_one_of, allowed=TUNE_ON))

    def check_criterion(self, metrics: Sequence[str]) -> None:
        """Refuse metrics that are not among those of the plan.

        Parameters
        ----------
        metrics : sequence of str
            Names of those of the plan.
        """
        if isinstance(self.criterion, list):
            for name in check_list("tuning.criterion", self.criterion):
                check_one_of("a metric of tuning.criterion", name, metrics)
        else:
            check_one_of("tuning.criterion", self.criterion, ("mean_rank", *metrics))


def _metrics(where: str, names: Any) -> tuple[str, ...]:
    for name in check_list(where, names):
        try:
            get_metric(name)
        except ValueError:
            check_one_of("a metric", name, METRICS)
    return tuple(_distinct(where, [get_metric(name).name for name in names]))


def _datasets(where: str, entries: Any) -> tuple[DataSpec, ...]:
    datasets = tuple(DataSpec.parse(entry, f"{where}[{i}]") for i, entry in enumerate(check_list(where, entries)))
    _distinct(where, [data.name for data in datasets])
    return datasets


def _methods(where: str, tables: Any) -> tuple[MethodSpec, ...]:
    if isinstance(tables, list):
        tables = {check_text(f"a method of the list {where}", name): {} for name in tables}
    if not checks.check_table(where, tables):
        raise PlanError(f"{where} must name at least one method. Got {tables!r} instead.")
    return tuple(MethodSpec.parse(name, table) for name, table in tables.items())


def _distinct(where: str, names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PlanError(f"{where} has {twice[0]!r} more than once; each must have a name of its own.")
    return names


@dataclass(frozen=True)
class Plan:
    """A comparison: data sets, methods, splits, tuning, metrics.

    Make one with :meth:`from_toml` or :meth:`from_dict`, which check it. Method names are looked up when the plan is
    run, so a plan may name methods that another installation has.

    Parameters
    ----------
    datasets : tuple of DataSpec
    methods : tuple of MethodSpec
    splits : Splits
    tuning : Tuning
    metrics : tuple of str
    convention : {"paper", "mulan", "sklearn"}
        Rule for ties and for samples without a pair.
    standardise : {"dense", "all", "none"}
        "dense": features of dense sets get mean 0 and variance 1 on the training part; sparse ones are left alone.
        "all": those of sparse sets too, which become dense.
    seed : int
        Of folds and of random methods; split i uses seed + i.
    title : str
    folder : Path
        Relative paths start here: the plan file's folder.

    Examples
    --------
    >>> from rbrl.experiments import Plan
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}}, "splits": {"number": 3}})
    >>> plan.n_runs, plan.metrics[0]
    (3, 'hamming_loss')
    """

    datasets: tuple[DataSpec, ...] = field(metadata=check_with(_datasets))
    methods: tuple[MethodSpec, ...] = field(metadata=check_with(_methods))
    splits: Splits = field(default=Splits(), metadata=check_with(checks.read_as, cls=Splits))
    tuning: Tuning = field(default=Tuning(), metadata=check_with(checks.read_as, cls=Tuning))
    metrics: tuple[str, ...] = field(default=PAPER_NAMES, metadata=check_with(_metrics))
    convention: str = field(default="paper", metadata=check_with(check_one_of, allowed=CONVENTIONS))
    standardise: str = "dense"
    seed: int = field(default=0, metadata=check_with(check_whole, at_least=0))
    title: str = field(default="", metadata=check_with(check_text))
    folder: Path = field(default=Path(), compare=False)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Read a plan file; raise PlanError, with the file's name, if it cannot be followed.

        Parameters
        ----------
        path : path
            Relative paths in the plan start at its folder.

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

        With ``extends = "other.toml"`` it is another plan of that folder with some keys changed.

        Parameters
        ----------
        text : str
        folder : path
            Where relative paths start.

        Returns
        -------
        Plan
        """
        return cls.from_dict(_extended(tomllib.loads(text), Path(folder)), folder=folder)

    @classmethod
    def from_dict(cls, table: dict[str, Any], folder: str | PathLike[str] | None = None) -> Self:
        """Check a plan given as nested dicts, and fill in the defaults.

        Parameters
        ----------
        table : dict
            As a plan file has it.
        folder : path, optional
            Where relative paths start; the working directory by default.

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
        said = check_values("", table, CHECKS, required=["datasets", "methods"])
        only, preprocessing = said.pop("only", {}), said.pop("preprocessing", {})
        plan = cls(**said, **preprocessing, folder=Path(folder or Path.cwd()))
        plan.tuning.check_criterion(plan.metrics)
        for method in plan.methods:
            method.check_datasets([data.name for data in plan.datasets])
        return plan.part(**only)

    def to_dict(self) -> dict[str, Any]:
        """The plan as nested dicts, every default written out.

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
        """Text of a plan file that says the same.

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
        return _sections(self.to_dict())

    @property
    def n_runs(self) -> int:
        """Number of (data set, method, split)."""
        return len(self.datasets) * len(self.methods) * len(self.splits.chosen)

    def part(
        self, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None,
        splits: Sequence[int] | None = None,
    ) -> Self:  # fmt: skip
        """The same plan for some data sets, methods and splits only; its runs are those of the whole plan.

        Parameters
        ----------
        datasets, methods : sequence of str, optional
            Names; all by default.
        splits : sequence of int, optional
            Numbers; by default those that the plan has.

        Returns
        -------
        Plan

        Examples
        --------
        >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}, "brl": {}}})
        >>> plan.n_runs, plan.part(methods=["brl"], splits=[0, 3]).n_runs
        (20, 2)
        """
        chosen = _chosen("data set", self.datasets, datasets)
        names = {data.name for data in chosen}
        kept = tuple(method.restricted(names) for method in _chosen("method", self.methods, methods))
        return replace(self, datasets=chosen, methods=kept, splits=self.splits.part(splits or self.splits.only))


STANDARDISE = partial(check_one_of, allowed=("dense", "all", "none"))
# What a plan may say.
CHECKS: dict[str, Check] = {
    **checks.field_checks(Plan),
    "preprocessing": partial(check_values, checks={"standardise": STANDARDISE}),
    "only": partial(check_values, checks=dict.fromkeys(("datasets", "methods", "splits"), check_list)),
}


def _chosen(what: str, specs: Iterable[Spec], names: Collection[str] | None) -> tuple[Spec, ...]:
    """Those of `specs` that `names` lists, in the plan's order; all of them if there are no names."""
    known = {spec.name: spec for spec in specs}
    for name in names or ():
        if name not in known:
            raise PlanError(f"the plan has no {what} {name!r}.{checks.hint(name, known)}")
    return tuple(spec for name, spec in known.items() if not names or name in names)


def _extended(table: dict[str, Any], folder: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Put the keys of `table` into the plan that it extends, if it extends one; tables are merged key by key."""
    if "extends" not in table:
        return table
    name = table["extends"]
    path = folder / str(name)
    if not isinstance(name, str) or path in seen:
        rule = "must be the path of another plan, not of one that extends this"
        raise PlanError(f"extends {rule}. Got {name!r} instead.")
    try:
        base = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"extends = {name!r}: the plan cannot be read: {error}.") from error
    own = {key: value for key, value in table.items() if key != "extends"}
    return _merged(_extended(base, path.parent, (*seen, path)), own)


def _merged(base: Any, change: Any) -> Any:
    """`change`, or where both are tables `base` with the values of `change`, merged in their turn."""
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return change
    return base | {key: _merged(base.get(key), value) for key, value in change.items()}


def _sections(table: dict[str, Any], prefix: str = "") -> str:
    """TOML text of a table: plain values first, then a section for each table in it."""
    text = "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if not isinstance(value, dict))
    for key, value in table.items():
        if isinstance(value, dict):
            name = f"{prefix}{_key(key)}"
            has_header = not value or any(not isinstance(one, dict) for one in value.values())
            text += (f"\n[{name}]\n" if has_header else "") + _sections(value, f"{name}.")
    return text


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, float):
        return repr(value)  # inf and nan, too, are TOML's own words
    # JSON writes text, whole numbers and flags as TOML does, but for one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
