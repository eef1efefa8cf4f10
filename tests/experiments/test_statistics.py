"""Statistics against the published tables, scikit-posthocs, SciPy and baycomp."""

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rbrl.experiments import ranks as ranking
from rbrl.experiments import statistics as rs
from rbrl.experiments.statistics import range_isf, range_sf
from rbrl.metrics import PAPER_METRICS

GOLDEN = Path(__file__).parents[1] / "golden"
GREATER = {metric.abbreviation: metric.greater_is_better for metric in PAPER_METRICS}
F_F = {"Hal": 13.1812, "Sa": 31.7855, "F1e": 23.4032, "Ral": 52.5736, "Cov": 46.6988, "Ap": 51.9481}
METRIC = pytest.mark.parametrize("metric", GREATER)


@pytest.fixture(scope="module")
def table_3():
    """Published means, one frame of data sets x methods for each metric."""
    rows = pd.read_csv(GOLDEN / "paper_table3.csv")
    return {
        metric: rows[rows.metric == metric].pivot(index="dataset", columns="method", values="mean") for metric in F_F
    }


@pytest.fixture(scope="module")
def table_4():
    """Published average ranks, metrics x methods."""
    return pd.read_csv(GOLDEN / "paper_table4.csv").pivot(index="metric", columns="method", values="average_rank")


def random_values(seed=0, n_datasets=12, n_methods=5):
    rng = np.random.default_rng(seed)
    return rng.random((n_datasets, n_methods)) + np.arange(n_methods) * 0.1


@METRIC
def test_average_ranks_are_those_of_table_4(table_3, table_4, metric):
    values = table_3[metric]
    means = rs.average_ranks(values, GREATER[metric], ties="minimum")
    np.testing.assert_allclose(means, table_4.loc[metric, values.columns], atol=5e-3)


def test_overall_row_of_table_4(table_3, table_4):
    means = [rs.average_ranks(table_3[metric], GREATER[metric], ties="minimum") for metric in GREATER]
    np.testing.assert_allclose(np.mean(means, axis=0), table_4.loc["Overall"], atol=5.1e-3)


@pytest.mark.parametrize(("ties", "method"), [("average", "average"), ("minimum", "min")])
@given(values=st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=4))
def test_ranks_are_those_of_scipy(values, ties, method):
    values = np.array(values) / 4
    np.testing.assert_array_equal(rs.ranks(values, False, ties), stats.rankdata(values, method, axis=1))
    np.testing.assert_array_equal(rs.ranks(values, True, ties), stats.rankdata(-values, method, axis=1))


@METRIC
def test_friedman_is_that_of_table_5(table_3, metric):
    result = rs.friedman(table_3[metric], GREATER[metric])
    assert result.f == pytest.approx(F_F[metric], abs=1e-3)
    assert result.critical_value == pytest.approx(2.0698, abs=5e-5)
    assert result.degrees == (8, 72)
    assert result.significant
    assert result.p_value < 1e-10


def test_critical_distance_is_the_papers():
    assert rs.nemenyi_distance(n_methods=9, n_datasets=10) == pytest.approx(3.7992, abs=1e-3)


@pytest.mark.parametrize("n_methods", [2, 3, 9, 30, 200])
def test_range_is_scipys(n_methods):
    """Of the studentised range with infinitely many degrees of freedom; SciPy's own error is about 1e-11."""
    expected = stats.studentized_range(n_methods, np.inf)
    q = np.array([0.0, 0.5, 2.0, 4.0, 7.0, 12.0])
    np.testing.assert_allclose(range_sf(q, n_methods), expected.sf(q), atol=1e-10)
    for alpha in (0.3, 0.05, 1e-3):
        assert range_isf(alpha, n_methods) == pytest.approx(expected.isf(alpha), abs=1e-6)


@pytest.mark.parametrize("alpha", [0, 1, 5, -0.1, float("nan")])
def test_a_level_is_a_probability(alpha):
    with pytest.raises(ValueError, match=f"The level of a test must lie between 0 and 1, both excluded. Got {alpha}"):
        rs.nemenyi_distance(3, 10, alpha)


@pytest.mark.parametrize(("n_methods", "nemenyi", "dunn"), [(2, 1.960, 1.960), (5, 2.728, 2.498), (10, 3.164, 2.773)])
def test_critical_values_are_those_of_the_textbook(n_methods, nemenyi, dunn):
    """Demšar 2006, table 5, at the level 0.05."""
    scale = np.sqrt(n_methods * (n_methods + 1) / 60)
    assert rs.nemenyi_distance(n_methods, 10) / scale == pytest.approx(nemenyi, abs=1e-3)
    assert rs.bonferroni_dunn_distance(n_methods, 10) / scale == pytest.approx(dunn, abs=1e-3)


def test_rbrl_and_cpnl_are_in_one_group_for_ranking_loss(table_3):
    values = table_3["Ral"]
    best, *_ = rs.nemenyi_groups(rs.average_ranks(values, False), len(values))
    assert [values.columns[i] for i in best] == ["RBRL", "CPNL", "CLR", "Rank-SVM", "MLFE"]


def test_friedman_equals_scipy_without_ties():
    values = random_values()
    chi2, p_value = stats.friedmanchisquare(*values.T)
    result = rs.friedman(values, greater_is_better=True)
    assert (result.chi2, result.chi2_p_value) == pytest.approx((chi2, p_value))
    f = stats.f(*result.degrees)
    assert result.distribution == "F"
    assert (result.p_value, result.critical_value) == pytest.approx((f.sf(result.f), f.isf(0.05)))


@pytest.mark.parametrize(("n_methods", "n_datasets", "chance"), [(4, 2, 24), (3, 2, 6), (3, 4, 6**3), (2, 10, 2**9)])
def test_full_agreement_of_few_data_sets_has_the_probability_of_its_orders(n_methods, n_datasets, chance):
    result = rs.friedman(np.tile(np.arange(n_methods), (n_datasets, 1)), greater_is_better=False)
    assert result.f == np.inf
    assert (result.distribution, result.p_value) == ("exact", pytest.approx(1 / chance, rel=1e-12))
    assert result.smallest_p_value == result.p_value
    assert result.average_ranks.tolist() == list(range(1, n_methods + 1))
    assert result.significant == result.decidable == (chance >= 20)


def test_full_agreement_of_many_data_sets_has_no_probability_of_zero():
    result = rs.friedman(np.tile(np.arange(9), (10, 1)), greater_is_better=False)
    assert result.distribution == "F"
    assert result.p_value == pytest.approx(362880.0**-9, rel=1e-9)


def test_friedman_of_equal_methods():
    result = rs.friedman(np.ones((4, 3)), greater_is_better=True)
    assert (result.chi2, result.f, result.p_value, result.significant) == (0, 0, 1, False)
    assert not result.decidable


def friedman_by_hand(values):
    """P-value by brute force: Friedman's statistic for all orders of every line, each as likely as the others."""
    lines = stats.rankdata(values, axis=1)
    tables = np.array(list(product(*(list(permutations(line)) for line in lines))))
    return np.mean(tables.sum(axis=1).var(axis=1) >= lines.sum(axis=0).var() - 1e-9)


SMALL = st.sampled_from([(2, 2), (2, 3), (2, 4), (2, 7), (3, 2), (3, 3), (3, 5), (4, 2), (4, 3), (5, 2)])


@settings(max_examples=60, deadline=None)
@given(shape=SMALL, n_different=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_friedman_is_exact_on_few_data_sets_with_ties_and_without(shape, n_different, seed):
    n_methods, n_datasets = shape
    values = np.random.default_rng(seed).integers(0, n_different, (n_datasets, n_methods))
    result = rs.friedman(values, greater_is_better=False)
    assert result.distribution == "exact"
    assert result.p_value == pytest.approx(friedman_by_hand(values), rel=1e-9)
    assert result.significant == (result.p_value <= 0.05)


@pytest.mark.parametrize("n_different", [3, 1000])
def test_drawn_orders_agree_with_counted_ones(monkeypatch, n_different):
    values = np.random.default_rng(1).integers(0, n_different, (6, 4))
    counted = rs.friedman(values, True)
    ranking._null_distribution.cache_clear()
    monkeypatch.setattr(ranking, "MAX_COUNTED_PAIRS", 0)
    drawn = rs.friedman(values, True)
    ranking._null_distribution.cache_clear()
    assert (counted.distribution, drawn.distribution) == ("exact", "permutation")
    error = np.sqrt(counted.p_value * (1 - counted.p_value) / ranking.N_RANDOM_ORDERS)
    assert drawn.p_value == pytest.approx(counted.p_value, abs=5 * error)
    assert drawn.critical_value == pytest.approx(counted.critical_value, rel=0.2)


def test_drawn_orders_are_the_same_every_time_and_never_impossible():
    values = np.tile(np.arange(8), (5, 1))
    results = []
    for _ in range(2):
        ranking._null_distribution.cache_clear()
        results.append(rs.friedman(values, True))
    assert results[0].distribution == "permutation"
    assert results[0].p_value == results[1].p_value == 1 / (ranking.N_RANDOM_ORDERS + 1) == results[0].smallest_p_value
    assert results[0].critical_value == results[1].critical_value


@pytest.mark.parametrize(("n_methods", "n_datasets"), [(3, 100), (4, 27), (5, 10)])
def test_exact_p_values_come_near_the_distributions_for_many_data_sets(n_methods, n_datasets):
    """With many data sets chi-square and F are approximations, F the better one."""
    for seed in range(5):
        values = np.random.default_rng(seed).random((n_datasets, n_methods)) + 0.05 * np.arange(n_methods)
        result = rs.friedman(values, True)
        assert result.distribution == "exact"
        assert result.p_value == pytest.approx(stats.f.sf(result.f, *result.degrees), abs=0.02)
        assert result.p_value == pytest.approx(stats.friedmanchisquare(*values.T).pvalue, abs=0.03)
        assert result.critical_value == pytest.approx(stats.f.isf(0.05, *result.degrees), rel=0.05)


def test_nemenyi_equals_scikit_posthocs(table_3):
    posthocs = pytest.importorskip("scikit_posthocs")
    for values in (random_values(), *(table_3[metric].to_numpy() for metric in ("Hal", "Ap"))):
        expected = posthocs.posthoc_nemenyi_friedman(values).to_numpy()
        np.testing.assert_allclose(rs.nemenyi_p_values(values, True), expected, atol=1e-6)


def test_wilcoxon_holm_equals_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    for seed in range(3):
        values = random_values(seed)
        long = pd.DataFrame(values).melt(var_name="method")
        expected = posthocs.posthoc_wilcoxon(long, val_col="value", group_col="method", p_adjust="holm").to_numpy()
        np.testing.assert_allclose(rs.wilcoxon_holm(values), expected, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(n_datasets=st.integers(1, 9), n_different=st.integers(1, 6), seed=st.integers(0, 10_000))
def test_wilcoxon_is_exact_where_differences_are_equal(n_datasets, n_different, seed):
    """Against all signs of the differences; a quarter of a tenth is no exact binary number."""
    values = np.random.default_rng(seed).integers(0, n_different, (n_datasets, 2)) / 40
    differences = np.round(40 * (values[:, 0] - values[:, 1]))
    sizes = stats.rankdata(np.abs(differences[differences != 0]))
    sums = [np.dot(signs, sizes) for signs in product([-1, 1], repeat=len(sizes))]
    observed = abs(np.dot(np.sign(differences[differences != 0]), sizes))
    assert rs.wilcoxon_holm(values)[0, 1] == pytest.approx(np.mean(np.abs(sums) >= observed - 1e-9))


@pytest.mark.parametrize("n_datasets", [3, 12, 60])
def test_wilcoxon_is_scipys_without_ties(n_datasets):
    values = random_values(3, n_datasets, 2)
    assert rs.wilcoxon_holm(values)[0, 1] == pytest.approx(stats.wilcoxon(*values.T).pvalue, rel=1e-9)


@pytest.mark.parametrize(("n_datasets", "n_methods"), [(3, 2), (5, 2), (6, 3), (10, 4)])
def test_full_agreement_gives_the_smallest_p_value_of_wilcoxon(n_datasets, n_methods):
    values = np.random.default_rng(0).random((n_datasets, 1)) + np.arange(n_methods)
    values += np.random.default_rng(1).random(values.shape) / 10
    smallest = rs.smallest_wilcoxon_p(n_datasets, n_methods)
    np.testing.assert_allclose(np.min(rs.wilcoxon_holm(values)), smallest)
    assert smallest == min(1, n_methods * (n_methods - 1) / 2 / 2 ** (n_datasets - 1))


def test_effect_sizes_by_hand():
    values = np.array([[0.9, 0.8, 0.9], [0.5, 0.7, 0.5], [0.4, 0.1, 0.4], [0.6, 0.6, 0.6]])
    sizes = rs.rank_biserial(values, greater_is_better=True)
    assert sizes[0, 1] == pytest.approx((1 - 2 + 3) / 6)
    assert sizes[0, 2] == 0
    np.testing.assert_array_equal(sizes, -sizes.T)
    np.testing.assert_array_equal(rs.rank_biserial(values, greater_is_better=False), -sizes)
    medians = rs.median_differences(values, greater_is_better=False)
    assert medians[1, 0] == pytest.approx(0.05)
    np.testing.assert_allclose(medians, -medians.T)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), n_datasets=st.integers(1, 12))
def test_effect_sizes_follow_wilcoxons_statistic(seed, n_datasets):
    first, second = np.random.default_rng(seed).random((2, n_datasets))
    size = rs.rank_biserial(np.column_stack([first, second]), True)[0, 1]
    positive = stats.wilcoxon(first, second, alternative="greater").statistic
    total = n_datasets * (n_datasets + 1) / 2
    assert size == pytest.approx((2 * positive - total) / total, abs=1e-12)


@pytest.fixture(scope="module")
def fair_table():
    """Means of the recorded comparison on equal terms: full precision, no ties."""
    path = Path(__file__).parents[2] / "studies" / "reproduction" / "results" / "paper-fair.csv.gz"
    rows = pd.read_csv(path, comment="#")
    rows = rows[rows.method != "br-one-threshold"]  # it ranks as BR does, and the other programs part at such ties
    return {
        metric.name: rows.pivot_table(index="dataset", columns="method", values=metric.name).to_numpy()
        for metric in PAPER_METRICS
    }


@pytest.mark.parametrize("metric", PAPER_METRICS, ids=lambda metric: metric.name)
def test_all_tests_agree_with_other_programs_on_one_table(fair_table, metric):
    """SciPy, scikit-posthocs and baycomp, on the table that the reproduction is judged by."""
    posthocs, baycomp = pytest.importorskip("scikit_posthocs"), pytest.importorskip("baycomp")
    values = fair_table[metric.name]
    chi2 = stats.friedmanchisquare(*values.T)
    assert rs.friedman(values, metric.greater_is_better).chi2 == pytest.approx(chi2.statistic)
    nemenyi = posthocs.posthoc_nemenyi_friedman(values).to_numpy()
    np.testing.assert_allclose(rs.nemenyi_p_values(values, metric.greater_is_better), nemenyi, atol=1e-6)
    control = values.shape[1] - 1
    raw = [stats.wilcoxon(values[:, control], values[:, j], method="exact").pvalue for j in range(control)]
    np.testing.assert_allclose(rs.wilcoxon_holm(values, control)[:control], rs.holm(raw))
    answer = rs.bayesian_signed_rank(values, metric.greater_is_better, rope=0.005)
    signed = values if metric.greater_is_better else -values
    for j in (0, control // 2):
        worse, equivalent, better = baycomp.SignedRankTest.probs(
            signed[:, j], signed[:, control], rope=0.005, nsamples=5_000, random_state=1
        )
        ours = [table[control, j] for table in answer]
        np.testing.assert_allclose(ours, [better, equivalent, worse], atol=monte_carlo_error(5_000, 50_000))


def monte_carlo_error(*n_draws):
    """Five standard errors of the difference of two shares, whatever they are near: one in a million misses it."""
    return 5 * np.sqrt(sum(0.25 / n for n in n_draws))


@pytest.mark.parametrize("rope", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_bayesian_signed_rank_equals_baycomp(rope, seed):
    baycomp = pytest.importorskip("baycomp")
    values = random_values(seed, 8, 2)
    expected = baycomp.SignedRankTest.probs(*values.T, rope=rope, prior=1.5, nsamples=5_000, random_state=seed)
    answer = rs.bayesian_signed_rank(values, True, rope, prior=1.5)
    ours = [answer.better[0, 1], answer.worse[0, 1]]
    np.testing.assert_allclose(ours, [expected[0], expected[-1]], atol=monte_carlo_error(5_000, 50_000))


def test_bayesian_probabilities_of_one_data_set_are_those_of_a_beta_distribution():
    """Only z + z is beyond twice the region, not z + 0: better has w**2 of the draw, and wins where that is half."""
    answer = rs.bayesian_signed_rank([[0.3, 0.2]], True, rope=0.06, n_draws=50_000)
    expected = stats.beta(1, 0.5).sf(np.sqrt(0.5))
    assert answer.better[0, 1] == pytest.approx(expected, abs=monte_carlo_error(50_000))
    assert answer.worse[0, 1] == 0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), n_datasets=st.integers(1, 8), rope=st.sampled_from([0.0, 0.1]))
def test_bayesian_probabilities_are_probabilities(seed, n_datasets, rope):
    values = np.random.default_rng(seed).integers(0, 5, (n_datasets, 3)) / 10
    answer = rs.bayesian_signed_rank(values, True, rope, n_draws=500)
    np.testing.assert_allclose(sum(answer), 1.0)
    np.testing.assert_array_equal(answer.better, answer.worse.T)
    reverse = rs.bayesian_signed_rank(values, False, rope, n_draws=500)
    np.testing.assert_allclose(reverse.better, answer.worse)
    control = rs.bayesian_signed_rank(values, True, rope, control=1, n_draws=500)
    np.testing.assert_array_equal(control, [one[1] for one in answer])
    same = rs.bayesian_signed_rank(values[:, [0, 0]], True, rope, n_draws=500)
    assert same.better[0, 1] == same.worse[0, 1] == (0.0 if rope else 0.5)


def test_a_difference_on_the_border_is_half_beyond_it():
    """As decimals, 0.3 - 0.2 is 0.1; as binary numbers it is less, and 0.8 - 0.7 is more."""
    answers = [rs.bayesian_signed_rank(row, True, rope=0.1).better[0, 1] for row in ([[0.3, 0.2]], [[0.8, 0.7]])]
    assert answers == [0.0, 0.0]  # w**2 / 2 is never the largest of three that sum to 1
    answers = [rs.bayesian_signed_rank(row, True, rope=0.0999).better[0, 1] for row in ([[0.3, 0.2]], [[0.8, 0.7]])]
    assert answers[0] == answers[1] > 0.4


def test_wilcoxon_against_a_control_corrects_for_its_pairs_alone():
    values = np.random.default_rng(0).random((10, 1)) + np.arange(9) + np.random.default_rng(1).random((10, 9)) / 10
    p_values = rs.wilcoxon_holm(values, control=3)
    assert p_values[3] == 1
    np.testing.assert_allclose(np.delete(p_values, 3), 8 / 2**9)
    assert rs.wilcoxon_holm(values).min() > 0.05


@pytest.mark.parametrize(("n_methods", "n_datasets"), [(2, 3), (3, 2), (4, 2), (9, 2)])
def test_nemenyi_says_nothing_where_the_distance_is_more_than_ranks_can_differ_by(n_methods, n_datasets):
    assert rs.nemenyi_distance(n_methods, n_datasets) > n_methods - 1
    assert not rs.nemenyi_decidable(n_methods, n_datasets)
    assert rs.nemenyi_decidable(n_methods, n_datasets + 1)
    assert rs.nemenyi_groups(np.arange(1, n_methods + 1), n_datasets) == []
    assert rs.nemenyi_groups(np.ones(n_methods), n_datasets + 1) == [tuple(range(n_methods))]


def test_nemenyi_p_values_and_distance_agree():
    values = random_values(n_datasets=30)
    means = rs.average_ranks(values, False)
    by_distance = np.abs(means[:, None] - means) >= rs.nemenyi_distance(5, 30)
    np.testing.assert_array_equal(rs.nemenyi_p_values(values, False) <= 0.05, by_distance)


def test_bonferroni_dunn_p_values_and_distance_agree():
    values = random_values(n_datasets=30)
    means = rs.average_ranks(values, False)
    by_distance = np.abs(means - means[0]) >= rs.bonferroni_dunn_distance(5, 30)
    p_values = rs.bonferroni_dunn_p_values(values, False, control=0)
    np.testing.assert_array_equal(p_values <= 0.05, by_distance)
    assert p_values[0] == 1


def test_wilcoxon_of_equal_methods_is_one():
    values = np.column_stack([np.arange(6.0), np.arange(6.0), 2 * np.arange(6.0) + 1])
    p_values = rs.wilcoxon_holm(values)
    assert p_values[0, 1] == 1
    assert p_values[0, 2] < 1


@settings(max_examples=100, deadline=None)
@given(p_values=st.lists(st.floats(0, 1), min_size=1, max_size=8), alpha=st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values, alpha):
    rejected = np.zeros(len(p_values), dtype=bool)
    for step, i in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[i] * (len(p_values) - step) > alpha:
            break
        rejected[i] = True
    np.testing.assert_array_equal(rs.holm(p_values) <= alpha, rejected)


def test_ranks_and_their_ties():
    values = [[0.3, 0.1, 0.3, 0.2]]
    assert rs.ranks(values, False).tolist() == [[3.5, 1, 3.5, 2]]
    assert rs.ranks(values, False, ties="minimum").tolist() == [[3, 1, 3, 2]]
    assert rs.ranks(values, True).tolist() == [[1.5, 4, 1.5, 3]]


def test_groups_overlap_but_do_not_nest():
    assert rs.nemenyi_groups([1.0, 2.0, 3.0, 6.0], n_datasets=5) == [(0, 1, 2)]
    different = np.zeros((4, 4), dtype=bool)
    different[0, 3] = different[3, 0] = True
    assert rs.groups([4.0, 2.0, 3.0, 1.0], different) == [(3, 1, 2), (1, 2, 0)]
    assert rs.groups([1.0, 2.0], np.ones((2, 2), dtype=bool)) == []


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), n_methods=st.integers(2, 8), density=st.floats(0, 1))
def test_groups_cover_every_pair_of_neighbours_that_does_not_differ(seed, n_methods, density):
    rng = np.random.default_rng(seed)
    different = np.triu(rng.random((n_methods, n_methods)) < density, k=1)
    different |= different.T
    found = rs.groups(np.arange(n_methods), different)
    assert all(not different[np.ix_(group, group)].any() for group in found)
    for i in range(n_methods - 1):
        assert different[i, i + 1] or any({i, i + 1} <= set(group) for group in found)
    assert not any(set(a) < set(b) for a in found for b in found)


def test_mean_and_standard_deviation():
    mean, std = ranking.mean_std([[0.1, 1.0], [0.3, 1.0]])
    np.testing.assert_allclose(mean, [0.2, 1.0])
    np.testing.assert_allclose(std, [np.sqrt(0.02), 0.0])


def test_one_repetition_has_no_standard_deviation():
    mean, std = ranking.mean_std([0.5])
    assert mean == 0.5
    assert np.isnan(std)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rs.ranks([1.0, 2.0], True), r"shape \(2,\)"),
        (lambda: rs.ranks([[1.0, np.nan]], True), r"\[\(0, 1\)\]"),
        (lambda: rs.ranks([[1.0, 2.0]], True, ties="dense"), "Got 'dense'"),
        (lambda: rs.friedman([[1.0, 2.0]], True), "Got 1"),
        (lambda: rs.nemenyi_distance(1, 10), "Got 1 and 10"),
        (lambda: rs.wilcoxon_holm([[1.0, 2.0]], control=2), "0 to 1. Got 2"),
        (lambda: rs.bayesian_signed_rank([[1.0, 2.0]], True, control=-1), "0 to 1. Got -1"),
        (lambda: rs.bayesian_signed_rank([[1.0, 2.0]], True, rope=-0.1), "Got -0.1"),
        (lambda: rs.bayesian_signed_rank([[1.0, 2.0]], True, prior=0), "Got 0 instead"),
        (lambda: rs.bayesian_signed_rank([[1.0, 2.0]], True, n_draws=0), "Got 0 instead"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
