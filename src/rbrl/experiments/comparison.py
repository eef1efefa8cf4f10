"""`compare`: who is better than whom on one metric, and is it more than chance?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from rbrl.experiments import statistics
from rbrl.experiments.cells import best_of, join, p_text, spread
from rbrl.experiments.results import Results
from rbrl.experiments.statistics.pairwise import nemenyi_groups, smallest_wilcoxon_p
from rbrl.metrics import Metric, get_metric

ALPHA = 0.05
ONE_DATA_SET = "One data set: its splits share rows, and say little about other data."
FEW_DATASETS = 5
P_FROM = {"exact": " (exact)", "permutation": " (by random orders)", "F": ""}
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

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, compare
    >>> means = {"br": [0.3, 0.2, 0.4], "clr": [0.2, 0.3, 0.3]}
    >>> summary = pd.DataFrame([(f"d{i}", "ranking_loss", method, mean, 0.0) for method, line in means.items()
    ...                         for i, mean in enumerate(line)], columns=["dataset", "metric", "method", "mean", "std"])
    >>> found = compare(Results.from_summary(summary), "ranking_loss")
    >>> found.n_datasets, found.best, found.significant
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
        """Methods that `method` is significantly better than, by Friedman's and then Nemenyi's test.

        Parameters
        ----------
        method : str

        Returns
        -------
        list of str

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl.experiments import Results, compare
        >>> means = {"br": [0.3, 0.2, 0.4, 0.3], "clr": [0.2, 0.3, 0.3, 0.2], "rbrl": [0.1, 0.1, 0.2, 0.1]}
        >>> summary = pd.DataFrame([(f"d{i}", "ranking_loss", method, mean, 0.0) for method, line in means.items()
        ...                         for i, mean in enumerate(line)], columns=["dataset", "metric", "method", "mean", "std"])
        >>> found = compare(Results.from_summary(summary), "ranking_loss")
        >>> found.beaten("rbrl"), found.beaten("br")
        (['br'], [])
        """
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

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl.experiments import Results, compare
        >>> means = {"br": [0.3, 0.2, 0.4, 0.3], "clr": [0.2, 0.3, 0.3, 0.2], "rbrl": [0.1, 0.1, 0.2, 0.1]}
        >>> summary = pd.DataFrame([(f"d{i}", "ranking_loss", method, mean, 0.0) for method, line in means.items()
        ...                         for i, mean in enumerate(line)], columns=["dataset", "metric", "method", "mean", "std"])
        >>> found = compare(Results.from_summary(summary), "ranking_loss")
        >>> pairs = found.pairs()
        >>> pairs[pairs.method == "rbrl"][["against", "wins", "losses"]].values.tolist()
        [['clr', 4, 0], ['br', 4, 0]]
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
    groups = nemenyi_groups(ranks, len(values), alpha)
    together = [tuple(values.columns[i] for i in group) for group in groups]
    test = statistics.friedman(values, metric.greater_is_better, alpha)
    return Comparison(metric, values, ranks, test, distance, together, left_out, without)


class CompletePart(NamedTuple):
    """What methods can be ranked on; see `Comparison` for the names.

    Examples
    --------
    >>> CompletePart(pd.DataFrame({"br": [0.1], "rbrl": [0.2]}, index=["sea"]), ("hill",), ()).left_out
    ('hill',)
    """

    values: pd.DataFrame
    left_out: tuple[str, ...]
    without: tuple[str, ...]


def complete_part(results: Results, metric: Metric) -> CompletePart:
    """The data sets on which every method has a value, of the methods that have a value anywhere.

    Parameters
    ----------
    results : Results
    metric : Metric

    Returns
    -------
    CompletePart
    """
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
    """Names of the lowest ranks; what differs by rounding only is equal.

    Parameters
    ----------
    ranks : Series
        By method.

    Returns
    -------
    list of str
    """
    return [name for name in ranks.index if np.isclose(ranks[name], ranks.min())]


def rank_table(results: Results, ties: str = "average") -> pd.DataFrame:
    """Average ranks, metrics x methods, with the mean over metrics as the row "Overall".

    Metrics of probabilities are no part of that mean where a method has none.

    Parameters
    ----------
    results : Results
    ties : {"average", "minimum"}
        What tied methods share; the paper's Table 4 has the minimum.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, rank_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> rank_table(results).loc["Overall"].to_dict()
    {'brl': 2.0, 'rbrl': 1.0}
    """
    rows = {metric.name: _ranks(complete_part(results, metric).values, metric, ties) for metric in results.metrics}
    table = pd.DataFrame(rows).T.reindex(columns=list(results.methods))
    of_all = table.drop(index=[metric.name for metric in results.metrics if results.without_probabilities(metric)])
    table.loc["Overall"] = of_all.mean(skipna=False)
    return table


@dataclass(frozen=True)
class Verdict:
    """What to think of one metric.

    Parameters
    ----------
    metric : Metric
    level : {"significant", "chance", "untested"}
    sentence : str
    evidence : str
        Statistics behind the sentence; why there are none.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, compare, verdict
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["br", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> verdict(compare(results, "hamming_loss"), results).sentence
    'On sea, rbrl is best with 0.100, before br with 0.200.'
    """

    metric: Metric
    level: str
    sentence: str
    evidence: str


def verdict(comparison: Comparison, results: Results) -> Verdict:
    """Say who leads on one metric, and whether that is more than chance.

    Parameters
    ----------
    comparison : Comparison
        What `compare` says of the metric.
    results : Results
        What it was made of.

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
    >>> found = verdict(compare(results, "hamming_loss"), results)
    >>> found.level, found.sentence
    ('untested', 'On sea, rbrl is best with 0.100, before brl with 0.200.')
    """
    metric = comparison.metric
    if comparison.n_datasets == 0:
        sentence = "There is no data set on which every method has a value, so nothing can be ranked."
        return Verdict(metric, "untested", sentence, "")
    if len(comparison.ranks) < 2:
        return Verdict(metric, "untested", f"Only {comparison.ranks.index[0]} has values: nothing to compare.", "")
    if comparison.test is None:
        return Verdict(metric, "untested", _single(comparison, results), ONE_DATA_SET)
    if not comparison.tested:
        many = f"{comparison.n_datasets} data sets are too few to test {len(comparison.ranks)} methods"
        return Verdict(metric, "untested", f"{_lead(comparison)}.", f"{many}: no result could be significant.")
    level = "significant" if comparison.beaten(comparison.best[0]) else "chance"
    return Verdict(metric, level, _ranked(comparison), " ".join(_evidence(comparison, comparison.test)))


def headline(comparisons: Sequence[Comparison]) -> str:
    """Who leads where, as far as it was tested; a description where it was not.

    Parameters
    ----------
    comparisons : sequence of Comparison
        One per metric.

    Returns
    -------
    str
        A few sentences.
    """
    tested = [comparison for comparison in comparisons if comparison.tested]
    if not tested:
        return "What follows describes these results; it names no winner."
    leads: dict[str, list[str]] = {}
    by_chance: list[str] = []
    for comparison in tested:
        leader = comparison.best
        metrics = leads.setdefault(join(leader), []) if comparison.beaten(leader[0]) else by_chance
        metrics.append(_in_sentence(comparison.metric))
    sentences = [_leads(leads, len(comparisons)) if leads else _no_lead(tested)]
    if leads and by_chance:
        sentences.append(f"On {join(by_chance)} the lead may be chance.")
    untested = [_in_sentence(comparison.metric) for comparison in comparisons if not comparison.tested]
    return " ".join(sentences + ([f"Not tested: {join(untested)}."] if untested else []))


def _no_lead(tested: Sequence[Comparison]) -> str:
    differ = [_in_sentence(comparison.metric) for comparison in tested if comparison.significant]
    if not differ:
        return "No lead is larger than chance could explain."
    where = _all_or(differ, len(tested))
    return f"The methods differ on {where}, but the lead of the first over any other may be chance."


def _leads(leads: dict[str, list[str]], n_metrics: int) -> str:
    (leader, metrics), *more = sorted(leads.items(), key=lambda item: -len(item[1]))
    verb = "rank" if " and " in leader else "ranks"
    text = f"{leader} {verb} first on {_all_or(metrics, n_metrics)}, significantly before at least one other method"
    return "; ".join([text, *(f"{who} on {join(metrics)}" for who, metrics in more)]) + "."


def _all_or(metrics: list[str], n_metrics: int) -> str:
    return f"all {n_metrics} metrics" if len(metrics) == n_metrics > 1 else join(metrics)


def _in_sentence(metric: Metric) -> str:
    """A title within a sentence; Hamming is a name, and F1 and AUC stay as they are."""
    title = metric.title
    is_word = title[1:2].islower() and not title.startswith("Hamming")
    return title[:1].lower() + title[1:] if is_word else title


def _single(comparison: Comparison, results: Results) -> str:
    """The best on the only data set, and who comes next; methods that look equal are named together."""
    metric, dataset = comparison.metric, comparison.values.index[0]
    digits = results.decimals(metric, dataset)
    values = comparison.values.loc[dataset].sort_values(ascending=not metric.greater_is_better, kind="stable")
    deviations = results.stds(metric).loc[dataset]

    def figure(names: list[str]) -> str:
        """Return the common mean of the methods; that of one method with its deviation, if there is one."""
        deviation = deviations[names[0]] if len(names) == 1 else np.nan
        return spread(values[names[0]], deviation, digits).text

    best = [name for name in values.index if name in best_of(values, metric.greater_is_better, digits)]
    over = f" over {results.n_splits} splits" if results.n_splits > 1 else ""
    sentence = f"On {dataset}, {join(best)} {'is' if len(best) == 1 else 'are'} best with {figure(best)}{over}"
    others = values.index[len(best) :]
    if len(others):
        second = [name for name in others if values[name] == values[others[0]]]
        sentence += f", before {join(second)} with {figure(second)}"
    return f"{sentence}."


def _lead(comparison: Comparison) -> str:
    best, rank = comparison.best, comparison.ranks.min()
    verb = "ranks" if len(best) == 1 else "rank"
    return f"{join(best)} {verb} first, {rank:.2f} on average over {comparison.n_datasets} data sets"


def _ranked(comparison: Comparison) -> str:
    lead, best = _lead(comparison), comparison.best
    if not comparison.significant:
        return f"{lead}, but the methods do not differ significantly."
    if not comparison.decides_pairs:
        return f"{lead}. The methods differ, but {comparison.n_datasets} data sets are too few to say which."
    beaten = comparison.beaten(best[0])
    others = [name for name in comparison.ranks.sort_values(kind="stable").index if name not in [*best, *beaten]]
    if not beaten:
        return f"{lead}. The methods differ, but no single other method is significantly behind."
    if not others:
        return f"{lead}, significantly before every other method."
    return f"{lead}, significantly before {join(beaten)}. The lead over {join(others)} may be chance."


def _evidence(comparison: Comparison, test: statistics.FriedmanResult) -> Iterator[str]:
    """Sentences on the tests: Friedman's, Nemenyi's, Wilcoxon's, and what was left out."""
    f, critical = (f"{value:.2f}".replace("inf", "∞") for value in (test.f, test.critical_value))
    p_value = f"p = {p_text(test.p_value)}".replace("= <", "< ") + P_FROM[test.distribution]
    too_far = "" if comparison.decides_pairs else ", more than ranks can differ by"
    nemenyi = f"Nemenyi's critical distance {comparison.distance:.2f}{too_far}"
    yield f"Friedman F_F = {f}, critical value {critical}, {p_value}; {nemenyi}."
    if smallest_wilcoxon_p(comparison.n_datasets, len(comparison.ranks)) <= ALPHA:
        pairs, first = comparison.pairs(), comparison.best[0]
        found = pairs[(pairs.method == first) & (pairs.rank_biserial > 0) & (pairs.p_holm <= ALPHA)].against
        yield f"Wilcoxon's test with Holm's correction puts {first} before {join(found) if len(found) else 'none'}."
    if comparison.n_datasets < FEW_DATASETS:
        yield f"{comparison.n_datasets} data sets are few: such a test finds only large differences."
    if comparison.left_out:
        yield f"Without {join(comparison.left_out)}, where a method has no value."
    if comparison.without:
        yield f"Without {join(comparison.without)}, which has no value anywhere."
