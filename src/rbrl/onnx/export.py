"""From a fitted model or pipeline to an ONNX graph: its scores, thresholds and labels."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rbrl._common.checks import check_choice
from rbrl._common.typing import FloatArray
from rbrl.decision import RowThreshold
from rbrl.estimators import BinaryRelevance, label_names
from rbrl.estimators.convex import ObjectiveClassifier
from rbrl.exceptions import ExportError
from rbrl.onnx.decisions import labels, of_classes, probabilities, shifted
from rbrl.onnx.features import check_kernel, dense, kernel_values, landmark_values, transformed
from rbrl.onnx.graph import Graph, Value
from rbrl.ranking_svm import RankSVM
from rbrl.ranking_svm.estimators import PairSVM

if TYPE_CHECKING:
    from onnx import ModelProto

DTYPES = ("float64", "float32")


def to_onnx(model: Any, *, dtype: str = "float64") -> "ModelProto":
    """A fitted model, or a pipeline that ends in one, as an ONNX graph: features in, labels and scores out.

    The graph has one input, ``X`` (n_rows, n_features), and the outputs ``labels``, what `predict` answers, in the coding
    and type that `fit` received (a dense matrix, where the labels were sparse), and ``scores``, what `decision_function`
    does; that of a calibrated model has ``probabilities`` too. Thresholds and the rule `non_empty` are in it. It checks
    nothing: NaN in X has no meaning.

    Parameters
    ----------
    model : fitted classifier or pipeline
        RBRLClassifier, BRLClassifier, CPNL, RankSVM, RankSVMz, CalibratedRankSVM and BinaryRelevance with its own base
        learners, linear or with the kernel "rbf" or "poly", exact or approximated; RBRLClassifierCV and other searches with
        `best_estimator_`; TunedThresholdClassifier and CalibratedMultiLabelClassifier around one of these. Steps of a
        pipeline: scalers, Normalizer, TfidfTransformer, PCA, TruncatedSVD, kernel approximations, selections of columns.
        Everything else is refused by name.
    dtype : {"float64", "float32"}, default="float64"
        Of X, of the arithmetic and of the scores. In double precision labels are those of `predict`; in single precision
        the file is half as large and scores have six digits, fewer where a kernel model has large coefficients.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(graph, path)`` writes it. Its metadata hold the class of the model and the names of labels and
        features, where it knows them, as JSON.

    Raises
    ------
    ExportError
        For what cannot be written as a graph.

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
    check_choice("to_onnx", "dtype", dtype, DTYPES)
    check_is_fitted(model)
    graph = Graph(getattr(model, "n_features_in_", None), dtype)
    last, X = _last_step(graph, model, graph.X)
    if not hasattr(last, "targets_"):
        raise _refusal(last)
    _write_answers(graph, last, X)
    names = {
        "label_names": label_names(model),
        "feature_names": getattr(model, "feature_names_in_", None),
    }
    known = {key: list(map(str, found)) for key, found in names.items() if found is not None}
    return graph.model(model=type(last).__name__, **known)


def _last_step(graph: Graph, model: Any, X: Value) -> tuple[Any, Value]:
    """The classifier at the end of pipelines and searches, and the rows that it sees."""
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        if isinstance(model, Pipeline):
            model, X = model.steps[-1][1], transformed(graph, model[:-1], X)
        else:
            model = model.best_estimator_
    return model, X


def _write_answers(graph: Graph, model: Any, X: Value) -> None:
    """The outputs of a classifier, in the shapes that its methods answer in."""
    targets, found = model.targets_, None
    if _is_calibrated(model):
        found = _probabilities(graph, model, X)
        scores = _less_half(graph, model, found)
    else:
        scores = _scores(graph, model, X)
    answers = labels(graph, targets, scores, bool(getattr(model, "non_empty_", False)))
    one, matrix = ("rows",), ("rows", targets.n_columns)
    if targets.is_matrix:
        graph.output("labels", answers, targets.dtype, matrix)
    else:
        graph.output("labels", answers, targets.classes_.dtype, one)
    if targets.kind == "binary":
        graph.output("scores", graph("Squeeze", scores, np.array([1])), graph.dtype, one)
    else:
        graph.output("scores", scores, graph.dtype, matrix)
    if found is not None:
        n_columns = targets.n_columns if targets.is_matrix else len(targets.classes_)
        graph.output("probabilities", of_classes(graph, targets, found), graph.dtype, ("rows", n_columns))


def _scores(graph: Graph, model: Any, X: Value) -> Value:
    """Scores of a fitted classifier: (n_rows, n_columns)."""
    model, X = _last_step(graph, model, X)
    if _is_calibrated(model):
        return _less_half(graph, model, _probabilities(graph, model, X))
    if hasattr(model, "rule_") and hasattr(model, "estimator_"):
        return shifted(graph, model.rule_, _scores(graph, model.estimator_, X), model.targets_.n_columns)
    if isinstance(model, RankSVM):
        return _rank_svm(graph, model, X)
    if isinstance(model, PairSVM):
        return _kernel_model(graph, model, X)
    if isinstance(model, ObjectiveClassifier):
        untuned = _kernel_model(graph, model, X) if model.approximation is None else _approximation(graph, model, X)
        threshold = getattr(model, "threshold_", 0.0)
        return graph("Sub", untuned, threshold) if np.any(threshold) else untuned
    if isinstance(model, BinaryRelevance) and model.estimator is None:
        scores = _kernel_model(graph, model, X)
        return graph("Where", graph("Greater", scores, 0.0), 0.5, -0.5) if model.scores == "hard" else scores
    raise _refusal(model)


def _kernel_model(graph: Graph, model: Any, X: Value) -> Value:
    """Scores by weights of features, or by kernel values with those training rows that have a coefficient."""
    if isinstance(model.kernel, str) and model.kernel == "linear":
        return graph("Gemm", X, model.coef_.T, model.intercept_)
    check_kernel(model.kernel)
    A = dense(model.dual_coef_)
    used = np.flatnonzero(A.any(axis=1))
    used = used if len(used) else np.array([0])
    shape = {name: getattr(model, name) for name in ("degree", "coef0") if hasattr(model, name)}
    gamma = getattr(model, "gamma_", model.gamma)
    K = kernel_values(graph, X, dense(model.X_fit_[used]), model.kernel, gamma, **shape)
    return graph("Gemm", K, A[used], getattr(model, "intercept_", np.zeros(A.shape[1])))


def _approximation(graph: Graph, model: ObjectiveClassifier, X: Value) -> Value:
    """Scores by features that come near a kernel; a Nyström map is one product with the coefficients."""
    *before, features = getattr(model.feature_map_, "steps", [("features", model.feature_map_)])
    for _, step in before:
        X = transformed(graph, step, X)
    if isinstance(features[1], Nystroem):
        duals: FloatArray = features[1].normalization_.T @ model.feature_coef_
        return graph("MatMul", landmark_values(graph, features[1], X), duals)
    return graph("MatMul", transformed(graph, features[1], X), model.feature_coef_)


def _rank_svm(graph: Graph, model: RankSVM, X: Value) -> Value:
    scores = _kernel_model(graph, model, X)
    if model.targets_.n_columns == 1:  # one label, ranked against its absence
        return graph("MatMul", scores, np.array([[-1.0], [1.0]]))
    rule = RowThreshold(ties_relevant=True)
    rule.coef_, rule.intercept_ = model.threshold_coef_, model.threshold_intercept_
    return shifted(graph, rule, scores, model.targets_.n_columns)


def _is_calibrated(model: Any) -> bool:
    return all(hasattr(model, name) for name in ("estimator_", "slopes_", "intercepts_", "rule_"))


def _probabilities(graph: Graph, model: Any, X: Value) -> Value:
    """Probabilities (n_rows, n_columns) of a calibrated model."""
    scores = _scores(graph, model.estimator_, X)
    if model.columns_ is not None:
        # Labels that were constant have no score, and need none: 0 stands in for it.
        place = np.full(model.targets_.n_columns, len(model.columns_))
        place[model.columns_] = np.arange(len(model.columns_))
        with_zeros = graph("Pad", scores, np.array([0, 0, 0, 1]))
        scores = graph("Gather", with_zeros, place, axis=1)
    return probabilities(graph, model, scores)


def _less_half(graph: Graph, model: Any, found: Value) -> Value:
    return shifted(graph, model.rule_, graph("Sub", found, 0.5), model.targets_.n_columns)


def _refusal(model: Any) -> ExportError:
    what = type(model).__name__
    if isinstance(model, BinaryRelevance):
        what = f"BinaryRelevance(estimator={model.estimator!r})"
    return ExportError(
        f"{what} cannot be written as an ONNX graph. RBRLClassifier, BRLClassifier, CPNL, the ranking SVMs and "
        "BinaryRelevance with its own base learners can, alone, in a search, with tuned thresholds, calibrated, or at the "
        "end of a pipeline."
    )
