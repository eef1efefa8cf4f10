"""Fitted models, and their files with something else in them: for the tests of forged model files."""

from functools import cache
from types import FunctionType

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import rbrl
from forged_files import sealed
from rbrl import decision, solvers
from rbrl.exceptions import ModelFileError
from rbrl.registry import REGISTRY

X, Y = make_multilabel_classification(n_samples=40, n_features=6, n_classes=4, random_state=0)
LARGE = 10**9


@cache
def fitted():
    """Fitted models by name; a test must not change them."""
    found = {
        "linear": rbrl.RBRLClassifier(),
        "rbf": rbrl.RBRLClassifier(kernel="rbf"),
        "nystroem": rbrl.RBRLClassifier(kernel="rbf", approximation="nystroem", n_components=6, random_state=0),
        "br-rbf": rbrl.BinaryRelevance(kernel="rbf"),
        "br-svc": rbrl.BinaryRelevance(SVC()),
        "clr": REGISTRY["clr"](),
        "rakel": REGISTRY["rakel"](random_state=np.random.RandomState(0)),
        "ecc": REGISTRY["ecc"](n_chains=2, random_state=0),
        "ml-knn": REGISTRY["ml-knn"](),
        "label": rbrl.TunedThresholdClassifier(rbrl.RBRLClassifier(), decision.LabelThresholds()),
        "global": rbrl.TunedThresholdClassifier(rbrl.RBRLClassifier(), decision.GlobalThreshold()),
        "isotonic": rbrl.CalibratedMultiLabelClassifier(rbrl.RBRLClassifier(), method="isotonic"),
        "search": rbrl.RBRLClassifierCV([1, 10], [0.1], [0.1], cv=2),
        "paper": rbrl.RBRLClassifier(solver=solvers.APG("paper", "paper")),
        "pipeline": make_pipeline(StandardScaler(), rbrl.RBRLClassifier()),
        **{name: REGISTRY[name]() for name in ("rank-svm", "mlfe", "cpnl", "label-powerset")},
    }
    models = {name: model.fit(X, Y) for name, model in found.items()}
    sparse_rows = sparse.csr_matrix(X)
    models["sparse-svc"] = rbrl.BinaryRelevance(SVC()).fit(sparse_rows, Y)
    models["sparse-labels"] = rbrl.RBRLClassifier().fit(X, sparse.csr_array(Y))
    models["stream"] = rbrl.RBRLClassifier(ridge=1.0).partial_fit(X, Y)
    return models


def archive_of(model):
    return skops.io.dumps({"version": rbrl.__version__, "versions": {}, "model": model, "more": None})


def refused(path, archive, message):
    path.write_bytes(sealed(archive))
    with pytest.raises(ModelFileError, match=message) as caught:
        rbrl.load(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).isprintable()


def changed(model, path, value):
    """The archive of a model whose attribute at a dotted path, such as "rule_.thresholds_", has another value.

    A function gives the new value of the old one. The model is afterwards what it was.
    """
    *holders, name = path.split(".")
    part = model
    for holder in holders:
        part = part[int(holder)] if holder.isdigit() else vars(part)[holder]
    before = vars(part).copy()
    vars(part)[name] = value(before[name]) if isinstance(value, FunctionType) else value
    try:
        return archive_of(model)
    finally:
        vars(part).clear()
        vars(part).update(before)
