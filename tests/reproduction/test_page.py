"""The page of the reproduction: complete from what is recorded, and never a word of what is not."""

import re

import pandas as pd
import pytest
from published_rows import effort, published_rows
from reproduction.criteria import CRITERIA, choice_table, name_of, variant_tables
from reproduction.page import write_pages
from reproduction.recorded import Recorded, facts, write_rows, write_table
from reproduction.studies import penalty_table, width_table

CAUSE = """
[[cause]]
title = "Equal terms"
change = "fair"
methods = ["BR"]
text = "Because."
"""


def far(dataset, metric, method):
    return 0.5 if (dataset, metric) == ("arts", "coverage") and method in ("BR", "CLR") else 0.0


@pytest.fixture
def recorded(tmp_path):
    """Results as the paper's, with two far cells, of which equal terms explain one."""
    folder = tmp_path / "results"
    plans = {"paper": far, "paper-fair": None, "paper-hamming-loss": far, "paper-quick": None}
    for name, change in plans.items():
        rows = published_rows(change=change)
        write_rows(folder / f"{name}.csv", rows, facts())
        write_table(folder / f"{name}-tuning.csv", effort(rows), facts())
    emotions = published_rows(datasets=["emotions"])
    write_rows(folder / "paper-unscaled.csv", emotions, facts())
    write_rows(folder / "paper-two-metrics.csv", published_rows(datasets=["emotions", "arts"]), facts())
    chosen = pd.DataFrame([("arts", "br", name_of(one), 2, 0.5) for one in CRITERIA])
    chosen.columns = ["dataset", "method", "criterion", "n_tunings", "same"]
    write_table(folder / "criteria.csv", chosen, facts())
    return Recorded(folder)


@pytest.fixture
def page(recorded, tmp_path):
    docs = tmp_path / "docs"
    (docs / "reproduction").mkdir(parents=True)
    (docs / "reproduction" / "causes.toml").write_text(CAUSE, encoding="utf-8")
    (docs / "reproduction" / "cost.md").write_text("The next factor of ten needs thought.\n", encoding="utf-8")
    files = write_pages(recorded, docs)
    assert all(path.is_file() for path in files)
    return (docs / "reproduction.md").read_text(encoding="utf-8"), docs


def test_the_page_has_its_answers(page):
    text, _ = page
    assert "60 of 60 cells within a distance of 2, or better" in text
    assert "538 of 540 cells within a distance of 3; 1 far ones moved near by a named change, 1 unexplained" in text
    assert "place 1 of 9, overall average rank 1.84" in text
    assert "explains 1 cell. Because." in text
    assert "Unexplained: 1 cells" in text
    assert "The next factor of ten needs thought." in text
    assert "rbrl compare reproduction/plans/paper.toml --dataset business --method rank-svmz --split 0" in text
    assert "Not recorded yet: `python -m reproduction solver`." in text


def test_the_page_is_clean(page):
    text, docs = page
    assert not re.search(r"\bnan\b|\bNone\b|\{\{|\{%", text)
    assert "\n\n\n" not in text
    targets = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert len(targets) == 14
    assert all((docs / target).is_file() for target in targets)
    assert text.count("<details>") == text.count("</details>")


def test_open_questions_are_answered_on_the_same_cells(recorded):
    tables = {table.name: table.frame for table in variant_tables(recorded)}
    names = ["criterion-chosen", "criterion-reported", "search-chosen", "search-reported", "dense-chosen"]
    assert list(tables) == names
    assert tables["criterion-chosen"].cells.tolist() == [108, 108, 108]
    assert tables["criterion-reported"].cells.tolist() == [432, 432], "two metrics were tried on two sets only"
    assert tables["dense-chosen"].cells.tolist() == [54, 54], "emotions alone has both"


def test_sensitivity_in_figures():
    losses = {0.1: 0.3, 1.0: 0.2, 10.0: 0.1}
    widths = pd.DataFrame([("RBRL", factor, "hamming_loss", loss) for factor, loss in losses.items()])
    widths.columns = ["method", "factor", "metric", "value"]
    assert [cell.text for cell in width_table(widths).rows[0][2:]] == ["0.200", "0.100", "10"]
    points = [("nuclear", a, b, 1.0, "coverage", abs(a - 1) + b) for a in (0.1, 1.0, 10.0) for b in (0.1, 1.0)]
    planes = pd.DataFrame(points, columns=["fixed", "ridge", "ranking", "nuclear", "metric", "value"])
    found = penalty_table(planes).frame.iloc[0]
    assert (found.best, found.worst, found.inside) == (pytest.approx(0.1), pytest.approx(10.0), "ridge")


def test_choices_by_method(recorded):
    frame = choice_table(recorded.table("criteria")).frame
    assert frame.to_dict("records") == [{"method": "br", **dict.fromkeys(map(name_of, CRITERIA[1:]), 0.5)}]
