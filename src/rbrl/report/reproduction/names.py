"""Our methods under the names that the paper gives them."""

import re
from dataclasses import replace

import pandas as pd

from rbrl.report.paper_tables import published
from rbrl.report.results import Results

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
