"""What Figures 4 and 5 say in figures: how good the default width is, and where the best penalties lie."""

import pandas as pd

from rbrl.metrics import get_metric
from rbrl.report.studies import PENALTIES
from rbrl.report.table import Table, number, word


def width_table(study: pd.DataFrame) -> Table:
    """By metric and method: the value at the default kernel width, the best over all widths, and where it is.

    Parameters
    ----------
    study : DataFrame
        As `rbrl.report.studies.gamma_sensitivity` gives it.
    """
    rows, records = [], []
    for (name, method), part in study.groupby(["metric", "method"], sort=False):
        metric = get_metric(name)
        at_default = part[part.factor == 1.0].value.iloc[0]
        best = part.loc[_best(part, metric)]
        rows.append((_title(metric), word(method), number(at_default), number(best.value), word(f"{best.factor:g}")))
        records.append(
            {"metric": name, "method": method, "default": at_default, "best": best.value, "factor": best.factor}
        )
    titles = ("Metric", "Method", "At the default width", "Best", "At this multiple of it")
    return Table("widths", "Kernel widths on image", titles, tuple(rows), pd.DataFrame(records), n_keys=2)


def penalty_table(study: pd.DataFrame) -> Table:
    """By metric: the best point of all three planes, and whether each of its penalties lies inside the grid.

    Parameters
    ----------
    study : DataFrame
        As `rbrl.report.studies.pair_sensitivity` gives it.
    """
    rows, records = [], []
    ends = {name: (study[name].min(), study[name].max()) for name in PENALTIES}
    for name, part in study.groupby("metric", sort=False):
        metric = get_metric(name)
        best, worst = part.loc[_best(part, metric)], part.loc[_best(part, metric, worst=True)]
        inside = [penalty for penalty in PENALTIES if ends[penalty][0] < best[penalty] < ends[penalty][1]]
        at = [word(f"{best[penalty]:g}") for penalty in PENALTIES]
        rows.append((_title(metric), number(worst.value), number(best.value), *at, word(", ".join(inside) or "none")))
        records.append({"metric": name, "best": best.value, "worst": worst.value, "inside": ", ".join(inside)})
    titles = ("Metric", "Worst", "Best", *(f"{penalty} there" for penalty in PENALTIES), "Not at an end of the grid")
    return Table("penalties", "Penalties on arts", titles, tuple(rows), pd.DataFrame(records))


def _title(metric):
    return word(f"{metric.title} {metric.arrow}")


def _best(part, metric, worst=False):
    return part.value.idxmax() if metric.greater_is_better != worst else part.value.idxmin()
