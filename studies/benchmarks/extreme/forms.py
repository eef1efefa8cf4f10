"""Measure the three forms of one model: dense weights, sparse weights, and two factors."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from rbrl import RBRLClassifier, __version__, compress
from studies.benchmarks.extreme import data
from studies.benchmarks.extreme.worker import Rbrl, measure_prediction, processor_time

N_LABELS = 1_000
N_ROWS = 10_000
RIDGE = 1
# Largest relative rises of the objective.
RISES = (0.001, 0.01, 0.05)
NUCLEAR = (0, 1)


def measure(study):
    """Measure every form of a model without a nuclear norm, and of a model with one."""
    for nuclear in NUCLEAR:
        dense = form_key(study, nuclear, "dense", 0)
        keys = {form_key(study, nuclear, form, rise): (form, rise) for form in ("sparse", "factors") for rise in RISES}
        if not any(study.wants(key) for key in (dense, *keys)):
            continue
        X, Y, X_test, Y_test = data.split((N_ROWS, data.WHOLE[1]))
        problem = X, data.nested_labels(Y, N_LABELS), X_test, data.nested_labels(Y_test, N_LABELS)
        model = RBRLClassifier(nuclear=nuclear, ranking=0, ridge=RIDGE, tol=1e-3)
        fit = partial(model.fit, *problem[:2])
        if study.wants(dense):
            add(study, dense, fit, problem)
        else:
            fit()
        for key, (form, rise) in keys.items():
            if study.wants(key):
                add(study, key, partial(compress, model, *problem[:2], tol=rise, form=form), problem)


def form_key(study, nuclear, form, rise):
    """Return the key of the row of a form."""
    return study.key("forms", f"nuclear={nuclear}, {form}", rise, N_LABELS)


def add(study, key, make, problem):
    """Make a model and write its row."""
    _, Y, X_test, Y_test = problem
    started = processor_time()
    try:
        model = make()
    except ValueError as error:
        # The factors would be larger than the weights.
        study.add(key, {"note": str(error)})
        return
    facts = {"seconds": processor_time() - started, "gap": model.gap_, "version": f"rbrl {__version__}"}
    timed = Rbrl(0)
    timed.model = model
    with tempfile.TemporaryDirectory(dir=study.scratch) as home:
        facts |= measure_prediction(timed, X_test, Path(home))
        facts |= data.measure_ranking(np.load(Path(home) / "best.npy"), Y, Y_test)
    if "factors" in key[1]:
        facts["rank"] = model.label_factors_.shape[1]
    study.add(key, facts)
