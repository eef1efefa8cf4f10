"""Checks of the model in a file: it must be an estimator with real numbers, whose arrays fit together.

The list of `rbrl.persistence.schema` restricts the classes of a file, but not their attributes. A file may
still give a model weights that are NaN, complex or text, arrays whose sizes do not fit together, or a class
in place of an instance. NumPy finds wrong sizes when the model is used. LIBSVM, sparse products and random
number generators do not, and would read memory outside their arrays.
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

# Axes of the arrays of a model. All axes with the same name have the same size.
AXES = {
    "classes_": ("classes",), "coef_": ("scores", "features"), "constant_": ("scores",), "dual_coef_": ("rows", "scores"),
    "enriched_labels_": ("rows", "labels"), "feature_coef_": ("components", "scores"),
    "feature_factors_": ("features", "rank"), "feature_names_in_": ("features",), "feature_scale_": ("features",),
    "intercept_": ("scores",), "intercepts_": ("labels",), "label_factors_": ("scores", "rank"), "label_names_": ("labels",),
    "likelihood_irrelevant_": ("labels", "counts"), "likelihood_relevant_": ("labels", "counts"),
    "n_votes_": ("labels",), "pairs_": ("pairs", "two"), "played_": ("pairs",), "pooled_": ("two",),
    "prior_": ("labels",), "reconstruction_": ("rows", "rows"), "slopes_": ("labels",), "threshold_": ("scores",),
    "threshold_coef_": ("labels",), "X_fit_": ("rows", "features"), "Y_fit_": ("rows", "labels"),
}  # fmt: skip
# Attributes that may also be one number, which holds for the whole axis.
SCALAR_ATTRIBUTES = ("threshold_",)
# Axes of the arrays of LIBSVM's models. Its compiled predictor does not check the sizes.
SVM_AXES = {
    "support_": ("support",), "support_vectors_": ("support", "features"), "_n_support": ("classes",),
    "dual_coef_": ("others", "support"), "_dual_coef_": ("others", "support"), "intercept_": ("problems",),
    "_intercept_": ("problems",),
}  # fmt: skip
SVM_PROBABILITIES = ("_probA", "_probB")
SVM_KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
SVM = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
# Letters of the kinds of NumPy types that an attribute may have, and their name in messages.
REAL = "iuf"
WHOLE = "iu"
TRUTH = "b"
NAMES = "biufUO"
KIND_NAMES = {
    REAL: "finite real numbers", WHOLE: "whole numbers >= 0", TRUTH: "true or false", NAMES: "text or numbers",
}  # fmt: skip
# Kinds of the values of the fitted attributes of the models of rbrl.
KINDS = {
    **dict.fromkeys((
        "X_fit_", "chain_constants_", "coef_", "constant_", "dual_coef_", "empty_share_", "enriched_labels_",
        "feature_coef_", "feature_factors_", "feature_scale_", "gamma_", "intercept_", "intercepts_", "knots_",
        "label_factors_", "likelihood_irrelevant_", "likelihood_relevant_", "pooled_", "prior_", "reconstruction_",
        "ridge_", "sharpness_", "slopes_", "stream_", "threshold_", "threshold_coef_", "threshold_intercept_",
        "thresholds_", "weight_seen_",
    ), REAL),
    **dict.fromkeys((
        "best_index_", "chain_labels_", "columns_", "first_feature_", "first_label_", "n_features_in_", "n_iter_",
        "n_neighbors_", "n_samples_seen_", "n_votes_", "pairs_", "rank_", "subsets_",
    ), WHOLE),
    **dict.fromkeys(("Y_fit_", "all_labelled_", "label_sets_", "played_"), TRUTH),
    **dict.fromkeys(("categories_", "classes_", "feature_names_in_", "label_names_"), NAMES),
}  # fmt: skip
# Attributes that may be infinite: a threshold below every score may be minus infinity because of rounding.
INFINITE_ATTRIBUTES = ("threshold_", "thresholds_")
# Attributes that describe the fit and that no prediction uses. They may be NaN or infinite: a problem without a
# penalty has an infinite gap.
REPORTS = ("best_score_", "dual_objective_", "gap_", "history_", "n_evaluations_", "objective_", "pass_seconds_")
# Attributes of any type: tables of a search for people to read, and the chosen parameters.
ANYTHING = ("best_params_", "cv_results_")
# Classes of attributes that hold an object or a list of objects.
CLASSES = {
    "best_estimator_": BaseEstimator, "chains_": BaseEstimator, "estimator_": BaseEstimator, "estimators_": BaseEstimator,
    "feature_map_": BaseEstimator, "rule_": DecisionRule, "targets_": SignedTargets,
}  # fmt: skip
# Attributes that hold indices into an axis.
INDICES = {"chain_labels_": "labels", "columns_": "labels", "pairs_": "labels", "subsets_": "labels"}
# Names of the weights of scikit-learn's estimators.
WEIGHTS = (
    "coef_", "components_", "dual_coef_", "intercept_", "normalization_", "random_offset_", "random_weights_",
    "support_vectors_", "_dual_coef_", "_intercept_", *SVM_PROBABILITIES,
)  # fmt: skip
SPARSE_CONTAINERS = (sparse.csr_array, sparse.csr_matrix, sparse.csc_array)
TARGET_KINDS = ("binary", "multiclass", "multilabel")


def check_model(model: Any) -> None:
    """Raise ModelFileError if no `fit` of this package or of scikit-learn could have made a model.

    Parameters
    ----------
    model : object
        Object that was built from a file.

    Raises
    ------
    ModelFileError
        The object is no estimator, or a part of it has a wrong type, size or value. The message names the
        part.

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
        raise ModelFileError(f"it holds {_describe(model)}, not a model written by rbrl.save.")
    for part in _iterate_parts(model, set()):
        if sparse.issparse(part):
            _check_sparse(part)
        elif isinstance(part, np.random.RandomState):
            _check_random_state(part)
        elif isinstance(part, SignedTargets):
            _check_targets(part)
        elif isinstance(part, BaseEstimator):
            _check_estimator(part)


def _iterate_parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield an object and all objects inside it, each once."""
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
        yield from _iterate_parts(child, seen)


def _check_estimator(model: BaseEstimator) -> None:
    """Raise ModelFileError if an estimator of rbrl or scikit-learn has attributes that no fit makes.

    `check_model` calls it for every estimator inside a model, so that it does not look into the parts.
    """
    if type(model).__module__.startswith("rbrl."):
        # The axes of the `coef_` of a decision rule are labels. The rule checks its sizes when it is used.
        if not isinstance(model, DecisionRule):
            _check_sizes(model, AXES, _known_sizes(model))
        _check_attributes(model)
        return
    for name in WEIGHTS:
        _check_numbers(model, name, REAL)
    if isinstance(model, SVM):
        _check_svm(model)
    if isinstance(model, Pipeline):
        _check_steps(model)


def _check_attributes(model: BaseEstimator) -> None:
    """Raise ModelFileError if fitted attributes of a model of rbrl have other types than the tables list."""
    for name, expected in CLASSES.items():
        value = vars(model).get(name)
        for item in value if isinstance(value, list) else [value]:
            if item is not None and not isinstance(item, expected):
                rule = f"{name} of its {type(model).__name__} must be an instance of {expected.__name__}"
                raise ModelFileError(f"{rule}. Got {_describe(item)}.")
    for name, kinds in KINDS.items():
        _check_numbers(model, name, kinds)
    for name in REPORTS:
        _check_numbers(model, name, REAL, finite=False)


def _check_numbers(model: object, name: str, kinds: str, finite: bool = True) -> None:
    """Raise ModelFileError if numbers of an attribute have another kind, are not finite, or must not be negative."""
    for numbers in _iterate_arrays(vars(model).get(name)):
        fault = ""
        if numbers.dtype.kind not in kinds or (numbers.dtype.kind == "O" and not _are_names(numbers)):
            fault = f"Got {_describe(numbers)}"
        elif numbers.dtype.kind == "f" and finite and not _are_finite(numbers, name in INFINITE_ATTRIBUTES):
            fault = "some are NaN or infinite"
        elif kinds == WHOLE and numbers.size and numbers.min() < 0:
            fault = f"Got {numbers.min()}"
        if fault:
            raise ModelFileError(f"{name} of its {type(model).__name__} must hold {KIND_NAMES[kinds]}; {fault}.")


def _iterate_arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays in an attribute. An object that is neither a number nor text is an array of objects."""
    if isinstance(value, list | tuple | dict):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _iterate_arrays(child)
    elif sparse.issparse(value):
        yield value.data
    elif isinstance(value, np.ndarray | np.generic | bool | int | float | str):
        yield np.asarray(value)
    elif value is not None:
        holder = np.empty((), dtype=object)
        holder[()] = value
        yield holder


def _are_names(values: np.ndarray[Any, Any]) -> bool:
    """Return whether an array of objects contains only text and numbers."""
    return all(isinstance(value, str | int | float | np.generic) for value in values.flat)


def _are_finite(numbers: np.ndarray[Any, Any], allow_infinite: bool) -> bool:
    """Return whether no number is NaN, nor infinite unless that is allowed."""
    return not np.isnan(numbers).any() if allow_infinite else bool(np.isfinite(numbers).all())


def _check_sizes(model: BaseEstimator, axes_of: Mapping[str, tuple[str, ...]], sizes: dict[str, int]) -> None:
    """Raise ModelFileError if axes of the same name have different sizes, or an index is too large.

    `sizes` has the known sizes, and gets those of the other axes.
    """
    attributes = vars(model)
    owner = type(model).__name__
    for name, axes in axes_of.items():
        value = attributes.get(name)
        if value is None or (name in SCALAR_ATTRIBUTES and np.ndim(value) == 0):
            continue
        if not isinstance(value, np.ndarray) and not sparse.issparse(value):
            raise ModelFileError(f"{name} of its {owner} must be an array. Got {_describe(value)}.")
        expected = [sizes.setdefault(axis, size) for axis, size in zip(axes, value.shape)]
        if len(value.shape) != len(axes) or list(value.shape) != expected:
            others = " and ".join(f"{sizes[axis]} {axis}" for axis in axes if axis in sizes)
            raise ModelFileError(f"the arrays of its {owner} do not fit together: {name} {value.shape}, but {others}.")
    for name, axis in INDICES.items():
        largest = [numbers.max() for numbers in _iterate_arrays(attributes.get(name)) if numbers.size and axis in sizes]
        if largest and max(largest) >= sizes[axis]:
            raise ModelFileError(f"{name} of its {owner} names {axis} up to {max(largest)}, but it has {sizes[axis]}.")


def _known_sizes(model: BaseEstimator) -> dict[str, int]:
    """Return the sizes of axes that follow from other attributes of a model of rbrl."""
    attributes = vars(model)
    known = {"two": 2, "features": attributes.get("n_features_in_")}
    encoder = attributes.get("targets_")
    if isinstance(encoder, SignedTargets):
        _check_targets(encoder)
        known |= {"labels": encoder.n_columns, "classes": len(encoder.classes_)}
        if "pairs_" not in attributes:  # a label ranking has scores of pairs of labels, too
            known["scores"] = known["labels"]
    if attributes.get("kernel") == "precomputed":
        known["rows"] = known["features"]
    if "n_neighbors_" in attributes:
        known["counts"] = attributes["n_neighbors_"] + 1
    return {axis: size for axis, size in known.items() if size is not None}


def _check_targets(encoder: SignedTargets) -> None:
    """Raise ModelFileError if `SignedTargets.fit` could not have made an encoder of targets."""
    attributes = vars(encoder)
    classes = attributes.get("classes_")
    is_matrix = attributes.get("is_matrix")
    is_valid = {
        "kind": attributes.get("kind") in TARGET_KINDS,
        "is_matrix": is_matrix is (attributes.get("kind") == "multilabel"),
        "classes_": isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0,
    }
    if is_matrix:
        dtype = attributes.get("dtype")
        is_valid["low"] = type(attributes.get("low")) is int and attributes["low"] in (0, -1)
        is_valid["dtype"] = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    container = attributes.get("sparse_container")
    is_valid["sparse_container"] = container is None or any(container is cls for cls in SPARSE_CONTAINERS)
    for name in is_valid:
        if not is_valid[name]:
            shown = _describe(attributes.get(name))
            raise ModelFileError(f"{name} of its targets_ is not valid for a coding of labels. Got {shown}.")
    _check_numbers(encoder, "classes_", NAMES)


def _check_sparse(matrix: Any) -> None:
    """Raise ModelFileError if indices of a sparse array lie outside it, which products in SciPy do not check."""
    if matrix.format not in ("csr", "csc"):
        raise ModelFileError(f"a sparse array in it must have the format csr or csc. Got {matrix.format}.")
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ModelFileError(f"a sparse array of shape {matrix.shape} in it is not valid: {error}.") from error


def _check_random_state(source: np.random.RandomState) -> None:
    """Raise ModelFileError if a generator of random numbers would read beyond the end of its state."""
    state = source.get_state(legacy=False)["state"]
    if not 0 <= state["pos"] <= len(state["key"]):
        raise ModelFileError(f"a RandomState in it is at position {state['pos']} of {len(state['key'])} numbers.")


def _check_svm(model: BaseEstimator) -> None:
    """Raise ModelFileError if the predictor of LIBSVM would read beyond the ends of the arrays of a model."""
    attributes = vars(model)
    if "support_" not in attributes:
        return
    n_classes = len(attributes["classes_"]) if isinstance(model, SVC | NuSVC) else 2
    known = {"classes": n_classes, "others": n_classes - 1, "problems": math.comb(n_classes, 2)}
    known |= {"support": len(attributes["support_"]), "features": attributes["n_features_in_"]}
    precomputed = attributes["kernel"] == "precomputed"
    # With a precomputed kernel, a model stores the indices of the support vectors and not the vectors.
    axes = {name: axes for name, axes in SVM_AXES.items() if name != "support_vectors_" or not precomputed}
    _check_sizes(model, axes, known)
    counts = attributes["_n_support"]
    support = attributes["support_"]
    has_fault = {
        # `_impl` belongs to the class. An instance with its own `_impl` would choose another algorithm.
        "_impl": "_impl" in attributes,
        "kernel": attributes["kernel"] not in SVM_KERNELS,
        "_n_support": counts.dtype.kind not in WHOLE or counts.min(initial=0) < 0,
        "support_": support.dtype.kind not in WHOLE or support.min(initial=0) < 0,
        "shape_fit_": precomputed and support.max(initial=-1) >= attributes["shape_fit_"][0],
        "_dual_coef_": attributes["_dual_coef_"].size != (n_classes - 1) * len(support),
    }
    has_fault["_n_support"] |= isinstance(model, SVC | NuSVC) and int(counts.sum()) != len(support)
    has_probabilities = any(attributes.get(name) is True for name in ("probability", "_effective_probability"))
    shapes = [(known["problems"],)] if has_probabilities else [(known["problems"],), (0,)]
    for name in SVM_PROBABILITIES:
        shape = attributes[name].shape
        has_fault[name] = shape not in shapes or shape != attributes["_probA"].shape
    for name in has_fault:
        if has_fault[name]:
            raise ModelFileError(f"{name} of its {type(model).__name__} does not fit the other arrays of LIBSVM.")


def _check_steps(pipeline: Pipeline) -> None:
    """Raise ModelFileError if a step of a pipeline is not a pair of a name and an estimator."""
    for step in pipeline.steps:
        named = isinstance(step, list | tuple) and len(step) == 2 and isinstance(step[0], str)
        if not named or not isinstance(step[1], BaseEstimator | str | None):
            raise ModelFileError(
                f"each step of its Pipeline must be a pair of a name and an estimator. Got {_describe(step)}."
            )


def _describe(value: Any) -> str:
    """Describe a value of a file for an error message; its own methods may be forged, so none is called."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray) and not (value.dtype.kind == "O" and value.ndim == 0):
        return f"an array of {value.dtype}"
    held = value.item() if isinstance(value, np.ndarray) else value
    return _describe(held) if held is not value else f"a value of type {type(value).__name__}"
