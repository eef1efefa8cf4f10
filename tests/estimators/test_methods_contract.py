"""scikit-learn's own checks, for every method and both kernels of the reductions."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from rbrl.estimators import MLFE, BinaryRelevance, CalibratedLabelRanking, EnsembleOfChains, LabelPowerset, MLkNN, RAkEL

METHODS = [
    MLkNN(),
    MLkNN(scale="minmax"),
    # Weights and repetitions are compared to seven digits, more than the default tolerances give on every processor.
    BinaryRelevance(tol=1e-10),
    BinaryRelevance(kernel="rbf", tol=1e-10),
    CalibratedLabelRanking(),
    CalibratedLabelRanking(kernel="rbf"),
    RAkEL(random_state=0),
    RAkEL(overlapping=False, kernel="rbf", random_state=0),
    LabelPowerset(),
    LabelPowerset(kernel="rbf"),
    EnsembleOfChains(n_chains=3, random_state=0),
    EnsembleOfChains(n_chains=3, kernel="rbf", random_state=0),
    MLFE(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(METHODS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
