"""Phrases of the first page, each computed from the rows."""

import pandas as pd

from rbrl.datasets import CARDS
from rbrl.experiments.tables import Table, join, p_text, to_markdown
from rbrl.registry import METHODS
from studies.reproduction import oracle, verdicts
from studies.reproduction.paper import as_published, paper_methods
from studies.reproduction.recorded import Recorded, read_plan
from studies.reproduction.verdicts import signed_value

TITLES = {method.name: method.title for method in METHODS}
# The sets on which the hypothesis of another weight was found.
FOUND_ON = ("arts", "enron")
WEIGHTS = {oracle.DOUBLED: "twice the weight", oracle.COUNTED: "|Y⁺| times the weight"}


class Leads:
    """Phrases about RBRL's lead over the other methods under two scoring rules.

    Parameters
    ----------
    frame : DataFrame
        Result of `studies.reproduction.verdicts.artefact`.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame.set_index(["metric", "rival"])

    def share(self, rival: str) -> str:
        """Return the share of the lead over a rival that is gone with decision values, over the ranking metrics."""
        shares = self.frame.xs(rival, level="rival").share
        return f"{100 * shares.min():.0f} to {100 * shares.max():.0f} %"

    def fall(self, metric: str, rival: str) -> str:
        """Return the lead under both rules."""
        row = self.frame.loc[(metric, rival)]
        return f"{row.hard:.3f} to {row.soft:.3f}".replace("-", "−")


class Verdicts:
    """Phrases about the verdicts on RBRL.

    Parameters
    ----------
    frame : DataFrame
        Result of `studies.reproduction.verdicts.verdicts`.
    grid : Table, optional
        Result of `studies.reproduction.verdicts.verdict_grid`; default: that of the frame alone.
    """

    def __init__(self, frame: pd.DataFrame, grid: Table | None = None) -> None:
        self.frame, self.n = frame.set_index(["metric", "rival"]), len(frame)
        self.grid = to_markdown(grid or verdicts.verdict_grid(frame, "")).partition("\n\n")[2]

    def has(self, rival: str) -> bool:
        """Return True if a method is among the rivals."""
        return rival in self.frame.index.get_level_values("rival")

    def wins(self, metric: str, rival: str) -> str:
        """Return the number of data sets on which RBRL is better, of all."""
        row = self.frame.loc[(metric, rival)]
        return f"{row.wins} of {row.n_datasets}"

    def losses(self, metric: str, rival: str) -> str:
        """Return the number of data sets on which RBRL is not better, of all."""
        row = self.frame.loc[(metric, rival)]
        return f"{row.n_datasets - row.wins} of {row.n_datasets}"

    def range(self, metric: str, rival: str) -> str:
        """Return the smallest and the largest difference on a data set."""
        row = self.frame.loc[(metric, rival)]
        return f"{signed_value(row.low)} to {signed_value(row.high)}"

    def mean(self, metric: str, rival: str) -> str:
        """Return the mean difference."""
        return signed_value(self.frame.loc[(metric, rival)]["mean"])

    def size(self, metric: str, rival: str) -> str:
        """Return the median difference, without its sign."""
        return f"{abs(self.frame.loc[(metric, rival)]['median']):.4f}"

    def tests(self, metric: str, rival: str) -> str:
        """Return Wilcoxon's p, the effect size, and the probability of the likeliest verdict."""
        row = self.frame.loc[(metric, rival)]
        chances = {"better": row.better, "equal": row.equivalent, "worse": row.worse}
        answer = max(chances, key=lambda name: chances[name])
        chance = f"P({answer}) = {chances[answer]:.2f}"
        return f"Wilcoxon-Holm p = {p_text(row.p_value)}, r = {signed_value(row.effect, 2)}, {chance}"

    def chance(self, metric: str, rival: str) -> str:
        """Return the probability that the two are practically equal."""
        return f"{self.frame.loc[(metric, rival)].equivalent:.2f}"

    @property
    def alone(self) -> int:
        """Number of verdicts "better" and "worse" that Wilcoxon's test does not find."""
        sure = self.frame.verdict.isin([verdicts.BETTER, verdicts.WORSE])
        return int((sure & (self.frame.p_value > verdicts.LEVEL)).sum())

    def count(self, verdict: str) -> int:
        """Count the comparisons with this verdict."""
        return int((self.frame.verdict == verdict).sum())


def tuning_parts(recorded: Recorded) -> dict[str, str]:
    """Return the effect of a search on the first split alone, as a table and as a sentence."""
    sentence = "A search on the first split alone has seen rows that other splits test on."
    if not recorded.has("paper-quick"):
        return {"table": "", "sentence": sentence}
    plan, every, first = (
        read_plan("paper"),
        as_published(recorded.rows("paper")),
        as_published(recorded.rows("paper-quick")),
    )
    on_every = [m for m in plan.methods if all(m.tuned_on(d, plan.tuning.on) == "every" for d in plan.datasets)]
    names = as_published(recorded.rows("paper")[recorded.rows("paper").method.isin([m.name for m in on_every])]).methods
    methods = [name for name in paper_methods() if name in names and name in first.methods]
    if not methods:
        return {"table": "", "sentence": sentence}
    frame = verdicts.tuning_effect(every, first, methods)
    low, high = frame.change.min(), frame.change.max()
    what = f"For {' and '.join(methods)}, searched both ways, it moves the means over data sets by"
    return {
        "table": to_markdown(verdicts.tuning_table(frame)),
        "sentence": f"{sentence} {what} {signed_value(low)} to {signed_value(high)}, mostly upwards.",
    }


def oracle_parts(recorded: Recorded) -> dict[str, str] | None:
    """Return the parts about all points of the grid, or None if none is recorded."""
    if not recorded.has_table(oracle.TABLE):
        return None
    frame, facts = recorded.table(oracle.TABLE), recorded.facts(oracle.TABLE)
    table, weights = oracle.oracle_table(frame, recorded), oracle.weight_table(frame)
    return {
        "state": f"Recorded on {facts['date']} with rbrl {facts['version']}: {len(frame):,} points ({facts['machine']}).",
        "table": to_markdown(table),
        "weights": to_markdown(weights),
        "answer": _answer(table.frame),
        "hypothesis": _hypothesis(weights.frame),
    }


def _answer(frame: pd.DataFrame) -> str:
    """State the pairs with a point that gives all six figures, those without one, and those not searched."""
    n_splits = frame.n_splits if "n_splits" in frame else pd.Series(float("nan"), frame.index)
    fewer = [f" ({n:.0f} of {len(oracle.SPLITS)} splits)" if n < len(oracle.SPLITS) else "" for n in n_splits]
    frame = frame.assign(pair=[f"{TITLES[m]} on {d}{text}" for m, d, text in zip(frame.method, frame.dataset, fewer)])
    done = frame[n_splits.notna()]
    hit, short = (done[(done.within3 == len(oracle.METRICS)) == all_six] for all_six in (True, False))
    missed = [f"{row.pair}: {int(row.within3)} of {len(oracle.METRICS)}" for row in short.itertuples()]
    text = f"Of {len(frame)} such pairs {len(done)} were searched. Some point gives all six figures within 3 standard "
    text += f"deviations for {join(list(hit.pair)) if len(hit) else 'none'}: {int(hit.far.sum())} of the "
    text += f"{int(frame.far.sum())} unexplained cells are then a matter of which parameters were chosen."
    text += f" No point does for others; at best {join(missed)}." if missed else ""
    left = list(frame.pair[~frame.index.isin(done.index)])
    return text + (f" Not run, for want of time: {join(left)}." if left else "")


def _hypothesis(found: pd.DataFrame) -> str:
    """State whether another weight gives more of the paper's figures, on the data sets where it was not found."""
    table = found.pivot(index="dataset", columns="weight", values="within3").reindex(
        columns=[oracle.PLAIN, *oracle.WEIGHTED]
    )
    names = [data.name for data in read_plan("paper").datasets if data.name not in FOUND_ON]
    sentences = []
    for kind, model in (("text", "linear"), ("dense", "kernel")):
        sets = [name for name in names if CARDS[name].model == model]
        tried = table.reindex(sets).dropna()
        if tried.empty:
            sentences.append(
                f"None of the {len(sets)} other {kind} sets was run, for want of time: it stays open there."
            )
            continue
        more, fewer = (
            {one: int((sign * (tried[one] - tried[oracle.PLAIN]) > 0).sum()) for one in WEIGHTS} for sign in (1, -1)
        )
        counts = [
            f"{name} gives more of the six figures than the published model on {more[one]} of them and fewer on {fewer[one]}"
            for one, name in WEIGHTS.items()
        ]
        sentences.append(
            f"Other {kind} sets tried: {join(tried.index)} ({len(tried)} of {len(sets)}); {', '.join(counts)}."
        )
    return " ".join(sentences)
