"""Model files: equal predictions, atomic writes, and nothing but our own types."""

import hashlib
import io
import json
import os
import pickle
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rbrl
from rbrl import RBRLClassifier, RBRLClassifierCV, TunedThresholdClassifier, decision, solvers
from rbrl.exceptions import ModelFileError, ModelVersionWarning
from rbrl.persistence import MAGIC, VERSIONS, describe
from rbrl.persistence.schema import iterate_nodes
from rbrl.registry import REGISTRY

X, Y = make_multilabel_classification(n_samples=40, n_features=6, n_classes=4, random_state=0)
MODELS = {
    **{name: cls() for name, cls in REGISTRY.items()},
    "rbf": RBRLClassifier(kernel="rbf"),
    "poly": RBRLClassifier(kernel="poly", low_rank="function"),
    "paper": RBRLClassifier(solver=solvers.APG("paper", "paper")),
    "search": RBRLClassifierCV([1, 10], [0.1], [0.1], cv=2),
    "br-rbf": REGISTRY["br"](kernel="rbf"),
    "clr-rbf": REGISTRY["clr"](kernel="rbf"),
    "thresholds": TunedThresholdClassifier(RBRLClassifier()),
    "row-threshold": TunedThresholdClassifier(RBRLClassifier(), decision.RowThreshold()),
    "calibrated": rbrl.CalibratedMultiLabelClassifier(RBRLClassifier(), cv=2),
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


def repacked(archive, change=lambda name, content: content, compression=zipfile.ZIP_STORED):
    """The archive with changed entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w", compression) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return out.getvalue()


def array_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def refused(path, archive, message, **options):
    path.write_bytes(sealed(archive))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=message):
        rbrl.load(path, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_packed_zeros_are_refused_before_they_are_unpacked(tmp_path):
    model = RBRLClassifier().fit(X, Y)
    model.coef_ = np.zeros((4, 2_000_000))
    archive = skops.io.dumps({"model": model}, compression=zipfile.ZIP_DEFLATED)
    assert len(archive) < 1_000_000
    peak = refused(tmp_path / "model", archive, r"would unpack to 64\d{6}. rbrl.save does not compress")
    assert peak < 10_000_000


def test_packed_zeros_in_a_sparse_array_are_refused_where_they_exceed_the_limit(tmp_path):
    """SciPy packs sparse arrays, so these may unpack to more than they have bytes, but not to any size."""
    rows = sparse.csr_array(
        (np.zeros(2_000_000), np.zeros(2_000_000, int), np.r_[np.zeros(40, int), 2_000_000]), (40, 6)
    )
    model = RBRLClassifier(kernel="rbf").fit(X, Y)
    model.X_fit_ = rows
    archive = skops.io.dumps({"model": model})
    assert len(archive) < 1_000_000
    peak = refused(
        tmp_path / "model",
        archive,
        r"arrays have 32\d{6} bytes, more than the limit max_bytes=1000000",
        max_bytes=1_000_000,
    )
    assert peak < 10_000_000
    assert rbrl.load(tmp_path / "model").X_fit_.nnz == 2_000_000


def test_a_file_above_the_limit_is_refused_unread(tmp_path):
    rbrl.save(RBRLClassifier().fit(X, Y), tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"it has \d+ bytes, more than the limit max_bytes=1000"):
        rbrl.load(tmp_path / "model", max_bytes=1000)


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path):
    archive = skops.io.dumps({"model": RBRLClassifier().fit(X, Y)})
    claim = array_bytes(np.zeros((4, 6))).replace(b"(4, 6)", b"(4,6000000000)").replace(b" " * 8 + b"\n", b"\n", 1)
    name = next(n for n in zipfile.ZipFile(io.BytesIO(archive)).namelist() if n.endswith(".npy"))
    forged = repacked(archive, lambda entry, content: claim if entry == name else content)
    peak = refused(tmp_path / "model", forged, r"an array of shape \(4, 6000000000\) does not fit in \d+ bytes")
    assert peak < 10_000_000


def test_an_array_used_many_times_is_refused(tmp_path):
    archive = skops.io.dumps({"model": RBRLClassifier().fit(X, Y)})
    names = [n for n in zipfile.ZipFile(io.BytesIO(archive)).namelist() if n.endswith(".npy")]

    def change(name, content):
        return content.replace(names[0].encode(), names[1].encode()) if name == "schema.json" else content

    refused(tmp_path / "model", repacked(archive, change), r"it asks for 2 copies of \d+\.npy")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("coef_", (4, 7)),
        ("coef_", (3, 6)),
        ("coef_", (24,)),
        ("intercept_", (5,)),
        ("classes_", (3,)),
        ("label_names_", (3,)),
        ("feature_names_in_", (7,)),
        ("n_features_in_", 7),
        ("dual_coef_", (40, 5)),
        ("dual_coef_", (39, 4)),
        ("X_fit_", (40, 5)),
        ("Y_fit_", (39, 4)),
        ("prior_", (5,)),
        ("threshold_coef_", (3,)),
        ("likelihood_relevant_", (4, 3)),
        ("reconstruction_", (40, 39)),
    ],
)
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "pipeline"])
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, name, shape, inside):
    kinds = [
        RBRLClassifier(),
        RBRLClassifier(kernel="rbf"),
        *(REGISTRY[key]() for key in ("ml-knn", "rank-svm", "mlfe")),
    ]
    fitted = [model.fit(X, Y) for model in kinds]
    model = next((model for model in fitted if hasattr(model, name)), fitted[0])
    vars(model)[name] = np.zeros(shape) if isinstance(shape, tuple) else shape
    changed = make_pipeline(model) if inside else model
    (tmp_path / "model").write_bytes(sealed(skops.io.dumps({"model": changed})))
    with pytest.raises(ModelFileError, match="do not fit together"):
        rbrl.load(tmp_path / "model")
    with pytest.raises(
        ModelFileError, match=r"cannot be saved, because rbrl\.load would reject it: .* do not fit together"
    ):
        rbrl.save(changed, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_other_versions_are_noted(tmp_path, monkeypatch):
    model = RBRLClassifier().fit(X, Y)
    rbrl.save(model, tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbrl.load(tmp_path / "model")
    monkeypatch.setitem(VERSIONS, "scikit-learn", "99.0")
    with pytest.warns(ModelVersionWarning, match=r"scikit-learn \d.*, here 99\.0\. Predictions may differ"):
        rbrl.load(tmp_path / "model")


def test_a_file_of_the_first_version_loads_with_a_note(tmp_path):
    """Without `versions`, names and bases, as files were at first."""
    model = RBRLClassifier().fit(X, Y)
    archive = skops.io.dumps({"version": "0.0.1", "class": "RBRLClassifier", "summary": {}, "model": model})
    (tmp_path / "model").write_bytes(sealed(archive))
    with pytest.warns(ModelVersionWarning, match=r"written by rbrl 0\.0\.1, here"):
        again = rbrl.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert describe(tmp_path / "model")["version"] == "0.0.1"
    tuned = TunedThresholdClassifier(RBRLClassifier()).fit(X, Y)
    expected = tuned.predict(X)
    del tuned.targets_, tuned.n_features_in_
    vars(tuned)["classes_"] = np.arange(Y.shape[1])
    rbrl.save(tuned, tmp_path / "model")
    np.testing.assert_array_equal(rbrl.load(tmp_path / "model").predict(X), expected)


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


@pytest.mark.parametrize("key", ["br", "rank-svm", "search", "thresholds", "calibrated", "paper", "pipeline"])
def test_a_class_is_found_under_its_earlier_names(key, tmp_path):
    """An archive whose schema names every class of ours by a module that is not there."""
    model = MODELS[key].fit(X, Y)

    def renamed(name, content):
        if name != "schema.json":
            return content
        schema = json.loads(content)
        for node in iterate_nodes(schema):
            if node["__module__"].startswith("rbrl."):
                node["__module__"] = "rbrl.search.earlier"
        return json.dumps(schema)

    archive = repacked(skops.io.dumps({"model": model}), renamed)
    (tmp_path / "model").write_bytes(sealed(archive))
    np.testing.assert_array_equal(rbrl.load(tmp_path / "model").predict(X), model.predict(X))


def test_an_old_name_does_not_open_a_door(tmp_path):
    """A foreign class under a module of ours, or a class of ours under a foreign module, is refused."""
    archive = skops.io.dumps({"model": RBRLClassifier().fit(X, Y)})
    for home, name in (("rbrl.estimators.rank_svm", "system"), ("os", "RankSVM")):
        forged = repacked(
            archive,
            lambda entry, content, home=home, name=name: (
                content.replace(b'"RBRLClassifier"', f'"{name}"'.encode()).replace(
                    b"rbrl.estimators.rbrl", home.encode()
                )
                if entry == "schema.json"
                else content
            ),
        )
        refused(tmp_path / "model", forged, rf"{home}\.{name}")


def test_a_new_file_has_the_permissions_that_the_umask_gives(tmp_path):
    before = os.umask(0o027)
    try:
        rbrl.save(RBRLClassifier().fit(X, Y), tmp_path / "model")
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o640
