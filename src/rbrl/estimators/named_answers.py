"""Predictions in the names of the labels: sets, best labels and data frames.

The functions also accept a pipeline or a search with a classifier inside.
"""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import wraps
from inspect import isfunction
from types import MethodType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from rbrl._common.bases import FIT_METHODS, BaseEstimator, ClassifierMixin, all_or_nothing
from rbrl._common.checks import check_number
from rbrl._common.frames import CONTAINERS, as_frame, check_container, check_same_rows, label_values
from rbrl._common.typing import Array, ArrayLike, FloatArray, IntArray, LabelNames, MatrixLike
from rbrl.decision import top_labels
from rbrl.metrics import scores_of
from rbrl.targets import SignedTargets, label_matrix

# Methods whose results are in the container that `set_output` chooses.
OUTPUT_METHODS = ("predict", "decision_function", "predict_proba")
# True while one of these methods runs: its calls of other methods, or of a model inside, return arrays.
_INSIDE_CALL: ContextVar[bool] = ContextVar("_INSIDE_CALL", default=False)


class _NoProbabilities:
    """Attribute `predict_proba` of a classifier without probabilities: AttributeError with a solution."""

    def __get__(self, model: object, owner: type) -> Any:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute 'predict_proba': its scores are no probabilities. Fit "
            f"CalibratedMultiLabelClassifier({owner.__name__}()) to have both."
        )


class NamedAnswers(ClassifierMixin, BaseEstimator):
    """Base class of all classifiers of this package: their predictions can use the names of labels.

    `fit` and `partial_fit`, also of subclasses, are :func:`rbrl._common.bases.all_or_nothing`.

    Labels have names if they came in a data frame, as label sets or in a
    :class:`rbrl.datasets.Dataset`, or if the parameter `label_names` is set. A label without a name is
    called by its column number, and a class of a 1-D target by its own value.

    Parameters
    ----------
    label_names : sequence of str, default=None
        Names of all labels, in the order of the columns of y. This is a parameter, and not an argument
        of `fit`, so that clones have it: in a pipeline, in a search, or in a fold without some label.

    Examples
    --------
    >>> from rbrl import RBRLClassifier
    >>> model = RBRLClassifier().fit([[0.0], [1.0], [5.0]], [["cold"], ["cold"], ["hot", "dry"]])
    >>> model.label_names_.tolist()
    ['cold', 'dry', 'hot']
    >>> model.predict_sets([[6.0]])
    [['dry', 'hot']]
    >>> labels, scores = model.predict_top([[6.0], [0.0]], 1)
    >>> labels.tolist()
    [['dry'], ['cold']]
    >>> print(model.set_output(predict="pandas").predict([[6.0]]))
       cold  dry  hot
    0     0    1    1
    """

    # Value for a class without this parameter, and for a model file of an earlier version.
    label_names: LabelNames = None
    label_names_: Array
    targets_: SignedTargets
    if not TYPE_CHECKING:
        predict_proba = _NoProbabilities()

    @property
    def classes_(self) -> Array:
        """Classes of a 1-D target, or numbers of the labels, in the form that scikit-learn reads.

        See :meth:`rbrl.targets.SignedTargets.sklearn_classes`. They replace the `classes_` of a model
        file of an earlier version.
        """
        return self.targets_.sklearn_classes()

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the fit methods of a subclass atomic, and let its predictions use `set_output`.

        Only methods that the subclass defines itself are replaced.
        """
        super().__init_subclass__(**options)
        for name in FIT_METHODS:
            if isfunction(method := vars(cls).get(name)):
                setattr(cls, name, all_or_nothing(method))
        for name in OUTPUT_METHODS:
            if (method := vars(cls).get(name)) is not None:
                setattr(cls, name, _convert_output(method) if isfunction(method) else _ConditionalMethod(method))

    def set_output(self, *, predict: str | None = None) -> Self:
        """Choose the container that `predict`, `decision_function` and `predict_proba` return.

        Clones keep the choice.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"}, default=None
            "default" means arrays, or sparse matrices if y was a sparse matrix. The others mean a data
            frame with a column for each label, and with the index of X if X is a data frame of pandas; in
            place of a 1-D array, a series. None changes nothing.
        """
        if predict is not None:
            # `clone` copies this attribute, in which scikit-learn's own `set_output` stores its choice.
            self._sklearn_output_config = {"predict": check_container(f"{type(self).__name__}.set_output", predict)}
        return self

    def predict_sets(self, X: Any) -> list[list[Any]]:
        """Return the names of the relevant labels of every row, in the order of the columns.

        Parameters
        ----------
        X : rows in a form that `predict` accepts

        Returns
        -------
        list of lists
            Names of the labels; column numbers if the labels have no names; the class, for a 1-D target.

        Examples
        --------
        >>> import numpy as np
        >>> from rbrl import RBRLClassifier
        >>> X, Y = np.eye(4), [["sea"], ["sea", "beach"], ["hill"], ["hill"]]
        >>> model = RBRLClassifier(ridge=0.1).fit(X, Y)
        >>> model.predict_sets(X[1:3])
        [['beach', 'sea'], ['hill']]
        """
        return predict_sets(self, X)

    def predict_top(self, X: Any, k: int) -> tuple[Array, FloatArray]:
        """Return the k best labels of every row, the best label first.

        Labels with equal scores are in the order of their columns. The scores are computed block by
        block, because the matrix of all scores may not fit into memory.

        Parameters
        ----------
        X : rows in a form that `predict` accepts
        k : int, from 1 to the number of labels

        Returns
        -------
        labels : array (n_samples, k)
            Names of the labels; column numbers if the labels have no names; classes of a 1-D target.
        scores : array (n_samples, k)
            Scores; probabilities of a :class:`rbrl.CalibratedMultiLabelClassifier`.

        Examples
        --------
        >>> import numpy as np
        >>> from rbrl import RBRLClassifier
        >>> X, Y = np.eye(4), [["sea"], ["sea", "beach"], ["hill"], ["hill"]]
        >>> model = RBRLClassifier(ridge=0.1).fit(X, Y)
        >>> names, scores = model.predict_top(X[1:3], 2)
        >>> names.shape, str(names[1, 0]), bool((scores[:, 0] >= scores[:, 1]).all())
        ((2, 2), 'hill', True)
        """
        check_is_fitted(self)
        check_number(type(self).__name__ + ".predict_top", "k", k, low=1, integer=True)
        if self.targets_.kind == "binary":
            raise ValueError("predict_top needs a score for each label or class. Got a binary 1-D target; use predict.")
        labels, scores = zip(*self._best_labels(X, k))
        return _name_columns(self, self.targets_.n_columns)[np.vstack(labels)], np.vstack(scores)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose labels, or whose class, are predicted exactly.

        Parameters
        ----------
        X : rows in a form that `predict` accepts
        y : labels in a form that `fit` accepts, or label sets
        sample_weight : array (n_samples,), default=None
        """
        check_same_rows(X=X, y=y, sample_weight=sample_weight)
        truth, _ = label_matrix(y, label_names(self))
        model: Any = self
        values = label_values(truth).values, label_values(model.predict(X)).values
        if any(map(sparse.issparse, values)):  # scikit-learn accepts only 0/1 in sparse matrices
            values = sparse.csr_array(values[0] > 0), sparse.csr_array(values[1] > 0)
        return float(accuracy_score(*values, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a classifier of label matrices; its base learner or kernel counts."""
        tags = super().__sklearn_tags__()
        learner = getattr(self, "estimator", None)
        tags.input_tags.sparse = learner is None or get_tags(learner).input_tags.sparse
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def _best_labels(self, X: Any, k: int) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the columns and the scores of the k best labels of one block of rows after the other."""
        yield from (top_labels(scores, k) for scores in self._score_blocks(X))

    def _score_blocks(self, X: Any) -> Iterator[FloatArray]:
        """Yield the scores of one block of rows after the other: (n_rows, n_columns).

        The default is one block. X is in any form that `predict` accepts.
        """
        model: Any = self
        yield scores_of(model, X)


def _convert_output(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with its result in the container of `set_output`, if a user calls it.

    `method` takes X first and returns an array or a sparse matrix. A call inside another one of
    `OUTPUT_METHODS`, of any model, returns the array itself.
    """

    @wraps(method)
    def call(self: NamedAnswers, X: Any, *args: Any, **options: Any) -> Any:
        if _INSIDE_CALL.get():
            return method(self, X, *args, **options)
        token = _INSIDE_CALL.set(True)
        try:
            result = method(self, X, *args, **options)
        finally:
            _INSIDE_CALL.reset(token)
        container = getattr(self, "_sklearn_output_config", {}).get("predict", CONTAINERS[0])
        if container == CONTAINERS[0]:
            return result
        names = _name_columns(self, result.shape[1]).tolist() if result.ndim == 2 else []
        return as_frame(result, names, container, X)

    return call


class _ConditionalMethod:
    """A method of scikit-learn's `available_if`, with its result in the container of `set_output`."""

    def __init__(self, method: Any) -> None:
        self._method = method
        self.__name__ = method.fn.__name__
        self.__doc__ = method.__doc__

    def __get__(self, model: NamedAnswers | None, owner: type) -> Any:
        try:
            bound = self._method.__get__(model, owner)
        except AttributeError:
            if self.__name__ == "predict_proba":
                _NoProbabilities().__get__(model, owner)
            raise
        return bound if model is None else MethodType(_convert_output(bound.__func__), model)


# Attributes of a meta-estimator that hold the model inside it, fitted and not fitted.
FITTED = ("best_estimator_", "estimator_")
NOT_FITTED = ("estimator",)


def iterate_parts(model: Any, inside: tuple[str, ...] = FITTED) -> Iterator[Any]:
    """Yield a model and the models inside it, one inside the other, the outermost first.

    The names of labels and the columns of features may belong to any of them. The model inside is the
    last step of a pipeline, the best estimator of a search, and so on.

    Parameters
    ----------
    model : classifier
    inside : tuple of str
        Names of the attributes that may hold a model: FITTED or NOT_FITTED.
    """
    while model is not None:
        yield model
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            attributes = getattr(model, "__dict__", {})
            model = next((attributes[name] for name in inside if name in attributes), None)


def label_names(model: Any) -> list[str] | None:
    """Return the names of the labels that a model was fitted with.

    Parameters
    ----------
    model : fitted classifier; or a pipeline, or a search such as scikit-learn's `GridSearchCV`, with one inside

    Returns
    -------
    list of str, or None if the labels had no names

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rbrl import BRLClassifier, label_names
    >>> pipeline = make_pipeline(StandardScaler(), BRLClassifier(label_names=["sea", "sun"]))
    >>> label_names(pipeline.fit([[0.0], [1.0]], [[0, 1], [1, 0]]))
    ['sea', 'sun']
    """
    known = (getattr(part, "label_names_", None) for part in iterate_parts(model))
    names = next((names for names in known if names is not None), None)
    return None if names is None else [str(name) for name in names]


def find_label_names_parameter(model: Any) -> LabelNames:
    """Return the parameter `label_names` of a classifier, pipeline or search that is not fitted.

    It is the first one that is set, of the model or a model inside it.
    """
    given = (getattr(part, "label_names", None) for part in iterate_parts(model, NOT_FITTED))
    return next((names for names in given if names is not None), None)


def set_label_names(estimator: Any, names: Sequence[str] | None) -> Any:
    """Set the parameter `label_names` of the classifier inside an estimator that is not yet fitted.

    Parameters
    ----------
    estimator : classifier or pipeline, not fitted
        Clone that the caller owns; it is changed.
    names : sequence of str or None
    """
    named = next((part for part in iterate_parts(estimator, NOT_FITTED) if isinstance(part, NamedAnswers)), None)
    if named is not None and names is not None:
        named.label_names = list(names)
    return estimator


def predict_sets(model: Any, X: MatrixLike) -> list[list[Any]]:
    """Return the names of the relevant labels of every row, in the order of the columns.

    Unlike the method, the function also accepts pipelines and the searches of scikit-learn.

    Parameters
    ----------
    model : fitted classifier; or a pipeline, or a search such as scikit-learn's `GridSearchCV`, with one inside
    X : rows in a form that its `predict` accepts

    Returns
    -------
    list of lists
        Names of the labels; column numbers if the labels have no names; the class, for a 1-D target.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rbrl import RBRLClassifier, predict_sets
    >>> pipeline = make_pipeline(StandardScaler(), RBRLClassifier())
    >>> predict_sets(pipeline.fit([[0.0], [1.0], [5.0]], [["cold"], ["cold"], ["hot", "dry"]]), [[6.0]])
    [['dry', 'hot']]
    """
    labels: Any = model.predict(X)
    if not sparse.issparse(labels):
        labels = np.asarray(labels)
        if labels.ndim == 1:
            return [[label] for label in labels.tolist()]
    relevant = sparse.csr_array(label_values(labels).values > 0)
    relevant.sort_indices()
    names = _name_columns(model, relevant.shape[1])[relevant.indices].tolist()
    return [names[start:end] for start, end in zip(relevant.indptr, relevant.indptr[1:])]


def predict_top(model: Any, X: MatrixLike, k: int) -> tuple[Array, FloatArray]:
    """Return the k best labels of every row, the best label first, and their scores.

    Labels with equal scores are in the order of their columns. Unlike the method, the function also
    accepts pipelines and the searches of scikit-learn.

    Parameters
    ----------
    model : fitted classifier; or a pipeline, or a search such as scikit-learn's `GridSearchCV`, with one inside
    X : rows in a form that its `predict` accepts
    k : int, from 1 to the number of labels

    Returns
    -------
    labels : array (n_samples, k)
        Names of the labels; column numbers if the labels have no names; classes of a 1-D target.
    scores : array (n_samples, k)
        Results of `decision_function`, or of `predict_proba` if the model is calibrated or has no
        `decision_function`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rbrl import RBRLClassifier, predict_top
    >>> pipeline = make_pipeline(StandardScaler(), RBRLClassifier())
    >>> pipeline = pipeline.fit([[0.0], [1.0], [5.0]], [["cold"], ["cold", "dry"], ["hot", "dry"]])
    >>> labels, scores = predict_top(pipeline, [[6.0]], 2)
    >>> labels.tolist(), bool(scores[0, 0] > scores[0, 1])
    ([['dry', 'hot']], True)
    """
    if hasattr(model, "predict_top"):
        return model.predict_top(X, k)
    if hasattr(model, "steps"):
        return predict_top(model[-1], model[:-1].transform(X) if len(model) > 1 else X, k)
    if hasattr(model, "best_estimator_"):
        return predict_top(model.best_estimator_, X, k)
    check_number("predict_top", "k", k, low=1, integer=True)
    scores = scores_of(model, X)
    labels, best = top_labels(scores, k)
    return _name_columns(model, scores.shape[1])[labels], best


def _name_columns(model: Any, n_columns: int) -> Array:
    """Return names of the columns of a result: label names, or classes, or else column numbers."""
    for names in (label_names(model), getattr(model, "classes_", None)):
        if names is not None and np.ndim(names) == 1 and len(names) == n_columns:
            return np.asarray(names)
    return np.arange(n_columns)
