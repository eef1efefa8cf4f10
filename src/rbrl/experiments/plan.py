"""`Plan`: what is to be compared, read from TOML and checked."""

import json
import math
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rbrl._common.checks import (
    check_flag,
    check_keys,
    check_list,
    check_one_of,
    check_share,
    check_table,
    check_text,
    check_whole,
    hint,
)
from rbrl.exceptions import PlanError
from rbrl.experiments.specs import TUNE_ON, DataSpec, MethodSpec
from rbrl.metrics import CONVENTIONS, METRICS, PAPER_METRICS, get_metric

BARE = re.compile(r"[A-Za-z0-9_-]+")


def extended(table, folder, seen=()):
    """Put the keys of `table` into the plan that it extends, if it extends one; tables are merged key by key."""
    if "extends" not in table:
        return table
    name = table["extends"]
    path = folder / str(name)
    if not isinstance(name, str) or path in seen:
        raise PlanError(
            f"extends must be the path of another plan, not of one that extends this. Got {name!r} instead."
        )
    try:
        base = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"extends = {name!r}: the plan cannot be read: {error}.") from error
    own = {key: value for key, value in table.items() if key != "extends"}
    return merged(extended(base, path.parent, (*seen, path)), own)


def merged(base, change):
    """`base` with the values of `change`; what is a table in both is merged in its turn."""
    both = {
        key: merged(base[key], value)
        for key, value in change.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return base | change | both


def dumps(table, prefix=""):
    """Text of a plan: plain values first, then a section for each table."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    text = "".join(f"{line}\n" for line in lines)
    for key, value in table.items():
        if isinstance(value, dict):
            name = f"{prefix}{_key(key)}"
            inner = dumps(value, f"{name}.")
            has_header = not value or any(not isinstance(one, dict) for one in value.values())
            text += f"\n[{name}]\n{inner}" if has_header else inner
    return text


def _key(key):
    return key if BARE.fullmatch(key) else _text(key)


def _value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    return _number(value)


def _number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else f"{'-' if value < 0 else ''}inf"
    return repr(value)


def _text(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


KEYS = ("title", "datasets", "methods", "splits", "tuning", "metrics", "convention", "preprocessing", "seed", "only")
STANDARDISE = ("dense", "all", "none")


@dataclass(frozen=True)
class Splits:
    """Repeated splits; split i is drawn with seed + i, so each can be had alone: `only` has the numbers of some."""

    number: int = 10
    seed: int = 0
    train_fraction: float = 0.6
    stratified: bool = False
    only: tuple[int, ...] = ()

    @classmethod
    def parse(cls, table):
        """Read the table `splits`."""
        check_keys("splits", table, [name for name in cls.__dataclass_fields__ if name != "only"])
        splits = cls(**table)
        check_whole("splits.number", splits.number, 1)
        check_whole("splits.seed", splits.seed, 0)
        check_share("splits.train_fraction", splits.train_fraction)
        check_flag("splits.stratified", splits.stratified)
        return splits

    def part(self, only):
        """The same splits, of which only some are used; all if `only` is empty."""
        for split in only:
            if check_whole("a split", split, 0) >= self.number:
                raise PlanError(f"a split must be a number from 0 to {self.number - 1}. Got {split!r} instead.")
        return replace(self, only=tuple(sorted(set(only))))

    @property
    def chosen(self):
        """Numbers of the splits that are used."""
        return self.only or tuple(range(self.number))


@dataclass(frozen=True)
class Tuning:
    """How parameters are chosen from the grids: by cross-validation on the training part.

    `criterion` is the name of a metric, a list of them, of which the mean of a grid point's ranks counts, or
    "mean_rank": all metrics of the plan.
    `on` is "every" split, or only the "first", whose choice then serves all splits.
    """

    folds: int = 5
    criterion: str | list[str] = "mean_rank"
    on: str = "every"

    @classmethod
    def parse(cls, table, metrics):
        """Read the table `tuning`."""
        check_keys("tuning", table, cls.__dataclass_fields__)
        tuning = cls(**table)
        check_whole("tuning.folds", tuning.folds, 2)
        if isinstance(tuning.criterion, list):
            for name in check_list("tuning.criterion", tuning.criterion):
                check_one_of("a metric of tuning.criterion", name, metrics)
        else:
            check_one_of("tuning.criterion", tuning.criterion, ("mean_rank", *metrics))
        check_one_of("tuning.on", tuning.on, TUNE_ON)
        return tuning


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
    >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}}, "splits": {"number": 3}})
    >>> plan.n_runs, plan.metrics[0]
    (3, 'hamming_loss')
    """

    datasets: tuple[DataSpec, ...]
    methods: tuple[MethodSpec, ...]
    splits: Splits = Splits()
    tuning: Tuning = Tuning()
    metrics: tuple[str, ...] = tuple(metric.name for metric in PAPER_METRICS)
    convention: str = "paper"
    standardise: str = "dense"
    seed: int = 0
    title: str = ""
    folder: Path = field(default=Path(), compare=False)

    @classmethod
    def from_toml(cls, path):
        """Read a plan file; raise PlanError, with the file's name, if it cannot be followed."""
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
    def from_text(cls, text, folder):
        """Read a plan from TOML text; relative paths start at `folder`.

        With ``extends = "other.toml"`` it is another plan of that folder with some keys changed.
        """
        return cls.from_dict(extended(tomllib.loads(text), Path(folder)), folder=folder)

    @classmethod
    def from_dict(cls, table: dict[str, Any], folder=None):
        """Check a plan given as nested dicts, and fill in the defaults."""
        check_keys("", table, KEYS, required=["datasets", "methods"])
        metrics = _metrics(table.get("metrics"))
        datasets = _datasets(table["datasets"])
        methods = _methods(table["methods"], [data.name for data in datasets])
        plan = cls(
            datasets=datasets,
            methods=methods,
            splits=Splits.parse(table.get("splits", {})),
            tuning=Tuning.parse(table.get("tuning", {}), metrics),
            metrics=metrics,
            convention=check_one_of("convention", table.get("convention", "paper"), CONVENTIONS),
            standardise=_standardise(table.get("preprocessing", {})),
            seed=check_whole("seed", table.get("seed", 0), 0),
            title=check_text("title", table["title"]) if "title" in table else "",
            folder=Path(folder or Path.cwd()),
        )
        return plan.part(**_only(table["only"])) if "only" in table else plan

    def to_dict(self):
        """The plan as nested dicts, every default written out."""
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

    def to_toml(self):
        """Text of a plan file that says the same."""
        return dumps(self.to_dict())

    @property
    def n_runs(self):
        """Number of (data set, method, split)."""
        return len(self.datasets) * len(self.methods) * len(self.splits.chosen)

    def part(self, datasets=None, methods=None, splits=None):
        """The same plan for some data sets, methods and splits only; its runs are those of the whole plan.

        Examples
        --------
        >>> plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}, "brl": {}}})
        >>> plan.n_runs, plan.part(methods=["brl"], splits=[0, 3]).n_runs
        (20, 2)
        """
        chosen = _chosen("data set", self.datasets, datasets)
        names = {data.name for data in chosen}
        return replace(
            self,
            datasets=chosen,
            methods=tuple(method.restricted(names) for method in _chosen("method", self.methods, methods)),
            splits=self.splits.part(splits or self.splits.only),
        )


def _metrics(names):
    if names is None:
        return tuple(metric.name for metric in PAPER_METRICS)
    for name in check_list("metrics", names):
        try:
            get_metric(name)
        except ValueError:
            check_one_of("a metric", name, METRICS)
    metrics = [get_metric(name).name for name in names]
    return tuple(_distinct("metrics", metrics))


def _datasets(entries):
    datasets = [DataSpec.parse(entry, f"datasets[{i}]") for i, entry in enumerate(check_list("datasets", entries))]
    _distinct("datasets", [data.name for data in datasets])
    return tuple(datasets)


def _methods(tables, names):
    if isinstance(tables, list):
        tables = {check_text("a method of the list methods", name): {} for name in tables}
    if not check_table("methods", tables):
        raise PlanError(f"methods must name at least one method. Got {tables!r} instead.")
    methods = tuple(MethodSpec.parse(name, table) for name, table in tables.items())
    for method in methods:
        method.check_datasets(names)
    return methods


def _chosen(what, specs, names):
    """Those of `specs` that `names` lists, in the plan's order; all of them if there are no names."""
    known = [spec.name for spec in specs]
    for name in names or ():
        if name not in known:
            raise PlanError(f"the plan has no {what} {name!r}.{hint(name, known)}")
    return tuple(spec for spec in specs if not names or spec.name in names)


def _standardise(table):
    check_keys("preprocessing", table, ("standardise",))
    return check_one_of("preprocessing.standardise", table.get("standardise", "dense"), STANDARDISE)


def _only(table):
    keys = ("datasets", "methods", "splits")
    check_keys("only", table, keys)
    return {key: check_list(f"only.{key}", table[key]) for key in keys if key in table}


def _distinct(where, names):
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PlanError(f"{where} has {twice[0]!r} more than once; each must have a name of its own.")
    return names
