"""Verdict on a comparison, in sentences: which method leads, and is the lead more than chance?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rbrl.experiments.cells import best_of, join, p_text, spread
from rbrl.experiments.comparison import TEST_LEVEL, Comparison
from rbrl.experiments.results import Results
from rbrl.experiments.statistics import FriedmanResult
from rbrl.experiments.statistics.pairwise import smallest_wilcoxon_p
from rbrl.metrics import Metric

ONE_DATASET_NOTE = "One data set: its splits share rows, and say little about other data."
# A verdict on fewer data sets says that they are few.
MIN_DATASETS_FOR_VERDICT = 5
DISTRIBUTION_TEXTS = {"exact": " (exact)", "permutation": " (by random orders)", "F": ""}


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

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, compare, verdict
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["br", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> verdict(compare(results, "hamming_loss"), results).level
    'untested'
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
        return Verdict(metric, "untested", _one_dataset_sentence(comparison, results), ONE_DATASET_NOTE)
    if not comparison.tested:
        reason = f"{n_datasets} data sets are too few to test {len(comparison.ranks)} methods"
        return Verdict(metric, "untested", f"{_lead(comparison)}.", f"{reason}: no result could be significant.")
    level = "significant" if comparison.beaten(comparison.best[0]) else "chance"
    return Verdict(metric, level, _test_sentence(comparison), " ".join(_evidence(comparison, comparison.test)))


def headline(comparisons: Sequence[Comparison]) -> str:
    """Return sentences on which methods lead on which metrics, given one comparison per metric."""
    tested = [comparison for comparison in comparisons if comparison.tested]
    if not tested:
        return "What follows describes these results; it names no winner."
    leads: dict[str, list[str]] = {}
    by_chance: list[str] = []
    for comparison in tested:
        best = comparison.best
        metrics = leads.setdefault(join(best), []) if comparison.beaten(best[0]) else by_chance
        metrics.append(_title_in_sentence(comparison.metric))
    sentences = [_leads_sentence(leads, len(comparisons)) if leads else _no_lead_sentence(tested)]
    if leads and by_chance:
        sentences.append(f"On {join(by_chance)} the lead may be chance.")
    untested = [_title_in_sentence(comparison.metric) for comparison in comparisons if not comparison.tested]
    return " ".join(sentences + ([f"Not tested: {join(untested)}."] if untested else []))


def _no_lead_sentence(tested: Sequence[Comparison]) -> str:
    differ = [_title_in_sentence(comparison.metric) for comparison in tested if comparison.significant]
    if not differ:
        return "No lead is larger than chance could explain."
    where = _join_metrics(differ, len(tested))
    return f"The methods differ on {where}, but the lead of the first over any other may be chance."


def _leads_sentence(leads: dict[str, list[str]], n_metrics: int) -> str:
    (leader, metrics), *more = sorted(leads.items(), key=lambda item: -len(item[1]))
    verb = "rank" if " and " in leader else "ranks"
    where = _join_metrics(metrics, n_metrics)
    text = f"{leader} {verb} first on {where}, significantly before at least one other method"
    return "; ".join([text, *(f"{other} on {join(metrics)}" for other, metrics in more)]) + "."


def _join_metrics(metrics: list[str], n_metrics: int) -> str:
    return f"all {n_metrics} metrics" if len(metrics) == n_metrics > 1 else join(metrics)


def _title_in_sentence(metric: Metric) -> str:
    """Return a metric's title in lower case; Hamming is a name, and F1 and AUC stay as they are."""
    title = metric.title
    is_word = title[1:2].islower() and not title.startswith("Hamming")
    return title[:1].lower() + title[1:] if is_word else title


def _one_dataset_sentence(comparison: Comparison, results: Results) -> str:
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


def _lead(comparison: Comparison) -> str:
    best = comparison.best
    verb = "ranks" if len(best) == 1 else "rank"
    rank = comparison.ranks.min()
    return f"{join(best)} {verb} first, {rank:.2f} on average over {comparison.n_datasets} data sets"


def _test_sentence(comparison: Comparison) -> str:
    lead = _lead(comparison)
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


def _evidence(comparison: Comparison, test: FriedmanResult) -> Iterator[str]:
    """Yield sentences on the tests and on methods and data sets that were left out."""
    f, critical = (f"{value:.2f}".replace("inf", "∞") for value in (test.f, test.critical_value))
    p_value = f"p = {p_text(test.p_value)}".replace("= <", "< ") + DISTRIBUTION_TEXTS[test.distribution]
    too_far = "" if comparison.decides_pairs else ", more than ranks can differ by"
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
        yield f"Without {join(comparison.left_out)}, where a method has no value."
    if comparison.without:
        yield f"Without {join(comparison.without)}, which has no value anywhere."
