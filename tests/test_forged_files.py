"""Model files that were made to harm: each is refused with one error, and nothing of it runs."""

import io
import json
import re
import sys
import warnings
import zipfile
from functools import partial

import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import rbrl
from forged_files import CANARY, answers, code_files, code_nodes, listed, mapping, node, sealed, text, with_schema
from rbrl import decision, solvers
from rbrl.exceptions import ModelFileError
from rbrl.persistence.contents import ANYTHING, CLASSES, KINDS, REPORTS
from rbrl.registry import REGISTRY

X, Y = make_multilabel_classification(n_samples=40, n_features=6, n_classes=4, random_state=0)
LARGE = 10**9


@pytest.fixture(scope="module")
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
        "label": rbrl.TunedThresholdClassifier(rbrl.RBRLClassifier()),
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
    """The archive of a model in which the attribute at a dotted path, such as "rule_.thresholds_", has another value."""
    *holders, name = path.split(".")
    part = model
    for holder in holders:
        part = part[int(holder)] if holder.isdigit() else vars(part)[holder]
    before = vars(part)[name]
    vars(part)[name] = value(before) if callable(value) else value
    try:
        return archive_of(model)
    finally:
        vars(part)[name] = before


# -- Files that run code ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", code_nodes())
def test_code_is_refused_before_skops_reads_the_file(name, tmp_path, monkeypatch):
    content = code_files()[name]
    monkeypatch.setattr(skops.io, "loads", lambda *_, **__: pytest.fail("skops was asked to load the file"))
    monkeypatch.setattr(skops.io, "get_untrusted_types", lambda **_: pytest.fail("skops was asked to read the file"))
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"asks for types that no rbrl model needs: .* by \w+Node"):
        rbrl.load(tmp_path / "model")


def test_no_code_of_a_file_runs(tmp_path):
    assert set(answers(tmp_path).values()) == {"refused"}
    assert CANARY not in sys.modules


def given(*names, **rest):
    return partial(node, *names, **rest)


OURS = (rbrl.RBRLClassifier.__module__, "RBRLClassifier")
ONE = {"content": {"func": "fit", "obj": node("TypeNode", *OURS)}}
NODES = {
    "class of ours": given("TypeNode", *OURS),
    "class that makes iterators": given("TypeNode", "builtins", "map"),
    "object type": given("TypeNode", "numpy", "object_"),
    "function of ours": given("FunctionNode", "rbrl", "load"),
    "function of Python": given("FunctionNode", "builtins", "eval"),
    "function of the system": given("FunctionNode", "os", "system"),
    "own class as a function": given("FunctionNode", *OURS),
    "method": given("MethodNode", *OURS, **ONE),
    "operator": given("OperatorFuncNode", "operator", "attrgetter", attrs=listed(text("os"))),
    "constructor": given("ConstructorFromReduceNode", *OURS, content=listed(text(1))),
    "reference": given("CachedNode", "builtins", "dict"),
    "default dict": given("DefaultDictNode", "collections", "defaultdict"),
    "tree": given("TreeNode", "sklearn.tree._tree", "Tree"),
    "tree of boosting": given(
        "ObjectNode", "sklearn.ensemble._hist_gradient_boosting.predictor", "TreePredictor", content=mapping({})
    ),
    "instance of a foreign class": given("ObjectNode", "subprocess", "Popen", content=mapping({})),
    "array class of no array": given("NdArrayNode", "os", "system", type="numpy", file="1.npy"),
    "bytes of any size": given("NdArrayNode", "numpy", "void", type="json", content=[], shape=listed()),
    "loader that is unknown": given("NewNode", "builtins", "dict"),
    "loader that is no text": given(["DictNode"], "builtins", "dict"),
    "class that is no text": given("ObjectNode", "rbrl", None),
}


@pytest.mark.parametrize("place", ["coef_", "kernel", "targets_"])
@pytest.mark.parametrize("kind", NODES)
def test_nodes_that_are_not_on_the_list_are_refused(kind, place, fitted, tmp_path):
    def change(schema):
        schema["content"]["model"]["content"]["content"][place] = NODES[kind]()

    refused(tmp_path / "model", with_schema(archive_of(fitted["linear"]), change), "asks for types that no rbrl model")


def whole(schema, new):
    schema["content"]["model"] = new


def more(schema, new):
    schema["content"]["more"] = new


def twice(schema):
    first, second = text("harmless"), listed(text("other"))
    second["__id__"] = first["__id__"]
    more(schema, listed(first, second))


def inside_itself(schema):
    outer = listed()
    outer["content"] = [dict(outer, content=[])]
    more(schema, outer)


def nested(schema):
    inner = listed()
    for _ in range(300):
        inner = listed(inner)
    # Deeper than the interpreter goes, without a schema that this test could not write itself.
    more(schema, dict(inner, content=[dict(text(0), content="[" * 100_000 + "]" * 100_000)]))


def repeated(schema):
    """A list of lists of lists, each of them by its number only: few bytes, and 10^10 elements."""
    inner = listed(*[text(0)] * 10)
    for _ in range(9):
        inner = listed(inner, *[{"__id__": inner["__id__"]}] * 9)
    more(schema, node("NdArrayNode", "numpy", "ndarray", type="json", content=inner["content"], shape=listed(text(10))))


SCHEMAS = {
    "a number of two objects": (twice, "two different objects in it have the number"),
    "an object inside itself": (inside_itself, "two different objects in it have the number"),
    "an object by its number only": (repeated, "asks for types that no rbrl model"),
    "deep nesting": (nested, "cannot be read .RecursionError"),
    "a number that is a fraction": (lambda s: more(s, dict(text(1), __id__=5.0)), "must be a whole number. Got 5.0"),
    "no number": (lambda s: more(s, dict(text(1), __id__=None)), "must be a whole number. Got None"),
    "an old protocol": (lambda s: s.update(protocol=1), "protocol of skops must be a whole number from 2 on. Got 1"),
    "a protocol that is true": (lambda s: s.update(protocol=True), "protocol of skops .* Got True"),
    "no protocol": (lambda s: s.pop("protocol") and None, "protocol of skops .* Got None"),
    "a protocol of the future": (lambda s: s.update(protocol=99), "cannot be read"),
    "keys that are functions": (
        lambda s: more(s, mapping({"key": text(1)}, [node("FunctionNode", "numpy", "add")])),
        "keys of a dict in it must be text or numbers",
    ),
    "keys that are arrays": (
        lambda s: more(s, mapping({"key": text(1)}, [node("TypeNode", "scipy.sparse._csr", "csr_array")])),
        "keys of a dict in it must be text or numbers",
    ),
    "a class as the model": (lambda s: whole(s, node("TypeNode", "builtins", "float")), "holds the class float,"),
    "a list as the model": (lambda s: whole(s, listed()), "holds a value of type list, not a model"),
    "a solver as the model": (
        lambda s: whole(s, node("ObjectNode", solvers.APG.__module__, "APG", content=mapping({}))),
        "holds a value of type APG, not a model",
    ),
    "no model": (lambda s: s["content"].pop("model") and None, "holds a dict, not a model"),
    "a list": (lambda s: listed() | {"protocol": 2}, "holds a list, not a model"),
    "a version that a terminal obeys": (
        lambda s: s["content"].update(version=text("\x1b[31m1.0")),
        "notes on versions, class or training",
    ),
    "a version that is a number": (lambda s: s["content"].update(version=text(1)), "notes on versions"),
    "versions that are a list": (lambda s: s["content"].update(versions=listed()), "notes on versions"),
    "a name that a terminal obeys": (
        lambda s: more(s, node("ObjectNode", "\x1b[31mred", "Class")),
        re.escape(r"\x1b[31mred.Class by ObjectNode"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEMAS)
def test_schemas_that_mean_something_else_are_refused(case, fitted, tmp_path):
    change, message = SCHEMAS[case]
    refused(tmp_path / "model", with_schema(archive_of(fitted["linear"]), change), message)


# -- Numbers, sizes and classes -------------------------------------------------------------------------------------------


def first_is(value):
    def change(array):
        new = array.astype(np.result_type(array.dtype, type(value)))
        new.flat[0] = value
        return new

    return change


def as_type(dtype):
    return lambda array: array.astype(dtype)


def data_is(value):
    def change(matrix):
        new = matrix.copy()
        new.data[0] = value
        return new

    return change


FINITE = "must hold finite real numbers"
# Model, attribute, new value (or a function of the old one), message.
NUMBERS = [
    *[
        (model, name, first_is(value), rf"{name} of its \w+ must hold finite real numbers; some are NaN or infinite")
        for value in (np.nan, np.inf, -np.inf)
        for model, name in (
            ("linear", "coef_"), ("linear", "intercept_"), ("rbf", "dual_coef_"), ("rbf", "X_fit_"),
            ("nystroem", "feature_coef_"), ("br-rbf", "X_fit_"), ("clr", "constant_"), ("rakel", "sharpness_"),
            ("ml-knn", "prior_"), ("ml-knn", "likelihood_relevant_"), ("isotonic", "slopes_"), ("isotonic", "pooled_"),
            ("rank-svm", "threshold_coef_"), ("mlfe", "enriched_labels_"),
        )
    ],
    *[("linear", "coef_", as_type(dtype), FINITE) for dtype in ("complex128", "U8", "S8", "O", "bool", "M8[s]")],
    ("br-rbf", "dual_coef_", data_is(np.nan), FINITE),
    ("br-rbf", "dual_coef_", as_type("complex128"), FINITE),
    ("mlfe", "reconstruction_", data_is(np.inf), FINITE),
    ("linear", "coef_", "weights", "coef_ of its RBRLClassifier must be an array. Got a value of type str"),
    ("linear", "coef_", lambda coef: coef.tolist(), "coef_ of its RBRLClassifier must be an array. Got a value"),
    ("rbf", "gamma_", np.nan, FINITE),
    ("rbf", "gamma_", "wide", FINITE),
    ("stream", "stream_", lambda sums: sums | {"gram": sums["gram"] * np.nan}, FINITE),
    ("ecc", "chain_constants_", lambda lists: [first_is(np.nan)(lists[0]), *lists[1:]], FINITE),
    ("isotonic", "knots_", lambda lists: [first_is(np.nan)(lists[0]), *lists[1:]], FINITE),
    ("rank-svm", "threshold_intercept_", np.inf, FINITE),
    ("label", "rule_.thresholds_", first_is(np.nan), "thresholds_ of its LabelThresholds"),
    ("label", "rule_.thresholds_", as_type("complex128"), "thresholds_ of its LabelThresholds"),
    ("global", "rule_.threshold_", np.nan, "threshold_ of its GlobalThreshold"),
    ("label", "estimator_.coef_", first_is(np.nan), "coef_ of its RBRLClassifier"),
    ("rakel", "estimators_.0.coef_", first_is(np.nan), "coef_ of its LinearSVC"),
    ("nystroem", "feature_map_.components_", first_is(np.nan), "components_ of its Nystroem"),
    ("linear", "history_", as_type("complex128"), "history_ of its RBRLClassifier"),
    ("clr", "pairs_", as_type("float64"), "pairs_ of its CalibratedLabelRanking must hold whole numbers"),
    ("clr", "pairs_", lambda pairs: pairs - 1, "pairs_ of its CalibratedLabelRanking must hold whole numbers .* Got -1"),
    ("clr", "pairs_", lambda pairs: pairs + 2, "pairs_ of its CalibratedLabelRanking names labels up to 5, but it has 4"),
    ("rakel", "subsets_", lambda subsets: [s + LARGE for s in subsets], "subsets_ of its RAkEL names labels"),
    ("rakel", "label_sets_", lambda sets: [s.astype(float) for s in sets], "label_sets_ of its RAkEL must hold true or"),
    ("ml-knn", "Y_fit_", as_type("float64"), "Y_fit_ of its MLkNN must hold true or false"),
    ("ml-knn", "n_neighbors_", -1, "do not fit together"),
    ("ml-knn", "n_neighbors_", LARGE, "do not fit together"),
    ("linear", "n_features_in_", -6, "do not fit together"),
    ("linear", "n_features_in_", "six", "do not fit together"),
    ("linear", "n_features_in_", LARGE, "do not fit together"),
    ("linear", "feature_names_in_", np.zeros(6, complex), "feature_names_in_ of its RBRLClassifier must hold text"),
    ("linear", "label_names_", np.array([[], {}, None, 1], object), "label_names_ of its RBRLClassifier must hold text"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "name", "value", "message"), NUMBERS)
def test_numbers_of_a_wrong_kind_are_refused(model, name, value, message, fitted, tmp_path):
    part = fitted[model]
    if name in ("feature_names_in_", "label_names_"):
        setattr(part, name, None)
    archive = changed(part, name, value)
    vars(part).pop("feature_names_in_", None), vars(part).pop("label_names_", None)
    refused(tmp_path / "model", archive, message)


# Model, attribute, new value (or a function of the old one), message.
INSTANCES = [
    ("linear", "targets_", rbrl.MLkNN(), "targets_ of its RBRLClassifier must be an instance of SignedTargets. Got a"),
    ("linear", "targets_", "labels", "targets_ of its RBRLClassifier must be an instance of SignedTargets"),
    ("linear", "targets_", float, "targets_ of its RBRLClassifier must be .* Got the class float"),
    ("label", "rule_", rbrl.MLkNN(), "rule_ of its TunedThresholdClassifier must be an instance of DecisionRule"),
    ("label", "estimator_", float, "estimator_ of its TunedThresholdClassifier must be an instance .* the class float"),
    ("rakel", "estimators_", lambda learners: [str, *learners[1:]], "estimators_ of its RAkEL must be .* the class str"),
    ("ecc", "chains_", ["chain"], "chains_ of its EnsembleOfChains must be an instance"),
    ("search", "best_estimator_", {}, "best_estimator_ of its RBRLClassifierCV must be an instance"),
    ("nystroem", "feature_map_", float, "feature_map_ of its RBRLClassifier must be an instance"),
    ("pipeline", "steps", lambda steps: [("scale", float), *steps[1:]], "a step of its Pipeline must be a name and an"),
    ("pipeline", "steps", lambda steps: [steps[0], ["only one"]], "a step of its Pipeline must be a name and an"),
    ("linear", "targets_.kind", "ranking", "kind of its targets_ is no coding of labels"),
    ("linear", "targets_.is_matrix", False, "is_matrix of its targets_ is no coding of labels"),
    ("linear", "targets_.low", 7, "low of its targets_ is no coding of labels"),
    ("linear", "targets_.low", 0.0, "low of its targets_ is no coding of labels"),
    ("linear", "targets_.dtype", np.dtype(complex), "dtype of its targets_ is no coding of labels"),
    ("linear", "targets_.dtype", np.dtype("U9"), "dtype of its targets_ is no coding of labels"),
    ("linear", "targets_.dtype", "int", "dtype of its targets_ is no coding of labels"),
    ("linear", "targets_.classes_", np.zeros(0, int), "classes_ of its targets_ is no coding|do not fit together"),
    ("linear", "targets_.classes_", 4, "classes_ of its targets_ is no coding of labels"),
    ("linear", "targets_.classes_", as_type("complex128"), "classes_ of its SignedTargets must hold text or numbers"),
    ("sparse-labels", "targets_.sparse_container", float, "sparse_container of its targets_ is no coding of labels"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "name", "value", "message"), INSTANCES)
def test_objects_of_a_wrong_class_are_refused(model, name, value, message, fitted, tmp_path):
    # A class is given as a value, not called: only functions make a value of the old one.
    new = (lambda _: value) if isinstance(value, type) else value
    refused(tmp_path / "model", changed(fitted[model], name, new), message)


# -- Memory -----------------------------------------------------------------------------------------------------------------


def outside(matrix):
    new = matrix.copy()
    new.indices[0] = LARGE
    return new


def falling(matrix):
    new = matrix.copy()
    new.indptr[1] = LARGE
    return new


SVM = "of LIBSVM|do not fit together"
MEMORY = [
    ("br-rbf", "dual_coef_", outside, "a sparse array of shape .* is not sound"),
    ("br-rbf", "dual_coef_", falling, "a sparse array of shape .* is not sound|cannot be read"),
    ("mlfe", "reconstruction_", outside, "a sparse array of shape .* is not sound"),
    ("sparse-svc", "estimators_.0.support_vectors_", outside, "a sparse array of shape .* is not sound"),
    *[
        (model, f"estimators_.0.{name}", value, SVM)
        for model in ("br-svc", "sparse-svc")
        for name, value in (
            ("_n_support", np.array([-LARGE, LARGE], np.int32)), ("_n_support", np.zeros(0, np.int32)),
            ("_n_support", np.zeros(2, np.int32)), ("_dual_coef_", lambda dual: dual[:, :3]),
            ("_dual_coef_", lambda dual: dual[:0]), ("_intercept_", np.zeros(0)), ("_probA", np.ones(9)),
            ("support_", np.zeros(3, np.int32)), ("support_vectors_", lambda rows: rows[:1]),
            ("support_vectors_", lambda rows: rows[:, :2]), ("classes_", np.arange(50)), ("kernel", "another"),
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize(("model", "name", "value", "message"), MEMORY)
def test_arrays_that_compiled_code_would_leave_are_refused(model, name, value, message, fitted, tmp_path):
    refused(tmp_path / "model", changed(fitted[model], name, value), message)


def test_another_program_of_libsvm_is_refused(fitted, tmp_path):
    learner = fitted["br-svc"].estimators_[0]
    learner._impl = "nu_svr"
    archive = archive_of(fitted["br-svc"])
    del learner._impl
    refused(tmp_path / "model", archive, "_impl of its SVC")


@pytest.mark.parametrize("place", [-1, 625, LARGE])
def test_a_generator_beyond_its_state_is_refused(place, tmp_path):
    random = np.random.RandomState(0)
    state = random.get_state(legacy=False)
    state["state"]["pos"] = place
    random.set_state(state)
    model = REGISTRY["rakel"](random_state=random)
    refused(tmp_path / "model", archive_of(model), rf"a RandomState in it is at place {place} of 624 numbers")


def first_array(archive, content):
    """The archive with other bytes in its first array."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        first = next(name for name in old.namelist() if name.endswith(".npy"))
        for name in old.namelist():
            new.writestr(name, content if name == first else old.read(name))
    return out.getvalue()


def head(description):
    return b"\x93NUMPY\x01\x00" + len(description).to_bytes(2, "little") + description.encode() + bytes(200)


HEADS = {
    "a negative size": "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 6), }\n",
    "two negative sizes": "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -6), }\n",
    "elements of no bytes": "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }\n",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (4,), }\n",
    "more than there is": "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 6000000000), }\n",
    "a program": "__import__('os').getcwd()\n",
}


@pytest.mark.parametrize("case", HEADS)
def test_arrays_of_impossible_sizes_are_refused(case, fitted, tmp_path):
    refused(
        tmp_path / "model",
        first_array(archive_of(fitted["linear"]), head(HEADS[case])),
        "cannot be read|does not fit in",
    )


def test_an_array_in_an_entry_that_is_not_measured_is_refused(fitted, tmp_path):
    """Only entries with the names of arrays are measured, so a loader reads no other."""
    claim = head(HEADS["more than there is"])

    def change(schema):
        new = node("NdArrayNode", "numpy", "ndarray", type="numpy", file="more.bin")
        more(schema, new)

    archive = io.BytesIO(with_schema(archive_of(fitted["linear"]), change))
    with zipfile.ZipFile(archive, "a") as entries:
        entries.writestr("more.bin", claim)
    refused(tmp_path / "model", archive.getvalue(), "NdArrayNode reads 'more.bin', which is no entry for it")


def test_a_sparse_array_of_another_format_is_refused(fitted, tmp_path):
    """The name in the schema is that of one format, and the array in the archive has another."""
    out, packed = io.BytesIO(), io.BytesIO()
    sparse.save_npz(packed, sparse.dia_array(np.eye(40)))
    with zipfile.ZipFile(io.BytesIO(archive_of(fitted["mlfe"]))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, packed.getvalue() if name.endswith(".npz") else old.read(name))
    refused(tmp_path / "model", out.getvalue(), "must have the format csr or csc. Got dia")


# -- What must still load ---------------------------------------------------------------------------------------------------


def loaded(model, path):
    rbrl.save(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return rbrl.load(path)


def test_every_fitted_model_still_loads(fitted, tmp_path):
    for name, model in fitted.items():
        again = loaded(model, tmp_path / "model")
        assert type(again) is type(model), name


def test_a_threshold_below_every_score_still_loads(tmp_path):
    rule = decision.GlobalThreshold("hamming_loss").fit(np.full((3, 2), -1e20), np.ones((3, 2)))
    assert rule.threshold_ == -np.inf
    assert loaded(rule, tmp_path / "rule").threshold_ == -np.inf


def test_reports_of_a_fit_may_be_nan_or_infinite(tmp_path):
    model = rbrl.RBRLClassifier().fit(X, Y)
    model.gap_, model.objective_ = np.inf, np.nan
    model.history_ = np.array([np.inf, 1.0])
    assert loaded(model, tmp_path / "model").gap_ == np.inf


def test_words_that_a_schema_uses_may_be_words_of_a_text(tmp_path):
    """The vocabulary of a text model is a dict whose keys look like those of a node."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["__class__ def __id__ file", "__loader__ content __module__", "protocol shape type"] * 4
    model = make_pipeline(TfidfVectorizer(), rbrl.RBRLClassifier()).fit(texts, np.eye(3, dtype=int).repeat(4, axis=0))
    np.testing.assert_array_equal(loaded(model, tmp_path / "model").predict(texts), model.predict(texts))


def test_functions_of_numpy_and_scipy_may_be_part_of_a_pipeline(tmp_path):
    from scipy import special
    from sklearn.preprocessing import FunctionTransformer

    for function in (np.log1p, special.expit):
        model = make_pipeline(FunctionTransformer(function), rbrl.RBRLClassifier()).fit(X, Y)
        np.testing.assert_array_equal(loaded(model, tmp_path / "model").predict(X), model.predict(X))


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    model = rbrl.RBRLClassifier().fit(X, Y)
    model.coef_[0, 0] = np.nan
    with pytest.raises(ModelFileError, match=r"cannot be saved, since rbrl\.load would refuse it: coef_ of"):
        rbrl.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_every_learned_attribute_has_its_rule(fitted):
    """A new attribute needs a line in the tables of `rbrl.persistence.contents`."""
    known = {*KINDS, *REPORTS, *CLASSES, *ANYTHING}

    def learned(model):
        parameters = model.get_params(deep=False)
        for name, value in vars(model).items():
            if name not in parameters and not name.startswith("_"):
                yield type(model).__name__, name
            if isinstance(value, rbrl.decision.DecisionRule):
                yield from learned(value)

    ours = [model for model in fitted.values() if type(model).__module__.startswith("rbrl.")]
    missing = {found for model in ours for found in learned(model) if found[1] not in known}
    assert missing == set()


def test_the_schema_of_this_file_is_what_skops_writes(fitted):
    """The nodes that these tests make have the form of skops's own."""
    with zipfile.ZipFile(io.BytesIO(archive_of(fitted["linear"]))) as entries:
        schema = json.loads(entries.read("schema.json"))
    assert set(mapping({})) == set(schema["content"]["model"]["content"])
    assert schema["protocol"] == 2
