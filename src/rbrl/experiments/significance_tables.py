"""Tables of tests: do the methods of a run differ (the paper's Table 5), and which of them?"""

from collections.abc import Iterator
from math import isinf
from typing import Any

import pandas as pd

from rbrl.experiments.cells import DIGITS, MISSING, Cell, Table, count, heading, number, p_text, word
from rbrl.experiments.comparison import ALPHA, ONE_DATA_SET, Comparison, compare
from rbrl.experiments.results import Results
from rbrl.experiments.statistics import FriedmanResult
from rbrl.experiments.statistics.pairwise import smallest_wilcoxon_p
from rbrl.metrics import Metric


def friedman_table(results: Results, alpha: float = ALPHA) -> Table:
    """Table 5: Friedman's F_F with its critical value, and Nemenyi's critical distance.

    Parameters
    ----------
    results : Results
    alpha : float, default=0.05
        Level of the tests.

    Returns
    -------
    Table
        One row per metric.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results, friedman_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> [cell.text for cell in friedman_table(results).rows[0]]  # one data set tells nothing
    ['Hamming loss ↓', '–', '–', '–', '–', '–']
    """
    found = [compare(results, metric, alpha) for metric in results.metrics]
    rows = tuple(_friedman_row(comparison) for comparison in found)
    frame = pd.DataFrame([_friedman_record(comparison) for comparison in found], columns=FRIEDMAN_COLUMNS)
    titles = ("Metric", "F_F", "Critical value", "p", "Critical distance", "Methods differ")
    note = " ".join(_friedman_notes(found, alpha))
    return Table("friedman", "Friedman's test and Nemenyi's critical distance", titles, rows, frame, note=note)


FRIEDMAN_COLUMNS = [
    "metric", "F_F", "critical_value", "p_value", "critical_distance", "n_methods", "n_datasets", "p_from",
    "smallest_p_value", "decides_pairs",
]  # fmt: skip


def _friedman_record(comparison: Comparison) -> tuple[Any, ...]:
    """The test of one metric as figures; None for those of a test that there is not."""
    names = ("f", "critical_value", "p_value", "distribution", "smallest_p_value")
    f, critical, p_value, source, smallest = (getattr(comparison.test, name, None) for name in names)
    sizes = comparison.values.shape[1], comparison.n_datasets
    figures = (f, critical, p_value, comparison.distance, *sizes, source, smallest)
    return (comparison.metric.name, *figures, comparison.decides_pairs)


def _friedman_row(comparison: Comparison) -> tuple[Cell, ...]:
    test, title = comparison.test, word(heading(comparison.metric))
    if test is None:
        return title, *[number(None)] * 4, word(MISSING)
    statistics = [Cell("∞", f) if isinf(f) else number(f, 4) for f in (test.f, test.critical_value)]
    distance = Cell(f"{comparison.distance:.3f}{'' if comparison.decides_pairs else '*'}", comparison.distance)
    answer = ("yes" if test.significant else "no") if test.decidable else "too few data sets"
    return title, *statistics, Cell(p_text(test.p_value), test.p_value), distance, word(answer)


P_FROM = {
    "exact": "is exact: all orders of the methods on every data set are counted.",
    "permutation": "is from 99,999 random orders of the methods on every data set.",
}


def _friedman_notes(found: list[Comparison], alpha: float) -> Iterator[str]:
    """What a reader must know of the figures: where p is from, and what so few data sets cannot decide."""
    tested: list[tuple[Comparison, FriedmanResult]] = [(c, c.test) for c in found if c.test is not None]
    if tested:
        yield f"Level {alpha:g}."
    for source, text in P_FROM.items():
        some = [comparison for comparison, test in tested if test.distribution == source]
        if some:
            yield f"p {text}" if len(some) == len(tested) else f"p of {_titles(some)} {text}"
    undecided = [test.smallest_p_value for _, test in tested if not test.decidable]
    if undecided:
        yield f"Too few data sets: p could not be less than {p_text(max(undecided))} whatever the results."
    if any(not comparison.decides_pairs for comparison, _ in tested):
        yield "* More than average ranks can differ by: no two methods can be told apart."
    if found and all(c.n_datasets == 1 and len(c.ranks) > 1 for c in found):
        yield f"Not tested. {ONE_DATA_SET}"
    elif len(tested) < len(found):
        untested = [comparison for comparison in found if comparison.test is None]
        which = f"No test for {_titles(untested)}" if tested else "Nothing is tested"
        yield f"{which}: it needs two methods and two data sets on which all have a value."


def _titles(comparisons: list[Comparison]) -> str:
    return ", ".join(comparison.metric.title for comparison in comparisons)


def pairs_table(results: Results, alpha: float = ALPHA) -> Table:
    """The method that ranks first on each metric against every other; the frame has all pairs.

    Parameters
    ----------
    results : Results
    alpha : float, default=0.05
        Level that the note speaks of.

    Returns
    -------
    Table
        Without rows where nothing is tested.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results
    >>> from rbrl.experiments.comparison_tables import pairs_table
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
    ...                      "value": [0.2, 0.1], "status": "ok"})
    >>> results = Results.from_rows(rows)
    >>> len(pairs_table(results).rows)  # one data set tells nothing
    0
    """
    found = [compare(results, metric, alpha) for metric in results.metrics]
    frames = [comparison.pairs() for comparison in found]
    rows = tuple(
        _pair_row(comparison.metric, pair)
        for comparison, frame in zip(found, frames)
        for pair in frame[frame.method.isin(comparison.best)].itertuples()
    )
    counts, figures = ("Better", "Equal", "Worse"), ("Median difference", "Rank-biserial", "p, Holm")
    titles = ("Metric", "First", "Against", "Ranks apart", *counts, *figures)
    frame, note = pd.concat(frames, ignore_index=True), " ".join(_pairs_notes(found, alpha))
    return Table("pairs", "First against the others, by data set", titles, rows, frame, n_keys=3, note=note)


def _pair_row(metric: Metric, pair: Any) -> tuple[Cell, ...]:
    figures = ((pair.median_difference, DIGITS + 1), (pair.rank_biserial, 2))
    return (
        *(word(heading(metric)), word(pair.method), word(pair.against), number(pair.ranks_apart, 2)),
        *(count(n) for n in (pair.wins, pair.ties, pair.losses)),
        *(Cell(f"{value:+.{digits}f}".replace("-", "−"), value) for value, digits in figures),
        Cell(p_text(pair.p_holm), pair.p_holm),
    )


def _pairs_notes(found: list[Comparison], alpha: float) -> Iterator[str]:
    tested = [comparison for comparison in found if comparison.test]
    if not tested:
        return
    n_datasets, n_methods = max(c.n_datasets for c in tested), max(len(c.ranks) for c in tested)
    yield "Median difference: positive where the first is better. Rank-biserial: from 1, better on every data set, to −1."
    n_pairs, smallest = n_methods * (n_methods - 1) // 2, smallest_wilcoxon_p(n_datasets, n_methods)
    yield f"p: Wilcoxon's signed-rank test with Holm's correction for all pairs, {n_pairs}."
    single = p_text(smallest_wilcoxon_p(n_datasets))
    end = ", so that it can tell no two methods apart" if smallest > alpha else ""
    yield f"On {n_datasets} data sets the test gives {single} at least, corrected {p_text(smallest)}{end}."
