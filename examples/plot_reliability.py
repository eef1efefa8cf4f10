"""
Do probabilities mean what they say?
====================================

Of all labels that were given a probability of about 0.7, seven in ten should turn out relevant. A reliability diagram
shows whether they do. Three ways to probabilities, on the same rows of yeast: the sigmoid of RBRL's scores; the same
scores, calibrated; and logistic regression for each label.
"""

from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from rbrl import BinaryRelevance, CalibratedMultiLabelClassifier, RBRLClassifier, datasets, evaluate
from rbrl.experiments.label_figures import reliability_diagram

train, test = datasets.load("yeast").split(seed=0)

# %%
# Scores are no probabilities
# ---------------------------
# RBRL learns scores whose signs and order are right. Pressing them between 0 and 1 by a sigmoid gives numbers, not
# probabilities. :class:`rbrl.CalibratedMultiLabelClassifier` learns from rows that the model inside has not seen what a
# score means, for every label.

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
# that dare to be near 0 or 1, where that is right.

METRICS = ("expected_calibration_error", "log_loss", "brier_score")
for name, P in probabilities.items():
    values = evaluate(test.Y, metrics=METRICS, probabilities=P)
    print(f"{name:18}", "  ".join(f"{metric} {value:.3f}" for metric, value in values.items()))

# %%
# The diagram
# -----------
# On the diagonal probabilities mean what they say. A dot is the larger, the more entries are in its bin, and the bar
# through it is where chance alone would put it in 95 of 100 draws. The sigmoid is too timid at both ends: what it gives
# 0.3 happens in one row of ten.

figure = reliability_diagram(test.Y, probabilities)
