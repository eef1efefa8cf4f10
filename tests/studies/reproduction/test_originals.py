"""Original algorithms that plans use: each step is the one that it should be."""

import numpy as np
import pytest
from originals import FrankWolfeRankSVMz, _vertex
from scipy.optimize import linprog
from sklearn.datasets import make_multilabel_classification

from rbrl import RankSVMz


@pytest.mark.parametrize("seed", range(20))
def test_a_vertex_solves_its_linear_program(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(3, 15)
    Y = np.where(np.arange(n)[:, None] < max(1, n // 3), 1.0, -1.0)
    gradient, bound = rng.normal(size=(n, 1)), rng.random((n, 1)) + 0.1
    a = _vertex(gradient, Y, bound)
    best = linprog(gradient[:, 0], A_eq=Y.T, b_eq=[0], bounds=[(0, one) for one in bound[:, 0]])
    assert (Y * a).sum() == pytest.approx(0, abs=1e-12)
    assert ((a >= 0) & (a <= bound)).all()
    assert (gradient * a).sum() == pytest.approx(best.fun, abs=1e-9)


def test_many_steps_lead_to_the_optimum():
    X, Y = make_multilabel_classification(n_samples=60, n_features=5, n_classes=3, random_state=0)
    Y = Y[:, np.ptp(Y, axis=0) > 0]
    exact = RankSVMz(C=0.1, kernel="rbf", gamma=0.01, tol=1e-6).fit(X, Y).decision_function(X)
    steps = FrankWolfeRankSVMz(C=0.1, kernel="rbf", gamma=0.01, max_iter=3000).fit(X, Y).decision_function(X)
    apart = [np.abs(one - one.mean(axis=0) - (exact - exact.mean(axis=0))).max() for one in (steps, 0 * exact)]
    assert apart[0] < 0.05 * apart[1], "the scores agree, up to biases, which the free multipliers set"
