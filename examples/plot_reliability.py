"""
Do probabilities mean what they say?
====================================

Of all labels with a predicted probability of about 0.7, seven in ten should be relevant. A reliability diagram shows
whether they are. The example compares three kinds of probabilities on the same rows of yeast: the sigmoid of RBRL's
scores, the same scores after calibration, and logistic regression for each label.
"""

from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from rbrl import BinaryRelevance, CalibratedMultiLabelClassifier, RBRLClassifier, datasets, evaluate
from rbrl.experiments.label_figures import reliability_diagram

train, test = datasets.load("yeast").split(seed=0)

# %%
# Scores are no probabilities
# ---------------------------
# RBRL learns scores with the right signs and order. Their sigmoid is between 0 and 1, but it is not a probability.
# :class:`rbrl.CalibratedMultiLabelClassifier` learns the probability of a score for every label, from rows that the inner
# model has not seen.

calibrated = CalibratedMultiLabelClassifier(RBRLClassifier()).fit(*train)
logistic = BinaryRelevance(LogisticRegression(max_iter=1000)).fit(*train)
probabilities = {
    "Sigmoid of scores": expit(calibrated.estimator_.decision_function(test.X)),
    "Calibrated": calibrated.predict_proba(test.X),
    "Logistic": logistic.predict_proba(test.X),
}

# %%
# Three numbers for each
# ----------------------
# The expected calibration error is the mean distance from the diagonal below. The other two also reward probabilities
# close to 0 or 1 if they are right.

METRICS = ("expected_calibration_error", "log_loss", "brier_score")
for name, P in probabilities.items():
    values = evaluate(test.Y, metrics=METRICS, probabilities=P)
    print(f"{name:18}", "  ".join(f"{metric} {value:.3f}" for metric, value in values.items()))

# %%
# The diagram
# -----------
# On the diagonal, probabilities are calibrated. A larger dot has more entries in its bin; the bar through it covers 95 %
# of the values that chance alone would give. The sigmoid is too cautious at both ends: labels with the value 0.3 are
# relevant in one row of ten.

figure = reliability_diagram(test.Y, probabilities)
