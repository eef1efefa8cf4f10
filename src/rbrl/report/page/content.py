"""What the page shows, gathered for the template."""

import re
from typing import Any

import numpy as np
import pandas as pd

from rbrl.report import figures
from rbrl.report.comparison import compare, rank_table
from rbrl.report.page.verdict import headline, join, verdict
from rbrl.report.results import Results, training_seconds
from rbrl.report.table import Table, number, seconds, spread, word
from rbrl.report.tables import (
    best_of,
    datasets_table,
    friedman_table,
    known_sizes,
    legend,
    metric_table,
    pairs_table,
    parameters_table,
    ranks_table,
    seconds_table,
)

TIMES = ("train_seconds", "test_seconds")
FACTS = {"version": "rbrl", "machine": "Machine", "seed": "Seeds"}


def content(results: Results, title: str, command: str, plan: str) -> dict[str, Any]:
    """Everything the template needs, as names and tables; the template escapes it all."""
    comparisons = [compare(results, metric) for metric in results.metrics]
    ranks = rank_table(results).loc["Overall"].dropna().sort_values(kind="stable")
    has_runs = len(results.runs) > 0
    verdicts = [verdict(comparison, results) for comparison in comparisons]
    tested = any(comparison.tested for comparison in comparisons)
    has_tests = any(comparison.test for comparison in comparisons)
    best = _leaders(ranks) if tested else []
    return {
        "title": title,
        "lead": _lead(results, ranks, comparisons),
        "counts": _counts(results),
        "verdicts": verdicts,
        "untested": _untested(verdicts),
        "ranks": [(name, rank, rank / ranks.max(), name in best) for name, rank in ranks.items()],
        "ranks_table": ranks_table(results),
        "friedman": friedman_table(results) if has_tests else None,
        "pairs": pairs_table(results) if has_tests else None,
        "diagrams": [_diagram(c) for c in comparisons if c.decides_pairs],
        "only": results.datasets[0] if len(results.datasets) == 1 else "",
        "as_printed": results.as_printed,
        "result_tables": _result_tables(results),
        "datasets_table": datasets_table(known_sizes(results)),
        "details": [_detail(results, name) for name in results.datasets] if len(results.datasets) > 1 else [],
        "trade_off": _trade_off(results, ranks) if has_runs else None,
        "time_tables": [seconds_table(results, name) for name in TIMES] if has_runs else [],
        "parameters": parameters_table(results) if has_runs else None,
        "failures": _failures(results),
        "facts": _facts(results),
        "command": command,
        "plan": plan,
    }


def _untested(verdicts):
    """Why nothing was tested, if it is the same for all metrics: it is then said once."""
    reasons = {v.evidence if v.level == "untested" else "" for v in verdicts}
    return reasons.pop() if len(reasons) == 1 else ""


def _lead(results, ranks, comparisons):
    what = f"{_plural(len(results.methods), 'method')} on {_plural(len(results.datasets), 'data set')}"
    metrics = _plural(len(results.metrics), "metric")
    if ranks.empty:
        return f"{what}, judged by {metrics}. No overall ranking: no data set has every method's value yet."
    return f"{what}, judged by {metrics}. {headline(comparisons)}"


def _leaders(ranks):
    return [name for name in ranks.index if np.isclose(ranks[name], ranks.min())]


def _plural(n, noun):
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _counts(results):
    counts = [
        ("Methods", len(results.methods)),
        ("Data sets", len(results.datasets)),
        ("Metrics", len(results.metrics)),
    ]
    if len(results.runs):
        counts += [("Splits", results.n_splits), ("Runs", len(results.runs)), ("Failed", len(results.failures))]
    return counts


def _result_tables(results):
    """A table per metric; of a single data set one table says it all."""
    if len(results.datasets) == 1:
        return [_detail(results, results.datasets[0])["table"]]
    return [metric_table(results, metric) for metric in results.metrics]


def _diagram(comparison):
    metric = comparison.metric
    ranks = comparison.ranks.sort_values(kind="stable")
    order = "; ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    groups = "; ".join(join(group) for group in comparison.groups) or "none"
    description = f"Average ranks: {order}. Critical distance {comparison.distance:.2f}. "
    description += f"No significant difference within: {groups}."
    figure = figures.draw_critical_difference(comparison, width=4.6)
    return figures.inline_svg(figure, f"Critical-difference diagram, {metric.title}", description, f"cd-{metric.name}")


def _detail(results: Results, dataset: str) -> dict[str, Any]:
    """One data set: every metric of every method, with times."""
    known = known_sizes(results)[dataset]
    line = f"{known.n_samples:,} samples, {known.n_features:,} features, {known.n_labels} labels" if known else ""
    has_runs = len(results.runs) > 0
    best = {
        m: best_of(results.means(m).loc[dataset], m.greater_is_better, results.decimals(m, dataset))
        for m in results.metrics
    }
    times = [results.seconds(name).loc[dataset] for name in ("tune_seconds", "train_seconds", "test_seconds")]
    rows = []
    for method in results.methods:
        cells = [_spread(results, m, dataset, method, method in best[m]) for m in results.metrics]
        rows.append((word(method), *cells, *([seconds(t[method]) for t in times] if has_runs else [])))
    titles = ["Method", *(f"{m.abbreviation} {m.arrow}" for m in results.metrics)]
    titles += ["Tune, s", "Train, s", "Test, s"] if has_runs else []
    frame, note = pd.DataFrame(), legend(results)
    table = Table(f"detail-{slug(dataset)}", dataset, tuple(titles), tuple(rows), frame, note=note)
    return {"name": dataset, "line": line, "table": table}


def _spread(results, metric, dataset, method, best):
    digits, mean = results.decimals(metric, dataset), results.means(metric).loc[dataset, method]
    if results.n_splits == 1:
        return number(mean, digits, best)
    return spread(mean, results.stds(metric).loc[dataset, method], digits, best)


def _trade_off(results, ranks):
    train = training_seconds(results).reindex(ranks.index).dropna()
    if train.empty:
        return None
    points = "; ".join(f"{name}: {train[name]:.3g} s, rank {ranks[name]:.2f}" for name in train.index)
    figure = figures.draw_trade_off(train, ranks, title="")
    return figures.inline_svg(figure, "Training time against average rank", points, "trade-off")


def _failures(results):
    failed = results.failures
    if failed.empty:
        return None
    rows = tuple((word(f.dataset), word(f.method), word(f.split), word(f.error)) for f in failed.itertuples())
    return Table("failures", "Runs that failed", ("Data set", "Method", "Split", "Error"), rows, failed)


def _facts(results):
    facts = []
    for column, title in FACTS.items():
        if column in results.runs:
            values = [str(value) for value in dict.fromkeys(results.runs[column].dropna())]
            facts.append((title, ", ".join(values[:12]) + (" …" if len(values) > 12 else "")))
    if "gap" in results.runs and results.runs.gap.notna().any():
        facts.append(("Largest certified gap", f"{results.runs.gap.max():.1e}"))
    return facts


def slug(text: str) -> str:
    """An id made of letters that need no escape."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"
