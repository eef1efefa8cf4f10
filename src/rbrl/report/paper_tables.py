"""The tables that the paper prints, as they come with the package."""

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
    with files("rbrl.report").joinpath("paper", f"{name}.csv").open(encoding="utf-8") as stream:
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
