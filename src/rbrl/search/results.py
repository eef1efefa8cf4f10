"""The tables of folds as scikit-learn's ``cv_results_``."""

import numpy as np
from scipy.stats import rankdata

from rbrl.search.choose import best_index, rounded

EXTRA = ("gap", "evaluations", "seconds")


def results_table(tables, scoring):
    """Arrays over grid points: parameters, every fold's values, means, deviations and ranks.

    Parameters
    ----------
    tables : list of list of dict
        One list per fold, its points in the same order.
    """
    params = [row["params"] for row in tables[0]]
    results = {f"param_{name}": np.array([p[name] for p in params]) for name in params[0]}
    results["params"] = params
    for name in (*scoring.scorers, *EXTRA):
        values = np.array([[row[name] for row in table] for table in tables])
        prefix = name if name in EXTRA else f"test_{name}"
        results |= {f"split{i}_{prefix}": fold for i, fold in enumerate(values)}
        results[f"mean_{prefix}"] = values.mean(axis=0)
        # Without any penalty a gap is infinite, and has no deviation.
        with np.errstate(invalid="ignore"):
            results[f"std_{prefix}"] = values.std(axis=0)
    for name in scoring.scorers:
        results[f"rank_test_{name}"] = rankdata(_loss(results, scoring, name), method="min").astype(int)
    return results


def _loss(results, scoring, metric):
    """Means over folds of which the smallest is best."""
    sign = -1.0 if scoring.greater_is_better(metric) else 1.0
    return rounded(sign * results[f"mean_test_{metric}"])


def best_point(results, scoring, metric):
    """Index of the point that a metric chooses; of those of rank 1, that of :func:`rbrl.search.choose.best_index`."""
    return best_index(results["params"], _loss(results, scoring, metric))
