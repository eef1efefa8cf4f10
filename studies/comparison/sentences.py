"""The answers that open the page, each sentence with its figures from the rows."""

import numpy as np
import pandas as pd

from rbrl.datasets import CARDS
from rbrl.experiments.tables import p_text
from studies.benchmarks.defaults.protocol import CHOOSING
from studies.comparison import rules
from studies.comparison.answers import (
    KINDS,
    LABELS,
    LEVEL,
    ROPE,
    SCORES,
    Findings,
    MetricComparison,
    in_sentence,
    names,
    title_of,
)
from studies.comparison.methods import BY_NAME

OF_KIND = {
    "dense": "**Dense features**",
    "sparse": "**Sparse features (text)**",
    "many labels": f"**More than {rules.MANY_LABELS} labels**",
}
NEAR = 0.01
# Data sets that come from one source, and methods that are the same model as another one, or nearly.
RELATED = dict.fromkeys(
    ("arts", "business", "education", "health", "recreation", "science", "yahoo_arts_full"), "yahoo"
) | dict.fromkeys(("rcv1subset1", "rcv1subset1_top944"), "reuters")
ALIKE = ("linear-svc", "libmultilabel", "brl")
# What the table of ranks shows beside the two main metrics.
OTHERS = (
    "ranking_loss", "coverage", "auc_macro", "precision_at_1", "hamming_loss_one", "subset_accuracy_one", "f1_macro_each",
)  # fmt: skip
RBRL = ("rbrl-linear", "rbrl-rbf")


def answers(findings: Findings) -> list[str]:
    """Return the sentences of the first screen: the best method for each purpose."""
    scores, labels = findings.compare(SCORES), findings.compare(LABELS)
    kinds = [of_kind(findings, one) for one in KINDS]
    lines = [overall(scores, "To rank labels"), overall(labels, "To choose labels"), *kinds, untuned(findings)]
    more = (
        quick(findings, scores),
        thresholds(findings, labels),
        probabilities(findings),
        defeats(findings, "rbrl-rbf"),
    )
    return [one for one in (*lines, *more) if one]


def overall(comparison: MetricComparison, question: str) -> str:
    """Name the best method by one metric, those that are practically equal to it, and how many it beats."""
    best, n_sets = comparison.best, len(comparison.table)
    ahead = f"**{question}**: {_title(best)} has the best average rank by {in_sentence(comparison.column)}"
    ahead += f" ({comparison.ranks[best]:.1f} of {comparison.table.shape[1]} methods, {n_sets} data sets)"
    found = comparison.against(best)
    beaten, equal = (found.p <= LEVEL).sum(), [str(name) for name in found.index[found.equivalent > 0.5]]
    ahead += (
        f" and is significantly ahead of {beaten} of the {len(found)} others; next is {_title(str(found.index[0]))}"
    )
    ahead += f" ({comparison.ranks[found.index[0]]:.1f}, median difference {found['median'].iloc[0]:+.3f})"
    return f"{ahead}. Practically equal to it (within ±{ROPE}, more probable than not): {names(equal) or 'none'}."


def of_kind(findings: Findings, kind: str) -> str:
    """Name the best methods on one kind of data, by average rank, with their values."""
    compared = findings.compare(SCORES, of_kind=kind)
    if len(compared.table) < 2:
        return ""
    labels = findings.compare(LABELS, of_kind=kind)
    first, second, third = compared.ranks.index[:3]
    mean = compared.table.mean()
    text = f"{OF_KIND[kind]} ({len(compared.table)} data sets): by average rank take {_title(first)}, then {_title(second)} "
    text += f"or {_title(third)} (average precision {mean[first]:.3f}, {mean[second]:.3f}, {mean[third]:.3f}); "
    text += f"for labels {_title(labels.best)} (micro-F1 {labels.table.mean()[labels.best]:.3f}). "
    near = mean.index[mean >= mean.max() - NEAR]
    quick = findings.seconds.loc[near, rules.TUNED].idxmin()
    took = seconds_text(findings.seconds.loc[quick, rules.TUNED])
    return text + f"The fastest within {NEAR} of the best mean is {_title(quick)} ({mean[quick]:.3f}, {took})."


def untuned(findings: Findings) -> str:
    """Name the best method without a search, and the gain of a search."""
    default = findings.compare(SCORES, rules.DEFAULT)
    gains = (findings.values(SCORES) - findings.values(SCORES, rules.DEFAULT)).mean().sort_values()
    best = default.best
    most = list(gains.index[::-1][:2])
    largest = " and ".join(f"{_title(name)} {gains[name]:+.3f}" for name in most)
    return (
        f"**No time to tune**: {_title(best)} with its defaults has the best rank ({default.ranks[best]:.1f}). "
        f"Its search adds {gains[best]:+.3f} to its average precision. "
        f"A search gains most for {largest}; the median over methods is {gains.median():+.3f}."
    )


def quick(findings: Findings, scores: MetricComparison) -> str:
    """Name the methods for which no other is both quicker and better ranked."""
    seconds = findings.seconds[rules.TUNED]
    front = findings.front(scores)
    on_front = ", ".join(
        f"{_title(name)} (rank {scores.ranks[name]:.1f}, {seconds_text(seconds[name])})" for name in front
    )
    slowest = seconds[scores.table.columns].idxmax()
    return (
        f"**Quality against time**: no method is both faster and better ranked than {on_front}. "
        f"The slowest, {_title(slowest)}, takes {seconds_text(seconds[slowest])} for rank {scores.ranks[slowest]:.1f}."
    )


def thresholds(findings: Findings, labels: MetricComparison) -> str:
    """Compare the gain of a learned threshold with that of the best method."""
    micro, macro = findings.threshold_gains("f1_micro", rules.ONE), findings.threshold_gains("f1_macro", rules.EACH)
    means = labels.table.mean().sort_values()
    spread = means.iloc[-1] - float(np.median(means))
    return (
        f"**Learn the threshold before you change the method**: one threshold gains {micro.median():+.3f} of micro-F1 "
        f"(median over methods; {_title(micro.idxmax())} {micro.max():+.3f}), one for each label {macro.median():+.3f} "
        f"of macro-F1, while the best method is {spread:.3f} of micro-F1 above the middle one."
    )


def defeats(findings: Findings, method: str) -> str:
    """List the metrics in which a method is not first, in one sentence."""
    compared = {column: findings.compare(column) for column in (SCORES, LABELS, *OTHERS)}
    other = {in_sentence(column).partition(",")[0]: one.best for column, one in compared.items() if one.best != method}
    firsts = ", ".join(f"{metric} ({_title(best)})" for metric, best in other.items()) or "no metric of the table"
    dense = findings.compare(LABELS, of_kind="dense").table.mean().sort_values(ascending=False)
    gaps = dense - dense[method]
    ahead = ", ".join(f"{_title(str(name))} {gap:+.3f}" for name, gap in gaps.items() if gap > ROPE) or "no method"
    text = f"**Where {_title(method)} is not first**: by rank in {firsts}; in labels on dense features "
    return f"{text}(micro-F1, ahead of it: {ahead}). It gives no probabilities by itself."


def studies(more: pd.DataFrame, wide: pd.DataFrame, main: Findings) -> list[str]:
    """Return the effects of more rows and of wider searches."""
    lines = []
    if len(more):
        few, many = (table.mean().sort_values(ascending=False) for table in paired(main.rows, more))
        first, now = (
            ", ".join(f"{_title(str(name))} {value:.3f}" for name, value in one[:4].items()) for one in (few, many)
        )
        where = ", ".join(more.dataset.unique())
        lines.append(
            f"**More rows**: with {rules.MORE_ROWS} training rows instead of {rules.TRAIN_ROWS} ({where}), "
            f"the first four by mean average precision are: {now}; with {rules.TRAIN_ROWS}: {first}."
        )
    if len(wide):
        narrow, wider = paired(main.rows, wide)
        n_asked = sum(CARDS[name].n_labels <= rules.MANY_LABELS for name in CARDS)
        gains = (wider - narrow).mean().sort_values(ascending=False)
        by = ", ".join(f"{_title(str(name))} {gain:+.3f} (to {wider[name].mean():.3f})" for name, gain in gains.items())
        lines.append(
            f"**Longer searches**: with seven powers of ten instead of three points ({len(wider)} of {n_asked} data sets), "
            f"mean average precision: {by}."
        )
    return lines


def paired(main: pd.DataFrame, study: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return average precision on the first split in the main run and in a study, data sets by methods that have both."""
    tables = []
    for rows in (main, study):
        own = rows[(rows.status == "ok") & (rows.variant == rules.TUNED) & (rows.split == 0)]
        tables.append(own.pivot(index="dataset", columns="method", values=SCORES))
    columns = [name for name in tables[1].dropna(axis=1).columns if name in tables[0]]
    return tables[0].loc[tables[1].index, columns], tables[1][columns]


def probabilities(findings: Findings) -> str:
    """Name the methods with the best probabilities."""
    with_any = [name for name in findings.ranked if findings.values("log_loss")[name].notna().any()]
    if not with_any:
        return ""
    loss = findings.compare("log_loss", methods=with_any)
    error = findings.compare("expected_calibration_error", methods=with_any)
    return (
        f"**Probabilities**: of the {len(with_any)} methods that give them, {_title(loss.best)} has the best log loss "
        f"({loss.table.mean()[loss.best]:.3f}), {_title(error.best)} the best calibration (error "
        f"{error.table.mean()[error.best]:.3f}); worst is {_title(loss.ranks.index[-1])} "
        f"({loss.table.mean()[loss.ranks.index[-1]]:.3f})."
    )


def losses_of(findings: Findings, method: str) -> list[str]:
    """List where a method loses and to which methods: by metric, by data set, by kind of data."""
    compared = {column: findings.compare(column) for column in (SCORES, LABELS, *OTHERS)}
    first = [in_sentence(column) for column, one in compared.items() if one.best == method]
    lines = [f"First by rank in: {', '.join(first) or 'none of the nine metrics of the table'}."]
    behind = [_behind(one, method) for one in compared.values() if one.best != method]
    lines += [f"Not first in: {'; '.join(behind)}."] if behind else []
    lines.append(_significant_losses(compared, method))
    lines += [_worst_data_sets(compared[column], method) for column in (SCORES, LABELS)]
    return lines + [
        _ahead_by_kind(findings, method, kind)
        for kind in KINDS
        if len(findings.compare(SCORES, of_kind=kind).table) > 1
    ]


def _behind(compared: MetricComparison, method: str) -> str:
    row = compared.against(method).loc[compared.best]
    place = list(compared.ranks.index).index(method) + 1
    found = f"median difference {-row['median']:+.3f}, p = {p_text(row.p)}"
    return f"{in_sentence(compared.column)} (place {place}; {_title(compared.best)} is first, {found})"


def _significant_losses(compared: dict[str, MetricComparison], method: str) -> str:
    by = []
    for column, one in compared.items():
        found = one.against(method)
        for name, row in found[(found.p <= LEVEL) & (found["median"] < 0)].iterrows():
            lost = f"on {row.losses:.0f} of {len(one.table)}, median {-row['median']:.3f}"
            by.append(f"{_title(str(name))} in {in_sentence(column)} ({lost})")
    return f"Beaten significantly by {', '.join(by) or 'no method in any of the nine'}."


def _worst_data_sets(compared: MetricComparison, method: str) -> str:
    lacks = compared.table.max(axis=1) - compared.table[method]
    best = compared.table.idxmax(axis=1)
    worst = lacks.sort_values(ascending=False, kind="stable").head(4)
    by = ", ".join(f"{name} {value:.3f} ({_title(str(best[name]))})" for name, value in worst.items() if value > 0)
    n_best = int((lacks == 0).sum())
    text = f"{title_of(compared.column)}: best on {n_best} of {len(lacks)} data sets"
    return f"{text}; the distance from the best is largest on {by}."


def _ahead_by_kind(findings: Findings, method: str, kind: str) -> str:
    parts = []
    for column in (SCORES, LABELS):
        means = findings.compare(column, of_kind=kind).table.mean().sort_values(ascending=False)
        ahead = [name for name in means.index if means[name] > means[method] + ROPE]
        by = ", ".join(f"{_title(name)} {means[name] - means[method]:+.3f}" for name in ahead[:4])
        parts.append(
            f"{in_sentence(column).partition(',')[0]} {means[method]:.3f} (ahead by more than {ROPE}: {by or 'none'})"
        )
    return f"{OF_KIND[kind].strip('*')}, means: {'; '.join(parts)}."


def sensitivity(findings: Findings) -> list[str]:
    """Name the first three methods without the data sets or methods that may favour some of them."""
    lines = []
    for column in (SCORES, LABELS):
        whole = findings.compare(column)
        unseen = whole.table[~whole.table.index.isin(CHOOSING)]
        relatives = whole.table.groupby([RELATED.get(name, name) for name in whole.table.index]).mean()
        distinct = whole.table.drop(columns=[name for name in ALIKE if name in whole.table])
        parts = {
            "all": whole.table,
            f"the {len(unseen)} data sets on which no default was chosen": unseen,
            f"Yahoo's directory as one data set, Reuters' news as one ({len(relatives)} in all)": relatives,
            f"without {names(ALIKE)}": distinct,
        }
        first = "; ".join(f"{what}: {_first_three(MetricComparison(column, table))}" for what, table in parts.items())
        lines.append(f"{title_of(column)}. First three of {first}.")
    return lines


def _first_three(comparison: MetricComparison) -> str:
    return ", ".join(f"{_title(str(name))} {rank:.1f}" for name, rank in comparison.ranks[:3].items())


def seconds_text(value: float) -> str:
    """Format seconds for a sentence.

    Examples
    --------
    >>> seconds_text(0.034), seconds_text(12.3)
    ('0.034 s', '12 s')
    """
    return f"{value:.0f} s" if value >= 9.5 else f"{value:.2g} s"


def _title(method: str) -> str:
    return BY_NAME[method].title
