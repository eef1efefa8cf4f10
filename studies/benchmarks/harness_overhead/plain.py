"""Run a plan by a loop, without the harness: ``python -m studies.benchmarks.harness_overhead.plain``."""

import json
import sys
from functools import partial
from pathlib import Path

from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rbrl.datasets import load
from rbrl.estimators.convex import ConvexClassifier
from rbrl.experiments import Plan
from rbrl.metrics import evaluate
from rbrl.registry import REGISTRY
from rbrl.selection import tune
from rbrl.splits import random_split


def main(plan, chosen, jobs):
    """Do the plan's runs with the parameters that were chosen, and print a line of metrics for each."""
    plan = Plan.from_toml(plan)
    chosen = {tuple(key): params for key, params in json.loads(Path(chosen).read_text())}
    (data,) = plan.datasets
    source = load(data.name)
    X, Y = source.X, source.Y.astype(int)
    runs = [(method, split) for split in range(plan.splits.number) for method in plan.methods]
    do = partial(run, plan, data, X, Y)
    values = Parallel(n_jobs=jobs)(delayed(do)(*one, chosen[one[0].name, one[1]]) for one in runs)
    for (method, split), found in zip(runs, values):
        print(method.name, split, *(f"{name}={value:.4f}" for name, value in found.items()))


def run(plan, data, X, Y, method, split, params):
    """Split, standardise, cross-validate every grid point, fit, test."""
    with threadpool_limits(1):
        train, test = random_split(len(Y), plan.splits.seed + split, plan.splits.train_fraction)
        scaler = StandardScaler().fit(X[train])
        X_train, X_test, seed = scaler.transform(X[train]), scaler.transform(X[test]), plan.seed + split
        fixed, grids = method.on(data)
        model = REGISTRY[method.use](**fixed, non_empty=bool(method.non_empty))
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        if split == 0 or plan.tuning.on == "every":
            for grid in grids:
                cross_validate(model, grid, X_train, Y[train], plan.tuning.folds, seed)
        return judge(model.set_params(**params).fit(X_train, Y[train]), X_test, Y[test])


def cross_validate(model, grid, X, Y, folds, seed):
    """Fit all grid points on all folds: by the library's search where it saves work, else one by one."""
    if isinstance(model, ConvexClassifier) or "fit_many" in vars(type(model)):
        return tune(model, grid, X, Y, folds=folds, seed=seed)
    splits = list(KFold(folds, shuffle=True, random_state=seed).split(X))
    fits = [(clone(model).set_params(**point), *fold) for point in ParameterGrid(grid) for fold in splits]
    return [judge(fit.fit(X[train], Y[train]), X[test], Y[test]) for fit, train, test in fits]


def judge(model, X, Y):
    """Return the six metrics; labels come from scores above zero, which needs no second pass over the rows."""
    scores = model.decision_function(X)
    labels = scores > 0
    empty = ~labels.any(axis=1)
    if model.non_empty:
        labels[empty, scores[empty].argmax(axis=1)] = True
    return evaluate(Y, labels.astype(int), scores)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
