"""The models that are compared: each learns from rows, and gives probabilities of other rows."""

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from rbrl import CalibratedMultiLabelClassifier, RBRLClassifier

N_FOLDS = 5


def sigmoid(rows):
    return CalibratedMultiLabelClassifier(RBRLClassifier(), cv=N_FOLDS).fit(rows.X, rows.Y).predict_proba(rows.X_test)


def isotonic(rows):
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), method="isotonic", cv=N_FOLDS)
    return model.fit(rows.X, rows.Y).predict_proba(rows.X_test)


def raw(rows):
    """Sigmoid of the uncalibrated scores, often the first attempt."""
    return expit(RBRLClassifier().fit(rows.X, rows.Y).decision_function(rows.X_test))


def uncalibrated(rows):
    """Fit the classifier alone, to measure its time."""
    return RBRLClassifier().fit(rows.X, rows.Y).decision_function(rows.X_test)


def logistic(rows):
    return label_by_label(rows, lambda: LogisticRegression(max_iter=1000), 1)


def calibrated_svc(rows):
    """scikit-learn's calibration, which takes one label at a time, and none with fewer rows of a kind than folds."""
    return label_by_label(rows, lambda: CalibratedClassifierCV(LinearSVC(), cv=N_FOLDS, ensemble=False), N_FOLDS)


def label_by_label(rows, make, fewest):
    """Fit a model for every label; a label with too few rows of one class gets its share, as in our classifier."""
    n, share = len(rows.Y), rows.Y.mean()
    P = np.tile((rows.Y.sum(axis=0) + share) / (n + 1), (rows.X_test.shape[0], 1))
    for j, y in enumerate(rows.Y.T):
        if fewest <= y.sum() <= n - fewest:
            P[:, j] = make().fit(rows.X, y).predict_proba(rows.X_test)[:, 1]
    return P


MODELS = {
    "calibrated": sigmoid,
    "isotonic": isotonic,
    "sigmoid of raw scores": raw,
    "logistic regression": logistic,
    "CalibratedClassifierCV": calibrated_svc,
    "RBRL alone": uncalibrated,
}
