"""The tables that the paper prints, and its names for methods and metrics."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd

from rbrl.experiments import Results
from rbrl.metrics import get_metric

PUBLISHED = Path(__file__).parent / "published"
TABLES = ("datasets", "hyper-parameters", "results", "average-ranks", "friedman", "ablation", "time")
# The method of the paper, and the same without its ranking term.
OURS, ABLATION = "RBRL", "BRL"
# The row of Table 4 that is the mean over the six metrics.
OVERALL = "Overall"
# Titles of columns: the paper's own figures, and ours by the plan that they come from.
PAPER = "The paper"
SOURCES = {"paper": "Ours, its rules", "paper-fair": "Ours, equal terms"}
# Methods that the plan on equal terms adds to those of Table 3, and its name for CLR with soft votes.
FURTHER = ("Ensemble of chains", "Label powerset", "BR, one threshold")
SOFT_CLR = "clr-soft"


@cache
def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / f"{name}.csv")


def published(name: str = "results") -> pd.DataFrame:
    """Return one of the paper's tables, as printed.

    Parameters
    ----------
    name : {"datasets", "hyper-parameters", "results", "average-ranks", "friedman", "ablation", "time"}
        Table 1 to Table 7.

    Returns
    -------
    DataFrame
        A copy.

    Examples
    --------
    >>> published("friedman").loc[0, "F_F"]
    np.float64(13.1812)
    """
    if name not in TABLES:
        raise ValueError(f"A published table is one of {', '.join(TABLES)}. Got {name!r} instead.")
    return _read(name).copy()


def printed(name: str, **columns: str) -> pd.DataFrame:
    """Return a published table with rbrl's names of the metrics, and with other names of some columns.

    Examples
    --------
    >>> printed("friedman", F_F="printed").columns.tolist()
    ['metric', 'printed', 'critical_value']
    """
    table = published(name).rename(columns=columns)
    return table.assign(metric=[one if one == OVERALL else get_metric(one).name for one in table.metric])


def published_results() -> Results:
    """Return Table 3 as `Results`."""
    return Results.from_summary(published("results"))


def paper_methods() -> tuple[str, ...]:
    """Return the nine methods of Table 3, in its order.

    Examples
    --------
    >>> paper_methods()[-2:]
    ('MLFE', 'RBRL')
    """
    return tuple(published("results").method.unique())


def as_published(rows: pd.DataFrame, *others: str) -> Results:
    """Return rows of a plan as `Results` with the paper's methods, names and order; ranks use the unrounded means.

    Parameters
    ----------
    rows : DataFrame
        Result of `rbrl.experiments.Store.rows`.
    *others : str
        Methods outside Table 3 that are kept as well, such as "BRL".
    """
    names = titles(*others)
    rows = rows.assign(method=[names.get(key(name)) for name in rows.method]).dropna(subset=["method"])
    results = replace(Results.from_rows(rows), as_printed=False)
    return results.only([name for name in names.values() if name in results.methods])


def titles(*others: str) -> dict[str, str]:
    """Return the titles of the methods of Table 3, and of others, by the key of their name in a plan."""
    return {key(name): name for name in (*paper_methods(), *others)}


def further(rows: pd.DataFrame) -> list[str]:
    """Return the methods outside Table 3 that have rows on every data set, as tests over data sets need them."""
    own = {name: set(rows.dataset[rows.method.map(key) == key(name)]) for name in FURTHER}
    return [name for name, sets in own.items() if sets == set(rows.dataset)]


def by_decision_values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows on equal terms with every method's decision values: CLR's soft votes, if known, replace its hard ones."""
    if SOFT_CLR not in set(rows.method):
        return rows
    return rows[rows.method != "clr"].replace({"method": {SOFT_CLR: "clr"}})


def key(name: str) -> str:
    """Return a name without case and hyphens, so that spellings of one name are equal.

    Examples
    --------
    >>> key("Rank-SVM") == key("rank-svm")
    True
    """
    return re.sub(r"[^a-z0-9]", "", str(name).lower())
