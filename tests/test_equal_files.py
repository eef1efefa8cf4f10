"""Equal fits write equal model files, in every process."""

import hashlib
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import skops.io
from scipy import sparse

import rbrl
from rbrl.persistence import trusted_types

FIT_AND_SAVE = """
import hashlib, sys, warnings
from pathlib import Path
import numpy as np
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
import pandas
import rbrl
from rbrl import *

warnings.simplefilter("ignore")
X, Y = make_multilabel_classification(60, 8, n_classes=4, random_state=0)
frame = pandas.DataFrame(X, columns=list("abcdefgh"))
named = pandas.DataFrame(Y, columns=["sea", "sun", "hill", "rain"])
folder = Path(sys.argv[1])
half = X.shape[0] // 2
models = {
    "linear": RBRLClassifier().fit(frame, named),
    "kernel": RBRLClassifier(kernel="rbf").fit(X, Y),
    "sparse": RBRLClassifier(kernel="rbf").fit(sparse.csr_array(X), sparse.csr_array(Y)),
    "parts": RBRLClassifier().fit([(X[:half], Y[:half]), (X[half:], Y[half:])]),
    "search": RBRLClassifierCV([1.0], [0.1], [0.1, 1.0], cv=2).fit(X, Y),
    "calibrated": CalibratedMultiLabelClassifier(BRLClassifier(), method="isotonic", cv=2).fit(frame, named),
    "thresholds": TunedThresholdClassifier(BinaryRelevance(), cv=2).fit(X, Y),
    "pipeline": make_pipeline(StandardScaler(), RBRLClassifier()).fit(frame, named),
    "rakel": RAkEL(random_state=0).fit(X, Y),
    "gradients": BinaryRelevance(SGDClassifier(random_state=0)).fit(X, Y),
    "neighbours": MLkNN().fit(X, Y),
    "chains": EnsembleOfChains(LogisticRegression(), random_state=0).fit(X, Y),
    "ranking": RankSVM().fit(X, Y),
    "words": BinaryRelevance().fit(X, [{f"word {i % 7}", "common"} for i in range(60)]),
}
for name, model in models.items():
    rbrl.save(model, folder / name)
"""

NAMES = [
    "linear", "kernel", "sparse", "parts", "search", "calibrated", "thresholds", "pipeline", "rakel", "gradients",
    "neighbours", "chains", "ranking", "words",
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folders in which two processes saved equal fits; their hashes of texts differ."""
    folders = []
    for seed in ("1", "2"):
        folders.append(tmp_path_factory.mktemp(f"process{seed}"))
        command = [sys.executable, "-c", FIT_AND_SAVE, str(folders[-1])]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": seed})
    return folders


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_write_equal_files(folders, name):
    first, second = (folder.joinpath(name).read_bytes() for folder in folders)
    assert hashlib.sha256(first).hexdigest() == hashlib.sha256(second).hexdigest()


def test_every_model_is_compared(folders):
    assert sorted(path.name for path in folders[0].iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_is_saved_to_the_same_bytes(folders, name, tmp_path):
    path = folders[0] / name
    rbrl.save(rbrl.load(path), tmp_path / name)
    assert tmp_path.joinpath(name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_files_have_no_dates_and_no_seconds(folders, name):
    content = folders[0].joinpath(name).read_bytes()
    for word in (b"pass_seconds_", b"mean_seconds", b"split0_seconds"):
        assert word not in content
    with zipfile.ZipFile(folders[0] / name) as entries:
        assert {entry.date_time for entry in entries.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_seconds_stay_in_the_model_that_was_saved(tmp_path):
    X, Y = np.eye(6), np.eye(6, 3, dtype=int)
    model = rbrl.RBRLClassifier().fit([(X[:3], Y[:3]), (X[3:], Y[3:])])
    rbrl.save(model, tmp_path / "model")
    assert len(model.pass_seconds_) == 2
    assert not hasattr(rbrl.load(tmp_path / "model"), "pass_seconds_")


def test_other_fits_write_other_files(tmp_path):
    X, Y = np.eye(6), np.eye(6, 3, dtype=int)
    rbrl.save(rbrl.RBRLClassifier(ridge=1.0).fit(X, Y), tmp_path / "one")
    rbrl.save(rbrl.RBRLClassifier(ridge=2.0).fit(X, Y), tmp_path / "two")
    assert tmp_path.joinpath("one").read_bytes() != tmp_path.joinpath("two").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_skops_loads_every_model_with_the_list_of_trusted_types(folders, name):
    model = rbrl.load(folders[0] / name)
    archive = skops.io.dumps(model)
    assert skops.io.get_untrusted_types(data=archive)
    X = np.random.default_rng(0).normal(size=(3, 8))
    again = skops.io.loads(archive, trusted=trusted_types())
    np.testing.assert_array_equal(np.asarray(again.decision_function(X)), np.asarray(model.decision_function(X)))


def test_trusted_types_are_ours_or_of_numpy_and_scipy():
    assert all(name.startswith(("rbrl.", "numpy.dtype", "scipy.sparse.")) for name in trusted_types())


def test_arrays_that_a_model_has_twice_are_stored_once(tmp_path):
    X, Y = np.eye(50), sparse.csr_array(np.eye(50, 3, dtype=int))
    model = rbrl.RBRLClassifier().fit(X, Y)
    model.copy_ = model.coef_
    rbrl.save(model, tmp_path / "model")
    loaded = rbrl.load(tmp_path / "model")
    assert loaded.copy_ is loaded.coef_
