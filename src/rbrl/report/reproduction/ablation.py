"""Table 6: what the ranking term is good for, on the paper's two data sets and on the others."""

import pandas as pd
from scipy.stats import wilcoxon

from rbrl.metrics import get_metric
from rbrl.report.paper_tables import published
from rbrl.report.reproduction.names import ABLATION, OURS
from rbrl.report.results import Results
from rbrl.report.table import MISSING, Cell, Table, number, word
from rbrl.report.tables import best_of, p_text

PAIR = (ABLATION, OURS)


def ablation_beside(results: Results) -> Table:
    """BRL and RBRL, ours and the printed figures where there are any; the better of each pair in bold."""
    printed = published("ablation")
    printed["metric"] = [get_metric(name).name for name in printed.metric]
    known = printed.set_index(["dataset", "metric", "method"])["mean"]
    rows, records = [], []
    for dataset in results.datasets:
        for metric in results.metrics:
            ours = results.means(metric).loc[dataset].reindex(list(PAIR))
            paper = pd.Series({name: known.get((dataset, metric.name, name)) for name in PAIR}, dtype=float)
            cells = [*_pair(ours, metric), *_pair(paper, metric)]
            rows.append((word(dataset), word(f"{metric.abbreviation} {metric.arrow}"), *cells))
            records.append(
                {"dataset": dataset, "metric": metric.name}
                | {f"{name}": ours[name] for name in PAIR}
                | {f"{name}_printed": paper[name] for name in PAIR}
            )
    titles = ("Data set", "Metric", *PAIR, *(f"{name}, the paper" for name in PAIR))
    return Table("table6", "Table 6: BRL and RBRL", titles, tuple(rows), pd.DataFrame(records), n_keys=2)


def _pair(values, metric):
    best = best_of(values, metric.greater_is_better)
    return [Cell(MISSING) if values[name] != values[name] else number(values[name], 3, name in best) for name in PAIR]


def ablation_summary(results: Results) -> Table:
    """By metric: on how many data sets RBRL is better, by how much on average, and how likely that is by chance."""
    rows, records = [], []
    for metric in results.metrics:
        values = results.means(metric).reindex(columns=list(PAIR)).dropna()
        sign = 1 if metric.greater_is_better else -1
        gain = sign * (values[OURS] - values[ABLATION])
        p_value = wilcoxon(gain).pvalue if len(gain) > 1 and gain.any() else float("nan")
        wins = int((gain > 0).sum())
        title = word(f"{metric.title} {metric.arrow}")
        shown = Cell(p_text(p_value), p_value) if p_value == p_value else Cell(MISSING)
        gained = Cell(f"{gain.mean():+.4f}".replace("-", "−"), gain.mean()) if len(gain) else Cell(MISSING)
        rows.append((title, Cell(f"{wins} of {len(gain)}", wins), gained, shown))
        records.append(
            {"metric": metric.name, "wins": wins, "n_datasets": len(gain), "gain": gain.mean(), "p_value": p_value}
        )
    titles = ("Metric", f"{OURS} better on", "Mean gain", "p")
    note = "Mean gain in the metric's good direction; p by Wilcoxon's signed-rank test over data sets, not corrected."
    return Table(
        "table6-summary", "What the ranking term changes", titles, tuple(rows), pd.DataFrame(records), note=note
    )
