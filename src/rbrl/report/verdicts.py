"""The verdict on each metric, in a sentence, with what it rests on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rbrl.metrics import Metric
from rbrl.report.comparison import ALPHA, ONE_DATA_SET, Comparison
from rbrl.report.results import Results, best_of
from rbrl.report.tables import p_text
from rbrl.statistics import FriedmanResult, smallest_wilcoxon_p

FEW_DATASETS = 5
P_FROM = {"exact": " (exact)", "permutation": " (by random orders)", "F": ""}


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
    """Who leads where, as far as it was tested; a description where it was not."""
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
        """Their common mean; of one method with its deviation."""
        alone = len(names) == 1 and results.n_splits != 1
        return f"{values[names[0]]:.{digits}f}" + (f" ± {deviations[names[0]]:.{digits}f}" if alone else "")

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


def _evidence(comparison: Comparison, test: FriedmanResult) -> Iterator[str]:
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


def join(names: Iterable[str]) -> str:
    """Names as in a sentence.

    Examples
    --------
    >>> join(["BR", "CLR", "RBRL"])
    'BR, CLR and RBRL'
    """
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
