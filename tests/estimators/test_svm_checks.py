"""scikit-learn's own checks of the ranking SVMs, nothing excused."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from rbrl.estimators import CPNL
from rbrl.ranking_svm.estimators import CalibratedRankSVM, RankSVM, RankSVMz

TIGHT = {"tol": 1e-14, "max_iter": 3000}
CHECKED = [
    model(bias=bias, kernel=kernel, **TIGHT)
    for model in (RankSVM, RankSVMz, CalibratedRankSVM)
    for bias, kernel in (("free", "linear"), ("absorbed", "rbf"))
] + [CPNL(kernel=kernel, solver="apg", tol=1e-15, max_iter=5000) for kernel in ("linear", "rbf")]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
