"""The seven observations of the paper's section on results, as claims that any results can be checked for."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rbrl.experiments import Results, compare, rank_table
from rbrl.experiments.tables import MISSING, Cell, Table, best_of, heading, join, number, word
from rbrl.metrics import PAPER_METRICS, Metric, get_metric
from studies.reproduction.paper import OURS, OVERALL, paper_methods

LABELS, SCORES = (tuple(m.name for m in PAPER_METRICS if m.needs == needs) for needs in ("labels", "scores"))
ALL = (*LABELS, *SCORES)
# Stands for a metric in claims about the mean over all of them.
EVERY = "overall"
HOLDS, WEAK, FAILS, UNKNOWN = "holds", "holds, but not significantly", "does not hold", "not tested"
SHORT = {HOLDS: "upheld", WEAK: "not significant", FAILS: "not upheld"}


@dataclass(frozen=True)
class Claim:
    """RBRL against one rival on one metric.

    Parameters
    ----------
    rival : str
    metric : str
        A metric's name, or "overall": the mean over the six metrics of the average ranks, for which there is no test.
    kind : {"better", "comparable"}
        "better": a lower average rank, by a critical distance if it is to be significant. "comparable": not worse by
        a critical distance.
    """

    rival: str
    metric: str
    kind: str = "better"


@dataclass(frozen=True)
class Observation:
    """An observation of the paper, shortened, with the claims that it consists of."""

    number: int
    text: str
    claims: tuple[Claim, ...]


def _claims(rivals: Iterable[str], metrics: Sequence[str], kind: str = "better") -> tuple[Claim, ...]:
    return tuple(Claim(rival, metric, kind) for rival in rivals for metric in metrics)


def observations() -> tuple[Observation, ...]:
    """Return the paper's seven observations, in its order.

    Examples
    --------
    >>> observations()[6].text
    'The best average rank over all metrics.'
    """
    rivals = [name for name in paper_methods() if name != OURS]
    but_hamming, but_f1 = ([name for name in ALL if name != left_out] for left_out in ("hamming_loss", "f1_example"))
    texts = (
        ("Better than Rank-SVM on the metrics of labels, and on those of rankings.", _claims(["Rank-SVM"], ALL)),
        (
            "Better than Rank-SVMz on all metrics, especially Hamming loss and subset accuracy.",
            _claims(["Rank-SVMz"], ALL),
        ),
        ("Better than every other method on the metrics of rankings, especially than BR.", _claims(rivals, SCORES)),
        (
            "On subset accuracy comparable with RAKEL, and statistically better than CLR.",
            (Claim("RAKEL", "subset_accuracy", "comparable"), Claim("CLR", "subset_accuracy")),
        ),
        ("Statistically better than MLFE on all metrics but the Hamming loss.", _claims(["MLFE"], but_hamming)),
        ("Highly competitive with CPNL or superior on all metrics but F1.", _claims(["CPNL"], but_f1, "comparable")),
        ("The best average rank over all metrics.", _claims(rivals, [EVERY])),
    )
    return tuple(Observation(number, *one) for number, one in enumerate(texts, 1))


@dataclass(frozen=True)
class Finding:
    """Outcome of a claim for some results.

    Attributes
    ----------
    difference : float
        Average rank of the rival less that of RBRL: positive where RBRL is better.
    distance : float
        Nemenyi's critical distance; NaN where there is no test.
    wins, n_datasets : int
        Data sets on which RBRL has the better mean, and all that count.
    verdict : str
    """

    difference: float = np.nan
    distance: float = np.nan
    wins: int = 0
    n_datasets: int = 0
    verdict: str = UNKNOWN


def examine(claim: Claim, results: Results) -> Finding:
    """Check a claim with some results.

    Examples
    --------
    >>> from studies.reproduction.paper import published_results
    >>> examine(Claim("CLR", "subset_accuracy"), published_results()).verdict
    'holds, but not significantly'
    """
    if not {claim.rival, OURS} <= set(results.methods):
        return Finding()
    if claim.metric == EVERY:
        ranks = rank_table(results).loc[OVERALL]
        difference = float(ranks[claim.rival] - ranks[OURS])
        verdict = UNKNOWN if np.isnan(difference) else HOLDS if difference > 0 else FAILS
        return Finding(difference, verdict=verdict)
    metric = get_metric(claim.metric)
    comparison = compare(results, metric)
    values, ranks = comparison.values, comparison.ranks
    if not {claim.rival, OURS} <= set(ranks.index) or np.isnan(ranks[OURS]):
        return Finding()
    wins = sum(metric.better(ours, theirs) for ours, theirs in zip(values[OURS], values[claim.rival]))
    difference = float(ranks[claim.rival] - ranks[OURS])
    distance = comparison.distance if comparison.significant and comparison.distance else np.nan
    return Finding(difference, distance, wins, len(values), _verdict(claim.kind, difference, distance))


def _verdict(kind: str, difference: float, distance: float) -> str:
    if kind == "comparable":
        return FAILS if difference <= -distance else HOLDS
    if difference <= 0:
        return FAILS
    return HOLDS if difference >= distance else WEAK


def judge(observation: Observation, results: Results) -> tuple[str, list[Finding]]:
    """Return the verdict on an observation, which is the worst on its claims, and the finding for each claim."""
    findings = [examine(claim, results) for claim in observation.claims]
    found = Counter(finding.verdict for finding in findings)
    return next(verdict for verdict in (UNKNOWN, FAILS, WEAK, HOLDS) if found[verdict]), findings


def verdict_table(sources: Mapping[str, Results]) -> Table:
    """Verdict on each observation by several results, with the number of claims behind it.

    Parameters
    ----------
    sources : dict of str to Results
        Results by the title of their column, such as "The paper's figures".
    """
    rows, records = [], []
    for observation in observations():
        judged = {name: judge(observation, results) for name, results in sources.items()}
        answers = [word(_in_words(*answer)) for answer in judged.values()]
        rows.append((word(observation.number), word(observation.text), *answers))
        verdicts = {name: verdict for name, (verdict, _) in judged.items()}
        records.append({"observation": observation.number, "text": observation.text} | verdicts)
    titles = ("", "Observation", *sources)
    return Table("observations", "The seven observations", titles, tuple(rows), pd.DataFrame(records))


def _in_words(verdict: str, findings: Sequence[Finding]) -> str:
    found = Counter(finding.verdict for finding in findings)
    if len(findings) == 1 or found[verdict] == len(findings) or verdict == UNKNOWN:
        return verdict
    others = ", ".join(f"{found[name]} {SHORT[name]}" for name in SHORT if found[name])
    return f"{verdict} ({others})"


def claim_table(sources: Mapping[str, Results]) -> Table:
    """Difference of average ranks and data sets won for each claim, by several results."""
    rows, records = [], []
    for observation in observations():
        for claim in observation.claims:
            findings = {name: examine(claim, results) for name, results in sources.items()}
            title = OVERALL if claim.metric == EVERY else get_metric(claim.metric).title
            what = f"{claim.rival}{' (comparable)' if claim.kind == 'comparable' else ''}"
            rows.append((word(observation.number), word(what), word(title), *map(_finding, findings.values())))
            records += [
                {"observation": observation.number, **claim.__dict__, "source": name, **finding.__dict__}
                for name, finding in findings.items()
            ]
    titles = ("", "Against", "Metric", *sources)
    note = (
        "Average rank of the other method less RBRL's, so that positive is better for RBRL; * at least the critical "
        "distance. Behind it the data sets on which RBRL has the better mean."
    )
    return Table("claims", "Claim by claim", titles, tuple(rows), pd.DataFrame(records), n_keys=3, note=note)


def _finding(finding: Finding) -> Cell:
    if finding.verdict == UNKNOWN:
        return Cell(MISSING)
    mark = "*" if abs(finding.difference) >= finding.distance else ""
    text = f"{finding.difference:+.2f}{mark}".replace("-", "−")
    return Cell(f"{text}, {finding.wins} of {finding.n_datasets}" if finding.n_datasets else text, finding.difference)


def overall_ranks(sources: Mapping[str, Results]) -> Table:
    """Overall average rank of each method by each of some results; the lowest of each in bold."""
    ranks = {name: rank_table(results).loc[OVERALL] for name, results in sources.items()}
    methods = [name for name in paper_methods() if any(name in one.index for one in ranks.values())]
    frame = pd.DataFrame({name: one.reindex(methods) for name, one in ranks.items()})
    rows = tuple(
        (word(method), *(number(line[name], 2, line[name] == frame[name].min()) for name in frame))
        for method, line in frame.iterrows()
    )
    note = "Mean over the six metrics of the average ranks over data sets; tied methods share the mean of their ranks."
    table = frame.rename_axis("method").reset_index()
    return Table("overall-ranks", "Overall average ranks", ("Method", *sources), rows, table, note=note)


def metric_ranks(sources: Mapping[str, Results], ties: str = "average") -> Table:
    """Table 4: by metric and over all the average rank of each method, a line for each of some results."""
    tables = {name: rank_table(results, ties) for name, results in sources.items()}
    titles = {metric.name: word(heading(metric)) for metric in PAPER_METRICS} | {OVERALL: word(OVERALL)}
    rows, records = [], []
    for metric, title in titles.items():
        for name, table in tables.items():
            ranks = table.loc[metric]
            best = best_of(ranks, greater_is_better=False, digits=2)
            rows.append((title, word(name), *(number(ranks.get(m), 2, m in best) for m in paper_methods())))
            records += [{"metric": metric, "source": name, "method": m, "average_rank": ranks[m]} for m in table]
    heads = ("Metric", "", *paper_methods())
    return Table("table4", "Table 4: average ranks", heads, tuple(rows), pd.DataFrame(records), n_keys=2)


def beaten_table(sources: Mapping[str, Results]) -> Table:
    """Methods that RBRL is significantly better than, and those significantly better than it, for each metric."""
    rows, records = [], []
    for metric in PAPER_METRICS:
        cells = []
        for name, results in sources.items():
            below, above = _beaten(results, metric)
            cells.append(word((join(below) if below else "none") + (f"; worse than {join(above)}" if above else "")))
            records.append((metric.name, name, ", ".join(below), ", ".join(above)))
        rows.append((word(heading(metric)), *cells))
    frame = pd.DataFrame(records, columns=["metric", "source", "better_than", "worse_than"])
    title = f"Methods that {OURS} is significantly better than"
    return Table("beaten", title, ("Metric", *sources), tuple(rows), frame)


def _beaten(results: Results, metric: Metric) -> tuple[list[str], list[str]]:
    """Methods that RBRL is significantly better than, and those significantly better than it."""
    comparison = compare(results, metric)
    below = comparison.beaten(OURS) if OURS in comparison.ranks.index else []
    return below, [name for name in comparison.ranks.index if OURS in comparison.beaten(name)]


def beaten_counts(results: Results) -> tuple[int, int]:
    """(significant wins of RBRL over all metrics, significant losses)."""
    found = [_beaten(results, metric) for metric in PAPER_METRICS]
    return sum(len(below) for below, _ in found), sum(len(above) for _, above in found)
