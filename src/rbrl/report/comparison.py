"""`compare`: who is better than whom on one metric, and is it more than chance?"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from rbrl import statistics
from rbrl.metrics import Metric, get_metric
from rbrl.report.results import Results

ALPHA = 0.05
ONE_DATA_SET = "One data set: its splits share rows, and say little about other data."
PAIR_COLUMNS = [
    "metric", "method", "against", "ranks_apart", "wins", "ties", "losses", "median_difference", "rank_biserial", "p_holm",
]  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Ranks and tests of one metric over the data sets on which every method has a value.

    Parameters
    ----------
    metric : Metric
    values : DataFrame
        Means, complete data sets x methods; to the digits that tables show, see `Results.as_printed`.
    ranks : Series
        Average rank by method; tied methods share the mean of their ranks.
    test : FriedmanResult or None
        None where fewer than two data sets are complete, or there is one method only.
    distance : float or None
        Nemenyi's critical distance; None where there is no test.
    groups : list of tuple of str
        Methods that do not differ significantly, best first; none where the test decides nothing, see `decides_pairs`.
    left_out : tuple of str
        Data sets on which a method has no value.
    without : tuple of str
        Methods that have no value anywhere.
    """

    metric: Metric
    values: pd.DataFrame
    ranks: pd.Series
    test: statistics.FriedmanResult | None
    distance: float | None
    groups: list[tuple[str, ...]]
    left_out: tuple[str, ...]
    without: tuple[str, ...]

    @property
    def n_datasets(self) -> int:
        """Data sets that count."""
        return len(self.values) if self.values.shape[1] else 0

    @property
    def best(self) -> list[str]:
        """Methods with the lowest average rank."""
        return lowest(self.ranks)

    @property
    def tested(self) -> bool:
        """Whether there is a test, and the data sets are enough for it to find anything."""
        return self.test is not None and self.test.decidable

    @property
    def significant(self) -> bool:
        """Whether Friedman's test finds a difference at all."""
        return self.test is not None and self.test.significant

    @property
    def decides_pairs(self) -> bool:
        """Whether Nemenyi's test can tell two methods apart: ranks must be able to differ by the critical distance."""
        return self.distance is not None and self.distance <= len(self.ranks) - 1

    def beaten(self, method: str) -> list[str]:
        """Methods that `method` is significantly better than, by Friedman's and then Nemenyi's test."""
        if not self.significant or self.distance is None or not self.decides_pairs:
            return []
        return [name for name in self.ranks.index if self.ranks[name] - self.ranks[method] >= self.distance]

    def pairs(self) -> pd.DataFrame:
        """Every pair of methods, the one with the lower average rank first: effect sizes and Wilcoxon's test.

        Returns
        -------
        DataFrame
            metric, method, against; ranks_apart; wins, ties and losses of `method` over the data sets; its
            median_difference, positive where it is better; rank_biserial, from 1 (better everywhere) to -1; p_holm,
            Wilcoxon's p-value with Holm's correction for all pairs. Empty where there is no test.
        """
        if self.test is None:
            return pd.DataFrame(columns=PAIR_COLUMNS)
        upwards = self.metric.greater_is_better
        medians = statistics.median_differences(self.values, upwards)
        sizes, p_values = statistics.rank_biserial(self.values, upwards), statistics.wilcoxon_holm(self.values)
        order = np.argsort(self.ranks.to_numpy(), kind="stable")
        rows = []
        for place, i in enumerate(order):
            for j in order[place + 1 :]:
                gains = (self.values.iloc[:, i] - self.values.iloc[:, j]) * (1 if upwards else -1)
                counts = [int((gains > 0).sum()), int((gains == 0).sum()), int((gains < 0).sum())]
                names, apart = (self.ranks.index[i], self.ranks.index[j]), self.ranks.iloc[j] - self.ranks.iloc[i]
                figures = [medians[i, j], sizes[i, j], p_values[i, j]]
                rows.append((self.metric.name, *names, apart, *counts, *figures))
        return pd.DataFrame(rows, columns=PAIR_COLUMNS)


def compare(results: Results, metric: str | Metric, alpha: float = ALPHA) -> Comparison:
    """Rank the methods on one metric and test the differences.

    Parameters
    ----------
    results : Results
    metric : str or Metric
    alpha : float, default=0.05
        Level of the tests.

    Examples
    --------
    >>> means = {"br": [0.3, 0.2, 0.4, 0.3], "clr": [0.2, 0.3, 0.3, 0.2], "rbrl": [0.1, 0.1, 0.2, 0.1]}
    >>> summary = pd.DataFrame([(f"d{i}", "ranking_loss", method, mean, 0.0) for method, line in means.items()
    ...                         for i, mean in enumerate(line)], columns=["dataset", "metric", "method", "mean", "std"])
    >>> found = compare(Results.from_summary(summary), "ranking_loss")
    >>> found.ranks.to_dict(), found.beaten("rbrl")
    ({'br': 2.75, 'clr': 2.25, 'rbrl': 1.0}, ['br'])
    """
    metric = get_metric(metric)
    values, left_out, without = complete_part(results, metric)
    ranks = _ranks(values, metric)
    if min(values.shape) < 2:
        return Comparison(metric, values, ranks, None, None, [], left_out, without)
    distance = statistics.nemenyi_distance(values.shape[1], len(values), alpha)
    groups = statistics.nemenyi_groups(ranks, len(values), alpha)
    together = [tuple(values.columns[i] for i in group) for group in groups]
    test = statistics.friedman(values, metric.greater_is_better, alpha)
    return Comparison(metric, values, ranks, test, distance, together, left_out, without)


class CompletePart(NamedTuple):
    """What methods can be ranked on; see `Comparison` for the names."""

    values: pd.DataFrame
    left_out: tuple[str, ...]
    without: tuple[str, ...]


def complete_part(results: Results, metric: Metric) -> CompletePart:
    """The data sets on which every method has a value, of the methods that have a value anywhere."""
    means = results.to_compare(metric)
    present = means.loc[:, means.notna().any()]
    values = present.dropna()
    left_out = tuple(name for name in means.index if name not in values.index)
    return CompletePart(values, left_out, tuple(name for name in means if name not in present))


def _ranks(values: pd.DataFrame, metric: Metric, ties: str = "average") -> pd.Series:
    if values.empty or values.shape[1] < 2:
        return pd.Series(1.0 if len(values) else np.nan, index=values.columns, dtype=float)
    return pd.Series(statistics.average_ranks(values, metric.greater_is_better, ties), index=values.columns)


def lowest(ranks: pd.Series) -> list[str]:
    """Names of the lowest ranks; what differs by rounding only is equal."""
    return [name for name in ranks.index if np.isclose(ranks[name], ranks.min())]


def rank_table(results: Results, ties: str = "average") -> pd.DataFrame:
    """Average ranks, metrics x methods, with the mean over metrics as the row "Overall".

    Parameters
    ----------
    results : Results
    ties : {"average", "minimum"}
        What tied methods share; the paper's Table 4 has the minimum.
    """
    rows = {metric.name: _ranks(complete_part(results, metric).values, metric, ties) for metric in results.metrics}
    table = pd.DataFrame(rows).T.reindex(columns=list(results.methods))
    table.loc["Overall"] = table.mean(skipna=False)
    return table
