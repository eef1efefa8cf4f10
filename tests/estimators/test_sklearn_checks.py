"""scikit-learn's own checks, nothing excused; solutions tight enough to be compared."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_methods_contract import METHODS
from test_svm_checks import CHECKED as SVMS

import rbrl
from rbrl import BRLClassifier, RBRLClassifier, RBRLClassifierCV, TunedThresholdClassifier
from rbrl.search import PathSearchCV

# No gap is proved that small: the fit goes on until nothing moves.
pytestmark = pytest.mark.filterwarnings("ignore:Double precision proves only")
TIGHT = {"tol": 1e-16, "max_iter": 20_000}
# The paper's ||A||_* is not that of a function: a repeated row changes it. "function" is, so weights equal repetition.
CHECKED = [
    RBRLClassifier(ridge=10.0, **TIGHT),
    BRLClassifier(ridge=10.0, **TIGHT),
    RBRLClassifier(kernel="rbf", low_rank="function", **TIGHT),
    RBRLClassifier(kernel="precomputed", low_rank="function", fit_intercept=False, **TIGHT),
    RBRLClassifierCV([10.0], [0.1], [0.1, 1.0], estimator=RBRLClassifier(tol=1e-16), cv=2),
    PathSearchCV(BRLClassifier(tol=1e-16), {"ridge": [10.0, 1.0]}, cv=2),
    TunedThresholdClassifier(RBRLClassifier(tol=1e-16)),
    TunedThresholdClassifier(LogisticRegression()),
]
NOT_A_KERNEL = {
    f"check_{name}": "the check's X is not a symmetric positive semidefinite matrix, and is refused"
    for name in ("positive_only_tag_during_fit", "estimators_dtypes", "classifiers_one_label_sample_weights")
}


def not_applicable(estimator):
    return NOT_A_KERNEL if getattr(estimator, "kernel", None) == "precomputed" else {}


@parametrize_with_checks(CHECKED, expected_failed_checks=not_applicable)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_everything_exported_that_predicts_is_checked():
    """Here, or in the two neighbours with the methods of others."""
    found = [getattr(home, name) for home in (rbrl, rbrl.estimators, rbrl.search) for name in home.__all__]
    models = {
        cls for cls in found if inspect.isclass(cls) and issubclass(cls, BaseEstimator) and hasattr(cls, "predict")
    }
    assert models == {type(model) for model in (*CHECKED, *METHODS, *SVMS)}
