"""What a plan cost: fits, hours and evaluations, by data set, from its rows and tunings."""

import pandas as pd

from rbrl.report.table import Cell, Table, count, number, word

TIMES = ["tune_seconds", "train_seconds", "test_seconds"]


def cost(rows: pd.DataFrame, effort: pd.DataFrame, by: str = "dataset") -> pd.DataFrame:
    """Sum up rows and tunings.

    Parameters
    ----------
    rows : DataFrame
        As `rbrl.experiments.Store.rows` gives them.
    effort : DataFrame
        As `rbrl.experiments.Store.effort` gives it.
    by : {"dataset", "method"}

    Returns
    -------
    DataFrame
        One row per data set or method: n_runs, n_fits (of tuning, and one per run), hours (of processor time),
        wall_hours (tuning, training and testing one after the other), evaluations (mean per fit of tuning), certified
        (share of the fits of tuning), share (of the processor time).
    """
    runs = rows.drop_duplicates(["dataset", "method", "split"])
    runs = runs[runs.status == "ok"].assign(wall=lambda r: r[TIMES].sum(axis=1))
    groups = runs.groupby(by, sort=False)
    fits = effort.assign(
        total_evaluations=effort.evaluations * effort.n_fits, total_certified=effort.certified * effort.n_fits
    ).groupby(by, sort=False)
    frame = pd.DataFrame({"n_runs": groups.size(), "hours": groups.processor_seconds.sum() / 3600})
    frame["wall_hours"] = groups.wall.sum() / 3600
    tuned = fits.n_fits.sum().reindex(frame.index).fillna(0)
    frame["n_fits"] = (tuned + frame.n_runs).astype(int)
    for name in ("evaluations", "certified"):
        frame[name] = (fits[f"total_{name}"].sum(min_count=1) / fits.n_fits.sum()).reindex(frame.index)
    frame["share"] = frame.hours / frame.hours.sum()
    return frame.reset_index()


def cost_table(rows: pd.DataFrame, effort: pd.DataFrame, title: str, by: str = "dataset") -> Table:
    """The cost as a table, with its total."""
    frame = cost(rows, effort, by)
    total = _total(frame)
    lines = [_line(row[by], row) for row in frame.to_dict("records")]
    head = {"dataset": "Data set", "method": "Method"}[by]
    titles = (head, "Runs", "Fits", "Processor hours", "Share", "Evaluations per fit", "Certified")
    note = "Certified: fits of the search with a proved relative gap of at most 0.001, among those of methods that prove one."
    return Table(f"cost-{by}", title, titles, (*lines, _line("All", total)), frame, n_foot=1, note=note)


def _total(frame):
    weights = frame.n_fits - frame.n_runs
    mean = {}
    for name in ("evaluations", "certified"):
        known = frame[name].notna() & (weights > 0)
        mean[name] = (frame[name] * weights)[known].sum() / weights[known].sum() if known.any() else float("nan")
    return {name: frame[name].sum() for name in ("n_runs", "n_fits", "hours", "wall_hours", "share")} | mean


def _line(name, row):
    return (
        word(name),
        count(row["n_runs"]),
        Cell(f"{row['n_fits']:,}", int(row["n_fits"])),
        number(row["hours"], 2),
        Cell(f"{row['share']:.0%}", float(row["share"])),
        number(row["evaluations"], 1),
        Cell(f"{row['certified']:.1%}", float(row["certified"])) if row["certified"] == row["certified"] else Cell("–"),
    )
