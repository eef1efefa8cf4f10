"""Model files: equal predictions, atomic writes, and nothing but our own types."""

import hashlib
import io
import os
import pickle
import zipfile

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rbrl
from rbrl import RBRLClassifier, RBRLClassifierCV, solvers
from rbrl.estimators import REGISTRY
from rbrl.exceptions import ModelFileError
from rbrl.persistence import MAGIC, describe

X, Y = make_multilabel_classification(n_samples=40, n_features=6, n_classes=4, random_state=0)
MODELS = {
    **{name: cls() for name, cls in REGISTRY.items()},
    "rbf": RBRLClassifier(kernel="rbf"),
    "poly": RBRLClassifier(kernel="poly", low_rank="function"),
    "paper": RBRLClassifier(solver=solvers.APG("paper", "paper")),
    "search": RBRLClassifierCV([1, 10], [0.1], [0.1], cv=2),
    "pipeline": make_pipeline(StandardScaler(), RBRLClassifier()),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_answers_the_same_after_a_round_trip(name, tmp_path):
    model = MODELS[name].fit(X, Y)
    rbrl.save(model, tmp_path / "model")
    again = rbrl.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_precomputed_sparse_and_signed_labels_survive(tmp_path):
    K = X @ X.T + 1.0
    for rows, labels, options in (
        (K, Y, {"kernel": "precomputed", "fit_intercept": False}),
        (sparse.csr_array(X), sparse.csr_matrix(Y), {}),
        (X.astype(np.float32), 2 * Y - 1, {"kernel": "rbf"}),
    ):
        model = RBRLClassifier(**options).fit(rows, labels)
        rbrl.save(model, tmp_path / "model")
        first, second = model.predict(rows), rbrl.load(tmp_path / "model").predict(rows)
        assert type(first) is type(second)
        np.testing.assert_array_equal(*(a.toarray() if sparse.issparse(a) else a for a in (first, second)))


def test_a_file_tells_its_version_and_training(tmp_path):
    model = RBRLClassifier().fit(X, Y)
    rbrl.save(model, tmp_path / "model")
    told = describe(tmp_path / "model")
    assert (told["version"], told["class"]) == (rbrl.__version__, "RBRLClassifier")
    assert told["summary"]["gap_"] == model.gap_


def test_a_thousand_mutated_files_are_refused(tmp_path):
    rbrl.save(RBRLClassifier().fit(X, Y), tmp_path / "model")
    whole, rng = (tmp_path / "model").read_bytes(), np.random.default_rng(0)
    for _ in range(1000):
        raw = bytearray(whole)
        kind = rng.integers(3)
        if kind == 0:
            raw = raw[: rng.integers(len(raw))]
        elif kind == 1:
            raw[rng.integers(len(raw))] ^= rng.integers(1, 256)
        else:
            at = rng.integers(len(raw))
            raw[at:at] = rng.bytes(3)
        (tmp_path / "mutated").write_bytes(raw)
        with pytest.raises(ModelFileError):
            rbrl.load(tmp_path / "mutated")


def sealed(archive):
    """A file with a right checksum, as somebody who means harm would write it."""
    return MAGIC + hashlib.sha256(archive).hexdigest().encode() + b"\n" + archive


def test_a_thousand_forged_archives_are_refused_or_harmless(tmp_path):
    archive = skops.io.dumps({"version": "0", "class": "", "summary": {}, "model": RBRLClassifier().fit(X, Y)})
    rng = np.random.default_rng(1)
    for _ in range(1000):
        raw = bytearray(archive)
        for _ in range(rng.integers(1, 4)):
            raw[rng.integers(len(raw))] = rng.integers(256)
        (tmp_path / "forged").write_bytes(sealed(bytes(raw)))
        try:
            rbrl.load(tmp_path / "forged")
        except ModelFileError:
            continue


def test_a_schema_that_names_foreign_code_is_refused(tmp_path):
    archive = skops.io.dumps({"model": RBRLClassifier().fit(X, Y)})
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                content = content.replace(b'"RBRLClassifier"', b'"system"').replace(b"rbrl.estimators.rbrl", b"os")
            new.writestr(name, content)
    (tmp_path / "model").write_bytes(sealed(out.getvalue()))
    with pytest.raises(ModelFileError, match=r"os\.system"):
        rbrl.load(tmp_path / "model")


def test_a_pickle_is_not_even_looked_at(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    for raw in (pickle.dumps(Bomb()), sealed(pickle.dumps(Bomb()))):
        (tmp_path / "model").write_bytes(raw)
        with pytest.raises(ModelFileError):
            rbrl.load(tmp_path / "model")
    assert not (tmp_path / "exploded").exists()


def test_a_kernel_function_cannot_be_saved_and_the_old_file_stays(tmp_path):
    rbrl.save(RBRLClassifier().fit(X, Y), tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    with pytest.raises(ModelFileError, match="kernel='precomputed'"):
        rbrl.save(RBRLClassifier(kernel=lambda a, b: a @ b.T).fit(X, Y), tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
