"""What the paper leaves unsaid: answers to open questions, and how near the paper each comes."""

from collections import Counter

import pandas as pd

from rbrl.report.reproduction.criteria import variant_table
from rbrl.report.reproduction.names import as_published
from rbrl.report.table import Cell, Table, word

CHOSEN_ON = ("emotions", "arts")
VARIANTS = {
    "criterion": {
        "Mean rank over the six metrics": "paper",
        "Average precision": "paper-average-precision",
        "Hamming loss": "paper-hamming-loss",
        "Subset accuracy": "paper-subset-accuracy",
        "Mean rank over subset accuracy and average precision": "paper-two-metrics",
    },
    "search": {"Searched as the plan says": "paper", "Searched on the first split only": "paper-quick"},
    "dense": {"Dense sets standardised": "paper-quick", "Dense sets as they are": "paper-unscaled"},
    "text": {"Text sets as they are": "paper-quick", "Text sets standardised": "paper-scaled"},
}
TITLES = {
    "criterion": "Criterion of cross-validation",
    "search": "Splits that are searched",
    "dense": "Standardisation of dense features",
    "text": "Standardisation of text",
}


def variant_tables(source) -> list[Table]:
    """For each question that the paper leaves open: how near each answer comes, where it was chosen and elsewhere."""
    tables = []
    for question, plans in VARIANTS.items():
        known = {name: as_published(source.rows(plan)) for name, plan in plans.items() if source.has(plan)}
        answers = Counter(name for one in known.values() for name in one.datasets)
        sets = [name for name, number in answers.items() if number > 1]
        groups = {
            "chosen on": [d for d in sets if d in CHOSEN_ON],
            "reported on": [d for d in sets if d not in CHOSEN_ON],
        }
        for group, names in groups.items():
            complete = {answer: one for answer, one in known.items() if set(names) <= set(one.datasets)}
            if len(complete) > 1 and names:
                title = f"{TITLES[question]}, {group} {', '.join(names)}"
                table = variant_table(complete, names, title, f"{question}-{group.split()[0]}")
                tables += [table] if table.frame.cells.any() else []
    return tables


def choice_table(frame: pd.DataFrame) -> Table:
    """By method: how often the other criteria choose the same point as the first."""
    first, *others = dict.fromkeys(frame.criterion)
    rows, records = [], []
    for method, part in frame.groupby("method", sort=False):
        shares = {}
        for name in others:
            own = part[part.criterion == name]
            shares[name] = float((own.same * own.n_tunings).sum() / own.n_tunings.sum())
        rows.append((word(method), *(Cell(f"{share:.0%}", share) for share in shares.values())))
        records.append({"method": method, **shares})
    titles = ("Method", *(name.replace("_", " ").capitalize() for name in others))
    title = f"Share of searches in which another criterion chooses the same point as {first.replace('_', ' ')}"
    return Table("choices", title, titles, tuple(rows), pd.DataFrame(records))
