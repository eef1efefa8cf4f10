"""scikit-learn's own checks, nothing excused; solutions tight enough to be compared."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from rbrl import BRLClassifier, RBRLClassifier

TIGHT = {"tol": 1e-16, "max_iter": 20_000}
# The paper's ||A||_* is not that of a function: a repeated row changes it. "function" is, so weights equal repetition.
CHECKED = [
    RBRLClassifier(ridge=10.0, **TIGHT),
    BRLClassifier(ridge=10.0, **TIGHT),
    RBRLClassifier(kernel="rbf", low_rank="function", **TIGHT),
    RBRLClassifier(kernel="precomputed", low_rank="function", fit_intercept=False, **TIGHT),
]
NOT_A_KERNEL = {
    f"check_{name}": "the check's X is not a symmetric positive semidefinite matrix, and is refused"
    for name in ("positive_only_tag_during_fit", "estimators_dtypes", "classifiers_one_label_sample_weights")
}


def not_applicable(estimator):
    return NOT_A_KERNEL if estimator.kernel == "precomputed" else {}


@parametrize_with_checks(CHECKED, expected_failed_checks=not_applicable)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
