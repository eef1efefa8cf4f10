"""Explanations of calibrated classifiers: the terms add up to the log-odds of their probabilities."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import (
    BinaryRelevance,
    BRLClassifier,
    CalibratedMultiLabelClassifier,
    RankSVM,
    RBRLClassifier,
    TunedThresholdClassifier,
    explain,
    label_map,
)
from rbrl.decision import LabelThresholds

X, Y = make_multilabel_classification(120, 6, n_classes=4, random_state=0)
NAMES = ["sea", "sun", "hill", "rain"]
MODELS = [
    CalibratedMultiLabelClassifier(RBRLClassifier(), cv=3),
    CalibratedMultiLabelClassifier(RBRLClassifier(kernel="rbf"), cv=3),
    CalibratedMultiLabelClassifier(RankSVM(C=0.1), cv=3),
    CalibratedMultiLabelClassifier(BinaryRelevance(LogisticRegression()), cv=3),
    CalibratedMultiLabelClassifier(TunedThresholdClassifier(BRLClassifier(), cv=3), cv=3),
    CalibratedMultiLabelClassifier(make_pipeline(StandardScaler(), BRLClassifier()), cv=3),
    CalibratedMultiLabelClassifier(RBRLClassifier(), rule=LabelThresholds(), cv=3),
    make_pipeline(StandardScaler(), CalibratedMultiLabelClassifier(BRLClassifier(), cv=3)),
    TunedThresholdClassifier(CalibratedMultiLabelClassifier(BRLClassifier(), cv=3), cv=3),
]


def total(found):
    return found.contributions.sum() + sum(found.constants.values())


def probabilities(model, rows):
    calibrated = model.estimator_ if isinstance(model, TunedThresholdClassifier) else model
    return calibrated.predict_proba(rows)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_terms_add_up_to_the_log_odds(model):
    model.fit(X, Y)
    for label in range(4):
        odds = logit(probabilities(model, X[3:4])[0, label])
        found = explain(model, X[3], label)
        assert found.score == pytest.approx(odds, rel=1e-9, abs=1e-9)
        assert total(found) == pytest.approx(odds, rel=1e-9, abs=1e-9)
        assert found.predicted == bool(model.predict(X[3:4])[0, label])
        assert f"Probability: {probabilities(model, X[3:4])[0, label]:.3f}." in found.notes
    difference = explain(model, X[3], 0, against=2)
    P = probabilities(model, X[3:4])[0]
    assert total(difference) == pytest.approx(logit(P[0]) - logit(P[2]), rel=1e-9, abs=1e-9)
    assert difference.notes[0] == f"Probabilities: {P[0]:.3f} and {P[2]:.3f}."


def test_terms_of_isotonic_maps_add_up_to_the_score_of_the_classifier_inside():
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), method="isotonic", cv=3).fit(X, Y)
    found = explain(model, X[0], 1)
    plain = explain(model.estimator_, X[0], 1)
    assert found.score == plain.score == pytest.approx(total(found))
    assert found.terms == plain.terms
    assert "the probability increases with it" in found.notes[1]


def test_the_most_probable_label_is_explained_by_default_and_labels_have_names():
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), cv=3, label_names=NAMES).fit(X, Y)
    assert explain(model, X[0]).label == NAMES[model.predict_proba(X[:1]).argmax()]


def test_thresholds_of_probabilities_are_noted():
    tuned = TunedThresholdClassifier(CalibratedMultiLabelClassifier(BRLClassifier(), cv=3), cv=3).fit(X, Y)
    text = explain(tuned, X[0], 1).text()
    threshold = 0.5 + tuned.rule_.threshold_
    assert f"The label is relevant above a probability of {threshold:.3f}." in text
    plain = CalibratedMultiLabelClassifier(BRLClassifier(), cv=3).fit(X, Y)
    assert "above a probability" not in explain(plain, X[0], 1).text()


def test_a_constant_label_has_no_terms():
    constant = np.column_stack([Y, np.zeros(120, int)])
    model = CalibratedMultiLabelClassifier(BinaryRelevance(LogisticRegression()), cv=3).fit(X, constant)
    found = explain(model, X[0], 4)
    assert found.score == pytest.approx(logit(model.predict_proba(X[:1])[0, 4]))
    # A classifier of scikit-learn is not fitted to a constant label.
    from sklearn.multiclass import OneVsRestClassifier

    model = CalibratedMultiLabelClassifier(OneVsRestClassifier(LogisticRegression()), cv=3).fit(X, constant)
    found = explain(model, X[0], 4)
    assert (found.terms, list(found.constants)) == ([], ["calibration"])
    assert found.score == pytest.approx(logit(model.predict_proba(X[:1])[0, 4]))
    other = explain(model, X[0], 3, against=4)
    assert total(other) == pytest.approx(other.score)


def test_a_binary_target_of_classes():
    model = CalibratedMultiLabelClassifier(BRLClassifier(), cv=3).fit(X, np.array(["no", "yes"])[Y[:, 0]])
    found = explain(model, X[0])
    assert found.label == "yes"
    assert total(found) == pytest.approx(logit(model.predict_proba(X[:1])[0, 1]))


def test_label_maps_are_those_of_the_classifier_inside():
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), cv=3, label_names=NAMES).fit(X, Y)
    assert label_map(model).label_names == NAMES
    np.testing.assert_array_equal(label_map(model).factors, label_map(model.estimator_).factors)


def test_classifiers_without_sums_are_rejected():
    neighbours = CalibratedMultiLabelClassifier(KNeighborsClassifier(), cv=3).fit(X, Y)
    with pytest.raises(ValueError, match="KNeighborsClassifier has no decision_function"):
        explain(neighbours, X[0])
    twice = CalibratedMultiLabelClassifier(CalibratedMultiLabelClassifier(BRLClassifier(), cv=2), cv=2).fit(X, Y)
    with pytest.raises(ValueError, match="inside another calibrated classifier"):
        explain(twice, X[0])
