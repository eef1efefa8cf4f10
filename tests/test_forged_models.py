"""Files that were made to harm by the model in them: each is refused with one error, and sound models still load."""

import warnings

import numpy as np
import pytest
from scipy import special
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import rbrl
from forging import LARGE, X, Y, archive_of, changed, fitted, refused
from rbrl import decision
from rbrl.exceptions import ModelFileError
from rbrl.persistence.contents import ANYTHING, CLASSES, KINDS, REPORTS
from rbrl.registry import REGISTRY


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
def test_numbers_of_a_wrong_kind_are_refused(model, name, value, message, tmp_path):
    refused(tmp_path / "model", changed(fitted()[model], name, value), message)


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
    ("pipeline", "steps", lambda steps: [("scale", float), *steps[1:]], "each step of its Pipeline must be a pair"),
    ("pipeline", "steps", lambda steps: [steps[0], ["only one"]], "each step of its Pipeline must be a pair"),
    ("linear", "targets_.kind", "ranking", "kind of its targets_ is not valid for a coding of labels"),
    ("linear", "targets_.is_matrix", False, "is_matrix of its targets_ is not valid for a coding of labels"),
    ("linear", "targets_.low", 7, "low of its targets_ is not valid for a coding of labels"),
    ("linear", "targets_.low", 0.0, "low of its targets_ is not valid for a coding of labels"),
    ("linear", "targets_.dtype", np.dtype(complex), "dtype of its targets_ is not valid for a coding of labels"),
    ("linear", "targets_.dtype", np.dtype("U9"), "dtype of its targets_ is not valid for a coding of labels"),
    ("linear", "targets_.dtype", "int", "dtype of its targets_ is not valid for a coding of labels"),
    ("linear", "targets_.classes_", np.zeros(0, int), "classes_ of its targets_ is not valid|do not fit together"),
    ("linear", "targets_.classes_", 4, "classes_ of its targets_ is not valid for a coding of labels"),
    ("linear", "targets_.classes_", as_type("complex128"), "classes_ of its SignedTargets must hold text or numbers"),
    ("sparse-labels", "targets_.sparse_container", float, "sparse_container of its targets_ is not valid"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "name", "value", "message"), INSTANCES)
def test_objects_of_a_wrong_class_are_refused(model, name, value, message, tmp_path):
    refused(tmp_path / "model", changed(fitted()[model], name, value), message)


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
    ("br-rbf", "dual_coef_", outside, "a sparse array of shape .* is not valid"),
    ("br-rbf", "dual_coef_", falling, "a sparse array of shape .* is not valid|cannot be read"),
    ("mlfe", "reconstruction_", outside, "a sparse array of shape .* is not valid"),
    ("sparse-svc", "estimators_.0.support_vectors_", outside, "a sparse array of shape .* is not valid"),
    *[
        (model, f"estimators_.0.{name}", value, SVM)
        for model in ("br-svc", "sparse-svc")
        for name, value in (
            ("_n_support", np.array([-LARGE, LARGE], np.int32)), ("_n_support", np.zeros(0, np.int32)),
            ("_n_support", np.zeros(2, np.int32)), ("_dual_coef_", lambda dual: dual[:, :3]),
            ("_dual_coef_", lambda dual: dual[:0]), ("_intercept_", np.zeros(0)), ("_probA", np.ones(9)),
            ("support_", np.zeros(3, np.int32)), ("support_vectors_", lambda rows: rows[:1]),
            ("support_vectors_", lambda rows: rows[:, :2]), ("classes_", np.arange(50)), ("kernel", "another"),
            ("_effective_probability", True),
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize(("model", "name", "value", "message"), MEMORY)
def test_arrays_that_compiled_code_would_leave_are_refused(model, name, value, message, tmp_path):
    refused(tmp_path / "model", changed(fitted()[model], name, value), message)


def test_another_program_of_libsvm_is_refused(tmp_path):
    refused(tmp_path / "model", changed(fitted()["br-svc"], "estimators_.0._impl", "nu_svr"), "_impl of its SVC")


@pytest.mark.parametrize("place", [-1, 625, LARGE])
def test_a_generator_beyond_its_state_is_refused(place, tmp_path):
    random = np.random.RandomState(0)
    state = random.get_state(legacy=False)
    state["state"]["pos"] = place
    random.set_state(state)
    model = REGISTRY["rakel"](random_state=random)
    refused(tmp_path / "model", archive_of(model), rf"a RandomState in it is at position {place} of 624 numbers")


def loaded(model, path):
    rbrl.save(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return rbrl.load(path)


def test_every_fitted_model_still_loads(tmp_path):
    for name, model in fitted().items():
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
    texts = ["__class__ def __id__ file", "__loader__ content __module__", "protocol shape type"] * 4
    model = make_pipeline(TfidfVectorizer(), rbrl.RBRLClassifier()).fit(texts, np.eye(3, dtype=int).repeat(4, axis=0))
    np.testing.assert_array_equal(loaded(model, tmp_path / "model").predict(texts), model.predict(texts))


def test_functions_of_numpy_and_scipy_may_be_part_of_a_pipeline(tmp_path):
    for function in (np.log1p, special.expit):
        model = make_pipeline(FunctionTransformer(function), rbrl.RBRLClassifier()).fit(X, Y)
        np.testing.assert_array_equal(loaded(model, tmp_path / "model").predict(X), model.predict(X))


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    model = rbrl.RBRLClassifier().fit(X, Y)
    model.coef_[0, 0] = np.nan
    with pytest.raises(ModelFileError, match=r"cannot be saved, because rbrl\.load would reject it: coef_ of"):
        rbrl.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_every_learned_attribute_has_its_rule():
    """A new attribute needs a line in the tables of `rbrl.persistence.contents`."""
    known = {*KINDS, *REPORTS, *CLASSES, *ANYTHING}

    def learned(model):
        parameters = model.get_params(deep=False)
        for name, value in vars(model).items():
            if name not in parameters and not name.startswith("_"):
                yield type(model).__name__, name
            if isinstance(value, rbrl.decision.DecisionRule):
                yield from learned(value)

    ours = [model for model in fitted().values() if type(model).__module__.startswith("rbrl.")]
    missing = {found for model in ours for found in learned(model) if found[1] not in known}
    assert missing == set()
