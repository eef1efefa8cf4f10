"""Answers in the names of the labels: sets, best labels and data frames, of a model, a pipeline or a search."""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import wraps
from inspect import isfunction
from types import MethodType
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from rbrl._common.bases import ClassifierMixin
from rbrl._common.checks import check_number
from rbrl._common.frames import CONTAINERS, as_frame, check_container, check_same_rows, label_values
from rbrl._common.typing import Array, ArrayLike, FloatArray, LabelNames, MatrixLike
from rbrl.decision import top_labels
from rbrl.metrics import scores_of
from rbrl.targets import SignedTargets, label_matrix

# Methods whose answers come in the container that `set_output` names.
ANSWERS = ("predict", "decision_function", "predict_proba")
# Whether a method of ANSWERS is at work: what it asks of itself or of a model inside comes in arrays.
_AT_WORK: ContextVar[bool] = ContextVar("_AT_WORK", default=False)


class NamedAnswers(ClassifierMixin):
    """A classifier that answers in the names of its labels; every classifier of this package is one.

    Labels have names if they came in a data frame, as label sets or in a :class:`rbrl.datasets.Dataset`, or if the
    parameter `label_names` has them. Those without names go by their column, and the classes of a 1-D target by themselves.

    Parameters
    ----------
    label_names : sequence of str, default=None
        Names of all labels, in the order of the columns of y. It is a parameter, and no argument of `fit`, so that clones
        know it: in a pipeline, a search or a fold that lacks some label.

    Attributes
    ----------
    label_names_ : array (n_labels,) of str, if the labels have names
    targets_ : SignedTargets
        Coding of the labels.
    classes_ : array (n_classes,), (n_labels,) or (n_labels, 2)
        Classes in the form that scikit-learn reads; see :meth:`rbrl.targets.SignedTargets.sklearn_classes`.

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

    # Also what a class without this parameter has, and a model of a file from before it.
    label_names: LabelNames = None
    label_names_: Array
    targets_: SignedTargets

    @property
    def classes_(self) -> Array:
        """Classes of a 1-D target, or what scikit-learn needs to know of labels.

        See :meth:`rbrl.targets.SignedTargets.sklearn_classes`. A model of a file that stores other `classes_` has these.
        """
        return self.targets_.sklearn_classes()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ANSWERS:
            if (method := vars(cls).get(name)) is not None:
                setattr(cls, name, _in_container(method) if isfunction(method) else _WhereAvailable(method))

    def set_output(self, *, predict: str | None = None) -> Self:
        """Choose what `predict`, `decision_function` and `predict_proba` answer in; clones remember it.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"}, default=None
            "default": arrays, or sparse matrices where y was one. The others: a data frame with a column for each label,
            by name, and with the index of X if that is a frame of pandas; a series where an array would be 1-D. None
            changes nothing.

        Returns
        -------
        self
        """
        if predict is not None:
            # scikit-learn's name for what its own `set_output` chose: `clone` copies it.
            self._sklearn_output_config = {"predict": check_container(f"{type(self).__name__}.set_output", predict)}
        return self

    def predict_sets(self, X: Any) -> list[list[Any]]:
        """The labels of every row, by name, in the order of the columns.

        Parameters
        ----------
        X : as for `predict`

        Returns
        -------
        list of lists
            Of names; of columns where labels have no names; of the one class for a 1-D target.

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
        """The k best labels of every row, best first, of equal ones the first.

        Made block by block: the matrix of all scores, which is large where labels are many, is never held.

        Parameters
        ----------
        X : as for `predict`
        k : int

        Returns
        -------
        labels : array (n_samples, k)
            Names; columns where labels have no names, and the classes of a 1-D target.
        scores : array (n_samples, k)

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
        labels, scores = zip(*(top_labels(scores, k) for scores in self._score_blocks(X)))
        return _called(self, self.targets_.n_columns)[np.vstack(labels)], np.vstack(scores)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows whose labels, or class, are predicted exactly.

        Parameters
        ----------
        X : as for `predict`
        y : as for `fit`, label sets too
        sample_weight : array (n_samples,), default=None

        Returns
        -------
        float
        """
        check_same_rows(X=X, y=y, sample_weight=sample_weight)
        truth, _ = label_matrix(y, label_names(self))
        model: Any = self
        values = label_values(truth).values, label_values(model.predict(X)).values
        if any(map(sparse.issparse, values)):  # of which scikit-learn takes 0/1 alone
            values = sparse.csr_array(values[0] > 0), sparse.csr_array(values[1] > 0)
        return float(accuracy_score(*values, sample_weight=sample_weight))

    def _score_blocks(self, X: Any) -> Iterator[FloatArray]:
        """Scores of some rows at a time, (n_rows, n_columns)."""
        model: Any = self
        yield scores_of(model, X)


def _in_container(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with its answer in what `set_output` chose, if it is the user who asks."""

    @wraps(method)
    def answer(self: NamedAnswers, X: Any, *args: Any, **options: Any) -> Any:
        if _AT_WORK.get():
            return method(self, X, *args, **options)
        token = _AT_WORK.set(True)
        try:
            found = method(self, X, *args, **options)
        finally:
            _AT_WORK.reset(token)
        container = getattr(self, "_sklearn_output_config", {}).get("predict", CONTAINERS[0])
        if container == CONTAINERS[0]:
            return found
        return as_frame(found, _called(self, found.shape[1]).tolist() if found.ndim == 2 else [], container, X)

    return answer


class _WhereAvailable:
    """The same for a method that is there under a condition, as scikit-learn's `available_if` makes them."""

    def __init__(self, method: Any) -> None:
        self._method, self.__doc__ = method, method.__doc__

    def __get__(self, model: NamedAnswers | None, owner: type) -> Any:
        found = self._method.__get__(model, owner)
        return found if model is None else MethodType(_in_container(found.__func__), model)


# Where a meta-estimator keeps the model that it hands its rows to: fitted, and not yet.
FITTED = ("best_estimator_", "estimator_")
NOT_FITTED = ("estimator",)


def parts_of(model: Any, inside: tuple[str, ...] = FITTED) -> Iterator[Any]:
    """A model and what it hands its rows on to: the last step of a pipeline, the best estimator of a search, and so on.

    Parameters
    ----------
    model : classifier
    inside : tuple of str
        The attributes that hold such a thing: FITTED or NOT_FITTED.

    Yields
    ------
    estimators
    """
    while model is not None:
        yield model
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            own = getattr(model, "__dict__", {})
            model = next((own[name] for name in inside if name in own), None)


def label_names(model: Any) -> list[str] | None:
    """The names of the labels that a model was fitted with.

    Parameters
    ----------
    model : fitted classifier; or a pipeline, or a search such as scikit-learn's `GridSearchCV`, with one inside

    Returns
    -------
    list of str, or None if they had none

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rbrl import BRLClassifier, label_names
    >>> pipeline = make_pipeline(StandardScaler(), BRLClassifier(label_names=["sea", "sun"]))
    >>> label_names(pipeline.fit([[0.0], [1.0]], [[0, 1], [1, 0]]))
    ['sea', 'sun']
    """
    known = (getattr(part, "label_names_", None) for part in parts_of(model))
    names = next((names for names in known if names is not None), None)
    return None if names is None else [str(name) for name in names]


def given_names(model: Any) -> LabelNames:
    """The parameter `label_names` of a model that is not fitted, or of what is inside it.

    Parameters
    ----------
    model : classifier, pipeline or search

    Returns
    -------
    sequence of str or None
    """
    given = (getattr(part, "label_names", None) for part in parts_of(model, NOT_FITTED))
    return next((names for names in given if names is not None), None)


def hand_on_names(estimator: Any, names: Sequence[str] | None) -> Any:
    """Let the classifier inside an estimator that is about to be fitted know the names of the labels.

    Parameters
    ----------
    estimator : classifier or pipeline, not fitted
        A clone of one's own: its parameter `label_names` is set.
    names : sequence of str or None

    Returns
    -------
    estimator
    """
    named = next((part for part in parts_of(estimator, NOT_FITTED) if isinstance(part, NamedAnswers)), None)
    if named is not None and names is not None:
        named.label_names = list(names)
    return estimator


def predict_sets(model: Any, X: MatrixLike) -> list[list[Any]]:
    """The labels of every row, by name, in the order of the columns.

    Pipelines and scikit-learn's searches have no such method of their own; this serves them as well.

    Parameters
    ----------
    model : fitted classifier; or a pipeline, or a search such as scikit-learn's `GridSearchCV`, with one inside
    X : as its `predict` takes it

    Returns
    -------
    list of lists
        Of names; of columns where labels have no names; of the one class for a 1-D target.

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
    names = _called(model, relevant.shape[1])[relevant.indices].tolist()
    return [names[start:end] for start, end in zip(relevant.indptr, relevant.indptr[1:])]


def predict_top(model: Any, X: MatrixLike, k: int) -> tuple[Array, FloatArray]:
    """The k best labels of every row, best first, of equal ones the first, with their scores.

    Pipelines and scikit-learn's searches have no such method of their own; this serves them as well.

    Parameters
    ----------
    model : fitted classifier; or a pipeline, or a search such as scikit-learn's `GridSearchCV`, with one inside
    X : as its `predict` takes it
    k : int

    Returns
    -------
    labels : array (n_samples, k)
        Names; columns where labels have no names, and the classes of a 1-D target.
    scores : array (n_samples, k)
        Of its `decision_function`, or else of its `predict_proba`.

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
    return _called(model, scores.shape[1])[labels], best


def _called(model: Any, n_columns: int) -> Array:
    """What the columns of an answer are called: names, or else classes, or else numbers."""
    for names in (label_names(model), getattr(model, "classes_", None)):
        if names is not None and np.ndim(names) == 1 and len(names) == n_columns:
            return np.asarray(names)
    return np.arange(n_columns)
