"""What the first page says in words: each phrase computed from the rows that it speaks of."""

from typing import Any

import pandas as pd

from rbrl.metrics import PAPER_METRICS
from rbrl.registry import METHODS
from rbrl.report import KEYS, Table, heading, join, p_text, to_markdown, word
from reproduction import oracle, verdicts
from reproduction.paper import OURS, as_published, key, paper_methods
from reproduction.recorded import Recorded, read_plan
from reproduction.verdicts import signed_value

TITLES = {method.name: method.title for method in METHODS}
# The plan of methods that the paper leaves out.
MORE = "paper-more"
LEFT_OUT = "Chains, label powerset and BR with tuned thresholds"


class Leads:
    """RBRL's lead over the other methods under two scoring rules, as phrases.

    Parameters
    ----------
    frame : DataFrame
        As `reproduction.verdicts.artefact` gives it.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame.set_index(["metric", "rival"])

    def share(self, rival: str) -> str:
        """How much of the lead over a rival is gone with decision values, over the metrics of rankings."""
        shares = self.frame.xs(rival, level="rival").share
        return f"{100 * shares.min():.0f} to {100 * shares.max():.0f} %"

    def fall(self, metric: str, rival: str) -> str:
        """The lead under both rules."""
        row = self.frame.loc[(metric, rival)]
        return f"{row.hard:.3f} to {row.soft:.3f}".replace("-", "−")

    def lost(self, metric: str, rival: str) -> str:
        """By how much more a rival is behind with decision values than with votes."""
        row = self.frame.loc[(metric, rival)]
        return f"{row.soft - row.hard:.3f}"

    def mean(self, metric: str, rival: str) -> str:
        """The lead where the rival ranks by votes."""
        return f"{self.frame.loc[(metric, rival)].hard:.3f}"


class Judged:
    """Verdicts on RBRL, as phrases.

    Parameters
    ----------
    frame : DataFrame
        As `reproduction.verdicts.verdicts` gives it.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame, self.n = frame.set_index(["metric", "rival"]), len(frame)
        self.grid = to_markdown(verdicts.verdict_grid(frame, "")).partition("\n\n")[2]

    def wins(self, metric: str, rival: str) -> str:
        """Data sets on which RBRL is better, of all."""
        row = self.frame.loc[(metric, rival)]
        return f"{row.wins} of {row.n_datasets}"

    def losses(self, metric: str, rival: str) -> str:
        """Data sets on which RBRL is not better, of all."""
        row = self.frame.loc[(metric, rival)]
        return f"{row.n_datasets - row.wins} of {row.n_datasets}"

    def range(self, metric: str, rival: str) -> str:
        """Smallest and largest difference on a data set."""
        row = self.frame.loc[(metric, rival)]
        return f"{signed_value(row.low)} to {signed_value(row.high)}"

    def size(self, metric: str, rival: str) -> str:
        """The median difference, without its sign."""
        return f"{abs(self.frame.loc[(metric, rival)]['median']):.4f}"

    def tests(self, metric: str, rival: str) -> str:
        """Wilcoxon's p, effect size, and the probability of the likeliest answer."""
        row = self.frame.loc[(metric, rival)]
        chances = {"better": row.better, "equal": row.equivalent, "worse": row.worse}
        answer = max(chances, key=lambda name: chances[name])
        chance = f"P({answer}) = {chances[answer]:.2f}"
        return f"Wilcoxon-Holm p = {p_text(row.p_value)}, r = {signed_value(row.effect, 2)}, {chance}"

    def chance(self, metric: str, rival: str) -> str:
        """The probability that the two are equal for all that matters."""
        return f"{self.frame.loc[(metric, rival)].equivalent:.2f}"

    @property
    def alone(self) -> int:
        """Verdicts better and worse that Wilcoxon's test does not find."""
        sure = self.frame.verdict.isin([verdicts.BETTER, verdicts.WORSE])
        return int((sure & (self.frame.p_value > verdicts.LEVEL)).sum())

    def count(self, verdict: str) -> int:
        """How many comparisons have this verdict."""
        return int((self.frame.verdict == verdict).sum())


def tuning_parts(recorded: Recorded) -> dict[str, str]:
    """What a search on the first split alone changes, in a table and in a sentence."""
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
    """What is known of all points of the grid; None where nothing is."""
    if not recorded.has_table(oracle.TABLE):
        return None
    frame, said = recorded.table(oracle.TABLE), recorded.facts(oracle.TABLE)
    table, weights = oracle.oracle_table(frame, recorded), oracle.weight_table(frame)
    return {
        "state": f"Recorded on {said['date']} with rbrl {said['version']}: {len(frame):,} points ({said['machine']}).",
        "table": to_markdown(table),
        "weights": to_markdown(weights),
        "answer": _answer(table.frame),
        "hypothesis": _hypothesis(weights.frame),
    }


def _answer(frame: pd.DataFrame) -> str:
    """Which pairs have a point that gives all six figures, which have none, and which were not searched."""
    frame = frame.assign(pair=[f"{TITLES[row.method]} on {row.dataset}" for row in frame.itertuples()])
    done = frame.dropna(subset=["within3"]) if "within3" in frame else frame.iloc[:0]
    hit, short = (done[(done.within3 == len(oracle.METRICS)) == all_six] for all_six in (True, False))
    missed = [f"{row.pair} ({int(row.within3)} of {len(oracle.METRICS)})" for row in short.itertuples()]
    text = f"Of {len(frame)} such pairs {len(done)} were searched. Some point gives all six figures within 3 standard "
    text += f"deviations for {join(list(hit.pair)) if len(hit) else 'none'}: {int(hit.far.sum())} of the "
    text += f"{int(frame.far.sum())} unexplained cells are then a matter of which parameters were chosen."
    text += f" No point does for {join(missed)}." if missed else ""
    left = list(frame.pair[~frame.index.isin(done.index)])
    return text + (f" Not run, for want of time: {join(left)}." if left else "")


def _hypothesis(found: pd.DataFrame) -> str:
    """Whether another weight gives more of the paper's figures, where it was not found."""
    found_on = ("arts", "enron")
    table = found.pivot(index="dataset", columns="weight", values="within3")
    sentences = []
    for weight, name in ((oracle.DOUBLED, "Twice the weight"), (oracle.COUNTED, "|Y⁺| times the weight")):
        if not {weight, oracle.PLAIN} <= set(table):
            continue
        both = table[[oracle.PLAIN, weight]].dropna()
        both = both[~both.index.isin(found_on)]
        better, worse = (both[weight] > both[oracle.PLAIN]).sum(), (both[weight] < both[oracle.PLAIN]).sum()
        all_six = list(both.index[both[weight] == len(oracle.METRICS)])
        sentence = f"{name} gives more of the six figures than the published model on {better} of {len(both)} other "
        sentence += f"sets that were tried, fewer on {worse}, and all six on {', '.join(all_six) or 'none'}."
        sentences.append(sentence)
    return " ".join(sentences)


def more_methods(recorded: Recorded) -> dict[str, Any]:
    """Methods that the paper leaves out, beside RBRL on the same splits, where they were run."""
    if not (recorded.has(MORE) and recorded.has("paper-fair")):
        return {"limits": f"{LEFT_OUT} are not in the comparison.", "table": "", "text": ""}
    rows, fair = recorded.rows(MORE), recorded.rows("paper-fair")
    rows, ours = rows[rows.status == "ok"], fair[fair.method.map(key) == key(OURS)]
    values = rows.merge(ours, on=["dataset", "split", "metric"], suffixes=("", "_ours"))
    signs = values.metric.map({metric.name: 1 if metric.greater_is_better else -1 for metric in PAPER_METRICS})
    values["lead"] = (values.value_ours - values.value) * signs
    by_set = values.groupby(["method", "metric", "dataset"], sort=False).lead.mean()
    lines, frames = [], []
    for method in dict.fromkeys(rows.method):
        sets = list(dict.fromkeys(rows.dataset[rows.method == method]))
        leads = {metric.name: by_set[method, metric.name] for metric in PAPER_METRICS}
        cells = [f"{signed_value(lead.mean())}, {(lead > 0).sum()} of {len(lead)}" for lead in leads.values()]
        frames.append({"method": method, **{name: lead.mean() for name, lead in leads.items()}})
        lines.append((word(method), word(", ".join(sets)), *map(word, cells)))
    titles = ("RBRL against", "Data sets", *(heading(metric) for metric in PAPER_METRICS))
    note = f"Mean lead of {OURS} on these sets, and on how many it is ahead; too few sets for a test."
    table = Table("more", "", titles, tuple(lines), pd.DataFrame(frames), note=note)
    n_splits, plan = rows.split.nunique(), read_plan(MORE)
    done = len(rows.drop_duplicates(KEYS))
    text = (
        f"BR with a threshold for each label, label powerset and ensembles of chains, all with decision values and the "
        f"non-empty rule, three values of C searched on every split, {n_splits} splits ([reproduction/plans/{MORE}.toml]"
        f"(../reproduction/plans/{MORE}.toml); {done} of its {plan.n_runs} runs are recorded)."
    )
    where = f"{rows.dataset.nunique()} of the ten sets and {n_splits} splits"
    limits = f"{LEFT_OUT} were run on {where}, with three values of C."
    return {"limits": limits, "table": to_markdown(table).partition("\n\n")[2], "text": text}
