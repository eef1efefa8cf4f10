"""Compare the default search with the paper's grid: ``python -m studies.benchmarks.default_search [NAME ...]``.

RBRL_DATA names the folder of data sets. What is measured stands in results.csv, and is not measured again; remove a line
of it to repeat it.
"""

import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.preprocessing import StandardScaler

from rbrl import RBRLClassifier, RBRLClassifierCV
from rbrl.metrics import average_precision
from studies.benchmarks.problems import dataset, read_rows, write_results, write_rows

# Named before the first run.
NAMES = ("flags", "emotions", "image", "yeast", "scene", "arts", "enron", "cal500")
SEARCHES = {
    "default": RBRLClassifierCV(),
    "paper": RBRLClassifierCV(grid="paper", estimator=RBRLClassifier(intercept_ridge=None, gamma="paper")),
}
# Processor seconds after which a search is given up.
LIMIT = 900
MOST_LOSS, MOST_SHARE = 0.002, 0.1
COLUMNS = ("data", "search", "status", "average_precision", "seconds", "models", "ridge", "ranking", "nuclear")
TABLE = Path(__file__).with_name("results.csv")
TEXT = """The first 60/40 split of eight data sets, dense features standardised on the 60 %. `RBRLClassifierCV()`, coarse to
fine with 3 folds, beside `grid="paper"` with the paper's model, 343 points x 5 folds and `intercept_ridge=None`: average
precision on the 40 %, processor seconds of the whole fit in one process, the number of models solved in the search, and the
ridge / ranking / nuclear chosen. A search of more than {limit} processor seconds is given up.
One split: differences of a few thousandths on one data set are within its chance."""


def measure(name, search):
    """Measure one line of the table in this process."""
    (X, Y), (X_test, Y_test) = dataset(name).split(0)
    if not sparse.issparse(X):
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    # What is loaded or compiled at first use is no part of a search.
    RBRLClassifierCV([1.0], [1.0], [0.1], cv=2).fit(*make_multilabel_classification(random_state=0))
    started = time.process_time()
    model = SEARCHES[search].fit(X, Y)
    seconds = time.process_time() - started
    n_points = len(model.cv_results_["params"])
    n_models = n_points * sum(
        key.endswith("_test_average_precision") and key.startswith("split") for key in model.cv_results_
    )
    precision = average_precision(Y_test, model.decision_function(X_test))
    return {
        "status": "done",
        "average_precision": precision,
        "seconds": seconds,
        "models": n_models,
        **model.best_params_,
    }


def measured(name, search):
    """Measure one line in a process of its own, with a time limit."""
    command = [sys.executable, "-m", "studies.benchmarks.default_search", "--one", name, search]
    run = subprocess.run(command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True, preexec_fn=limited)
    if run.returncode < 0:
        return {"data": name, "search": search, "status": f"more than {LIMIT} s"}
    run.check_returncode()
    return {"data": name, "search": search, **json.loads(run.stdout)}


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))


def shown(name, of_default, of_paper):
    """Return a line of the page."""
    out = {"data": name}
    for search, row in (("default", of_default), ("paper's", of_paper)):
        done = row["status"] == "done"
        out[f"{search}: average precision"] = f"{float(row['average_precision']):.4f}" if done else ""
        out[f"{search}: seconds"] = f"{float(row['seconds']):.1f}" if done else row["status"]
        out[f"{search}: models"] = row["models"] if done else ""
        chosen = [f"{float(row[key]):.3g}" for key in ("ridge", "ranking", "nuclear")] if done else []
        out[f"{search}: chosen"] = " / ".join(chosen)
    return out


def verdict(found):
    both = [name for name in NAMES if all(found[name, search]["status"] == "done" for search in SEARCHES)]
    precision, seconds = (
        {search: [float(found[name, search][key]) for name in both] for search in SEARCHES}
        for key in ("average_precision", "seconds")
    )
    gains = [ours - theirs for ours, theirs in zip(precision["default"], precision["paper"])]
    gain, share = sum(gains) / len(gains), sum(seconds["default"]) / sum(seconds["paper"])
    met = gain >= -MOST_LOSS and share <= MOST_SHARE
    return (
        f"Mean difference of average precision over the {len(both)} sets that both finished: {gain:+.4f} (asked: at least "
        f"-{MOST_LOSS}), from {min(gains):+.4f} to {max(gains):+.4f}. Processor time: {sum(seconds['default']):.1f} of "
        f"{sum(seconds['paper']):.1f} s, {share:.3f} (asked: at most {MOST_SHARE}). {'Met' if met else 'Not met'}."
    )


def main(names):
    for search in SEARCHES:
        for name in names:
            if (name, search) not in read_rows(TABLE, COLUMNS[:2]):
                write_rows(TABLE, COLUMNS, [measured(name, search)])
                print(read_rows(TABLE, COLUMNS[:2])[name, search], flush=True)
    found = read_rows(TABLE, COLUMNS[:2])
    if all((name, search) in found for name in NAMES for search in SEARCHES):
        lines = [shown(name, found[name, "default"], found[name, "paper"]) for name in NAMES]
        write_results(
            __file__, "The default search beside the paper's grid", TEXT.format(limit=LIMIT), lines, verdict(found)
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        main(sys.argv[1:] or NAMES)
