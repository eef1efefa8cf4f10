"""Checks of the model in a file: it must be an estimator whose numbers are real, and whose arrays fit together.

The list of `rbrl.persistence.schema` says which classes are built, not what is in them. A file may still give a model
weights that are NaN, complex or text, arrays of sizes that do not belong together, or a class where an instance must be.
NumPy finds wrong sizes when a model is used; LIBSVM, sparse products and random numbers read memory that is not theirs.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from rbrl._common.bases import BaseEstimator
from rbrl.decision import DecisionRule
from rbrl.exceptions import ModelFileError
from rbrl.targets import SignedTargets

# The axes of a model's arrays: those of one name have one size.
AXES = {
    "classes_": ("classes",), "coef_": ("scores", "features"), "constant_": ("scores",), "dual_coef_": ("rows", "scores"),
    "enriched_labels_": ("rows", "labels"), "feature_coef_": ("components", "scores"), "feature_names_in_": ("features",),
    "feature_scale_": ("features",), "intercept_": ("scores",), "intercepts_": ("labels",), "label_names_": ("labels",),
    "likelihood_irrelevant_": ("labels", "counts"), "likelihood_relevant_": ("labels", "counts"),
    "n_votes_": ("labels",), "pairs_": ("pairs", "two"), "played_": ("pairs",), "pooled_": ("two",),
    "prior_": ("labels",), "reconstruction_": ("rows", "rows"), "slopes_": ("labels",), "threshold_": ("scores",),
    "threshold_coef_": ("labels",), "X_fit_": ("rows", "features"), "Y_fit_": ("rows", "labels"),
}  # fmt: skip
# Attributes that may also be one number for all of their axis.
MAY_BE_NUMBERS = ("threshold_",)
# Those of LIBSVM's models. Its compiled predictor takes the sizes on trust.
SVM_AXES = {
    "support_": ("support",), "support_vectors_": ("support", "features"), "_n_support": ("classes",),
    "dual_coef_": ("others", "support"), "_dual_coef_": ("others", "support"), "intercept_": ("problems",),
    "_intercept_": ("problems",),
}  # fmt: skip
SVM_PROBABILITIES = ("_probA", "_probB")
SVM_KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
SVM = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
# Kinds of NumPy's types, by their letters, and what a message calls them.
REAL, WHOLE, TRUTH, NAMES = "iuf", "iu", "b", "biufUO"
WORDS = {
    REAL: "finite real numbers",
    WHOLE: "whole numbers from 0 on",
    TRUTH: "true or false",
    NAMES: "text or numbers",
}
# Learned attributes of our models, and what their numbers are.
KINDS = {
    **dict.fromkeys((
        "X_fit_", "chain_constants_", "coef_", "constant_", "dual_coef_", "empty_share_", "enriched_labels_",
        "feature_coef_", "feature_scale_", "gamma_", "intercept_", "intercepts_", "knots_", "likelihood_irrelevant_",
        "likelihood_relevant_", "pooled_", "prior_", "reconstruction_", "ridge_", "sharpness_", "slopes_", "stream_",
        "threshold_", "threshold_coef_", "threshold_intercept_", "thresholds_", "weight_seen_",
    ), REAL),
    **dict.fromkeys((
        "best_index_", "chain_labels_", "columns_", "first_feature_", "first_label_", "n_features_in_", "n_iter_",
        "n_neighbors_", "n_samples_seen_", "n_votes_", "pairs_", "rank_", "subsets_",
    ), WHOLE),
    **dict.fromkeys(("Y_fit_", "all_labelled_", "label_sets_", "played_"), TRUTH),
    **dict.fromkeys(("classes_", "feature_names_in_", "label_names_"), NAMES),
}  # fmt: skip
# A threshold below every score is minus infinity where rounding leaves no other number.
MAY_BE_INFINITE = ("threshold_", "thresholds_")
# What a fit tells of itself, which no prediction uses: real numbers, of which NaN and infinity are two. A problem without
# any penalty has an infinite gap.
REPORTS = ("best_score_", "dual_objective_", "gap_", "history_", "n_evaluations_", "objective_", "pass_seconds_")
# Tables of a search for people to read, and the parameters it chose.
ANYTHING = ("best_params_", "cv_results_")
# Attributes that hold objects, alone or in a list, and their classes.
CLASSES = {
    "best_estimator_": BaseEstimator, "chains_": BaseEstimator, "estimator_": BaseEstimator, "estimators_": BaseEstimator,
    "feature_map_": BaseEstimator, "rule_": DecisionRule, "targets_": SignedTargets,
}  # fmt: skip
# Numbers that are places of an axis, from 0 on.
PLACES = {"chain_labels_": "labels", "columns_": "labels", "pairs_": "labels", "subsets_": "labels"}
# Weights of scikit-learn's estimators, by its conventions.
WEIGHTS = (
    "coef_", "components_", "dual_coef_", "intercept_", "normalization_", "random_offset_", "random_weights_",
    "support_vectors_", "_dual_coef_", "_intercept_", *SVM_PROBABILITIES,
)  # fmt: skip
CONTAINERS = (sparse.csr_array, sparse.csr_matrix, sparse.csc_array)
TARGET_KINDS = ("binary", "multiclass", "multilabel")


def check_model(model: Any) -> None:
    """Refuse a model that `fit` of this package or of scikit-learn would not have made.

    Parameters
    ----------
    model : object
        Object that stands for the model in a file.

    Raises
    ------
    ModelFileError
        It is no estimator, or a part of it is not what it must be; the message names the part.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> model = RBRLClassifier().fit(np.eye(4), np.eye(4, dtype=int))
    >>> check_model(model)
    >>> model.coef_[0, 0] = np.nan
    >>> try:
    ...     check_model(model)
    ... except ValueError as error:
    ...     print(error)
    coef_ of its RBRLClassifier must hold finite real numbers; some are NaN or infinite.
    """
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"it holds {_shown(model)}, not a model written by rbrl.save.")
    for part in _parts(model, set()):
        if sparse.issparse(part):
            _check_sparse(part)
        elif isinstance(part, np.random.RandomState):
            _check_random_state(part)
        elif isinstance(part, SignedTargets):
            _check_targets(part)
        elif isinstance(part, BaseEstimator):
            _check_estimator(part)


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield an object and everything inside it, each once."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | type | None):
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inside = list(value.values())
    elif isinstance(value, list | tuple | set):
        inside = list(value)
    elif isinstance(value, np.ndarray):
        inside = list(value.flat) if value.dtype.kind == "O" else []
    else:
        inside = list(getattr(value, "__dict__", {}).values())
    for child in inside:
        yield from _parts(child, seen)


def _check_estimator(model: BaseEstimator) -> None:
    if type(model).__module__.startswith("rbrl."):
        if not isinstance(model, DecisionRule):  # its `coef_` is of labels, and it compares sizes in use
            _check_sizes(model, AXES, _known_sizes(model))
        _check_learned(model)
        return
    for name in WEIGHTS:
        _check_numbers(model, name, REAL)
    if isinstance(model, SVM):
        _check_svm(model)
    if isinstance(model, Pipeline):
        _check_steps(model)


def _check_learned(model: BaseEstimator) -> None:
    """Refuse learned attributes of one of our models that are not what the tables say."""
    attributes, owner = vars(model), type(model).__name__
    for name, expected in CLASSES.items():
        value = attributes.get(name)
        for item in value if isinstance(value, list) else [value]:
            if item is not None and not isinstance(item, expected):
                wanted = expected.__name__
                raise ModelFileError(f"{name} of its {owner} must be an instance of {wanted}. Got {_shown(item)}.")
    for name, kinds in KINDS.items():
        _check_numbers(model, name, kinds)
    for name in REPORTS:
        _check_numbers(model, name, REAL, finite=False)


def _check_numbers(model: object, name: str, kinds: str, finite: bool = True) -> None:
    """Refuse an attribute whose numbers are of other kinds, NaN or infinite, or negative where they count."""
    for numbers in _numbers(vars(model).get(name)):
        fault = ""
        if numbers.dtype.kind not in kinds or (numbers.dtype.kind == "O" and not _are_names(numbers)):
            fault = f"Got {_shown(numbers)}"
        elif numbers.dtype.kind == "f" and finite and not _are_finite(numbers, name in MAY_BE_INFINITE):
            fault = "some are NaN or infinite"
        elif kinds == WHOLE and numbers.size and numbers.min() < 0:
            fault = f"Got {numbers.min()}"
        if fault:
            raise ModelFileError(f"{name} of its {type(model).__name__} must hold {WORDS[kinds]}; {fault}.")


def _numbers(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays in an attribute; what is no number, no text and no container of such is an array of objects."""
    if isinstance(value, list | tuple | dict):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _numbers(child)
    elif sparse.issparse(value):
        yield value.data
    elif isinstance(value, np.ndarray | np.generic | bool | int | float | str):
        yield np.asarray(value)
    elif value is not None:
        holder = np.empty((), dtype=object)
        holder[()] = value
        yield holder


def _are_names(values: np.ndarray[Any, Any]) -> bool:
    return all(isinstance(value, str | int | float | np.generic) for value in values.flat)


def _are_finite(numbers: np.ndarray[Any, Any], or_infinite: bool) -> bool:
    return not np.isnan(numbers).any() if or_infinite else bool(np.isfinite(numbers).all())


def _check_sizes(model: BaseEstimator, axes_of: Mapping[str, tuple[str, ...]], sizes: dict[str, int]) -> None:
    """Refuse a model whose arrays do not have the sizes that they have in common."""
    attributes, owner = vars(model), type(model).__name__
    for name, axes in axes_of.items():
        value = attributes.get(name)
        if value is None or (name in MAY_BE_NUMBERS and np.ndim(value) == 0):
            continue
        if not isinstance(value, np.ndarray) and not sparse.issparse(value):
            raise ModelFileError(f"{name} of its {owner} must be an array. Got {_shown(value)}.")
        expected = [sizes.setdefault(axis, size) for axis, size in zip(axes, value.shape)]
        if len(value.shape) != len(axes) or list(value.shape) != expected:
            others = " and ".join(f"{sizes[axis]} {axis}" for axis in axes if axis in sizes)
            raise ModelFileError(f"the arrays of its {owner} do not fit together: {name} {value.shape}, but {others}.")
    for name, axis in PLACES.items():
        beyond = [numbers.max() for numbers in _numbers(attributes.get(name)) if numbers.size and axis in sizes]
        if beyond and max(beyond) >= sizes[axis]:
            raise ModelFileError(f"{name} of its {owner} names {axis} up to {max(beyond)}, but it has {sizes[axis]}.")


def _known_sizes(model: BaseEstimator) -> dict[str, int]:
    """Return the sizes that one of our models knows by itself."""
    attributes = vars(model)
    known = {"two": 2, "features": attributes.get("n_features_in_")}
    encoder = attributes.get("targets_")
    if isinstance(encoder, SignedTargets):
        _check_targets(encoder)
        known |= {"labels": encoder.n_columns, "classes": len(encoder.classes_)}
        if "pairs_" not in attributes:  # a label ranking also scores pairs of labels
            known["scores"] = known["labels"]
    if attributes.get("kernel") == "precomputed":
        known["rows"] = known["features"]
    if "n_neighbors_" in attributes:
        known["counts"] = attributes["n_neighbors_"] + 1
    return {axis: size for axis, size in known.items() if size is not None}


def _check_targets(encoder: SignedTargets) -> None:
    """Refuse an encoder of targets that `SignedTargets.fit` would not have made."""
    attributes = vars(encoder)
    classes, is_matrix = attributes.get("classes_"), attributes.get("is_matrix")
    facts = {
        "kind": attributes.get("kind") in TARGET_KINDS,
        "is_matrix": is_matrix is (attributes.get("kind") == "multilabel"),
        "classes_": isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0,
    }
    if is_matrix:
        dtype = attributes.get("dtype")
        facts["low"] = type(attributes.get("low")) is int and attributes["low"] in (0, -1)
        facts["dtype"] = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    container = attributes.get("sparse_container")
    facts["sparse_container"] = container is None or any(container is cls for cls in CONTAINERS)
    for name, is_right in facts.items():
        if not is_right:
            raise ModelFileError(f"{name} of its targets_ is no coding of labels. Got {_shown(attributes.get(name))}.")
    _check_numbers(encoder, "classes_", NAMES)


def _check_sparse(matrix: Any) -> None:
    """Refuse a sparse array whose indices lie outside it; products in SciPy follow them unchecked."""
    if matrix.format not in ("csr", "csc"):
        raise ModelFileError(f"a sparse array in it must have the format csr or csc. Got {matrix.format}.")
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ModelFileError(f"a sparse array of shape {matrix.shape} in it is not sound: {error}.") from error


def _check_random_state(source: np.random.RandomState) -> None:
    """Refuse a generator of random numbers that would read beyond its state."""
    state = source.get_state(legacy=False)["state"]
    if not 0 <= state["pos"] <= len(state["key"]):
        raise ModelFileError(f"a RandomState in it is at place {state['pos']} of {len(state['key'])} numbers.")


def _check_svm(model: BaseEstimator) -> None:
    """Refuse a model of LIBSVM whose arrays its predictor would read beyond their ends."""
    attributes, owner = vars(model), type(model).__name__
    if "support_" not in attributes:
        return
    n_classes = len(attributes["classes_"]) if isinstance(model, SVC | NuSVC) else 2
    known = {"classes": n_classes, "others": n_classes - 1, "problems": math.comb(n_classes, 2)}
    known |= {"support": len(attributes["support_"]), "features": attributes["n_features_in_"]}
    precomputed = attributes["kernel"] == "precomputed"
    # A kernel matrix leaves no support vectors to store, only their places.
    axes = {name: axes for name, axes in SVM_AXES.items() if name != "support_vectors_" or not precomputed}
    _check_sizes(model, axes, known)
    counts, support = attributes["_n_support"], attributes["support_"]
    faults = {
        "_impl": "_impl" in attributes,
        "kernel": attributes["kernel"] not in SVM_KERNELS,
        "_n_support": counts.dtype.kind not in WHOLE or counts.min(initial=0) < 0,
        "support_": support.dtype.kind not in WHOLE or support.min(initial=0) < 0,
        "shape_fit_": precomputed and support.max(initial=-1) >= attributes["shape_fit_"][0],
        "_dual_coef_": attributes["_dual_coef_"].size != (n_classes - 1) * len(support),
    }
    faults["_n_support"] |= isinstance(model, SVC | NuSVC) and int(counts.sum()) != len(support)
    asked = any(attributes.get(name) is True for name in ("probability", "_effective_probability"))
    fitting = [(known["problems"],)] if asked else [(known["problems"],), (0,)]
    for name in SVM_PROBABILITIES:
        faults[name] = attributes[name].shape not in fitting or attributes[name].shape != attributes["_probA"].shape
    for name in faults:
        if faults[name]:
            raise ModelFileError(f"{name} of its {owner} does not fit to the other arrays of LIBSVM.")


def _check_steps(pipeline: Pipeline) -> None:
    for step in pipeline.steps:
        named = isinstance(step, list | tuple) and len(step) == 2 and isinstance(step[0], str)
        if not named or not isinstance(step[1], BaseEstimator | str | None):
            raise ModelFileError(f"a step of its Pipeline must be a name and an estimator. Got {_shown(step)}.")


def _shown(value: Any) -> str:
    """Describe a value without calling any of its own methods."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray) and not (value.dtype.kind == "O" and value.ndim == 0):
        return f"an array of {value.dtype}"
    held = value.item() if isinstance(value, np.ndarray) else value
    return _shown(held) if held is not value else f"a value of type {type(value).__name__}"
