"""A fit sets all its attributes together at its end, or none; it warns from whatever thread it runs in."""

import copy
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rbrl
from rbrl import CalibratedMultiLabelClassifier, RankSVM, RBRLClassifier, RBRLClassifierCV, TunedThresholdClassifier
from rbrl.exceptions import ConvergenceWarning
from rbrl.registry import REGISTRY

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SMALL = {"ecc": {"n_chains": 2, "random_state": 0}, "rakel": {"random_state": 0}}
MODELS = {name: cls(**SMALL.get(name, {})) for name, cls in REGISTRY.items()} | {
    "rbf": RBRLClassifier(kernel="rbf"),
    "warm": RBRLClassifier(warm_start=True),
    "search": RBRLClassifierCV(cv=2),
    "calibrated": CalibratedMultiLabelClassifier(RBRLClassifier(), cv=2),
    "tuned": TunedThresholdClassifier(RBRLClassifier(), cv=2),
}


def frames(seed=0, names="abcd", n_samples=40):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 5))
    Y = (X @ rng.standard_normal((5, 4)) > 0.2).astype(np.int64)
    return X, pd.DataFrame(Y, columns=list(names))


def check_unchanged(model, before):
    """Every attribute is the very object that it was."""
    after = vars(model)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


@pytest.mark.parametrize("name", MODELS)
def test_a_failed_refit_changes_nothing(name):
    X, Y = frames()
    model = copy.deepcopy(MODELS[name]).fit(X, Y)
    before, sets, scores = vars(model).copy(), model.predict_sets(X), model.decision_function(X)
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(bad, Y[list("dcba")])
    check_unchanged(model, before)
    assert model.predict_sets(X) == sets
    np.testing.assert_array_equal(model.decision_function(X), scores)


class Interruption:
    """Count the calls of functions of the package, and raise KeyboardInterrupt at one of them.

    Parameters
    ----------
    at : float
        Number of the call.
    """

    def __init__(self, at=np.inf):
        self.at = at
        self.calls = 0

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def trace(self, frame, event, _):
        if event == "call" and f"{os.sep}rbrl{os.sep}" in frame.f_code.co_filename:
            self.calls += 1
            if self.calls >= self.at:
                sys.settrace(self.before)
                raise KeyboardInterrupt


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("name", ["rbrl", "rbf", "rank-svm", "calibrated"])
def test_the_old_model_answers_after_an_interrupted_refit(name, share):
    X, Y = frames()
    model = copy.deepcopy(MODELS[name]).fit(X, Y)
    before, sets, scores = vars(model).copy(), model.predict_sets(X), model.decision_function(X)
    with Interruption() as whole:
        copy.deepcopy(model).fit(-2 * X, Y[list("dcba")])
    with pytest.raises(KeyboardInterrupt), Interruption(1 + share * (whole.calls - 1)):
        model.fit(-2 * X, Y[list("dcba")])
    check_unchanged(model, before)
    assert model.predict_sets(X) == sets
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_a_model_that_was_never_fitted_stays_so_after_a_failed_fit():
    model = RBRLClassifier()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, 2), np.nan), [[0, 1]] * 4)
    assert vars(model) == vars(RBRLClassifier())


def test_a_failed_batch_leaves_the_stream_as_it_was():
    X, Y = frames()
    model = RBRLClassifier(ridge=1.0, nuclear=0).partial_fit(X, Y)
    before = vars(model).copy()
    with pytest.raises(ValueError):
        model.partial_fit(X, Y.to_numpy()[:, :2])
    check_unchanged(model, before)


@pytest.mark.parametrize(
    "model",
    [RBRLClassifier(), RankSVM(), RBRLClassifier(kernel="rbf")],
    ids=["linear", "rank-svm", "kernel"],
)
def test_fits_in_threads_warn_as_often_as_they_should(model):
    X, Y = frames(n_samples=60)
    model.set_params(tol=1e-13, max_iter=2)

    def fit(seed):
        return copy.deepcopy(model).fit(*frames(seed, n_samples=60)).gap_

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(4) as pool:
            gaps = list(pool.map(fit, range(40)))
    assert min(gaps) > 1e-13
    assert sum(issubclass(warning.category, ConvergenceWarning) for warning in caught) == 40
    with pytest.warns(ConvergenceWarning):
        copy.deepcopy(model).fit(X, Y)


def test_no_module_that_a_fit_may_call_replaces_the_filters_of_warnings():
    """`warnings.catch_warnings` replaces them for the whole process, and so for other threads."""
    folder = Path(rbrl.__file__).parent
    called_by_no_fit = {
        "cli/app.py",
        "experiments/worker.py",
        "experiments/page/__init__.py",
        "inspection/explanation.py",
    }
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if any("catch_warnings" in line and ">>>" not in line for line in path.read_text().splitlines())
    }
    assert found <= called_by_no_fit


def test_a_pipeline_keeps_the_old_classifier():
    X, Y = frames()
    pipeline = make_pipeline(StandardScaler(), RBRLClassifier()).fit(X, Y)
    sets = pipeline[-1].predict_sets(X)
    with pytest.raises(ValueError):
        pipeline.fit(X, Y.iloc[:-1])
    assert pipeline[-1].predict_sets(X) == sets
