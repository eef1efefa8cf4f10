"""Calibrated models as graphs: probabilities too, by sigmoids and between knots."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import BRLClassifier, CalibratedMultiLabelClassifier, TunedThresholdClassifier, to_onnx
from rbrl.decision import LabelThresholds, TopK

pytest.importorskip("onnx", reason="needs the extra onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")

X, Y = make_multilabel_classification(n_samples=150, n_features=10, n_classes=5, random_state=0)
TOLERANCE = 1e-10


def check_agreement(model, rows):
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    labels, scores, *probabilities = session.run(None, {"X": rows})
    np.testing.assert_allclose(scores, model.decision_function(rows), rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(labels, model.predict(rows))
    return probabilities


def check_calibrated(model, rows=X[100:]):
    (probabilities,) = check_agreement(model, rows)
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=TOLERANCE)


TARGETS = {
    "labels": Y,
    "plus and minus one": np.where(Y > 0, 1, -1),
    "with a constant label": np.where(np.arange(5) == 2, 0, Y),
    "two classes": np.array(["sea", "sand"])[Y[:, 0]],
    "three classes": Y[:, :2].sum(axis=1),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities(method, target):
    model = CalibratedMultiLabelClassifier(BRLClassifier(), method=method, cv=3).fit(X[:100], TARGETS[target][:100])
    check_calibrated(model)
    check_calibrated(model, 5 * X[100:])  # beyond the first and last knot


@pytest.mark.parametrize("target", ["labels", "with a constant label"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_around_a_pipeline(method, target):
    """A pipeline is fitted to the labels that are not constant: only these have scores."""
    pipeline = make_pipeline(StandardScaler(), BRLClassifier())
    check_calibrated(CalibratedMultiLabelClassifier(pipeline, method, cv=3).fit(X[:100], TARGETS[target][:100]))


@pytest.mark.parametrize("rule", [LabelThresholds(), TopK(2)], ids=repr)
def test_with_a_rule(rule):
    check_calibrated(CalibratedMultiLabelClassifier(BRLClassifier(), rule=rule, cv=3).fit(X[:100], Y[:100]))


def test_within_tuned_thresholds():
    calibrated = CalibratedMultiLabelClassifier(BRLClassifier(), cv=3)
    assert check_agreement(TunedThresholdClassifier(calibrated, cv=2).fit(X[:100], Y[:100]), X[100:]) == []
