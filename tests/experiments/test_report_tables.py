"""Tables, and the forms they are written in."""

import csv
import io
import json
from html.parser import HTMLParser

import pytest
from fake_rows import failing, make_rows, published_results
from rich.console import Console

from rbrl.experiments import Results, all_tables, friedman_table
from rbrl.experiments.comparison_tables import ablation_table, pairs_table, ranks_table, results_table, time_table
from rbrl.experiments.page import render_page
from rbrl.experiments.tables import (
    FORMATS,
    Cell,
    Table,
    save_table,
    to_csv,
    to_json,
    to_latex,
    to_markdown,
    to_terminal,
    write_text,
)

HOSTILE = "<script>alert(1)</script>|&_%$#{}\\*[x](y)"


def printed(table, width=80):
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(to_terminal(table, console))
    return console.file.getvalue()


def test_a_run_has_the_papers_tables(rows):
    tables = all_tables(Results.from_rows(rows))
    names = ["datasets", "results", "average-ranks", "friedman", "pairs", "ablation", "parameters", "time"]
    assert list(tables) == names
    assert "pairs" not in all_tables(Results.from_rows(make_rows(datasets=("sea",))))


def test_best_is_bold_in_every_line(rows):
    table = results_table(Results.from_rows(rows))
    assert all([cell.best for cell in row[2:]] == [True, False, False] for row in table.rows)
    assert table.rows[0][2].text.startswith("0.20")
    assert "±" in table.rows[0][2].text


def test_values_that_look_equal_are_both_best(rows):
    rows.loc[rows.method == "rbrl", "value"] = rows.loc[rows.method == "brl", "value"].to_numpy() + 1e-5
    table = results_table(Results.from_rows(rows))
    assert [cell.best for cell in table.rows[0][2:]] == [True, True, False]


def test_fewer_splits_are_marked(rows):
    table = results_table(Results.from_rows(failing(rows, "sea", "br", split=0)))
    assert table.rows[0][4].text.endswith("*")
    assert "fewer than 3 splits" in table.note


def test_a_single_split_has_a_value_and_no_deviation(tmp_path):
    tables = all_tables(Results.from_rows(make_rows(n_splits=1)))
    for table in tables.values():
        for text in (printed(table, width=200), *(write(table) for write in FORMATS.values())):
            assert "±" not in text
            assert r"\pm" not in text
    results = tables["results"]
    assert all(row["std"] is None for row in json.loads(to_json(results)))
    assert all(row["std"] == "" for row in csv.DictReader(io.StringIO(to_csv(results))))
    assert "±" not in render_page(make_rows(n_splits=1))


def test_a_mean_of_one_finished_split_has_a_mark_and_no_deviation(rows):
    rows = failing(failing(rows, "sea", "br", split=0), "sea", "br", split=1)
    texts = [cell.text for cell in results_table(Results.from_rows(rows)).rows[0][2:]]
    assert ["±" in text for text in texts] == [True, True, False]
    assert texts[2].endswith("*")


def test_ablation_counts_lines(rows):
    table = ablation_table(Results.from_rows(rows), "br", "rbrl")
    assert table.note == "rbrl is better in 24 of 24 rows, br in 0."


def test_times_are_means(rows):
    table = time_table(Results.from_rows(rows))
    assert table.columns[1:3] == ("brl train", "brl test")
    assert [cell.text for cell in table.rows[0][1:3]] == ["0.5", "0.01"]
    assert table.frame.tune_seconds.iloc[0] == 5


def test_friedman_without_a_test_says_why():
    table = friedman_table(Results.from_rows(make_rows(datasets=("sea",))))
    assert (
        table.note
        == "Not tested. A test needs several data sets: splits of one data set share rows, and say little about others."
    )
    assert {row[-1].text for row in table.rows} == {"–"}
    failed = friedman_table(Results.from_rows(failing(make_rows(datasets=("sea", "hill")), "sea", "br")))
    assert failed.note.startswith("Not tested. A test needs several")
    alone = friedman_table(Results.from_rows(make_rows(methods=("br",))))
    assert (
        alone.note
        == "Nothing is tested: a test needs two methods, and two data sets on which all methods have a value."
    )


def test_friedman_of_few_data_sets_is_exact_and_says_what_it_cannot_decide():
    """Where all agree F_F is infinite; of two data sets that happens once in 24 times for four methods, in 6 for three."""
    table = friedman_table(Results.from_rows(make_rows(("sea", "hill"), ("a", "b", "c", "d"))))
    assert [cell.text for cell in table.rows[0][1:]] == ["∞", "∞", "0.042", "3.317*", "yes"]
    assert "p is exact" in table.note
    assert "* More than average ranks can differ by: no two methods can be told apart." in table.note
    assert table.frame.p_from.tolist() == ["exact"] * 6
    assert not table.frame.decides_pairs.any()
    table = friedman_table(Results.from_rows(make_rows(("sea", "hill"))))
    assert [cell.text for cell in table.rows[0][1:]] == ["∞", "–", "0.167", "2.344*", "too few data sets"]
    assert "p could not be less than 0.167 whatever the results." in table.note


def test_p_of_more_methods_is_drawn_and_of_many_data_sets_approximated():
    drawn = friedman_table(Results.from_rows(make_rows(methods=[f"m{i}" for i in range(9)])))
    assert set(drawn.frame.p_from) == {"permutation"}
    assert drawn.rows[0][3].text == "1e-05"
    assert "p is from 99,999 random orders" in drawn.note
    assert friedman_table(published_results()).note == "Level 0.05."


def test_pairs_have_effect_sizes_and_wilcoxons_test():
    results = Results.from_rows(make_rows([f"d{i}" for i in range(8)]))
    table = pairs_table(results)
    assert len(table.rows) == 12
    assert [cell.text for cell in table.rows[1][:7]] == ["Hamming loss ↓", "brl", "br", "2.00", "8", "0", "0"]
    assert table.rows[1][7].text.startswith("+0.2")
    assert [cell.text for cell in table.rows[1][8:]] == ["+1.00", "0.023"]
    assert table.note.endswith("On 8 data sets the test gives 0.008 at least, corrected 0.023.")
    assert len(table.frame) == 18
    assert table.frame.p_holm.max() == pytest.approx(3 / 2**7)
    assert (table.frame.query("metric == 'coverage'").median_difference > 0).all()


def test_pairs_of_few_data_sets_say_that_nothing_can_be_found():
    table = pairs_table(Results.from_rows(make_rows()))
    assert "On 4 data sets the test gives 0.125 at least, corrected 0.375, so that it can tell no" in table.note


@pytest.mark.parametrize("width", [60, 80, 120, 500])
def test_terminal_tables_keep_to_the_width_and_lose_nothing(rows, width):
    table = results_table(Results.from_rows(make_rows(methods=[f"method-{i}" for i in range(9)])))
    text = printed(table, width)
    assert max(map(len, text.splitlines())) <= width
    assert all(cell.text in text for row in table.rows for cell in row)


def test_csv_has_full_precision(rows):
    results = Results.from_rows(rows)
    table = results_table(results)
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert float(lines[0]["mean"]) == results.summary["mean"][0]
    assert json.loads(to_json(table))[0]["mean"] == pytest.approx(results.summary["mean"][0], abs=1e-14)


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names_are_escaped_everywhere(form):
    rows = make_rows(datasets=(HOSTILE, "b"), methods=(HOSTILE, "c"))
    for table in all_tables(Results.from_rows(rows)).values():
        text = FORMATS[form](table)
        if form == "html":
            assert "script" not in Tags(text).tags
        if form == "md":
            lines = [line.replace(r"\|", "") for line in text.splitlines() if line.startswith("|")]
            assert len({line.count("|") for line in lines}) == 1
        if form == "tex":
            assert "_%$" not in text
            assert r"\_\%\$\#\{\}\textbackslash{}" in text or HOSTILE not in str(table.rows)


def test_latex_and_markdown_mark_the_best(rows):
    table = ranks_table(Results.from_rows(rows))
    assert r"\textbf{1.00}" in to_latex(table)
    assert r"\midrule" + "\nOverall" in to_latex(table)
    assert "**1.00**" in to_markdown(table)
    assert r"$\downarrow$" in to_latex(table)


def test_rich_markup_in_names_is_text():
    table = Table("t", "[red]t[/red]", ("a", "b"), ((Cell("[bold]x"), Cell("1", 1)),), None)
    assert "[bold]x" in printed(table)


def test_tables_are_written_to_files(rows, tmp_path):
    paths = save_table(ranks_table(Results.from_rows(rows)), tmp_path / "new")
    assert [path.name for path in paths] == [f"average-ranks.{form}" for form in ("csv", "tex", "md", "html")]


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = write_text(tmp_path / "new" / "table.md", "first")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "half of it, \ud800")
    assert path.read_text(encoding="utf-8") == "first"
    assert list(path.parent.iterdir()) == [path]
