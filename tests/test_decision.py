"""Rules from scores to labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rbrl.decision import (
    Chain,
    DecisionRule,
    GlobalThreshold,
    LabelThresholds,
    NonEmpty,
    RowThreshold,
    TopK,
    ZeroThreshold,
    best_global_threshold,
    best_label_thresholds,
    empty_share,
    filling_pays,
    non_empty,
    relevant_labels,
    top_labels,
)
from rbrl.decision.rules import ideal_row_thresholds
from rbrl.metrics import METRICS

RULES = [
    ZeroThreshold(),
    NonEmpty(),
    TopK(2),
    GlobalThreshold(),
    LabelThresholds(),
    RowThreshold(),
    RowThreshold("smallest", ties_relevant=True),
    Chain([LabelThresholds("hamming_loss"), NonEmpty()]),
]
ALL = pytest.mark.parametrize("rule", RULES, ids=repr)


def problem(seed=0, n=40, l=5, ties=False):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((n, l))
    Y = (scores + rng.standard_normal((n, l)) > 0.5).astype(int)
    Y[0], Y[1] = 0, 1
    return (np.round(scores) if ties else scores), Y


@ALL
def test_labels_are_the_positive_shifted_scores(rule):
    scores, Y = problem()
    rule = clone(rule).fit(scores, Y)
    labels = rule.labels(scores)
    np.testing.assert_array_equal(labels, rule.shift(scores) > 0)
    assert set(np.unique(labels)) <= {0, 1}


@ALL
def test_codings_and_containers_teach_the_same(rule):
    scores, Y = problem()
    expected = clone(rule).fit(scores, Y).labels(scores)
    for y in (2 * Y - 1, sparse.csr_array(Y), Y.astype(bool)):
        np.testing.assert_array_equal(clone(rule).fit(scores, y).labels(scores), expected)


@ALL
def test_scores_are_not_changed_in_place(rule):
    scores, Y = problem()
    before = scores.copy()
    clone(rule).fit(scores, Y).labels(scores)
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("rule", [NonEmpty(), TopK(2), GlobalThreshold(), RowThreshold()], ids=repr)
def test_the_ranking_of_labels_stays(rule):
    scores, Y = problem()
    shifted = clone(rule).fit(scores, Y).shift(scores)
    np.testing.assert_array_equal(np.argsort(shifted, axis=1), np.argsort(scores, axis=1))


def test_a_rule_says_how_it_shifts_scores():
    class Silent(DecisionRule):
        pass

    with pytest.raises(TypeError, match="shift"):
        Silent()


@pytest.mark.parametrize("ties", [False, True])
def test_relevant_labels_are_the_positive_scores_or_the_best_one(ties):
    scores, _ = problem(ties=ties)
    scores[3] = -np.abs(scores[3]) - 1
    np.testing.assert_array_equal(relevant_labels(scores), scores > 0)
    np.testing.assert_array_equal(relevant_labels(sparse.csr_array(scores)), scores > 0)
    filled = relevant_labels(scores, never_empty=True)
    assert filled.dtype == bool
    np.testing.assert_array_equal(filled, NonEmpty().labels(scores) > 0)
    np.testing.assert_array_equal(filled, non_empty(scores > 0, scores))
    assert filled[3].tolist() == [j == np.argmax(scores[3]) for j in range(5)]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_top_labels_are_the_first_of_a_stable_sort(k, ties):
    scores, _ = problem(ties=ties)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    labels, values = top_labels(scores, k)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", [GlobalThreshold(), LabelThresholds()], ids=repr)
def test_learned_thresholds_separate_neighbouring_floats(rule, dtype):
    low, high = dtype(1), np.nextafter(dtype(1), dtype(2))
    scores, Y = np.array([[low, low], [high, high]]), np.array([[0, 0], [1, 1]])
    np.testing.assert_array_equal(clone(rule).fit(scores, Y).labels(scores), Y)


@pytest.mark.parametrize("run", ["kernel_1_0.01_0.1", "linear_1_0.01_0.1", "cpnl_kernel_1_0.1_0.1"])
def test_non_empty_gives_the_authors_labels(golden, run):
    scores = np.loadtxt(golden / run / "scores_test.csv", delimiter=",")
    labels = np.loadtxt(golden / run / "labels_test.csv", delimiter=",")
    np.testing.assert_array_equal(NonEmpty().labels(scores), labels > 0)
    np.testing.assert_array_equal(non_empty(np.where(scores > 0, 1, -1), scores), labels)


def test_non_empty_takes_the_first_of_tied_labels():
    assert NonEmpty().labels([[0.0, 0.0], [-1.0, -1.0]]).tolist() == [[1, 0], [1, 0]]
    assert non_empty([[0, 0, 0]], [[1, 3, 3]]).tolist() == [[0, 1, 0]]
    assert non_empty([[-1, -1]], [[1, 3]]).tolist() == [[-1, 1]]
    assert non_empty(sparse.csr_array([[0, 0], [0, 1]]), [[3, 3], [9, 1]]).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3, 5, 9])
def test_top_k_gives_exactly_k(k, ties):
    scores, _ = problem(ties=ties)
    labels = TopK(k).labels(scores)
    assert np.all(labels.sum(axis=1) == min(k, 5))
    best_first = np.argsort(-scores, axis=1, kind="stable")
    assert np.all(np.take_along_axis(labels, best_first, axis=1)[:, : min(k, 5)] == 1)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), ties=st.booleans(), name=st.sampled_from(["f1_micro", "hamming_loss"]))
def test_the_global_threshold_is_the_best_of_all(seed, ties, name):
    scores, Y = problem(seed, 8, 3, ties)
    value = quality(name, Y, scores > best_global_threshold(scores, Y, name))
    every = [quality(name, Y, scores > t) for t in [-9, *np.unique(scores), 9]]
    assert value == pytest.approx(max(every))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), ties=st.booleans(), name=st.sampled_from(["f1_macro", "hamming_loss"]))
def test_the_label_thresholds_are_the_best_of_all(seed, ties, name):
    scores, Y = problem(seed, 8, 3, ties)
    thresholds = best_label_thresholds(scores, Y, name)
    for j in range(3):
        f, y = scores[:, [j]], Y[:, [j]]
        every = [quality(name, y, f > t) for t in [-9, *np.unique(f), 9]]
        assert quality(name, y, f > thresholds[j]) == pytest.approx(max(every))


def quality(name, Y, labels):
    metric = METRICS[name]
    value = metric.value(Y, labels=labels)
    return value if metric.greater_is_better else -value


def test_records_of_exact_metrics_are_solved_exactly():
    scores, Y = problem()
    np.testing.assert_array_equal(
        best_label_thresholds(scores, Y, METRICS["f1_macro"]), best_label_thresholds(scores, Y, "f1_macro")
    )


@pytest.mark.parametrize("name", ["f1_example", "subset_accuracy", "f1_micro", "accuracy_example"])
def test_any_label_metric_is_not_made_worse(name):
    scores, Y = problem()
    metric = METRICS[name]
    before = metric.value(Y, labels=scores > 0)
    by_label = metric.value(Y, labels=LabelThresholds(metric).fit(scores, Y).labels(scores))
    overall = metric.value(Y, labels=GlobalThreshold(metric).fit(scores, Y).labels(scores))
    assert min(by_label, overall) >= before
    assert by_label > before


def test_a_label_without_evidence_keeps_its_cut():
    scores = np.array([[0.2, 0.7], [0.9, 0.1]])
    assert best_label_thresholds(scores, [[0, 1], [0, 0]], start=0.5).tolist() == [0.5, 0.5]


def test_smallest_and_middle_rule():
    # Cuts below 0, in (1, 2) and in (4, 8) make two errors each, all others three.
    scores, Y = [[0.0, 1.0, 2.0, 4.0, 8.0]], [[1, 0, 1, 0, 1]]
    assert ideal_row_thresholds(scores, Y, "smallest") == pytest.approx([-0.1])
    assert ideal_row_thresholds(scores, Y, "middle") == pytest.approx([6.0])


def test_outer_thresholds_lie_a_tenth_beyond():
    assert ideal_row_thresholds([[1.0, 2.0], [1.0, 2.0]], [[1, 1], [0, 0]]) == pytest.approx([0.9, 2.1])


def test_a_tie_cannot_be_cut_by_the_middle_rule():
    assert ideal_row_thresholds([[1.0, 1.0, 3.0]], [[0, 1, 1]], "middle") == pytest.approx([2.0])
    assert ideal_row_thresholds([[1.0, 1.0, 3.0]], [[0, 1, 1]], "smallest") == pytest.approx([1.0])


@pytest.mark.parametrize("rule", ["middle", "smallest"])
def test_row_thresholds_make_the_fewest_errors(rule):
    scores, Y = problem(n=200)
    thresholds = ideal_row_thresholds(scores, Y, rule)
    for f, y, t in zip(scores, Y, thresholds):
        fewest = min(np.sum((f > cut) != y) for cut in [-9, *f])
        assert np.sum((f > t) != y) == fewest


def test_row_threshold_is_ordinary_least_squares_over_samples_with_a_pair():
    scores, Y = problem()
    rule = RowThreshold().fit(scores, Y)
    F = np.hstack([scores[2:], np.ones((38, 1))])
    pairs = (Y[2:].sum(axis=1) > 0) & (Y[2:].sum(axis=1) < 5)
    expected = np.linalg.lstsq(F[pairs], ideal_row_thresholds(scores[2:], Y[2:])[pairs], rcond=None)[0]
    np.testing.assert_allclose([*rule.coef_, rule.intercept_], expected, atol=1e-10)


def test_row_threshold_does_not_see_a_common_shift():
    scores, Y = problem()
    plain, moved = RowThreshold().fit(scores, Y), RowThreshold().fit(scores + 1e6, Y)
    np.testing.assert_array_equal(plain.labels(scores), moved.labels(scores + 1e6))


def test_row_threshold_replays_the_program(golden):
    folder = golden / "ranksvm_rbf_C1"
    scores, sizes, threshold, labels = (
        np.loadtxt(folder / f"{name}.csv", delimiter=",")
        for name in ("scores_test", "sizepre", "threshold_test", "labels_test")
    )
    rule = RowThreshold("smallest", ties_relevant=True)
    rule.coef_, rule.intercept_ = sizes[:-1], sizes[-1]
    shifted = rule.shift(scores)
    # The scores carry a common shift of 4.9e11, so their last digits are 1e-4.
    np.testing.assert_allclose(shifted, scores - threshold[:, None], atol=1e-3)
    clear = np.abs(shifted) > 1e-3
    np.testing.assert_array_equal((shifted > 0)[clear], (labels > 0)[clear])


def test_a_tie_with_the_row_threshold_counts_as_asked():
    relevant, irrelevant = RowThreshold(ties_relevant=True), RowThreshold()
    for rule in (relevant, irrelevant):
        rule.coef_, rule.intercept_ = np.zeros(2), 1.0
    assert relevant.labels([[1.0, 0.5]]).tolist() == [[1, 0]]
    assert irrelevant.labels([[1.0, 0.5]]).tolist() == [[0, 0]]


def test_a_chain_learns_each_rule_from_the_one_before():
    scores, Y = problem()
    rule = Chain([LabelThresholds(), NonEmpty()]).fit(scores, Y)
    assert np.all(rule.labels(scores).sum(axis=1) > 0)
    expected = NonEmpty().labels(scores - best_label_thresholds(scores, Y))
    np.testing.assert_array_equal(rule.labels(scores), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda F, Y: NonEmpty().shift([1.0, 2.0]), r"shape \(2,\)"),
        (lambda F, Y: NonEmpty().shift([[np.nan]]), "NaN in 1 entries"),
        (lambda F, Y: LabelThresholds().fit(F, Y[:, :2]), r"\(40, 2\) and \(40, 5\)"),
        (lambda F, Y: LabelThresholds().fit(F, Y).shift(F[:, :2]), "learned for 5 labels. Got scores of 2"),
        (lambda F, Y: RowThreshold().fit(F, Y).shift(F[:, :2]), "learned for 5 labels. Got scores of 2"),
        (lambda F, Y: RowThreshold().fit(F, np.ones_like(Y)), "Got 40 samples"),
        (lambda F, Y: RowThreshold("largest").fit(F, Y), "Got 'largest'"),
        (lambda F, Y: LabelThresholds("subset").fit(F, Y), "Got 'subset'"),
        (lambda F, Y: GlobalThreshold(METRICS["coverage"]).fit(F, Y), "metric of labels"),
        (lambda F, Y: TopK(-1).shift(F), "Got -1"),
        (lambda F, Y: GlobalThreshold().fit(F[:0], Y[:0]), "at least one sample"),
        (lambda F, Y: non_empty(Y, F[:, :2]), r"\(40, 5\) and \(40, 2\)"),
        (lambda F, Y: relevant_labels([[1.0, np.nan]]), "NaN in 1 entries"),
        (lambda F, Y: top_labels(F, 6), "between 1 and the number of labels, 5. Got 6"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(*problem())


@pytest.mark.parametrize("rule", [GlobalThreshold(), LabelThresholds(), RowThreshold()], ids=repr)
def test_learned_rules_must_be_learned_first(rule):
    with pytest.raises(NotFittedError):
        clone(rule).labels([[1.0, 2.0]])


def test_the_threshold_of_equal_scores_lies_beyond_them():
    assert best_global_threshold([[1.0], [1.0]], [[0], [0]], "hamming_loss") == pytest.approx(1.1)
    assert best_global_threshold([[-1.0], [-1.0]], [[1], [1]], "hamming_loss") == pytest.approx(-1.1)


def hidden(Y, share=0.4, seed=1):
    return np.where(np.random.default_rng(seed).random(Y.shape) < share, np.nan, Y)


@ALL
def test_rules_learn_where_labels_are_missing(rule):
    scores, Y = problem()
    Y = hidden(Y)
    Y[2], Y[:, 3] = np.nan, np.nan
    first = clone(rule).fit(scores, Y).shift(scores)
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, clone(rule).fit(scores, np.where(Y == 0, -1, Y)).shift(scores))


@pytest.mark.parametrize("metric", ["f1_micro", "hamming_loss"])
def test_a_global_threshold_is_that_of_the_known_entries(metric):
    scores, Y = problem()
    Y = hidden(Y)
    known = ~np.isnan(Y)
    flat = best_global_threshold(scores[known][:, None], Y[known][:, None], metric)
    assert best_global_threshold(scores, Y, metric) == flat


@pytest.mark.parametrize("metric", ["f1_macro", "hamming_loss"])
def test_a_label_s_threshold_is_that_of_its_known_rows(metric):
    scores, Y = problem()
    Y = hidden(Y)
    Y[:, 4] = np.nan
    thresholds = best_label_thresholds(scores, Y, metric, start=0.1)
    for j in range(4):
        known = ~np.isnan(Y[:, j])
        assert thresholds[j] == best_label_thresholds(scores[known, j, None], Y[known, j, None], metric, start=0.1)[0]
    assert thresholds[4] == 0.1


@pytest.mark.parametrize("best", [best_global_threshold, best_label_thresholds])
def test_a_metric_without_a_formula_sees_known_entries_alone(best):
    scores, Y = problem()
    Y = hidden(Y)
    Y[:, 4] = np.nan
    metric = METRICS["f1_example"]
    tuned = best(scores, Y, metric)
    reached, untuned = (metric.value(Y, (scores > t).astype(int), missing="ignore") for t in (tuned, 0.0))
    assert reached >= untuned
    seen = np.where(np.isnan(Y), 1000.0, scores)  # what is not known may be anything
    np.testing.assert_array_equal(best(seen, Y, metric), tuned)


@pytest.mark.parametrize("rule", ["middle", "smallest"])
def test_a_row_s_threshold_is_that_of_its_known_labels(rule):
    scores, Y = problem(ties=True)
    Y = hidden(Y)
    Y[3] = np.nan
    thresholds = ideal_row_thresholds(scores, Y, rule)
    for i, (f, y) in enumerate(zip(scores, Y)):
        known = ~np.isnan(y)
        expected = ideal_row_thresholds([f[known]], [y[known]], rule)[0] if known.any() else np.nan
        np.testing.assert_equal(thresholds[i], expected)


def test_where_nothing_is_known_the_cut_stays():
    scores, nothing = np.ones((3, 2)), np.full((3, 2), np.nan)
    for metric in ("hamming_loss", METRICS["f1_example"]):
        assert best_global_threshold(scores, nothing, metric, start=0.5) == 0.5
        assert best_label_thresholds(scores, nothing, metric, start=0.5).tolist() == [0.5, 0.5]


@given(seed=st.integers(0, 10**6), ties=st.booleans(), never_empty=st.booleans(), missing=st.booleans())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("metric", ["f1_micro", "f1_samples", "hamming_loss"])
def test_a_global_threshold_is_the_best_of_all_cuts(metric, seed, ties, never_empty, missing):
    """Exact also for predictions in which an empty row gets its best label, and where labels are missing."""
    scores, Y = problem(seed, n=12, l=4, ties=ties)
    known = np.random.default_rng(seed).random(Y.shape) < (0.7 if missing else 2)
    known[0, 0] = True
    labels = np.where(known, Y, np.nan)
    record = METRICS["f1_example" if metric == "f1_samples" else metric]
    values = np.unique(scores)
    cuts = [values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1]

    def value(threshold):
        predicted = relevant_labels(scores - threshold, never_empty)
        found = record.function(labels, predicted, missing="ignore")
        return found if record.greater_is_better else -found

    threshold = best_global_threshold(scores, labels, metric, never_empty=never_empty)
    assert value(threshold) == pytest.approx(max(map(value, cuts)))
    assert best_global_threshold(scores, labels, record, never_empty=never_empty) == threshold


@pytest.mark.parametrize("metric", ["f1_micro", "f1_samples", "hamming_loss", "f1_macro"])
@pytest.mark.parametrize("never_empty", [False, True])
def test_weights_of_samples_are_repetitions(metric, never_empty):
    scores, Y = problem(3)
    weights = np.random.default_rng(0).integers(0, 3, len(Y))
    repeated = np.repeat(scores, weights, axis=0), np.repeat(Y, weights, axis=0)
    weighted = scores[weights > 0], Y[weights > 0]
    if metric == "f1_macro":
        expected, found = (best_label_thresholds(*data, sample_weight=w) for data, w in
                           ((repeated, None), (weighted, weights[weights > 0])))  # fmt: skip
    else:
        expected, found = (best_global_threshold(*data, metric, sample_weight=w, never_empty=never_empty) for data, w in
                           ((repeated, None), (weighted, weights[weights > 0])))  # fmt: skip
    np.testing.assert_allclose(found, expected)
    rule = LabelThresholds() if metric == "f1_macro" else GlobalThreshold(metric, never_empty=never_empty)
    rule.fit(*weighted, sample_weight=weights[weights > 0])
    np.testing.assert_allclose(rule.thresholds_ if metric == "f1_macro" else rule.threshold_, expected)


def test_weights_need_a_metric_that_is_solved_exactly():
    scores, Y = problem()
    with pytest.raises(
        ValueError, match=r"sample_weight needs a metric that is optimised exactly: .* Got subset_accuracy"
    ):
        best_global_threshold(scores, Y, METRICS["subset_accuracy"], sample_weight=np.ones(len(Y)))
    with pytest.raises(ValueError, match=r"a weight for each of the 40 samples. Got shape \(3,\)"):
        best_global_threshold(scores, Y, sample_weight=np.ones(3))


def test_the_share_of_empty_samples():
    assert empty_share(np.eye(4, 3)) == 0.25
    assert empty_share(sparse.csr_array(np.eye(4, 3))) == 0.25
    assert empty_share(2 * np.eye(4, 3) - 1, [1, 1, 1, 5]) == 5 / 8
    assert empty_share([[np.nan, np.nan], [0.0, np.nan], [1.0, 0.0]]) == 0.5
    assert empty_share([[0, 0]], [0.0]) == 0.0
    assert [filling_pays(share) for share in (0.0, 0.02, 0.021)] == [True, True, False]
