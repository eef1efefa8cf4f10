"""Every number of the README's section and of the first screen of the page, recomputed from the rows in another way."""

import gzip
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rbrl.experiments.statistics import bayesian_signed_rank

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "studies" / "reproduction" / "results"
LOSSES = {"hamming_loss": "Hal", "ranking_loss": "Ral", "coverage": "Cov"}
GAINS = {"subset_accuracy": "Sa", "f1_example": "F1e", "average_precision": "Ap"}
SHORT = {**LOSSES, **GAINS}
RANKING = ("ranking_loss", "coverage", "average_precision")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@cache
def recorded_rows(plan):
    return pd.read_csv(RESULTS / f"{plan}.csv.gz", comment="#")


def means(plan, metric):
    rows = recorded_rows(plan)
    rows = rows[~rows.method.isin(["brl", "clr-soft"])]
    return rows.pivot_table(index="dataset", columns="method", values=metric)


def leads(plan, metric, rival):
    """By data set: by how much RBRL is better."""
    table = means(plan, metric)
    return (table.rbrl - table[rival]) * (-1 if metric in LOSSES else 1)


@pytest.fixture(scope="module")
def near():
    """Cells near the printed ones: {(method or all, yardstick): count}."""
    table = pd.read_csv(ROOT / "studies" / "reproduction" / "published" / "results.csv")
    counts = dict.fromkeys([(who, how) for who in ("rbrl", "all") for how in ("good", "sd3", "se2", "cells")], 0)
    for metric, short in SHORT.items():
        found = means("paper", metric)
        names = {name.replace("-", ""): name for name in found}
        for cell in table[table.metric == short].itertuples():
            mean = found.loc[cell.dataset, names[cell.method.lower().replace("-", "")]]
            away = max(abs(mean - cell.mean) - 0.0005, 0) / max(cell.std, 0.001)
            better = (mean < cell.mean) == (metric in LOSSES)
            here = {"good": away <= 2 or better, "sd3": away <= 3, "se2": away <= 2 * np.sqrt(0.2), "cells": True}
            for who in ("rbrl", "all") if cell.method == "RBRL" else ("all",):
                for how, value in here.items():
                    counts[who, how] += int(value)
    return counts


def shares(rival):
    gone = [1 - leads("paper-fair", metric, rival).mean() / leads("paper", metric, rival).mean() for metric in RANKING]
    return [f"{100 * min(gone):.0f}", f"{100 * max(gone):.0f}"]


def falls(rival):
    both = [leads(plan, metric, rival).mean() for metric in RANKING for plan in ("paper", "paper-fair")]
    return [f"{value:.3f}" for value in both]


def answers():
    """How many comparisons are better, equal, worse, open."""
    found = []
    for metric in SHORT:
        table = means("paper-fair", metric)
        for rival in table.columns.drop("rbrl"):
            probability = bayesian_signed_rank(table[["rbrl", rival]], metric in GAINS, rope=0.005)
            sure = [one[0, 1] >= 0.95 for one in probability]
            found.append(sure.index(True) if any(sure) else 3)
    return [str(found.count(kind)) for kind in range(4)]


def corrected_p(metric, rival):
    """Wilcoxon's p by SciPy, corrected by hand: all smaller or equal ones are multiplied by what is left."""
    table = means("paper-fair", metric)
    raw = {name: stats.wilcoxon(table.rbrl, table[name], method="exact").pvalue for name in table if name != "rbrl"}
    ordered = sorted(raw, key=raw.get)
    steps = [raw[name] * (len(ordered) - i) for i, name in enumerate(ordered)]
    return f"{max(steps[: ordered.index(rival) + 1]):.3f}"


def wins(metric, rival):
    lead = leads("paper-fair", metric, rival)
    return [str((lead > 0).sum()), str(len(lead))]


def test_readme(near):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## The comparison of the paper, repeated\n")[1].split("\n## ")[0]
    body, _, _ = section.replace("F1", "").rpartition("\n\n[docs/reproduction.md]")
    assert len(body.split()) <= 250, "two short paragraphs"
    better, equal, worse, undecided = answers()
    cpnl, powerset = (
        leads("paper-fair", metric, name)
        for metric, name in (("f1_example", "cpnl"), ("subset_accuracy", "label-powerset"))
    )
    assert NUMBER.findall(body) == [
        *(str(near[one]) for one in (("rbrl", "good"), ("rbrl", "cells"), ("rbrl", "se2"))),
        *(str(near[one]) for one in (("all", "sd3"), ("all", "cells"), ("all", "se2"))),
        *(*shares("br"), *shares("rakel"), *falls("br")),
        *(better, str(11 * 6), "0.005", equal, worse, undecided),
        *wins("ranking_loss", "br"),
        *(str((cpnl < 0).sum()), str(len(cpnl)), corrected_p("f1_example", "cpnl")),
        *(str((powerset < 0).sum()), str(len(powerset))),
    ]
    assert wins("ranking_loss", "br") == wins("coverage", "br"), "said of both at once"


def first_screen():
    """The page down to its second section, without links and pictures."""
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    text = "\n## ".join(text.split("\n## ")[:2])
    return re.sub(r"!\[[^\]]*\]\([^)]*\)", "", re.sub(r"\]\([^)]*\)", "]", text))


def test_first_screen_of_the_page():
    head, _, body = first_screen().partition("\n## ")
    with gzip.open(RESULTS / "paper.csv.gz", "rt", encoding="utf-8") as stream:
        said = dict(line[2:].split(": ", 1) for line in stream if line.startswith("# "))
    rows = pd.read_csv(RESULTS / "paper.csv.gz", comment="#")
    made = [json.loads(said[name]) for name in said if name in ("date", "version") or name.startswith("machine")]
    date = next(one for one in made if re.fullmatch(r"\d{4}-\d\d-\d\d", one))
    others = [one for one in made if one != date]
    runs = [str((rows.status == "ok").sum()), "1000"]
    assert NUMBER.findall(head) == [*runs, *NUMBER.findall(" ".join([date, *others]))]
    br, precision = leads("paper-fair", "ranking_loss", "br"), leads("paper-fair", "average_precision", "br")
    rows = pd.read_csv(RESULTS / "paper-fair.csv.gz", comment="#")
    precisions = rows.pivot_table(index="dataset", columns="method", values="average_precision")
    hard_votes = precisions["clr"] - precisions["clr-soft"]
    assert NUMBER.findall(body) == [
        *(*shares("br"), *shares("rakel"), "0", "1", *falls("br"), *falls("rakel"), f"{hard_votes.mean():.3f}"),
        *(*wins("ranking_loss", "br"), f"{br.min():.3f}", f"{br.max():.3f}"),
        *(f"{abs(precision.min()):.3f}", f"{precision.max():.3f}", "0.2", "0.01"),
    ]
    assert precision.min() < 0 < precision.max()


def test_the_page_is_what_its_command_writes():
    """The first page again from the rows, by the reproduction's own code; figures are not drawn.

    Two digits are those of probabilities, drawn by a generator that another NumPy may have changed.
    """
    from studies.reproduction.page import render
    from studies.reproduction.recorded import Recorded

    images = {part: [] for part in ("leads", "ranks", "differences", "convergence", "sensitivity")}
    text = render(Recorded(RESULTS), images)["reproduction"]
    there = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert re.sub(r"\b[01]\.\d\d\b", "", text) == re.sub(r"\b[01]\.\d\d\b", "", there)
