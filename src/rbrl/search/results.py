"""The tables of folds as scikit-learn's ``cv_results_``."""

import numpy as np
from scipy.stats import rankdata

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
        results[f"mean_{prefix}"], results[f"std_{prefix}"] = values.mean(axis=0), values.std(axis=0)
    for name in scoring.scorers:
        sign = -1.0 if scoring.greater_is_better(name) else 1.0
        results[f"rank_test_{name}"] = _ranks(sign * results[f"mean_test_{name}"])
    return results


def _ranks(values):
    """Minimum ranks, best first; what is undefined comes last."""
    worst = np.nanmax(values, initial=0.0) + 1.0
    return rankdata(np.where(np.isnan(values), worst, values), method="min").astype(int)


def best_index(results, metric):
    """The best point; among equals the one with the largest ridge, then the largest nuclear norm, then the first."""
    ties = np.flatnonzero(results[f"rank_test_{metric}"] == 1)
    strength = [tuple(results["params"][i].get(name, 0.0) for name in ("ridge", "nuclear")) for i in ties]
    return int(ties[max(range(len(ties)), key=lambda k: (strength[k], -k))])
