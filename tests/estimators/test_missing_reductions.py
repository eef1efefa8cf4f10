"""Missing labels: binary relevance learns from the known labels, and other reductions reject them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from rbrl import BinaryRelevance, TunedThresholdClassifier
from rbrl.datasets import Dataset
from rbrl.decision import LabelThresholds
from rbrl.exceptions import InvalidLabelsError
from rbrl.registry import REGISTRY
from rbrl.selection.thresholds import held_out_scores

REFUSING = [name for name, cls in REGISTRY.items() if not cls.takes_missing]
LEARNERS = [{}, {"kernel": "rbf"}, {"estimator": LogisticRegression()}, {"estimator": GaussianNB()}]


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    Y = (X @ rng.standard_normal((5, 4)) + 0.3 * rng.standard_normal((60, 4)) > 0.2).astype(float)
    return X, Y, rng.random(Y.shape) < 0.4


@pytest.mark.parametrize("options", LEARNERS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_label_is_learned_from_the_rows_in_which_it_is_known(problem, options, weighted):
    X, Y, missing = problem
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    model = BinaryRelevance(**options).fit(X, np.where(missing, np.nan, Y), weights)
    scores = model.decision_function(X)
    for j in range(Y.shape[1]):
        seen = ~missing[:, j]
        alone = BinaryRelevance(**options).fit(X[seen], Y[seen, j, None], None if weights is None else weights[seen])
        np.testing.assert_allclose(scores[:, j], np.ravel(alone.decision_function(X)), rtol=1e-6, atol=1e-6)


def test_answers_are_in_the_coding_that_was_given(problem):
    X, Y, missing = problem
    zero_one, signed = (np.where(missing, np.nan, coded).astype(np.float32) for coded in (Y, 2 * Y - 1))
    first, second = BinaryRelevance().fit(X, zero_one).predict(X), BinaryRelevance().fit(X, signed).predict(X)
    assert first.dtype == second.dtype == np.float32
    assert set(np.unique(first)) == {0, 1}
    np.testing.assert_array_equal(2 * first - 1, second)


def test_frames_lists_and_data_sets_teach_the_same(problem):
    pandas = pytest.importorskip("pandas")
    X, Y, missing = problem
    Y = np.where(missing, np.nan, Y)
    expected = BinaryRelevance().fit(X, Y).decision_function(X)
    frame = pandas.DataFrame(Y, columns=list("abcd"))
    of_frame = BinaryRelevance().fit(X, frame)
    assert of_frame.label_names_.tolist() == list("abcd")
    for model in (of_frame, BinaryRelevance().fit(X, Y.tolist()), BinaryRelevance().fit(Dataset(X, Y))):
        np.testing.assert_array_equal(model.decision_function(X), expected)


@pytest.mark.parametrize("options", LEARNERS, ids=repr)
def test_one_observed_class_or_none_is_a_constant(problem, options):
    X, Y, missing = problem
    Y = np.where(missing, np.nan, Y)
    Y[Y[:, 0] == 0, 0] = np.nan  # every irrelevant entry is missing
    Y[:, 1] = np.nan
    Y[7] = np.nan
    with pytest.warns(UserWarning, match="1 of 4 labels are missing in all rows, the first of them in column 1"):
        model = BinaryRelevance(**options, non_empty=True).fit(X, Y)
    scores = model.decision_function(X)
    assert (scores[:, 0] == 1).all()
    assert (scores[:, 1] == -1).all()
    assert not model.predict(X)[:, 1].any()


@pytest.mark.parametrize("name", REFUSING)
def test_a_method_that_cannot_says_so(problem, name):
    X, Y, _ = problem
    Y[3, 1] = Y[5, 0] = np.nan
    cls = REGISTRY[name]
    with pytest.raises(
        InvalidLabelsError, match=rf"{cls.__name__} needs .* 2 of 240 entries missing .*BinaryRelevance"
    ):
        cls().fit(X, Y)
    with pytest.raises(InvalidLabelsError, match=f"{cls.__name__} needs"):
        next(iter(cls().fit_many(X, Y, [{}, {}])))


def test_binary_relevance_takes_them():
    assert BinaryRelevance.takes_missing
    assert TunedThresholdClassifier(BinaryRelevance()).takes_missing
    assert not TunedThresholdClassifier(LogisticRegression()).takes_missing


def test_labels_of_which_nothing_is_known_are_refused(problem):
    X, Y, _ = problem
    with pytest.raises(InvalidLabelsError, match="all 240 entries of y are missing"):
        BinaryRelevance().fit(X, np.full_like(Y, np.nan))


def test_a_class_is_never_missing(problem):
    X, Y, _ = problem
    y = Y[:, 0].copy()
    y[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        BinaryRelevance().fit(X, y)


def test_thresholds_are_tuned_on_what_is_known(problem):
    X, Y, missing = problem
    Y = np.where(missing, np.nan, Y)
    model = TunedThresholdClassifier(BinaryRelevance(), LabelThresholds(), cv=4, random_state=3).fit(X, Y)
    held_out = held_out_scores(BinaryRelevance(), X, Y, model.targets_, 4, random_state=3)
    np.testing.assert_array_equal(model.rule_.thresholds_, LabelThresholds().fit(held_out, Y).thresholds_)
    assert set(np.unique(model.predict(X))) == {0, 1}
    signed = TunedThresholdClassifier(BinaryRelevance(), LabelThresholds(), cv=4, random_state=3).fit(X, 2 * Y - 1)
    np.testing.assert_array_equal(signed.rule_.thresholds_, model.rule_.thresholds_)


def test_held_out_scores_are_those_of_complete_labels_where_nothing_is_missing(problem):
    X, Y, _ = problem
    Y[0, 0] = 1 - Y[0, 0]
    complete = TunedThresholdClassifier(BinaryRelevance(), LabelThresholds(), cv=4).fit(X, Y)
    almost = Y.copy()
    almost[0, 0] = np.nan
    incomplete = TunedThresholdClassifier(BinaryRelevance(), LabelThresholds(), cv=4).fit(X, almost)
    np.testing.assert_allclose(complete.rule_.thresholds_[1:], incomplete.rule_.thresholds_[1:], rtol=1e-9)
