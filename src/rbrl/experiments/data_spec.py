"""A data set in a plan: a name of the catalogue, or a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbrl.datasets import CARDS
from rbrl.datasets.files import ENDINGS
from rbrl.experiments._check import check_choice, check_keys, check_text, hint
from rbrl.experiments.errors import PlanError

MODELS = ("kernel", "linear")
KEYS = ("name", "file", "labels", "format", "nominal", "model")


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
        check_keys(where, table, KEYS)
        if "file" in table:
            check_text(f"{where}.file", table["file"])
            name = table.get("name", Path(table["file"]).name.partition(".")[0])
        else:
            name = _catalogue_name(table, where)
        model = table.get("model", CARDS[name].model if "file" not in table else None)
        if model is not None:
            check_choice(f"{where}.model", model, MODELS)
        if "nominal" in table:
            check_choice(f"{where}.nominal", table["nominal"], ("codes", "onehot"))
        return cls(**{**table, "name": check_text(f"{where}.name", name), "model": model})

    def to_dict(self):
        """What a plan file says."""
        table = {key: getattr(self, key) for key in KEYS if getattr(self, key) is not None}
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
    check_keys(where, table, KEYS, required=["name"])
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
