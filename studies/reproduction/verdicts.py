"""Verdicts on RBRL against each method: the difference, its certainty, and whether it matters in practice.

Average ranks on few data sets saturate: a method that is behind everywhere has the last rank whether it is behind by 0.2
or by 0.01. So differences of values come first, then Wilcoxon's test with Holm's correction for RBRL against the eight
others, and the Bayesian signed-rank test, which can also find that two methods are practically equal.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from rbrl.experiments import Results
from rbrl.experiments.statistics import bayesian_signed_rank, median_differences, rank_biserial, wilcoxon_holm
from rbrl.experiments.tables import MISSING, Cell, Table, heading, p_text, word
from rbrl.metrics import PAPER_METRICS, Metric, get_metric
from studies.reproduction.paper import OURS

# Differences up to this size do not matter; the same for all six metrics, which lie between 0 and 1.
ROPE = 0.005
# A probability from here on is a verdict, and a p-value up to the other is significant.
SURE, LEVEL = 0.95, 0.05
BETTER, EQUIVALENT, WORSE, OPEN = "better", "equal", "worse", "open"
# Metrics of rankings: what hard votes change.
RANKING = tuple(metric.name for metric in PAPER_METRICS if metric.needs == "scores")


def signed_value(value: float, digits: int = 3) -> str:
    """Format a difference with its sign and a true minus.

    Examples
    --------
    >>> signed_value(-0.0101), signed_value(0.1882)
    ('−0.010', '+0.188')
    >>> signed_value(-0.0004)
    '0.000'
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def gains(results: Results, metric: Metric, rival: str) -> pd.Series:
    """Return RBRL's lead over a rival on each data set, in the metric's good direction."""
    values = results.means(metric)[[OURS, rival]].dropna()
    return (values[OURS] - values[rival]) * (1 if metric.greater_is_better else -1)


def verdicts(results: Results) -> pd.DataFrame:
    """Compare RBRL with every other method on every metric.

    Parameters
    ----------
    results : Results
        Results with the paper's names; see `studies.reproduction.paper.as_published`.

    Returns
    -------
    DataFrame
        One row per metric and rival: mean, median, low and high of the gains over data sets; wins, n_datasets; effect
        (rank-biserial correlation), p_value (Wilcoxon, corrected by Holm for the rivals); better, equivalent and worse
        (probabilities), and verdict: the one that is at least 0.95, or "open".

    Examples
    --------
    >>> from studies.reproduction.paper import published_results
    >>> frame = verdicts(published_results()).set_index(["metric", "rival"])
    >>> frame.verdict["ranking_loss", "BR"]
    'better'
    """
    rows = []
    for metric in PAPER_METRICS:
        table = results.means(metric).dropna()
        if OURS not in table or len(table) < 2 or table.shape[1] < 2:
            continue
        ours, values, up = list(table).index(OURS), table.to_numpy(), metric.greater_is_better
        p_values, effects = wilcoxon_holm(values, ours), rank_biserial(values, up)[ours]
        medians, chances = median_differences(values, up)[ours], bayesian_signed_rank(values, up, ROPE, control=ours)
        for j, rival in enumerate(table):
            if rival == OURS:
                continue
            gain, chance = gains(results, metric, rival), [float(one[j]) for one in chances]
            spread = (gain.mean(), medians[j], gain.min(), gain.max(), int((gain > 0).sum()), len(gain))
            rows.append((metric.name, rival, *spread, effects[j], p_values[j], *chance, _verdict(chance)))
    columns = ["metric", "rival", "mean", "median", "low", "high", "wins", "n_datasets", "effect", "p_value"]
    return pd.DataFrame(rows, columns=[*columns, "better", "equivalent", "worse", "verdict"])


def _verdict(chances: Sequence[float]) -> str:
    return next((name for name, one in zip((BETTER, EQUIVALENT, WORSE), chances) if one >= SURE), OPEN)


def verdict_grid(frame: pd.DataFrame, title: str, others: Mapping[str, Mapping[str, str]] | None = None) -> Table:
    """Rivals x metrics: verdict and mean gain; an asterisk where Wilcoxon's test is significant.

    Parameters
    ----------
    frame : DataFrame
        Result of `verdicts`.
    title : str
    others : dict of str to dict, optional
        Further columns by title, each with a text for every rival.
    """
    further = others or {}
    metrics, cells = list(dict.fromkeys(frame.metric)), frame.set_index(["metric", "rival"])
    rows = []
    for rival in dict.fromkeys(frame.rival):
        line = [_short(cells.loc[(metric, rival)]) for metric in metrics]
        rows.append((word(rival), *line, *(word(column[rival]) for column in further.values())))
    titles = (f"{OURS} against", *(heading(get_metric(name)) for name in metrics), *further)
    note = (
        f"Mean difference over data sets in {OURS}'s favour. better, equal, worse: of a probability of at least {SURE:.2f} "
        f"by the Bayesian signed-rank test, where differences up to ±{ROPE} do not matter; open: none of the three. "
        f"* Wilcoxon's test, corrected by Holm for {frame.rival.nunique()} rivals: p ≤ {LEVEL}."
    )
    return Table("verdicts", title, titles, tuple(rows), frame, note=note)


def _short(row: pd.Series) -> Cell:
    star = "*" if row.p_value <= LEVEL else ""
    return Cell(f"{row.verdict} {signed_value(row['mean'])}{star}", float(row["mean"]))


def verdict_rows(sources: Mapping[str, pd.DataFrame]) -> Table:
    """Every comparison with all its statistics, a row for each of several results."""
    rows, frames = [], []
    for name, frame in sources.items():
        frames.append(frame.assign(source=name))
        for row in frame.itertuples():
            chances = [Cell(f"{one:.2f}", one) for one in (row.better, row.equivalent, row.worse)]
            range_ = f"{signed_value(row.low)} to {signed_value(row.high)}"
            rows.append(
                (word(heading(get_metric(row.metric))), word(row.rival), word(name),
                 *(Cell(signed_value(value, 4), value) for value in (row.mean, row.median)), word(range_),
                 word(f"{row.wins} of {row.n_datasets}"), Cell(signed_value(row.effect, 2), row.effect),
                 Cell(p_text(row.p_value), row.p_value), *chances, word(row.verdict))
            )  # fmt: skip
    order = list(product((heading(metric) for metric in PAPER_METRICS), dict.fromkeys(row[1].text for row in rows)))
    rows.sort(key=lambda row: order.index((row[0].text, row[1].text)))
    titles = ("Metric", "Against", "", "Mean", "Median", "From … to …", "Better on", "r", "p", "P(better)", "P(equal)")
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return Table(
        "verdict-rows", f"{OURS} against each method", (*titles, "P(worse)", "Verdict"), tuple(rows), table, n_keys=3
    )


def artefact(published: Results, equal: Results, rivals: Sequence[str]) -> pd.DataFrame:
    """Return the share of RBRL's lead in rankings that comes from scoring its rivals by hard votes.

    Parameters
    ----------
    published, equal : Results
        Under the published rules, where some methods rank by hard votes, and with every method's decision values.
    rivals : sequence of str

    Returns
    -------
    DataFrame
        One row per rival and metric of rankings: hard and soft, the mean gains under the two rules, and share, the part
        of the first that is gone under the second.
    """
    rows = []
    for rival, name in product(rivals, RANKING):
        hard, soft = (float(gains(results, get_metric(name), rival).mean()) for results in (published, equal))
        rows.append((rival, name, hard, soft, 1 - soft / hard))
    return pd.DataFrame(rows, columns=["rival", "metric", "hard", "soft", "share"])


def artefact_table(frame: pd.DataFrame) -> Table:
    """Result of `artefact`; a share is given for leads outside the region of equivalence."""
    rows = []
    for row in frame.itertuples():
        share = Cell(f"{row.share:.0%}".replace("-", "−"), row.share) if row.hard > ROPE else Cell(MISSING)
        leads = (Cell(signed_value(value), value) for value in (row.hard, row.soft))
        rows.append((word(row.rival), word(heading(get_metric(row.metric))), *leads, share))
    titles = ("Against", "Metric", "Hard votes", "Decision values", "Gone")
    note = f"Mean over data sets of {OURS}'s lead; no share of a lead that is at most {ROPE}."
    return Table("artefact", f"{OURS}'s lead in rankings", titles, tuple(rows), frame, n_keys=2, note=note)


def tuning_effect(every: Results, first: Results, methods: Sequence[str]) -> pd.DataFrame:
    """Return the mean change over data sets from a search on every split to one on the first split alone.

    The first split's training rows are test rows of other splits, so that a choice made there has seen some of them.

    Returns
    -------
    DataFrame
        One row per method and metric: change (positive where the search on the first split gives the better result) and
        largest (over data sets, by its size).
    """
    rows = []
    for method, metric in product(methods, PAPER_METRICS):
        change = first.means(metric)[method] - every.means(metric)[method]
        change = change.dropna() * (1 if metric.greater_is_better else -1)
        rows.append((method, metric.name, change.mean(), change.iloc[int(np.argmax(np.abs(change)))]))
    return pd.DataFrame(rows, columns=["method", "metric", "change", "largest"])


def tuning_table(frame: pd.DataFrame) -> Table:
    """Result of `tuning_effect`, methods x metrics."""
    metrics, cells = list(dict.fromkeys(frame.metric)), frame.set_index(["method", "metric"])
    rows = []
    for method in dict.fromkeys(frame.method):
        found = [cells.loc[(method, name)] for name in metrics]
        line = [Cell(f"{signed_value(one.change, 4)} ({signed_value(one.largest)})", one.change) for one in found]
        rows.append((word(method), *line))
    titles = ("Method", *(heading(get_metric(name)) for name in metrics))
    note = "Mean over data sets of what the first split's choice gains (the largest change on one set), positive is better."
    title = "Searched on the first split alone instead of on every split"
    return Table("tuning", title, titles, tuple(rows), frame, note=note)
