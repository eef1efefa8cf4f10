"""Cross-validate every grid point, whatever the estimator."""

import time

import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid

from rbrl.experiments.judge import judge, predictions
from rbrl.metrics import PAPER_METRICS, get_metric


def tune(estimator, grid, X, Y, *, folds=5, seed=0, metrics=PAPER_METRICS, convention="paper", n_jobs=1):
    """Fit and judge every grid point on every fold.

    Parameters
    ----------
    estimator : scikit-learn classifier
    grid : dict of str to list
    X, Y
        Training rows and their labels, 0/1.
    folds : int, default=5
    seed : int, default=0
        Of the folds, which are drawn at random.
    metrics, convention
        As for `rbrl.metrics.evaluate`.
    n_jobs : int, default=1

    Returns
    -------
    DataFrame
        One row per grid point and fold: param_<name>, fold, one column per metric, fit_seconds, gap.
    """
    metrics = [get_metric(metric) for metric in metrics]
    parts = list(enumerate(KFold(folds, shuffle=True, random_state=seed).split(X)))
    one = delayed(_one)
    rows = (one(estimator, point, X, Y, part, metrics, convention) for point in ParameterGrid(grid) for part in parts)
    return pd.DataFrame(Parallel(n_jobs=n_jobs)(rows))


def _one(estimator, point, X, Y, part, metrics, convention):
    fold, (train, test) = part
    model, started = clone(estimator).set_params(**point), time.perf_counter()
    model.fit(X[train], Y[train])
    seconds = time.perf_counter() - started
    values = judge(Y[test], *predictions(model, X[test], metrics), metrics, convention)
    named = {f"param_{name}": value for name, value in point.items()}
    return {**named, "fold": fold, **values, "fit_seconds": seconds, "gap": getattr(model, "gap_", float("nan"))}
