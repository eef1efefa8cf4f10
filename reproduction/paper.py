"""The tables that the paper prints, and its names for methods and metrics."""

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files

import pandas as pd

from rbrl.report.results import Results

TABLES = {
    "datasets": "Table 1",
    "hyper-parameters": "Table 2",
    "results": "Table 3",
    "average-ranks": "Table 4",
    "friedman": "Table 5",
    "ablation": "Table 6",
    "time": "Table 7",
}


@cache
def _read(name):
    with files("reproduction").joinpath("published", f"{name}.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream)


def published(name: str = "results") -> pd.DataFrame:
    """One of the paper's tables, as printed.

    Parameters
    ----------
    name : {"datasets", "hyper-parameters", "results", "average-ranks", "friedman", "ablation", "time"}

    Examples
    --------
    >>> published("friedman").loc[0, "F_F"]
    np.float64(13.1812)
    """
    if name not in TABLES:
        raise ValueError(f"A published table is one of {', '.join(TABLES)}. Got {name!r} instead.")
    return _read(name).copy()


def published_results() -> Results:
    """Table 3 as `Results`, ready for tables, figures and the page."""
    return Results.from_summary(published("results"))


OURS = "RBRL"
ABLATION = "BRL"


def paper_methods() -> tuple[str, ...]:
    """The nine methods of Table 3, in its order.

    Examples
    --------
    >>> paper_methods()[-2:]
    ('MLFE', 'RBRL')
    """
    return tuple(published("results").method.unique())


def as_published(rows: pd.DataFrame, *others: str) -> Results:
    """Rows of a plan as `Results` with the paper's methods, names and order; ranks are of the means in full.

    Parameters
    ----------
    rows : DataFrame
        As `rbrl.experiments.Store.rows` gives them.
    *others : str
        Methods outside Table 3 that are kept as well, such as "BRL".
    """
    names = {key(name): name for name in (*paper_methods(), *others)}
    rows = rows.assign(method=[names.get(key(name)) for name in rows.method]).dropna(subset=["method"])
    results = replace(Results.from_rows(rows), as_printed=False)
    return results.only([name for name in names.values() if name in results.methods])


def key(name: str) -> str:
    """Names are the same if they differ in case and hyphens only.

    Examples
    --------
    >>> key("Rank-SVM") == key("rank-svm")
    True
    """
    return re.sub(r"[^a-z0-9]", "", str(name).lower())
