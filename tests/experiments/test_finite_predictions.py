"""A method whose scores or probabilities are not finite has failed: no metric of such predictions is a result."""

import numpy as np
import pytest

from rbrl.experiments import Plan, Store, execute
from rbrl.selection.grid_search import Predictions

METHOD = """
import numpy as np
from sklearn.base import BaseEstimator


class Infinite(BaseEstimator):
    def __init__(self, bad="inf"):
        self.bad = bad

    def fit(self, X, y):
        self.n_labels_ = y.shape[1]
        return self

    def decision_function(self, X):
        scores = np.tile(np.linspace(-1, 1, self.n_labels_), (len(X), 1))
        scores[0, 0] = float(self.bad)
        return scores

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)
"""


@pytest.mark.parametrize("tuned", [False, True], ids=["plain", "tuned"])
@pytest.mark.parametrize("bad", ["inf", "-inf", "nan"])
def test_scores_that_are_not_finite_are_a_failed_run(place, tmp_path, bad, tuned):
    (tmp_path / "own.py").write_text(METHOD)
    method = {"use": "own.py:Infinite", **({"grid": {"bad": ["0", bad]}} if tuned else {"params": {"bad": bad}})}
    table = {"datasets": [{"file": str(place / "mine.csv")}], "methods": {"infinite": method}}
    table |= {"splits": {"number": 1}, "tuning": {"folds": 2}}
    store = Store(tmp_path / "store")
    summary = execute(Plan.from_dict(table, folder=tmp_path), store)
    assert (summary.n_done, summary.n_failed) == (0, 1)
    assert set(store.rows().status) == {"failed"}
    assert "ValueError: The scores must be finite. Got NaN or infinity in 1 of " in summary.failures[0][3]


@pytest.mark.parametrize("kind", ["labels", "scores", "probabilities"])
def test_whatever_is_not_finite_is_named(kind):
    predicted = Predictions(**{kind: np.array([[0.5, np.nan]])})
    with pytest.raises(ValueError, match=f"The {kind} must be finite. Got NaN or infinity in 1 of 2 entries"):
        predicted.evaluate([[1, 0]], [], "paper")
