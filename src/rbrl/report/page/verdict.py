"""The verdict on each metric, in a sentence, with what it rests on."""

from dataclasses import dataclass

from rbrl.report.comparison import Comparison
from rbrl.report.results import Results
from rbrl.report.tables import best_of, p_text

FEW_DATASETS = 5


@dataclass(frozen=True)
class Verdict:
    """What to think of one metric.

    Parameters
    ----------
    metric : Metric
    level : {"significant", "chance", "untested"}
    sentence : str
    evidence : str
        Statistics behind the sentence.
    """

    metric: object
    level: str
    sentence: str
    evidence: str


def verdict(comparison: Comparison, results: Results) -> Verdict:
    """Say who leads on one metric, and whether that is more than chance."""
    metric = comparison.metric
    if comparison.n_datasets == 0:
        sentence = "There is no data set on which every method has a value, so nothing can be ranked."
        return Verdict(metric, "untested", sentence, "")
    if comparison.test is None:
        return Verdict(metric, "untested", *_single(comparison, results))
    level = "significant" if comparison.significant and comparison.beaten(comparison.best[0]) else "chance"
    return Verdict(metric, level, _ranked(comparison), _evidence(comparison))


def _single(comparison, results):
    dataset = comparison.values.index[0]
    values = comparison.values.loc[dataset].sort_values(
        ascending=not comparison.metric.greater_is_better, kind="stable"
    )
    shown = values.map("{:.3f}".format) + results.stds(comparison.metric).loc[dataset].map(" ± {:.3f}".format)
    best = [name for name in values.index if name in best_of(values, comparison.metric.greater_is_better)]
    figure = shown[best[0]] if len(best) == 1 else f"{values[best[0]]:.3f}"
    over = f" over {results.n_splits} splits" if results.n_splits > 1 else ""
    sentence = f"On {dataset}, {join(best)} {'is' if len(best) == 1 else 'are'} best with {figure}{over}"
    if len(best) < len(values):
        second = values.index[len(best)]
        sentence += f", before {second} with {shown[second]}"
    return sentence + ".", "One data set: splits of it share rows, so there is no test of significance."


def _ranked(comparison):
    best, rank = comparison.best, comparison.ranks.min()
    verb = "ranks" if len(best) == 1 else "rank"
    lead = f"{join(best)} {verb} first, {rank:.2f} on average over {comparison.n_datasets} data sets"
    if not comparison.significant:
        return f"{lead}, but the methods do not differ significantly."
    beaten = comparison.beaten(best[0])
    others = [name for name in comparison.ranks.sort_values(kind="stable").index if name not in [*best, *beaten]]
    if not beaten:
        return f"{lead}. The methods differ, but no single other method is significantly behind."
    if not others:
        return f"{lead}, significantly before every other method."
    return f"{lead}, significantly before {join(beaten)}. The lead over {join(others)} may be chance."


def _evidence(comparison):
    test = comparison.test
    text = (
        f"Friedman F_F = {test.f:.2f}, critical value {test.critical_value:.2f}, p = {p_text(test.p_value)}; "
        f"Nemenyi's critical distance {comparison.distance:.2f}."
    )
    if comparison.n_datasets < FEW_DATASETS:
        text += f" {comparison.n_datasets} data sets are few: such a test finds only large differences."
    if comparison.left_out:
        text += f" Without {join(comparison.left_out)}, where a method has no value."
    if comparison.without:
        text += f" Without {join(comparison.without)}, which has no value anywhere."
    return text.replace("p = <", "p < ")


def join(names) -> str:
    """Names as in a sentence.

    Examples
    --------
    >>> join(["BR", "CLR", "RBRL"])
    'BR, CLR and RBRL'
    """
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
