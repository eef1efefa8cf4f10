"""Comparison of methods on one metric: average ranks and tests."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from rbrl.experiments import statistics
from rbrl.experiments.results import Results
from rbrl.experiments.statistics.pairwise import nemenyi_groups
from rbrl.metrics import Metric, get_metric

TEST_LEVEL = 0.05
PAIR_COLUMNS = [
    "metric", "method", "against", "ranks_apart", "wins", "ties", "losses", "median_difference", "rank_biserial", "p_holm",
]  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Ranks and tests of one metric over the data sets on which every method has a value.

    Parameters
    ----------
    metric : Metric
        Metric of the comparison.
    values : DataFrame
        Means, complete data sets x methods, rounded as in tables; see `Results.as_printed`.
    ranks : Series
        Average rank of each method; tied methods share the mean of their ranks.
    test : FriedmanResult or None
        Friedman's test; None with fewer than two methods or two complete data sets.
    distance : float or None
        Nemenyi's critical distance; None without a test.
    groups : list of tuple of str
        Groups of methods that do not differ significantly, the best first. There are none if the
        test cannot separate any two methods; see `decides_pairs`.
    left_out : tuple of str
        Data sets on which some method has no value.
    without : tuple of str
        Methods without any value.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, compare
    >>> means = {"br": [0.3, 0.2, 0.4], "clr": [0.2, 0.3, 0.3]}
    >>> summary = pd.DataFrame([(f"d{i}", "ranking_loss", method, mean, 0.0) for method, line in means.items()
    ...                         for i, mean in enumerate(line)], columns=["dataset", "metric", "method", "mean", "std"])
    >>> comparison = compare(Results.from_summary(summary), "ranking_loss")
    >>> comparison.n_datasets, comparison.best, comparison.significant
    (3, ['clr'], False)
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
        """Number of complete data sets."""
        return len(self.values) if self.values.shape[1] else 0

    @property
    def best(self) -> list[str]:
        """Methods with the lowest average rank."""
        return lowest(self.ranks)

    @property
    def tested(self) -> bool:
        """True if there is a test with enough data sets to find a difference."""
        return self.test is not None and self.test.decidable

    @property
    def significant(self) -> bool:
        """True if Friedman's test finds a difference."""
        return self.test is not None and self.test.significant

    @property
    def decides_pairs(self) -> bool:
        """True if Nemenyi's test can separate two methods: ranks can differ by the critical distance."""
        return self.distance is not None and self.distance <= len(self.ranks) - 1

    def beaten(self, method: str) -> list[str]:
        """Return the methods that are significantly worse than `method` by Friedman's and Nemenyi's tests.

        Parameters
        ----------
        method : str
            Name of a method.

        Returns
        -------
        list of str
        """
        if not self.significant or self.distance is None or not self.decides_pairs:
            return []
        return [name for name in self.ranks.index if self.ranks[name] - self.ranks[method] >= self.distance]

    def pairs(self) -> pd.DataFrame:
        """Return effect sizes and Wilcoxon's test of every pair of methods.

        Returns
        -------
        DataFrame
            One row per pair, the method with the lower average rank first. The columns are metric,
            method, against, ranks_apart; wins, ties and losses of `method` over the data sets;
            median_difference, positive if `method` is better; rank_biserial, from 1 (better on
            every data set) to -1; and p_holm, Wilcoxon's p-value with Holm's correction for all
            pairs. The frame is empty without a test.
        """
        if self.test is None:
            return pd.DataFrame(columns=PAIR_COLUMNS)
        upwards = self.metric.greater_is_better
        medians = statistics.median_differences(self.values, upwards)
        effects = statistics.rank_biserial(self.values, upwards)
        p_values = statistics.wilcoxon_holm(self.values)
        order = np.argsort(self.ranks.to_numpy(), kind="stable")
        rows = []
        for place, i in enumerate(order):
            for j in order[place + 1 :]:
                gains = (self.values.iloc[:, i] - self.values.iloc[:, j]) * (1 if upwards else -1)
                counts = [int((gains > 0).sum()), int((gains == 0).sum()), int((gains < 0).sum())]
                names = (self.ranks.index[i], self.ranks.index[j])
                apart = self.ranks.iloc[j] - self.ranks.iloc[i]
                rows.append((self.metric.name, *names, apart, *counts, medians[i, j], effects[i, j], p_values[i, j]))
        return pd.DataFrame(rows, columns=PAIR_COLUMNS)


def compare(results: Results, metric: str | Metric, alpha: float = TEST_LEVEL) -> Comparison:
    """Rank the methods on one metric and test their differences.

    Parameters
    ----------
    results : Results
        Results of a run.
    metric : str or Metric
        Metric to compare.
    alpha : float, default=0.05
        Level of the tests.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, compare
    >>> means = {"br": [0.3, 0.2, 0.4, 0.3], "clr": [0.2, 0.3, 0.3, 0.2], "rbrl": [0.1, 0.1, 0.2, 0.1]}
    >>> summary = pd.DataFrame([(f"d{i}", "ranking_loss", method, mean, 0.0) for method, line in means.items()
    ...                         for i, mean in enumerate(line)], columns=["dataset", "metric", "method", "mean", "std"])
    >>> comparison = compare(Results.from_summary(summary), "ranking_loss")
    >>> comparison.ranks.to_dict(), comparison.beaten("rbrl")
    ({'br': 2.75, 'clr': 2.25, 'rbrl': 1.0}, ['br'])
    >>> pairs = comparison.pairs()
    >>> pairs[pairs.method == "rbrl"][["against", "wins", "losses"]].values.tolist()
    [['clr', 4, 0], ['br', 4, 0]]
    """
    metric = get_metric(metric)
    values, left_out, without = complete_part(results, metric)
    ranks = _average_ranks(values, metric)
    if min(values.shape) < 2:
        return Comparison(metric, values, ranks, None, None, [], left_out, without)
    distance = statistics.nemenyi_distance(values.shape[1], len(values), alpha)
    groups = [tuple(values.columns[i] for i in group) for group in nemenyi_groups(ranks, len(values), alpha)]
    test = statistics.friedman(values, metric.greater_is_better, alpha)
    return Comparison(metric, values, ranks, test, distance, groups, left_out, without)


class CompletePart(NamedTuple):
    """Part of the results on which methods can be ranked; see `Comparison` for the fields."""

    values: pd.DataFrame
    left_out: tuple[str, ...]
    without: tuple[str, ...]


def complete_part(results: Results, metric: Metric) -> CompletePart:
    """Return the data sets on which every method has a value, of the methods that have any value."""
    means = results.to_compare(metric)
    present = means.loc[:, means.notna().any()]
    values = present.dropna()
    left_out = tuple(name for name in means.index if name not in values.index)
    return CompletePart(values, left_out, tuple(name for name in means if name not in present))


def _average_ranks(values: pd.DataFrame, metric: Metric, ties: str = "average") -> pd.Series:
    if values.empty or values.shape[1] < 2:
        return pd.Series(1.0 if len(values) else np.nan, index=values.columns, dtype=float)
    return pd.Series(statistics.average_ranks(values, metric.greater_is_better, ties), index=values.columns)


def lowest(ranks: pd.Series) -> list[str]:
    """Return the names with the lowest rank; ranks that are equal up to rounding are equal."""
    return [name for name in ranks.index if np.isclose(ranks[name], ranks.min())]


def rank_table(results: Results, ties: str = "average") -> pd.DataFrame:
    """Return average ranks, metrics x methods, with the mean over metrics as the row "Overall".

    If some method has no probabilities, the mean is taken without the metrics of probabilities.

    Parameters
    ----------
    results : Results
        Results of a run.
    ties : {"average", "minimum"}
        Rank of tied methods: the mean of their ranks, or the smallest, as in the paper's Table 4.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, rank_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> rank_table(Results.from_rows(rows)).loc["Overall"].to_dict()
    {'brl': 2.0, 'rbrl': 1.0}
    """
    rows = {m.name: _average_ranks(complete_part(results, m).values, m, ties) for m in results.metrics}
    table = pd.DataFrame(rows).T.reindex(columns=list(results.methods))
    incomplete = [metric.name for metric in results.metrics if results.without_probabilities(metric)]
    table.loc["Overall"] = table.drop(index=incomplete).mean(skipna=False)
    return table
