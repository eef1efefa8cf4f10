"""Thresholds tuned on rows that their model has not seen."""

import numpy as np
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
