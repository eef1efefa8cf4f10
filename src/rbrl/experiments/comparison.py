"""Comparison of methods on one metric: average ranks, tests, and a verdict in sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from rbrl.experiments import statistics
from rbrl.experiments.ranks import FriedmanResult
from rbrl.experiments.results import Results
from rbrl.experiments.statistics import smallest_wilcoxon_p
from rbrl.experiments.tables import best_of, join, p_text, spread
from rbrl.metrics import Metric, get_metric

TEST_LEVEL = 0.05
ONE_DATASET_NOTE = "A test needs several data sets: splits of one data set share rows, and say little about others."
# A verdict on fewer data sets says that they are few.
MIN_DATASETS_FOR_VERDICT = 5
DISTRIBUTION_TEXTS = {"exact": " (exact)", "permutation": " (by random orders)", "F": ""}
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
    test: FriedmanResult | None
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
        return find_lowest(self.ranks)

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
        """Return the methods that are significantly worse than `method` by Friedman's and Nemenyi's tests."""
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
        for i, j in combinations(order, 2):
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
    values, left_out, without = select_complete_part(results, metric)
    ranks = _average_ranks(values, metric)
    if min(values.shape) < 2:
        return Comparison(metric, values, ranks, None, None, [], left_out, without)
    distance = statistics.nemenyi_distance(values.shape[1], len(values), alpha)
    found = statistics.nemenyi_groups(ranks, len(values), alpha)
    groups = [tuple(values.columns[list(group)]) for group in found]
    test = statistics.friedman(values, metric.greater_is_better, alpha)
    return Comparison(metric, values, ranks, test, distance, groups, left_out, without)


class CompletePart(NamedTuple):
    """Part of the results on which methods can be ranked; see `Comparison` for the fields."""

    values: pd.DataFrame
    left_out: tuple[str, ...]
    without: tuple[str, ...]


def select_complete_part(results: Results, metric: Metric) -> CompletePart:
    """Return the data sets on which every method has a value, of the methods that have any value."""
    means = results.to_compare(metric)
    present = means.loc[:, means.notna().any()]
    values = present.dropna()
    left_out = tuple(name for name in means.index if name not in values.index)
    return CompletePart(values, left_out, tuple(name for name in means if name not in present))


def _average_ranks(values: pd.DataFrame, metric: Metric, ties: str = "average") -> pd.Series:
    """Return the average rank of each method; without data sets, NaN; for a single method, 1."""
    if values.empty or values.shape[1] < 2:
        return pd.Series(1.0 if len(values) else np.nan, index=values.columns, dtype=float)
    return pd.Series(statistics.average_ranks(values, metric.greater_is_better, ties), index=values.columns)


def find_lowest(ranks: pd.Series) -> list[str]:
    """Return the names with the lowest rank; ranks that are equal up to rounding are equal."""
    return [name for name in ranks.index if np.isclose(ranks[name], ranks.min())]


def rank_table(results: Results, ties: str = "average") -> pd.DataFrame:
    """Return average ranks, metrics x methods, with the mean over metrics as the row "Overall".

    Tied methods get the mean of their ranks, or the smallest if `ties` is "minimum", as in Table 4.
    If some method has no probabilities, the mean leaves out the metrics of probabilities.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> rank_table(Results.from_rows(rows)).loc["Overall"].to_dict()
    {'brl': 2.0, 'rbrl': 1.0}
    """
    rows = {m.name: _average_ranks(select_complete_part(results, m).values, m, ties) for m in results.metrics}
    table = pd.DataFrame(rows).T.reindex(columns=list(results.methods))
    incomplete = [metric.name for metric in results.metrics if results.methods_without_probabilities(metric)]
    table.loc["Overall"] = table.drop(index=incomplete).mean(skipna=False)
    return table


@dataclass(frozen=True)
class Verdict:
    """Verdict on one metric.

    Parameters
    ----------
    metric : Metric
        Metric of the verdict.
    level : {"significant", "chance", "untested"}
        Strength of the verdict.
    sentence : str
        Verdict in one sentence or two.
    evidence : str
        Statistics behind the sentence, or the reason why there are none.
    """

    metric: Metric
    level: str
    sentence: str
    evidence: str


def verdict(comparison: Comparison, results: Results) -> Verdict:
    """Say which method leads on one metric, and if its lead is significant.

    Parameters
    ----------
    comparison : Comparison
        Comparison of one metric, from `compare`.
    results : Results
        Results that were compared.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, compare, verdict
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> verdict(compare(results, "hamming_loss"), results).sentence
    'On sea, rbrl is best with 0.100, before brl with 0.200.'
    """
    metric = comparison.metric
    n_datasets = comparison.n_datasets
    if n_datasets == 0:
        sentence = "There is no data set on which every method has a value, so nothing can be ranked."
        return Verdict(metric, "untested", sentence, "")
    if len(comparison.ranks) < 2:
        return Verdict(metric, "untested", f"Only {comparison.ranks.index[0]} has values: nothing to compare.", "")
    if comparison.test is None:
        return Verdict(metric, "untested", _describe_one_dataset(comparison, results), ONE_DATASET_NOTE)
    if not comparison.tested:
        reason = f"{n_datasets} data sets are too few to test {len(comparison.ranks)} methods: "
        reason += "no result could be significant."
        return Verdict(metric, "untested", f"{_describe_lead(comparison)}.", reason)
    level = "significant" if comparison.beaten(comparison.best[0]) else "chance"
    return Verdict(metric, level, _describe_test(comparison), " ".join(_explain_test(comparison, comparison.test)))


def headline(comparisons: Sequence[Comparison]) -> str:
    """Return sentences on which methods lead on which metrics, given one comparison per metric."""
    tested = [comparison for comparison in comparisons if comparison.tested]
    if not tested:
        return "There is no test, so the sentences below only describe these results and name no winner."
    leads: dict[str, list[str]] = {}
    by_chance: list[str] = []
    for comparison in tested:
        best = comparison.best
        metrics = leads.setdefault(join(best), []) if comparison.beaten(best[0]) else by_chance
        metrics.append(_title_in_sentence(comparison.metric))
    sentences = [_describe_leads(leads, len(comparisons)) if leads else _describe_no_lead(tested)]
    if leads and by_chance:
        sentences.append(f"On {join(by_chance)} the lead may be chance.")
    untested = [_title_in_sentence(comparison.metric) for comparison in comparisons if not comparison.tested]
    return " ".join(sentences + ([f"Not tested: {join(untested)}."] if untested else []))


def _describe_no_lead(tested: Sequence[Comparison]) -> str:
    """Return the sentence for tested metrics of which none has a significant leader."""
    differ = [_title_in_sentence(comparison.metric) for comparison in tested if comparison.significant]
    if not differ:
        return "No lead is larger than chance could explain."
    where = _join_metrics(differ, len(tested))
    return f"The methods differ on {where}, but the lead of the first over any other may be chance."


def _describe_leads(leads: dict[str, list[str]], n_metrics: int) -> str:
    """Return a sentence on the metrics of each leader, most metrics first; there is a leader."""
    (leader, metrics), *more = sorted(leads.items(), key=lambda item: -len(item[1]))
    verb = "rank" if " and " in leader else "ranks"
    where = _join_metrics(metrics, n_metrics)
    text = f"{leader} {verb} first on {where}, significantly before at least one other method"
    return "; ".join([text, *(f"{other} on {join(metrics)}" for other, metrics in more)]) + "."


def _join_metrics(metrics: list[str], n_metrics: int) -> str:
    """Return the titles of metrics as a list in a sentence, or "all n metrics"."""
    return f"all {n_metrics} metrics" if len(metrics) == n_metrics > 1 else join(metrics)


def _title_in_sentence(metric: Metric) -> str:
    """Return a metric's title in lower case; Hamming is a name, and F1 and AUC stay as they are."""
    title = metric.title
    is_word = title[1:2].islower() and not title.startswith("Hamming")
    return title[:1].lower() + title[1:] if is_word else title


def _describe_one_dataset(comparison: Comparison, results: Results) -> str:
    """Return the best and the second best methods on the only data set."""
    metric = comparison.metric
    dataset = comparison.values.index[0]
    digits = results.decimals(metric, dataset)
    values = comparison.values.loc[dataset].sort_values(ascending=not metric.greater_is_better, kind="stable")
    deviations = results.stds(metric).loc[dataset]

    def mean_text(names: list[str]) -> str:
        """Return the common mean of methods; a single method has its deviation, too."""
        deviation = deviations[names[0]] if len(names) == 1 else np.nan
        return spread(values[names[0]], deviation, digits).text

    best = [name for name in values.index if name in best_of(values, metric.greater_is_better, digits)]
    over = f" over {results.n_splits} splits" if results.n_splits > 1 else ""
    sentence = f"On {dataset}, {join(best)} {'is' if len(best) == 1 else 'are'} best with {mean_text(best)}{over}"
    others = values.index[len(best) :]
    if len(others):
        second = [name for name in others if values[name] == values[others[0]]]
        sentence += f", before {join(second)} with {mean_text(second)}"
    return f"{sentence}."


def _describe_lead(comparison: Comparison) -> str:
    """Return the best methods with their rank, as a sentence without its point."""
    best = comparison.best
    verb = "ranks" if len(best) == 1 else "rank"
    rank = comparison.ranks.min()
    return f"{join(best)} {verb} first, {rank:.2f} on average over {comparison.n_datasets} data sets"


def _describe_test(comparison: Comparison) -> str:
    """Return the sentence of a verdict on a metric that was tested."""
    lead = _describe_lead(comparison)
    if not comparison.significant:
        return f"{lead}, but the methods do not differ significantly."
    if not comparison.decides_pairs:
        return f"{lead}. The methods differ, but {comparison.n_datasets} data sets are too few to say which."
    best = comparison.best
    beaten = comparison.beaten(best[0])
    others = [name for name in comparison.ranks.sort_values(kind="stable").index if name not in [*best, *beaten]]
    if not beaten:
        return f"{lead}. The methods differ, but no single other method is significantly behind."
    if not others:
        return f"{lead}, significantly before every other method."
    return f"{lead}, significantly before {join(beaten)}. The lead over {join(others)} may be chance."


def _explain_test(comparison: Comparison, test: FriedmanResult) -> Iterator[str]:
    """Yield sentences on the tests and on methods and data sets that were left out."""
    f, critical = (f"{value:.2f}".replace("inf", "∞") for value in (test.f, test.critical_value))
    p_value = f"p = {p_text(test.p_value)}".replace("= <", "< ") + DISTRIBUTION_TEXTS[test.distribution]
    too_far = "" if comparison.decides_pairs else ", larger than any possible difference of ranks"
    nemenyi = f"Nemenyi's critical distance {comparison.distance:.2f}{too_far}"
    yield f"Friedman F_F = {f}, critical value {critical}, {p_value}; {nemenyi}."
    if smallest_wilcoxon_p(comparison.n_datasets, len(comparison.ranks)) <= TEST_LEVEL:
        pairs = comparison.pairs()
        first = comparison.best[0]
        worse = pairs[(pairs.method == first) & (pairs.rank_biserial > 0) & (pairs.p_holm <= TEST_LEVEL)].against
        yield f"Wilcoxon's test with Holm's correction puts {first} before {join(worse) if len(worse) else 'none'}."
    if comparison.n_datasets < MIN_DATASETS_FOR_VERDICT:
        yield f"{comparison.n_datasets} data sets are few: such a test finds only large differences."
    if comparison.left_out:
        yield f"Left out: {join(comparison.left_out)}, where a method has no value."
    if comparison.without:
        yield f"Left out: {join(comparison.without)}, which has no value on any data set."
