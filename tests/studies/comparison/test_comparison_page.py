"""The committed page is what the committed rows say; its figures and statistics, computed by others."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rbrl.experiments.statistics import wilcoxon_holm
from studies.comparison import rows, rules
from studies.comparison.answers import LABELS, LEVEL, ROPE, SCORES, Findings
from studies.comparison.figures import IMAGES
from studies.comparison.methods import BY_NAME, METHODS
from studies.comparison.page import DOCS, README, with_answers, write_pages
from studies.comparison.sentences import answers, losses_of, studies

# Five standard errors of the difference of two shares, of 5,000 and of 50,000 draws.
FIVE_ERRORS = 5 * np.sqrt(0.25 / 5_000 + 0.25 / 50_000)


@pytest.fixture(scope="module")
def recorded():
    return rows.read()


@pytest.fixture(scope="module")
def findings(recorded):
    return Findings(recorded)


@pytest.fixture(scope="module")
def plain(recorded):
    """Values of the ranked methods, from the file by plain pandas: {column: data sets x methods}."""
    quick = {method.name for method in METHODS if not method.is_slow}
    tried = recorded.groupby(["dataset", "split"]).method.agg(lambda found: quick <= set(found))
    whole = recorded.set_index(["dataset", "split"]).loc[tried.index[tried]].reset_index()
    ok = whole[(whole.status == "ok") & (whole.variant == "tuned")]
    enough = 0.8 * whole.dataset.nunique()
    ranked = [name for name in BY_NAME if ok[ok.method == name].dataset.nunique() >= enough]
    numbers = ok[ok.method.isin(ranked)]
    return {
        column: numbers.groupby(["dataset", "method"])[column].mean().unstack()[ranked].dropna()
        for column in (SCORES, LABELS)
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the page, its figures and all of it as one HTML file."""
    folder = tmp_path_factory.mktemp("docs")
    html = folder / "one" / "comparison.html"
    assert html in write_pages(docs=folder, html=html)
    return folder


def test_the_committed_page_is_that_of_the_committed_rows(findings, written):
    html = (written / "one" / "comparison.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!data:|https?:)', html)
    fresh, old = ((folder / "comparison.md").read_text(encoding="utf-8") for folder in (written, DOCS))
    assert fresh == old, "run `python -m studies.comparison page`"
    assert with_answers(README.read_text(encoding="utf-8"), findings) == README.read_text(encoding="utf-8")
    assert {path.name for path in (written / IMAGES).iterdir()} == {path.name for path in (DOCS / IMAGES).iterdir()}


def test_enough_data_sets_and_methods_are_complete(findings):
    whole = findings.values(SCORES).notna().sum()
    complete = [name for name in findings.ranked if whole[name] >= 20]
    assert len(complete) >= 12
    assert sum(BY_NAME[name].package != "rbrl" for name in complete) >= 5


@pytest.mark.parametrize(("column", "place"), [(SCORES, 0), (LABELS, 1)])
def test_first_sentences_by_other_means(findings, plain, column, place):
    """Ranks by SciPy's rankdata, on values by plain pandas."""
    table = plain[column]
    ranks = pd.Series(stats.rankdata(-table.to_numpy().round(12), axis=1).mean(axis=0), table.columns)
    best = ranks.idxmin()
    said = answers(findings)[place]
    assert f"{BY_NAME[best].title} has the best average rank" in said
    assert f"({ranks.min():.1f} of {table.shape[1]} methods, {len(table)} data sets)" in said


def test_numbers_of_the_first_screen_stand_in_the_sentences_of_the_rows(findings):
    """Every number before the first heading comes from the rows or the rules."""
    page = (DOCS / "comparison.md").read_text(encoding="utf-8")
    first = page.partition("\n## ")[0]
    more, wide = (rows.read(rows.FOLDER / name) for name in ("more-rows", "wide"))
    said = answers(findings) + studies(more, wide, findings)
    assert all(f"- {answer}\n" in first for answer in said)
    rest = first
    for answer in said:
        rest = rest.replace(answer, "")
    splits = findings.splits.value_counts()
    known = {
        len(findings.datasets),
        len(findings.ranked),
        rules.TRAIN_ROWS,
        int(rules.BUDGET_SECONDS),
        *splits,
        *splits.index,
    }
    known |= {findings.rows.drop_duplicates(["dataset", "split", "method"]).shape[0]}
    assert {int(number) for number in re.findall(r"\d+", rest)} <= known


def test_means_by_kind_and_gains_by_other_means(findings, recorded):
    said = " ".join(answers(findings))
    kinds = {"dense": "Dense features", "sparse": "Sparse features (text)", "many labels": "More than 120 labels"}
    for of_kind, title in kinds.items():
        compared = findings.compare(SCORES, of_kind=of_kind)
        first, second, third = (BY_NAME[name] for name in compared.ranks.index[:3])
        means = [
            np.mean(
                [np.mean(_values(recorded, dataset, one.name, findings.complete)) for dataset in compared.table.index]
            )
            for one in (first, second, third)
        ]
        values = ", ".join(f"{mean:.3f}" for mean in means)
        taken = f"by average rank take {first.title}, then {second.title} or {third.title} (average precision {values})"
        assert f"**{title}** ({len(compared.table)} data sets): {taken}" in said
    gains = {
        name: np.median([
            np.mean(_values(recorded, dataset, name, findings.complete, LABELS))
            - np.mean(_values(recorded, dataset, name, findings.complete, "f1_micro"))
            for dataset in findings.values(LABELS)[name].dropna().index
        ])
        for name in findings.ranked
    }  # fmt: skip
    assert f"one threshold gains {np.median(list(gains.values())):+.3f} of micro-F1" in said


def _values(recorded, dataset, method, complete, column=SCORES):
    """One value for each split, line by line."""
    return [
        row[column]
        for _, row in recorded[(recorded.dataset == dataset) & (recorded.method == method)].iterrows()
        if row.variant == "tuned" and row.status == "ok" and (dataset, row.split) in complete
    ]


@pytest.mark.parametrize("column", [SCORES, LABELS])
def test_statistics_of_our_table_by_scipy_posthocs_and_baycomp(findings, column):
    posthocs, baycomp = pytest.importorskip("scikit_posthocs"), pytest.importorskip("baycomp")
    compared = findings.compare(column)
    table, best = compared.table, compared.best
    against = compared.against(best)
    for name in list(against.index)[:3]:
        difference = (table[best] - table[name]).to_numpy().round(12)
        assert against["median"][name] == pytest.approx(np.median(difference))
        ranks = stats.rankdata(np.abs(difference[difference != 0]))
        signs = np.sign(difference[difference != 0])
        assert against.effect[name] == pytest.approx((ranks * signs).sum() / ranks.sum())
        # The first of baycomp's is that its first argument is better.
        pair = table[best].to_numpy(), table[name].to_numpy()
        expected = baycomp.SignedRankTest.probs(*pair, rope=ROPE, nsamples=5_000, random_state=1)
        found = against.loc[name, ["better", "equivalent", "worse"]].to_numpy(float)
        np.testing.assert_allclose(found, expected, atol=FIVE_ERRORS)
    pairs = list(itertools.combinations(table.columns, 2))
    raw = np.array([wilcoxon_holm(table[list(pair)].to_numpy())[0, 1] for pair in pairs])
    # SciPy and scikit-posthocs are exact where no two differences are equal and none is 0; we are everywhere.
    plain = [
        i
        for i, (a, b) in enumerate(pairs)
        if len(set(_sizes(table[a] - table[b]))) == len(table) and 0.0 not in _sizes(table[a] - table[b])
    ]
    assert len(plain) > len(pairs) / 3
    for i in plain:
        assert raw[i] == pytest.approx(stats.wilcoxon(*table[list(pairs[i])].to_numpy().T, method="exact").pvalue)
    first = table[list(pairs[plain[0]])].to_numpy()
    assert raw[plain[0]] == pytest.approx(posthocs.posthoc_wilcoxon(first.T).to_numpy()[0, 1])
    holm = pytest.importorskip("statsmodels.stats.multitest").multipletests(raw, method="holm")[1]
    np.testing.assert_allclose([compared.p_values.loc[pair] for pair in pairs], holm)


def _sizes(differences):
    """Sizes of differences as ranks see them, without what rounding adds."""
    return differences.abs().round(10).tolist()


def test_studies_by_other_means(findings, recorded):
    more, wide = (rows.read(rows.FOLDER / name) for name in ("more-rows", "wide"))
    said = " ".join(studies(more, wide, findings))
    for study in (more, wide):
        tuned = study[(study.variant == "tuned") & (study.status == "ok")]
        mean = tuned.groupby("method")[SCORES].mean()[tuned.groupby("method").size() == study.dataset.nunique()]
        assert f"{BY_NAME[mean.idxmax()].title} {mean.max():.3f}" in said or f"(to {mean.max():.3f})" in said


def test_who_beats_a_method_is_said(findings):
    said = next(one for one in losses_of(findings, "rbrl-linear") if one.startswith("Beaten"))
    compared = findings.compare(SCORES)
    beaten = [
        name
        for name in compared.table.columns
        if compared.p_values.loc["rbrl-linear", name] <= LEVEL
        and (compared.table[name] - compared.table["rbrl-linear"]).median() > 0
    ]
    assert all(f"{BY_NAME[name].title} in average precision" in said for name in beaten)
    assert ("in average precision (" in said) == bool(beaten)


def test_failures_and_what_was_not_run_are_on_the_page(findings, written):
    page = (written / "comparison.md").read_text(encoding="utf-8")
    for reason in findings.failures.reason.unique():
        assert reason in page
    for what in findings.not_run():
        assert what in page
