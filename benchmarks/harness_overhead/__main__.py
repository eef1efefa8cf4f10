"""How much longer does a plan take than a plain loop over the same fits?

Run ``python -m benchmarks.harness_overhead [PLAN.toml]``; the demo plan by default, without the methods that are not
installed. Rewrites results.md.
"""

import json
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid
from threadpoolctl import threadpool_limits

from rbrl.datasets import load
from rbrl.estimators import REGISTRY
from rbrl.experiments import Plan, Store, execute
from rbrl.experiments.data import prepare
from rbrl.metrics import evaluate
from rbrl.splits import random_split

ROUNDS = 3
HERE = Path(__file__).parent


def plain(plan, chosen):
    """The fits of the plan and their evaluation, without anything around them."""
    for data in plan.datasets:
        source = load(data.name)
        X, Y = source.X, source.Y.astype(int)
        for split in range(plan.splits.number):
            train, test = random_split(len(Y), plan.splits.seed + split, plan.splits.train_fraction)
            X_train, X_test = prepare(X, train, test, plan.standardise)
            for method in plan.methods:
                params, grids = method.on(data)
                model = REGISTRY[method.use](**params, **({"non_empty": True} if method.non_empty else {}))
                if "random_state" in model.get_params():
                    model.set_params(random_state=plan.seed + split)
                if split == 0 or plan.tuning.on == "every":
                    for point in ParameterGrid(grids) if grids else []:
                        for fold in KFold(plan.tuning.folds, shuffle=True, random_state=plan.seed + split).split(
                            X_train
                        ):
                            fit_and_judge(clone(model).set_params(**point), X_train, Y[train], *fold)
                model.set_params(**chosen[data.name, method.name, split]).fit(X_train, Y[train])
                scores = model.decision_function(X_test)
                evaluate(Y[test], model.predict(X_test), scores)


def fit_and_judge(model, X, Y, train, test):
    model.fit(X[train], Y[train])
    return evaluate(Y[test], model.predict(X[test]), model.decision_function(X[test]))


def seconds(call):
    """Wall-clock and processor seconds; the latter hardly depend on what else the machine does."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def main(arguments):
    path = Path(arguments[0]) if arguments else HERE.parents[1] / "plans" / "demo.toml"
    table = Plan.from_toml(path).to_dict()
    table["methods"] = {name: method for name, method in table["methods"].items() if method["use"] in REGISTRY}
    plan = Plan.from_dict(table, folder=path.parent)
    with tempfile.TemporaryDirectory() as folder:
        execute(plan, f"{folder}/first")  # also compiles what is compiled once
        rows = Store(f"{folder}/first").rows()
        chosen = {(row.dataset, row.method, row.split): json.loads(row.params) for row in rows.itertuples()}
        harness, loop = [], []
        for i in range(ROUNDS):
            harness.append(seconds(lambda i=i: execute(plan, f"{folder}/{i}")))
            with threadpool_limits(1):
                loop.append(seconds(lambda: plain(plan, chosen)))
    (wall, processor), (wall_plain, processor_plain) = (map(statistics.median, zip(*rows)) for rows in (harness, loop))
    text = f"""# Overhead of the harness

Command: `{" ".join(["python -m benchmarks.harness_overhead", *arguments])}`,
{datetime.now(UTC):%Y-%m-%d}. Plan `{path.name}`, {plan.n_runs} runs,
methods {", ".join(method.name for method in plan.methods)}; one job; medians of {ROUNDS} rounds, taken in turn.

| seconds | wall clock | processor |
|---|---|---|
| `execute` | {wall:.2f} | {processor:.2f} |
| plain loop over the same fits | {wall_plain:.2f} | {processor_plain:.2f} |
| overhead, in % | {100 * (wall / wall_plain - 1):.1f} | {100 * (processor / processor_plain - 1):.1f} |
"""
    (HERE / "results.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
