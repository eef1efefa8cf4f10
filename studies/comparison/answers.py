"""Results of the comparison by data set: values, ranks, tests, seconds and failures."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from rbrl.experiments.statistics import (
    average_ranks,
    bayesian_signed_rank,
    median_differences,
    rank_biserial,
    wilcoxon_holm,
)
from rbrl.metrics import get_metric
from studies.comparison import rules
from studies.comparison.methods import BY_NAME, METHODS
from studies.comparison.tasks import kind

ROPE = 0.005
LEVEL = 0.05
# A method without a value on more than this share of the data sets is left out of ranks.
MOST_MISSING = 0.2
SCORES, LABELS = "average_precision", rules.column("f1_micro", rules.ONE)
KINDS = ("dense", "sparse", "many labels")
KIND_WORDS = {
    "dense": "Dense features",
    "sparse": "Sparse features (text)",
    "many labels": f"More than {rules.MANY_LABELS} labels",
}


def is_better_larger(column: str) -> bool:
    """The direction of a column of the rows."""
    return get_metric(_metric_of(column)).greater_is_better


def _metric_of(column: str) -> str:
    for rule in (rules.ONE, rules.EACH):
        column = column.removesuffix(f"_{rule}")
    return column


def title_of(column: str) -> str:
    """A column of the rows in words.

    Examples
    --------
    >>> title_of("f1_micro_one"), title_of("ranking_loss")
    ('F1-micro, one threshold', 'Ranking loss')
    """
    rule = next((rule for rule in (rules.ONE, rules.EACH) if column.endswith(f"_{rule}")), rules.OWN)
    words = {rules.OWN: "", rules.ONE: ", one threshold", rules.EACH: ", a threshold per label"}
    return get_metric(_metric_of(column)).title + words[rule]


def in_sentence(column: str) -> str:
    """A column of the rows within a sentence.

    Examples
    --------
    >>> in_sentence("ranking_loss"), in_sentence("f1_micro_one")
    ('ranking loss', 'F1-micro, one threshold')
    """
    title = title_of(column)
    return title if title[1].isupper() or title[1].isdigit() else title[0].lower() + title[1:]


@dataclass(frozen=True)
class MetricComparison:
    """One metric over the data sets on which all ranked methods have a value.

    Parameters
    ----------
    column : str
        Column of the rows.
    table : DataFrame
        Data sets by methods.
    """

    column: str
    table: pd.DataFrame

    @property
    def _greater(self) -> bool:
        return is_better_larger(self.column)

    @cached_property
    def _answers(self) -> dict[str, pd.DataFrame]:
        """Tables of the methods that `against` was asked about."""
        return {}

    @cached_property
    def ranks(self) -> pd.Series:
        """Average rank of each method, the best first."""
        found = average_ranks(self.table.to_numpy(), self._greater)
        return pd.Series(found, self.table.columns).sort_values(kind="stable")

    @property
    def best(self) -> str:
        """The method with the best average rank."""
        return str(self.ranks.index[0])

    @cached_property
    def p_values(self) -> pd.DataFrame:
        """Wilcoxon's test of each pair, corrected by Holm over all pairs."""
        return self._square(wilcoxon_holm(self.table.to_numpy()))

    @cached_property
    def medians(self) -> pd.DataFrame:
        """Median difference of each pair, positive where the row's method is better."""
        return self._square(median_differences(self.table.to_numpy(), self._greater))

    @cached_property
    def effects(self) -> pd.DataFrame:
        """Matched-pairs rank-biserial correlation of each pair, positive where the row's method is better."""
        return self._square(rank_biserial(self.table.to_numpy(), self._greater))

    def against(self, method: str) -> pd.DataFrame:
        """A method beside each other one: wins, median difference, effect size, p-value, and the Bayesian answers."""
        if method not in self._answers:
            self._answers[method] = self._compare_with_others(method)
        return self._answers[method]

    def _compare_with_others(self, method: str) -> pd.DataFrame:
        control = list(self.table.columns).index(method)
        answers = bayesian_signed_rank(self.table.to_numpy(), self._greater, ROPE, control=control)
        sign = 1.0 if self._greater else -1.0
        differences = sign * self.table.rsub(self.table[method], axis=0)
        frame = pd.DataFrame(
            {
                "wins": (differences > 0).sum(),
                "losses": (differences < 0).sum(),
                "median": self.medians.loc[method],
                "effect": self.effects.loc[method],
                "p": self.p_values.loc[method],
                "better": answers.better,
                "equivalent": answers.equivalent,
                "worse": answers.worse,
            },
            index=self.table.columns,
        )
        return frame.drop(index=method).loc[[name for name in self.ranks.index if name != method]]

    def _square(self, values: Any) -> pd.DataFrame:
        return pd.DataFrame(values, self.table.columns, self.table.columns)


class Findings:
    """Results that the page shows, computed from the rows.

    Parameters
    ----------
    rows : DataFrame
        Rows as `studies.comparison.rows.read` returns them.
    """

    def __init__(self, rows: pd.DataFrame) -> None:
        self.rows = rows
        self.complete = self._complete(rows)
        keys = pd.MultiIndex.from_frame(rows[["dataset", "split"]])
        self.used = rows[keys.isin(self.complete)]
        self.ok = self.used[self.used.status == "ok"]
        order = rules.cost_order()
        self.datasets = sorted({name for name, _ in self.complete}, key=order.index)
        found = self.ok[self.ok.variant == rules.TUNED].groupby("method").dataset.nunique()
        enough = (1 - MOST_MISSING) * len(self.datasets)
        self.ranked = [method.name for method in METHODS if found.get(method.name, 0) >= enough]
        self._compared: dict[tuple[object, ...], MetricComparison] = {}
        self.apart = [method.name for method in METHODS if method.name not in self.ranked]

    @staticmethod
    def _complete(rows: pd.DataFrame) -> list[tuple[str, int]]:
        """Return the pairs (data set, split) on which all methods but the slow ones were tried."""
        wanted = {method.name for method in METHODS if not method.is_slow}
        groups = rows.groupby(["dataset", "split"]).method.agg(set)
        return [place for place, found in groups.items() if wanted <= found]

    @cached_property
    def splits(self) -> pd.Series:
        """Number of splits of each data set."""
        return pd.Series([name for name, _ in self.complete]).value_counts().reindex(self.datasets)

    def values(self, column: str, variant: str = rules.TUNED, methods: Sequence[str] | None = None) -> pd.DataFrame:
        """Return means over splits, data sets by methods; NaN where there is none."""
        found = self.ok[self.ok.variant == variant].pivot_table(column, "dataset", "method", aggfunc="mean")
        return found.reindex(index=self.datasets, columns=list(methods or self.ranked))

    def compare(
        self, column: str, variant: str = rules.TUNED, of_kind: str | None = None, methods: Sequence[str] | None = None
    ) -> MetricComparison:
        """Compare methods by a metric on the data sets, of one kind or of all, on which all have a value."""
        asked = column, variant, of_kind, None if methods is None else tuple(methods)
        if asked not in self._compared:
            table = self.values(column, variant, methods)
            if of_kind is not None:
                table = table[[kind(name) == of_kind for name in table.index]]
            self._compared[asked] = MetricComparison(column, table.dropna())
        return self._compared[asked]

    @cached_property
    def seconds(self) -> pd.DataFrame:
        """Seconds of search and fit, as it comes and tuned (geometric means); of predicting, and megabytes (medians)."""
        frame = pd.DataFrame({variant: self.mean_seconds(variant) for variant in rules.VARIANTS})
        tuned = self.ok[self.ok.variant == rules.TUNED].groupby("method")
        return frame.assign(predict=tuned.predict_seconds.median(), megabytes=tuned.megabytes.median())

    def mean_seconds(self, variant: str) -> pd.Series:
        """Return processor seconds of search and fit by method, as the geometric mean over the data sets."""
        found = self.ok[self.ok.variant == variant]
        took = (found.search_seconds + found.fit_seconds).groupby([found.method, found.dataset]).mean()
        return np.exp(np.log(took.clip(lower=1e-3)).groupby("method").mean())

    @cached_property
    def hours(self) -> pd.DataFrame:
        """Cells, failures and processor minutes of each method; a cell that was stopped counts with the limit."""
        rows = self.rows[self.rows.variant == rules.TUNED]
        default = self.rows[self.rows.variant == rules.DEFAULT].groupby("method").fit_seconds.sum()
        took = (rows.search_seconds + rows.fit_seconds.where(rows.params != "{}", 0.0)).groupby(rows.method).sum()
        predicted = self.rows.groupby("method").predict_seconds.sum()
        frame = pd.DataFrame({"cells": rows.groupby("method").size()})
        frame["failed"] = (rows.status != "ok").groupby(rows.method).sum()
        ended = (
            rows.reason.str.startswith("over budget").groupby(rows.method).sum()
            * rules.BUDGET_SECONDS
            * rules.HARD_LIMIT
        )
        frame["minutes"] = (took + default + predicted + ended) / 60
        return frame.reindex([method.name for method in METHODS if method.name in frame.index])

    @cached_property
    def failures(self) -> pd.DataFrame:
        """Cells that failed, with their reasons."""
        found = self.rows[(self.rows.status != "ok") & (self.rows.variant == rules.TUNED)]
        return found[["dataset", "split", "method", "reason"]]

    def not_run(self) -> dict[str, int]:
        """Count the cells without rows for each slow method, data set with many labels, and split."""
        known = set(zip(self.rows.dataset, self.rows.split, self.rows.method))
        missing: Counter[str] = Counter()
        for method, name, split in itertools.product(METHODS, rules.cost_order(), range(rules.SPLITS)):
            many = kind(name) == "many labels"
            what = method.title if method.is_slow else name if many else f"split {split + 1} of the other data sets"
            missing[what] += (name, split, method.name) not in known
        return {what: n for what, n in missing.most_common() if n}

    def front(self, comparison: MetricComparison) -> list[str]:
        """Return the methods for which no other is both quicker and better ranked, the quickest first."""
        time = self.seconds[rules.TUNED].reindex(comparison.table.columns)
        best, found = np.inf, []
        for name in time.sort_values(kind="stable").index:
            if comparison.ranks[name] < best:
                best = comparison.ranks[name]
                found.append(str(name))
        return found

    def threshold_gains(self, column: str, rule: str) -> pd.Series:
        """Return the gain of a learned threshold over the method's own rule, by method: the median over data sets."""
        gain = self.values(rules.column(column, rule)) - self.values(column)
        return gain.median()


def names(methods: Sequence[str], last: str = "and") -> str:
    """Join the titles of methods to a list in a sentence.

    Examples
    --------
    >>> names(["br", "logistic", "cpnl"])
    'BR (linear), Logistic and CPNL'
    """
    titles = [BY_NAME[name].title for name in methods]
    return f" {last} ".join([", ".join(titles[:-1]), titles[-1]]) if len(titles) > 1 else "".join(titles)
