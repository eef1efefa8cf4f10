"""scikit-learn's own checks of every classifier: tight solutions pass all; of the defaults, one check is declared."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import rbrl
from rbrl import (
    CPNL,
    MLFE,
    BinaryRelevance,
    BRLClassifier,
    CalibratedLabelRanking,
    CalibratedMultiLabelClassifier,
    CalibratedRankSVM,
    EnsembleOfChains,
    LabelPowerset,
    MLkNN,
    RAkEL,
    RankSVM,
    RankSVMz,
    RBRLClassifier,
    RBRLClassifierCV,
    TunedThresholdClassifier,
)
from rbrl.selection import PathSearchCV

# No gap is proved that small: the fit goes on until nothing moves.
pytestmark = pytest.mark.filterwarnings("ignore:The solution could not be certified .* Its certified")
TIGHT = {"tol": 1e-16, "max_iter": 20_000}
# The paper's ||A||_* is not that of a function: a repeated row changes it. "function" is, so weights equal repetition.
CONVEX = [
    RBRLClassifier(**TIGHT),
    CPNL(**TIGHT),
    BRLClassifier(ridge=10.0, **TIGHT),
    # Of a width that suits the data of the checks: far from all rows a narrow kernel knows no class.
    RBRLClassifier(kernel="rbf", gamma=0.001, low_rank="function", **TIGHT),
    RBRLClassifier(kernel="precomputed", low_rank="function", fit_intercept=False, **TIGHT),
    RBRLClassifierCV([10.0], [0.1], [0.1, 1.0], estimator=RBRLClassifier(tol=1e-16), cv=2),
    PathSearchCV(BRLClassifier(tol=1e-16), {"ridge": [10.0, 1.0]}, cv=2),
    TunedThresholdClassifier(RBRLClassifier(tol=1e-16)),
    CalibratedMultiLabelClassifier(RBRLClassifier(tol=1e-16)),
]
FREE, ABSORBED = (
    {"bias": bias, "kernel": kernel, "tol": 1e-14, "max_iter": 3000}
    for bias, kernel in (("free", "linear"), ("absorbed", "rbf"))
)
SVMS = [RankSVM(**FREE), RankSVMz(**ABSORBED), CalibratedRankSVM(**ABSORBED), CPNL(ridge=10.0, kernel="rbf", **TIGHT)]
REDUCTIONS = [
    MLkNN(),
    # Weights and repetitions are compared to seven digits, more than the default tolerances give on every processor.
    BinaryRelevance(tol=1e-10),
    CalibratedLabelRanking(kernel="rbf"),
    RAkEL(random_state=0),
    LabelPowerset(kernel="rbf"),
    EnsembleOfChains(n_chains=3, random_state=0),
    MLFE(),
]
# Classes of the lists above with other settings.
MORE_SETTINGS = [
    RBRLClassifier(ridge=10.0, **TIGHT),
    CPNL(ridge=10.0, **TIGHT),
    TunedThresholdClassifier(LogisticRegression()),
    CalibratedMultiLabelClassifier(LogisticRegression(), method="isotonic"),
    RankSVM(**ABSORBED),
    RankSVMz(**FREE),
    CalibratedRankSVM(**FREE),
    MLkNN(scale="minmax"),
    BinaryRelevance(kernel="rbf", tol=1e-10),
    CalibratedLabelRanking(),
    RAkEL(overlapping=False, kernel="rbf", random_state=0),
    LabelPowerset(),
    EnsembleOfChains(n_chains=3, kernel="rbf", random_state=0),
]
NOT_A_KERNEL = {
    f"check_{name}": "the check's X is not a symmetric positive semidefinite matrix, and is refused"
    for name in ("positive_only_tag_during_fit", "estimators_dtypes", "classifiers_one_label_sample_weights")
} | {
    "check_class_weight_classifiers": "far from all rows the check's narrow kernel knows no class, and has no intercept"
}


DEFAULTS = [
    RBRLClassifier(),
    BRLClassifier(),
    CPNL(),
    RBRLClassifierCV(),
    RankSVM(),
    RankSVMz(),
    CalibratedRankSVM(),
    BinaryRelevance(),
    CalibratedLabelRanking(),
    RAkEL(),
    LabelPowerset(),
    EnsembleOfChains(),
    MLkNN(),
    MLFE(),
    TunedThresholdClassifier(RBRLClassifier()),
    TunedThresholdClassifier(BinaryRelevance()),
    CalibratedMultiLabelClassifier(RBRLClassifier()),
    CalibratedMultiLabelClassifier(BinaryRelevance()),
]
# Their solvers stop at a gap of `tol`: weighted rows in another order end elsewhere within this gap.
STOPS_AT_TOL = (
    *(RBRLClassifier, BRLClassifier, CPNL, RBRLClassifierCV, RankSVM, RankSVMz, CalibratedRankSVM),
    *(BinaryRelevance, CalibratedMultiLabelClassifier),
)
ONE_PROBLEM_TWO_STOPS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the check compares to 1e-7, and the solver stops at tol"
    for kind in ("dense", "sparse")
}


def stops_at_tol(estimator):
    return ONE_PROBLEM_TWO_STOPS if isinstance(estimator, STOPS_AT_TOL) else {}


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(DEFAULTS, expected_failed_checks=stops_at_tol)
def test_default_parameters(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", [RBRLClassifier(), BRLClassifier(), CPNL()], ids=lambda model: type(model).__name__)
def test_weighted_and_repeated_rows_agree_within_their_gaps(model):
    """With P(w) - P(w*) <= gap P(w) and strong convexity, |w - w*|^2 <= 2 gap P(w) in the norm of the ridge."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((15, 30)), rng.integers(0, 2, (15, 4))
    weights = rng.integers(0, 5, 15)
    order = rng.permutation(15)
    weighted = clone(model).fit(X[order], Y[order], sample_weight=weights[order])
    repeated = clone(model).fit(X.repeat(weights, axis=0), Y.repeat(weights, axis=0))
    assert weighted.ridge_ == pytest.approx(repeated.ridge_, rel=1e-12)
    radius = sum(np.sqrt(2 * one.gap_ * one.objective_) for one in (weighted, repeated))
    length = np.sqrt((X**2).sum(axis=1) / weighted.ridge_ + 1 / model.intercept_ridge)
    difference = np.abs(weighted.decision_function(X) - repeated.decision_function(X)).max(axis=1)
    assert (difference <= radius * length).all()


def not_applicable(estimator):
    return NOT_A_KERNEL if getattr(estimator, "kernel", None) == "precomputed" else {}


@parametrize_with_checks(CONVEX, expected_failed_checks=not_applicable)
def test_convex_models(estimator, check):
    check(estimator)


@parametrize_with_checks(SVMS)
def test_ranking_svms(estimator, check):
    check(estimator)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(MORE_SETTINGS)
def test_more_settings(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(REDUCTIONS)
def test_reductions_and_neighbours(estimator, check):
    check(estimator)


def test_everything_exported_that_predicts_is_checked():
    found = [getattr(home, name) for home in (rbrl, rbrl.selection) for name in home.__all__]
    models = {
        cls for cls in found if inspect.isclass(cls) and issubclass(cls, BaseEstimator) and hasattr(cls, "predict")
    }
    assert models == {type(model) for model in (*CONVEX, *SVMS, *REDUCTIONS)}
