"""Verdicts on RBRL: leads by hand, words by probabilities, and what hard votes are worth."""

import pytest
from published_rows import published_rows

from rbrl.metrics import get_metric
from studies.reproduction import verdicts
from studies.reproduction.drawings import draw_leads
from studies.reproduction.figures import lead_table
from studies.reproduction.paper import as_published, published_results
from studies.reproduction.phrases import Leads, Verdicts


@pytest.fixture(scope="module")
def judged():
    return verdicts.verdicts(published_results()).set_index(["metric", "rival"])


def test_verdicts_of_the_printed_table(judged):
    assert len(judged) == 6 * 8
    row = judged.loc[("ranking_loss", "BR")]
    assert (row.wins, row.n_datasets, row.effect, row.verdict) == (10, 10, 1.0, "better")
    assert row.p_value == pytest.approx(8 / 2**9)
    gains = verdicts.gains(published_results(), get_metric("ranking_loss"), "BR")
    assert gains["emotions"] == pytest.approx(0.246 - 0.138)
    assert row["mean"] == pytest.approx(gains.mean())
    assert (judged[["better", "equivalent", "worse"]].sum(axis=1) - 1).abs().max() < 1e-12


def test_a_verdict_needs_its_probability(judged):
    sure = judged[["better", "equivalent", "worse"]].max(axis=1) >= 0.95
    assert ((judged.verdict == "open") == ~sure).all()
    assert set(judged.verdict) == {"better", "equal", "open"}


def closer(dataset, metric, method):
    """BR comes to 0.02 from RBRL in coverage, on every set."""
    if (metric, method) != ("coverage", "BR"):
        return 0.0
    means = published_results().means(get_metric(metric)).loc[dataset]
    return means["RBRL"] + 0.02 - means["BR"]


def test_the_share_of_a_lead_that_is_gone():
    hard, soft = (as_published(published_rows(change=change)) for change in (None, closer))
    frame = verdicts.artefact(hard, soft, ["BR"])
    lead = frame.set_index("metric").hard["coverage"]
    assert frame.set_index("metric").soft["coverage"] == pytest.approx(0.02)
    assert frame.set_index("metric").share["coverage"] == pytest.approx(1 - 0.02 / lead)
    assert frame.set_index("metric").share["ranking_loss"] == pytest.approx(0)
    leads = Leads(frame)
    assert leads.fall("coverage", "BR") == f"{lead:.3f} to 0.020"
    assert leads.share("BR") == f"0 to {100 * (1 - 0.02 / lead):.0f} %"
    table = lead_table(hard, soft)
    assert len(table) == 3 * 4 * 10
    assert len(draw_leads(table, 0.005).axes) == 3


def test_phrases_have_the_figures(judged):
    said = Verdicts(judged.reset_index())
    assert said.wins("ranking_loss", "BR") == "10 of 10"
    assert said.tests("ranking_loss", "BR") == "Wilcoxon-Holm p = 0.016, r = +1.00, P(better) = 1.00"
    assert sum(said.count(word) for word in ("better", "equal", "worse", "open")) == said.n == 48


def test_a_search_on_the_first_split_changes_what_it_changes():
    every, first = (as_published(published_rows(change=change)) for change in (None, closer))
    frame = verdicts.tuning_effect(every, first, ["BR"]).set_index("metric")
    assert frame.change["coverage"] > 0, "a lower coverage is better"
    assert frame.drop("coverage").change.abs().max() == 0
