"""Export of fitted models and pipelines as ONNX graphs; needs the extra `onnx`."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rbrl._common.checks import check_choice
from rbrl._common.frames import as_dense
from rbrl._common.typing import FloatArray, issparse
from rbrl.decision import RowThreshold
from rbrl.estimators import BinaryRelevance, label_names
from rbrl.estimators.coefficients import has_factors
from rbrl.estimators.convex import ConvexClassifier
from rbrl.exceptions import ExportError
from rbrl.interop.onnx import operators
from rbrl.interop.onnx.operators import Graph, Value
from rbrl.ranking_svm import RankSVM
from rbrl.ranking_svm.estimators import PairSVM
from rbrl.targets import SignedTargets

if TYPE_CHECKING:
    from onnx import ModelProto

# Protocol buffers, in which a graph is stored, have at most this number of bytes.
LARGEST_GRAPH = 2**31 - 1


def to_onnx(model: Any, *, dtype: str = "float64") -> "ModelProto":
    """Return a fitted model, or a pipeline that ends in one, as an ONNX graph.

    The graph has one input, ``X`` (n_rows, n_features). The output ``labels`` is the result of `predict`, in the
    coding and type that `fit` received, but always dense. The output ``scores`` is the result of
    `decision_function`. The graph of a calibrated model also has the output ``probabilities``. Thresholds and the
    rule `non_empty` are part of the graph. The graph does not check its input: X must not contain NaN.

    Parameters
    ----------
    model : fitted classifier or pipeline
        RBRLClassifier, BRLClassifier, CPNL, RankSVM, RankSVMz, CalibratedRankSVM, or BinaryRelevance with its
        own base learners; linear or with the kernel "rbf" or "poly", exact or approximated. Also
        RBRLClassifierCV and other searches with `best_estimator_`, and TunedThresholdClassifier and
        CalibratedMultiLabelClassifier around one of these. The steps of a pipeline may be scalers, Normalizer,
        TfidfTransformer, PCA, TruncatedSVD, kernel approximations and selections of columns.
    dtype : {"float64", "float32"}, default="float64"
        Type of X, of the arithmetic and of the scores. In double precision, the labels are those of `predict`.
        In single precision, the file is half as large, and scores have about six digits, or fewer if a kernel
        model has large coefficients.

    Returns
    -------
    onnx.ModelProto
        Graph, which ``onnx.save(graph, path)`` writes. Its metadata contain the class of the model and the names
        of labels and features, if they are known, as JSON.

    Raises
    ------
    ExportError
        The model, or a step of the pipeline, cannot be written as a graph.

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl import RBRLClassifier, to_onnx
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = RBRLClassifier().fit(X, Y)
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> labels, scores = session.run(None, {"X": X})
    >>> bool((labels == model.predict(X)).all()), bool(abs(scores - model.decision_function(X)).max() < 1e-9)
    (True, True)
    """
    check_choice("to_onnx", "dtype", dtype, ("float64", "float32"))
    check_is_fitted(model)
    graph = Graph(getattr(model, "n_features_in_", None), dtype)
    classifier, X = _unwrap(graph, model, graph.X)
    if not hasattr(classifier, "targets_"):
        raise _export_error(classifier)
    _add_outputs(graph, classifier, X)
    names = {"label_names": label_names(model), "feature_names": getattr(model, "feature_names_in_", None)}
    known = {key: list(map(str, values)) for key, values in names.items() if values is not None}
    return graph.model(model=type(classifier).__name__, **known)


def _unwrap(graph: Graph, model: Any, X: Value) -> tuple[Any, Value]:
    """Return the classifier at the end of pipelines and searches, and its input rows.

    The transformers of pipelines are added to the graph.
    """
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        if isinstance(model, Pipeline):
            X = operators.transform(graph, model[:-1], X)
            model = model.steps[-1][1]
        else:
            model = model.best_estimator_
    return model, X


def _add_outputs(graph: Graph, model: Any, X: Value) -> None:
    """Add the outputs of a classifier, in the shapes that its methods return; X are its input rows."""
    targets = model.targets_
    probabilities = None
    if _is_calibrated(model):
        probabilities = _add_probabilities(graph, model, X)
        scores = _shift_probabilities(graph, model, probabilities)
    else:
        scores = _add_scores(graph, model, X)
    labels = _add_labels(graph, targets, scores, bool(getattr(model, "non_empty_", False)))
    shape = ("rows", targets.n_columns) if targets.is_matrix else ("rows",)
    graph.output("labels", labels, targets.dtype if targets.is_matrix else targets.classes_.dtype, shape)
    if targets.kind == "binary":
        graph.output("scores", graph("Squeeze", scores, np.array([1])), graph.dtype, ("rows",))
    else:
        graph.output("scores", scores, graph.dtype, ("rows", targets.n_columns))
    if probabilities is not None:
        n_columns = targets.n_columns if targets.is_matrix else len(targets.classes_)
        result = _to_class_probabilities(graph, targets, probabilities)
        graph.output("probabilities", result, graph.dtype, ("rows", n_columns))


def _add_labels(graph: Graph, targets: SignedTargets, scores: Value, never_empty: bool) -> Value:
    """Add the predicted labels in the coding that `fit` received.

    With `never_empty`, a row without a positive score gets its best label.
    """
    if targets.kind == "multiclass":
        return graph("Gather", graph.constant(targets.classes_), graph("ArgMax", scores, axis=1, keepdims=0))
    never_empty = never_empty and targets.is_matrix
    is_relevant = operators.find_relevant(graph, scores, targets.n_columns, never_empty)
    ones = graph.cast(is_relevant, np.int64)
    if not targets.is_matrix:
        # If the target has a single class, the index is always 0.
        second = graph("Mul", graph("Squeeze", ones, np.array([1])), np.int64(len(targets.classes_) - 1))
        return graph("Gather", graph.constant(targets.classes_), second)
    if targets.low < 0:
        ones = graph("Sub", graph("Mul", ones, np.int64(2)), np.int64(1))
    return ones if targets.dtype == np.int64 else graph.cast(ones, targets.dtype)


def _to_class_probabilities(graph: Graph, targets: SignedTargets, probabilities: Value) -> Value:
    """Add the result of `predict_proba`, in which the probabilities of classes sum to 1."""
    if targets.kind == "multiclass":
        return graph("Div", probabilities, graph("ReduceSum", probabilities, np.array([1])))
    if targets.is_matrix:
        return probabilities
    if len(targets.classes_) == 1:
        return graph("Add", graph("Mul", probabilities, 0.0), 1.0)
    return graph("Concat", graph("Sub", 1.0, probabilities), probabilities, axis=1)


def _add_scores(graph: Graph, model: Any, X: Value) -> Value:
    """Add the scores (n_rows, n_columns) of a fitted classifier."""
    model, X = _unwrap(graph, model, X)
    if _is_calibrated(model):
        return _shift_probabilities(graph, model, _add_probabilities(graph, model, X))
    if hasattr(model, "rule_") and hasattr(model, "estimator_"):
        scores = _add_scores(graph, model.estimator_, X)
        return operators.shift_scores(graph, model.rule_, scores, model.targets_.n_columns)
    if isinstance(model, PairSVM):
        scores = _kernel_model(graph, model, X)
        return _rank_svm(graph, model, scores) if isinstance(model, RankSVM) else scores
    if isinstance(model, ConvexClassifier):
        untuned = _kernel_model(graph, model, X) if model.approximation is None else _approximation(graph, model, X)
        threshold = getattr(model, "threshold_", 0.0)
        return graph("Sub", untuned, threshold) if np.any(threshold) else untuned
    if isinstance(model, BinaryRelevance) and model.estimator is None:
        scores = _kernel_model(graph, model, X)
        return graph("Where", graph("Greater", scores, 0.0), 0.5, -0.5) if model.scores == "hard" else scores
    raise _export_error(model)


def _kernel_model(graph: Graph, model: Any, X: Value) -> Value:
    """Add the scores of a linear model, or of a kernel model from the training rows with a coefficient."""
    if isinstance(model.kernel, str) and model.kernel == "linear":
        return _linear_model(graph, model, X)
    operators.check_kernel(model.kernel)
    A = operators.as_double(model.dual_coef_)
    used = np.flatnonzero(A.any(axis=1))
    used = used if len(used) else np.array([0])
    shape = {name: getattr(model, name) for name in ("degree", "coef0") if hasattr(model, name)}
    gamma = getattr(model, "gamma_", model.gamma)
    K = operators.kernel_values(graph, X, operators.as_double(model.X_fit_[used]), model.kernel, gamma, **shape)
    return graph("Gemm", K, A[used], getattr(model, "intercept_", np.zeros(A.shape[1])))


def _linear_model(graph: Graph, model: Any, X: Value) -> Value:
    """Add the scores of a linear model. Sparse weights become dense, because ONNX has no product with them."""
    if has_factors(model):
        return graph("Gemm", graph("MatMul", X, model.feature_factors_), model.label_factors_.T, model.intercept_)
    n_bytes = np.dtype(graph.dtype).itemsize * math.prod(model.coef_.shape)
    if issparse(model.coef_) and n_bytes > LARGEST_GRAPH:
        raise ExportError(
            f"The sparse coef_ {model.coef_.shape} would be dense in an ONNX graph, which may have "
            f"{LARGEST_GRAPH / 1e9:.3g} GB. Got {n_bytes / 1e9:.3g} GB; use rbrl.save, or compress the model with "
            "form='factors'."
        )
    return graph("Gemm", X, as_dense(model.coef_).T, model.intercept_)


def _approximation(graph: Graph, model: ConvexClassifier, X: Value) -> Value:
    """Add the scores of an approximated kernel; a Nyström map is multiplied by the coefficients in advance."""
    steps = [step for _, step in getattr(model.feature_map_, "steps", [("features", model.feature_map_)])]
    for step in steps[:-1]:
        X = operators.transform(graph, step, X)
    feature_map = steps[-1]
    if isinstance(feature_map, Nystroem):
        duals: FloatArray = feature_map.normalization_.T @ model.feature_coef_
        return graph("MatMul", operators.landmark_values(graph, feature_map, X), duals)
    return graph("MatMul", operators.transform(graph, feature_map, X), model.feature_coef_)


def _rank_svm(graph: Graph, model: RankSVM, scores: Value) -> Value:
    """Add the scores of a ranking SVM less the threshold of each row."""
    if model.targets_.n_columns == 1:  # a single label is ranked against its absence
        return graph("MatMul", scores, np.array([[-1.0], [1.0]]))
    rule = RowThreshold(ties_relevant=True)
    rule.coef_ = model.threshold_coef_
    rule.intercept_ = model.threshold_intercept_
    return operators.shift_scores(graph, rule, scores, model.targets_.n_columns)


def _is_calibrated(model: Any) -> bool:
    """Return whether a model is a fitted `CalibratedMultiLabelClassifier`, by its attributes."""
    return all(hasattr(model, name) for name in ("estimator_", "slopes_", "intercepts_", "rule_"))


def _add_probabilities(graph: Graph, model: Any, X: Value) -> Value:
    """Add the probabilities (n_rows, n_columns) of a calibrated model."""
    scores = _add_scores(graph, model.estimator_, X)
    if model.columns_ is not None:
        # Labels that are constant in the training rows have no score; a column of zeros replaces it.
        columns = np.full(model.targets_.n_columns, len(model.columns_))
        columns[model.columns_] = np.arange(len(model.columns_))
        with_zeros = graph("Pad", scores, np.array([0, 0, 0, 1]))
        scores = graph("Gather", with_zeros, columns, axis=1)
    return operators.add_probabilities(graph, model, scores)


def _shift_probabilities(graph: Graph, model: Any, probabilities: Value) -> Value:
    """Add the scores of a calibrated model, which are positive where its rule calls a label relevant."""
    return operators.shift_scores(graph, model.rule_, graph("Sub", probabilities, 0.5), model.targets_.n_columns)


def _export_error(model: Any) -> ExportError:
    """Return the error for a classifier that has no graph."""
    name = type(model).__name__
    if isinstance(model, BinaryRelevance):
        name = f"BinaryRelevance(estimator={model.estimator!r})"
    return ExportError(
        f"{name} cannot be written as an ONNX graph. RBRLClassifier, BRLClassifier, CPNL, the ranking SVMs and "
        "BinaryRelevance with its own base learners can, alone, in a search, with tuned thresholds, calibrated, or at the "
        "end of a pipeline."
    )
