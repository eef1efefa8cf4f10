"""scikit-learn's own checks of the ranking SVMs, nothing excused."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from rbrl.estimators import CPNL, CalibratedRankSVM, RankSVM, RankSVMz

TIGHT = {"tol": 1e-12, "max_iter": 200_000}
CHECKED = [
    model(bias=bias, kernel=kernel, **TIGHT)
    for model in (RankSVM, RankSVMz, CalibratedRankSVM)
    for bias, kernel in (("free", "linear"), ("absorbed", "rbf"))
] + [CPNL(tol=1e-10, max_iter=20_000), CPNL(kernel="rbf", tol=1e-10, max_iter=20_000)]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
