"""The page as text: what it says, and that nothing in it can break out."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from fake_rows import failing, make_rows, published_results

from rbrl.experiments import Results, compare, verdict, write_page
from rbrl.experiments.page import render_page
from rbrl.experiments.results import Sizes

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Tags, attributes and whether every element is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.open, self.texts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


HOSTILE = [
    "<script>alert(1)</script>",
    "</title></style></script><img src=x onerror=alert(1)>",
    "\"onmouseover='alert(1)' x=\"",
    "{{ 7 * 7 }}{% raw %}",
    "--><svg onload=alert(1)>",
    "]]>&lt;&#60;\u202e\u0000",
]


@pytest.fixture(scope="module")
def plain():
    """A page of three methods on two data sets without odd names."""
    return Page(render_page(make_rows(("a", "b"), ("a", "c", "d"))))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name, plain):
    rows = make_rows(datasets=(name, "b"), methods=(name, "c", "d"))
    rows = failing(rows.assign(params=name, machine=name, version=name), "b", "d", split=0, error=name)
    page = Page(render_page(rows, title=name, command=name, plan=name))
    assert page.open == []
    assert page.tags.count("script") == plain.tags.count("script") == 1
    assert page.tags.count("img") == 0
    assert not any(key.startswith("on") for _, attributes in page.attributes for key in attributes)


def test_the_page_stands_alone(rows):
    text = render_page(rows)
    sources = re.findall(r'(?:src|href)="([^"#][^"]*)"', text)
    assert sources == ["data:,"]
    assert "url(" not in text.replace("url(#", "")
    assert not re.search(r"https?://(?!www\.w3\.org)", text)


def test_ids_are_unique_and_links_lead_somewhere():
    page = Page(render_page(published_results()))
    ids = [attributes["id"] for _, attributes in page.attributes if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [a["href"][1:] for tag, a in page.attributes if tag == "a"]
    assert targets
    assert set(targets) <= set(ids)


def test_tables_have_captions_and_scopes(rows):
    page = Page(render_page(rows))
    assert page.tags.count("caption") == page.tags.count("table")
    assert all("scope" in attributes for tag, attributes in page.attributes if tag == "th")
    heads = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert heads[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(heads))
    assert all(a.get("role") == "img" and "aria-labelledby" in a for tag, a in page.attributes if tag == "svg")


def test_the_same_rows_give_the_same_page(rows, tmp_path):
    first, second = (write_page(rows, tmp_path / name / "report.html") for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_all_leaders_are_marked():
    """Of two methods that trade places on two data sets neither comes first."""
    rows = make_rows(("sea", "hill"), ("brl", "rbrl"))
    swapped = rows.assign(
        method=rows.method.where(rows.dataset == "sea", rows.method.map({"brl": "rbrl", "rbrl": "brl"}))
    )
    text = render_page(pd.concat([swapped.assign(dataset=swapped.dataset + copy) for copy in "abc"]))
    assert "No lead is larger than chance could explain." in text
    assert text.count('<li class="first">') == 2


def lead(text):
    return re.search('<p class="lead">(.*)</p>', text)[1]


def test_one_data_set_crowns_nobody_and_is_called_untested_once():
    text = render_page(make_rows(datasets=("sea",)))
    assert lead(text) == (
        "3 methods on 1 data set, compared by 6 metrics. There is no test, so the sentences below only describe these "
        "results and name no winner."
    )
    assert text.count("not tested") == 1
    assert text.count("A test needs several data sets: splits of one data set share rows") == 1
    assert '<li class="first">' not in text
    assert "Ranks on sea" in text


def test_too_few_data_sets_for_a_test_crown_nobody_either():
    """Two data sets agree on the order of three methods once in six times, by chance."""
    text = render_page(make_rows(datasets=("sea", "hill")))
    assert lead(text).endswith("and name no winner.")
    assert text.count("not tested") == 1
    assert text.count("2 data sets are too few to test 3 methods: no result could be significant.") == 1
    assert text.count("too few data sets</span>") == 6
    assert "p could not be less than 0.167 whatever the results" in text
    assert "critical-difference diagram" not in text.lower()


def test_the_headline_names_who_leads_and_where_it_was_tested():
    text = lead(render_page(published_results()))
    assert text == (
        "9 methods on 10 data sets, compared by 6 metrics. RBRL ranks first on subset accuracy, ranking loss, coverage and "
        "average precision, significantly before at least one other method; CLR on Hamming loss; CPNL on F1-example."
    )
    rows = make_rows()
    changed = rows.assign(value=rows.value.where(rows.metric != "coverage", 0.5))
    assert lead(render_page(changed)) == (
        "3 methods on 4 data sets, compared by 6 metrics. brl ranks first on Hamming loss, subset accuracy, F1-example, "
        "ranking loss and average precision, significantly before at least one other method. Not tested: coverage."
    )


def test_methods_that_look_equal_share_their_place():
    """Means of 0.1881, 0.1882 and 0.1884 are all shown as 0.188."""
    rows = make_rows(datasets=("sea",), methods=("a", "b", "c", "d"), n_splits=1)
    values = {"a": 0.1884, "b": 0.1881, "c": 0.1882, "d": 0.1886}
    results = Results.from_rows(rows.assign(value=rows.method.map(values)))
    assert compare(results, "hamming_loss").ranks.to_dict() == {"a": 2, "b": 2, "c": 2, "d": 4}
    text = render_page(results)
    assert "a, b and c are best with 0.188, before d with 0.189." in text
    assert "Methods whose means look equal share their ranks." in text
    exact = compare(replace(results, as_printed=False), "hamming_loss")
    assert exact.ranks.to_dict() == {"a": 3, "b": 1, "c": 2, "d": 4}


def test_small_means_keep_digits_to_tell_them_apart():
    """A Hamming loss over many labels is 0.001 for every method."""
    rows = make_rows(datasets=("sea",), n_splits=1)
    results = Results.from_rows(rows.assign(value=rows.method.map({"brl": 0.00121, "rbrl": 0.00124, "br": 0.001241})))
    assert compare(results, "hamming_loss").ranks.to_dict() == {"brl": 1, "rbrl": 2.5, "br": 2.5}
    assert "brl is best with 0.00121, before rbrl and br with 0.00124." in render_page(results)


def test_a_single_method_is_compared_with_nobody():
    text = render_page(make_rows(methods=("brl",)))
    assert text.count("Only brl has values: nothing to compare.") == 6
    assert lead(text).startswith("1 method on 4 data sets")


def test_sizes_of_a_file_are_shown(rows):
    datasets = pd.DataFrame([("sea", 1234, 5, 6, 1.5, 0.25)], columns=["dataset", *Sizes._fields[:-1]])
    text = render_page(Results.from_rows(rows, datasets))
    assert "1,234 samples, 5 features, 6 labels" in text
    assert 'data-v="0.25"' in text


def test_failures_are_shown(rows):
    text = render_page(failing(rows, "sea", "br", split=1, error="ValueError: no such kernel"))
    assert "ValueError: no such kernel" in text
    assert "Failures" in text
    assert "Failures" not in render_page(rows)


def test_a_run_without_a_single_value_still_has_a_page(rows):
    text = render_page(rows.assign(value=np.nan, status="failed", error="no"))
    assert "nothing can be ranked" in text


def test_verdict_on_the_published_ranking_loss():
    results = published_results()
    found = verdict(compare(results, "Ral"), results)
    assert found.level == "significant"
    assert found.sentence == (
        "RBRL ranks first, 1.30 on average over 10 data sets, significantly before Rank-SVMz, BR, ML-kNN and RAKEL. "
        "The lead over CPNL, CLR, Rank-SVM and MLFE may be chance."
    )
    assert "F_F = 52.57, critical value 2.07, p < 1e-16;" in found.evidence
    assert "Wilcoxon" not in found.evidence


def test_verdict_by_few_data_sets_that_agree():
    """Four methods on two data sets: the order is no chance at the level 0.05, but of no pair can that be said."""
    results = Results.from_rows(make_rows(("sea", "hill"), ("a", "b", "c", "d")))
    comparison = compare(results, "coverage")
    assert comparison.test.p_value == pytest.approx(1 / 24)
    assert comparison.distance > 3
    assert comparison.groups == comparison.beaten("a") == []
    assert lead(render_page(results)).endswith(
        "The methods differ on all 6 metrics, but the lead of the first over any other may be chance."
    )
    found = verdict(comparison, results)
    assert found.level == "chance"
    assert found.sentence.endswith("The methods differ, but 2 data sets are too few to say which.")
    assert "F_F = ∞, critical value ∞, p = 0.042 (exact);" in found.evidence
    assert "larger than any possible difference of ranks" in found.evidence


def test_verdict_has_wilcoxons_word_where_it_can_speak():
    results = Results.from_rows(make_rows([f"d{i}" for i in range(8)]))
    found = verdict(compare(results, "coverage"), results)
    assert found.sentence.endswith("significantly before br. The lead over rbrl may be chance.")
    assert "Wilcoxon's test with Holm's correction puts brl before rbrl and br." in found.evidence


def test_verdict_on_methods_that_do_not_differ():
    rows = make_rows()
    rows["value"] = np.random.default_rng(1).random(len(rows))
    found = verdict(compare(Results.from_rows(rows), "coverage"), Results.from_rows(rows))
    assert found.level == "chance"
    assert "do not differ significantly" in found.sentence
    assert "4 data sets are few" in found.evidence


def test_verdict_on_one_data_set_claims_no_significance():
    results = Results.from_rows(make_rows(datasets=("sea",)))
    found = verdict(compare(results, "hamming_loss"), results)
    assert found.level == "untested"
    assert found.sentence.startswith("On sea, brl is best with 0.2")
    assert (
        found.evidence
        == "A test needs several data sets: splits of one data set share rows, and say little about others."
    )


def test_verdict_on_one_data_set_names_all_that_look_equal():
    rows = make_rows(datasets=("sea",), n_splits=1).query("metric == 'hamming_loss'")
    results = Results.from_rows(rows.assign(value=[0.1881, 0.1884, 0.2]))
    found = verdict(compare(results, "hamming_loss"), results)
    assert found.sentence == "On sea, brl and rbrl are best with 0.188, before br with 0.200."
