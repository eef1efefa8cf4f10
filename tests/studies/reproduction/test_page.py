"""The page of the reproduction: complete from what is recorded, and never a word of what is not."""

import re
from html import escape

import pandas as pd
import pytest
from published_rows import effort, published_rows

from studies.reproduction.criteria import CRITERIA, choice_table, name_of, variant_tables
from studies.reproduction.page import PAGES, write_pages
from studies.reproduction.recorded import Recorded, facts, write_rows, write_table
from studies.reproduction.studies import penalty_table, width_table

CAUSE = """
[[cause]]
title = "Equal terms"
change = "fair"
methods = ["BR"]
text = "Because."
"""


def far(dataset, metric, method):
    return 0.5 if (dataset, metric) == ("arts", "coverage") and method in ("BR", "CLR") else 0.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Results as the paper's, with two far cells, of which equal terms explain one."""
    folder = tmp_path_factory.mktemp("results")
    plans = {"paper": far, "paper-fair": None, "paper-hamming-loss": far, "paper-quick": None}
    for name, change in plans.items():
        rows = published_rows(change=change)
        write_rows(folder / f"{name}.csv.gz", rows, facts())
        write_table(folder / f"{name}-tuning.csv.gz", effort(rows), facts())
    emotions = published_rows(datasets=["emotions"])
    write_rows(folder / "paper-unscaled.csv.gz", emotions, facts())
    write_rows(folder / "paper-two-metrics.csv.gz", published_rows(datasets=["emotions", "arts"]), facts())
    chosen = pd.DataFrame([("arts", "br", name_of(one), 2, 0.5) for one in CRITERIA])
    chosen.columns = ["dataset", "method", "criterion", "n_tunings", "same"]
    write_table(folder / "criteria.csv.gz", chosen, facts())
    return Recorded(folder)


@pytest.fixture(scope="module")
def docs(recorded, tmp_path_factory):
    """The pages, with a cause and a note of their own; what was written by hand for the real ones is not there."""
    folder, docs = tmp_path_factory.mktemp("by hand"), tmp_path_factory.mktemp("docs")
    (folder / "notes").mkdir()
    (folder / "causes.toml").write_text(CAUSE, encoding="utf-8")
    (folder / "notes" / "cost.md").write_text("The next factor of ten needs thought.\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studies.reproduction.causes.by_hand", lambda name: folder / name)
        patch.setattr("studies.reproduction.page.by_hand", lambda name: folder / name)
        files = write_pages(recorded, docs, docs / "one" / "page.html")
    assert all(path.is_file() for path in files)
    return docs


def text_of(docs, name=""):
    return (docs / ("reproduction.md" if not name else f"reproduction/{name}.md")).read_text(encoding="utf-8")


def test_the_pages_have_their_answers(docs):
    first = text_of(docs)
    assert "| RBRL | all data sets | 60 | 60 | 60 | 60 | 60 |" in first
    assert "| all methods | all data sets | 540 | 538 | 538 | 538 | 538 |" in first
    assert "2 cells are farther than 3; 1 of them come near under a named change of the protocol, 1 do not." in first
    assert "RBRL's is 1.84 (the paper), 1.84 (ours, its rules), 1.84 (ours, equal terms)" in first
    table3 = text_of(docs, "table3")
    assert "explains 1 cell. Because." in table3
    assert "Unexplained: 1 cells" in table3
    assert "The next factor of ten needs thought." in text_of(docs, "cost")
    commands = "rbrl compare studies/reproduction/plans/paper.toml --dataset business --method rank-svmz --split 0"
    assert commands in text_of(docs, "commands")
    assert "Not recorded yet: `python -m studies.reproduction solver`." in text_of(docs, "time")
    assert "Not recorded yet: `python -m studies.reproduction oracle --minutes 60`." in text_of(docs, "oracle")


def test_the_pages_are_clean(docs):
    names = ["", *PAGES]
    for name in names:
        text, folder = text_of(docs, name), docs / "reproduction" if name else docs
        assert not re.search(r"\bnan\b|\bNone\b|\{\{|\{%", text), name
        assert "\n\n\n" not in text
        assert all((folder / target).is_file() for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text))
        assert text.count("<details>") == text.count("</details>")
        links = re.findall(r"\]\(([^)]+\.md)\)", text)
        assert all((folder / link).is_file() for link in links), name
    assert len(text_of(docs).partition("<details>")[0].splitlines()) <= 250


def test_the_html_page_is_the_same_text_and_needs_no_other_file(docs):
    html = (docs / "one" / "page.html").read_text(encoding="utf-8")
    assert not re.search(r'href="(?!#|https?:)', html)
    figures = re.findall(r'src="([^"]+)"', html)
    assert len(figures) == sum(text_of(docs, name).count("![") for name in ["", *PAGES])
    assert all(figure.startswith("data:image/svg+xml;base64,") for figure in figures)
    for heading in re.findall(r"^## (.+)$", text_of(docs), flags=re.MULTILINE):
        assert f"<h2>{escape(heading, quote=False)}</h2>" in html
    for name in PAGES:
        assert f'id="{name}"' in html
        assert f'href="#{name}"' in html
    assert html.count("<table>") == sum(len(re.findall(r"^\|[-:| ]+\|$", text_of(docs, n), re.M)) for n in ["", *PAGES])


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
