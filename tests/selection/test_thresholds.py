"""Thresholds tuned on rows that their model has not seen."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from rbrl import CalibratedMultiLabelClassifier, RBRLClassifier, TunedThresholdClassifier
from rbrl.decision import GlobalThreshold, LabelThresholds, NonEmpty
from rbrl.exceptions import EmptyPredictionsWarning
from rbrl.metrics import f1_macro, f1_micro

X, Y = make_multilabel_classification(n_samples=200, n_features=10, n_classes=5, n_labels=1, random_state=0)


def test_labels_are_the_positive_scores():
    model = TunedThresholdClassifier(RBRLClassifier(), GlobalThreshold("f1_micro")).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)


def test_tuned_labels_serve_the_metric_they_were_tuned_for():
    plain = RBRLClassifier().fit(X[:120], Y[:120])
    for metric, rule in ((f1_micro, None), (f1_micro, GlobalThreshold()), (f1_macro, LabelThresholds())):
        tuned = TunedThresholdClassifier(RBRLClassifier(), rule).fit(X[:120], Y[:120])
        assert metric(Y[120:], tuned.predict(X[120:])) >= metric(Y[120:], plain.predict(X[120:]))


def test_one_threshold_for_micro_f1_is_the_default():
    """A threshold for each label overfits labels that few rows have."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 30))
    labels = (rows @ rng.standard_normal((30, 40)) + 8 * rng.standard_normal((400, 40)) > 16).astype(int)
    model = RBRLClassifier(non_empty=False)
    default, per_label = (
        TunedThresholdClassifier(model, rule).fit(rows[:200], labels[:200]) for rule in (None, LabelThresholds())
    )
    assert isinstance(default.rule_, GlobalThreshold)
    found, other, plain = (
        f1_micro(labels[200:], each.predict(rows[200:]))
        for each in (default, per_label, model.fit(rows[:200], labels[:200]))
    )
    assert found > max(other, plain)


def test_fits_that_are_cut_elsewhere_do_not_warn_of_empty_rows():
    labels = np.eye(6, 5, dtype=int)[np.arange(200) % 6]
    model = RBRLClassifier(ridge=1e6)
    with pytest.warns(EmptyPredictionsWarning):
        model.fit(X, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", EmptyPredictionsWarning)
        TunedThresholdClassifier(model, cv=2).fit(X, labels)
        CalibratedMultiLabelClassifier(model, cv=2).fit(X, labels)


def test_any_classifier_and_any_rule():
    model = TunedThresholdClassifier(OneVsRestClassifier(LogisticRegression()), NonEmpty()).fit(X, Y)
    assert model.predict(X).any(axis=1).all()


@pytest.mark.parametrize(
    "target",
    [Y, 2 * Y - 1, Y[:, :1], sparse.csr_array(Y), sparse.csr_matrix(Y), Y[:, 0], np.array(["no", "yes"])[Y[:, 0]]],
    ids=["0/1", "-1/+1", "one label", "sparse", "sparse matrix", "1-D", "words"],
)
def test_answers_come_in_the_coding_of_the_target(target):
    model = TunedThresholdClassifier(RBRLClassifier()).fit(X, target)
    found, scores = model.predict(X), model.decision_function(X)
    assert type(found) is type(target)
    assert found.shape == scores.shape == target.shape
    assert found.dtype == target.dtype
    values, wanted = (side.toarray() if sparse.issparse(side) else side for side in (found, target))
    assert set(np.unique(values)) == set(np.unique(wanted))
    np.testing.assert_array_equal(values == np.unique(wanted)[-1], scores > 0)


def test_three_classes_are_cut_by_their_thresholds_too():
    classes = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    model = TunedThresholdClassifier(RBRLClassifier()).fit(X, classes)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    assert model.score(X, classes) > 0.6
