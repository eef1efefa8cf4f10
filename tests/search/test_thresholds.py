"""Thresholds tuned on rows that their model has not seen."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from rbrl import RBRLClassifier, TunedThresholdClassifier
from rbrl.decision import GlobalThreshold, NonEmpty
from rbrl.metrics import f1_macro

X, Y = make_multilabel_classification(n_samples=200, n_features=10, n_classes=5, n_labels=1, random_state=0)


def test_labels_are_the_positive_scores():
    model = TunedThresholdClassifier(RBRLClassifier(), GlobalThreshold("f1_micro")).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)


def test_tuned_labels_serve_the_metric_they_were_tuned_for():
    plain = RBRLClassifier().fit(X[:120], Y[:120])
    tuned = TunedThresholdClassifier(RBRLClassifier()).fit(X[:120], Y[:120])
    assert f1_macro(Y[120:], tuned.predict(X[120:])) >= f1_macro(Y[120:], plain.predict(X[120:]))


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
