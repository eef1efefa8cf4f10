"""Time the whole search: ``python -m studies.benchmarks.search_time [NAME ...]``, with RBRL_DATA."""

import sys
import time
import warnings

from sklearn.base import clone

from rbrl import RBRLClassifierCV
from studies.benchmarks.problems import first_model, part, write_results

KERNEL = {"emotions": "rbf", "yeast": "rbf", "arts": "linear", "enron": "linear"}
TEXT = """343 points x 5 folds of the 60 % part, seed 0, one process, average precision as criterion; processor seconds.
"regret": by how much a search with a smaller tolerance, that of the last column, prefers its own best point to the one
chosen here, on the validation rows."""
TIGHT = {"emotions": 1e-6, "yeast": 1e-6, "arts": 1e-5, "enron": 1e-5}


def search(name):
    X, Y = part(name)
    estimator = first_model(kernel=KERNEL[name])
    started = time.process_time()
    model = RBRLClassifierCV(grid="paper", estimator=estimator, refit="average_precision").fit(X, Y > 0)
    return model, time.process_time() - started


def row(name):
    model, seconds = search(name)
    results = model.cv_results_
    best = " / ".join(f"{value:g}" for value in model.best_params_.values())
    out = {
        "data": name,
        "seconds": f"{seconds:.0f}",
        "evaluations per point": f"{results['mean_evaluations'].mean():.1f}",
    }
    out |= {"chosen ridge / ranking / nuclear": best, "average precision": f"{model.best_score_:.4f}"}
    print(out, flush=True)
    out |= {"regret": f"{regret(name, model):.1e}", "of a search to": f"{TIGHT[name]:.0e}"}
    print(out, flush=True)
    return out


def regret(name, model):
    """Best score of a tighter search, less the tighter score of the chosen point."""
    X, Y = part(name)
    tight = clone(model).set_params(search_tol=TIGHT[name])
    scores = tight.fit(X, Y > 0).cv_results_["mean_test_average_precision"]
    return float(scores.max() - scores[model.best_index_])


def main(names):
    warnings.simplefilter("ignore")
    write_results(__file__, "The whole search", TEXT, [row(name) for name in names])


if __name__ == "__main__":
    main(sys.argv[1:] or list(KERNEL))
