"""The answers that open the page of the reproduction."""

from collections import Counter

import pandas as pd

from rbrl.report.comparison import compare, rank_table
from rbrl.report.reproduction.cost import cost, hours_text, mean_per_fit
from rbrl.report.reproduction.names import OURS, key
from rbrl.report.reproduction.observations import FAILS, HOLDS, UNKNOWN, WEAK, judge, observations
from rbrl.report.reproduction.terms import beaten_counts
from rbrl.report.table import Table, word

VERDICTS = {HOLDS: "upheld", WEAK: "upheld without significance", FAILS: "not upheld", UNKNOWN: "not tested"}


def short_table(found, explained, sources, rows, effort) -> Table:
    """Questions that a reader has, and their answers in figures."""
    moved, left = int((explained.cause >= 0).sum()), int((explained.cause < 0).sum())
    near = f"{found.within} of {found.cells} cells within a distance of 3; "
    near += f"{moved} far ones moved near by a named change, {left} unexplained"
    lines = [
        (
            f"Is {OURS} what the paper says?",
            f"{found.ours_good} of {found.ours_cells} cells within a distance of 2, or better",
        ),
        ("Are the other methods?", near),
        ("Do the overall ranks agree?", f"Spearman correlation {found.spearman:.2f}"),
        (f"Where does {OURS} rank?", _in_each(sources, _place)),
        (f"Whom does {OURS} beat significantly?", _in_each(sources, _wins)),
        ("Do the seven observations hold?", _in_each(sources, _verdicts)),
        (f"What does {OURS}'s full search cost?", _cost_sentence(rows, effort)),
    ]
    return Table(
        "short", "In short", ("Question", "Answer"), tuple((word(a), word(b)) for a, b in lines), pd.DataFrame(lines)
    )


def _in_each(sources, say):
    return "; ".join(f"{name.lower()}: {say(results)}" for name, results in sources.items())


def _place(results):
    ranks = rank_table(results).loc["Overall"].dropna()
    if OURS not in ranks:
        return "not known yet"
    place = int((ranks < ranks[OURS]).sum()) + 1
    n_datasets = compare(results, results.metrics[0]).n_datasets
    few = f" over {n_datasets} of {len(results.datasets)} data sets" if n_datasets < len(results.datasets) else ""
    return f"place {place} of {len(ranks)}, overall average rank {ranks[OURS]:.2f}{few}"


def _wins(results):
    wins, losses = beaten_counts(results)
    pairs = (len(results.methods) - 1) * len(results.metrics)
    return f"{wins} of {pairs} pairs of method and metric" + (f", beaten in {losses}" if losses else "")


def _verdicts(results):
    found = Counter(judge(observation, results)[0] for observation in observations())
    return ", ".join(f"{found[name]} {VERDICTS[name]}" for name in VERDICTS if found[name])


def _cost_sentence(rows, effort):
    own, tuned = (frame[frame.method.map(key) == key(OURS)] for frame in (rows, effort))
    if own.empty:
        return "not known yet"
    found = cost(own, tuned)
    hours = hours_text(found.recorded_hours.sum(), found.hours.sum())
    evaluations = mean_per_fit(tuned, "evaluations")
    return (
        f"{found.n_fits.sum():,} fits in {hours} hours of processor time, half of that on two cores; "
        f"{evaluations:.1f} evaluations per fit"
    )
