"""The base classes of our estimators: scikit-learn's, as mypy sees them, and a `fit` that succeeds as a whole or not at all.

They are apart, so that a module that needs arrays only does not wait for scikit-learn.
"""

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from rbrl._common.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    # scikit-learn has no types: with its own classes as bases every attribute would be Any, a misspelt one too.
    class BaseEstimator:
        """What our estimators inherit from scikit-learn."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """What our classifiers inherit from scikit-learn."""

        def score(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> float: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "Estimator", "all_or_nothing"]

Method = TypeVar("Method", bound=Callable[..., Any])
# The methods of an estimator that learn.
LEARNING = ("fit", "partial_fit")


def all_or_nothing(method: Method) -> Method:
    """Let a method that learns set all attributes together at its end, or none.

    The method works on a copy of the estimator, which shares the values of the attributes. Only a method that returns
    replaces the attributes of the estimator, in one assignment. After an exception, KeyboardInterrupt included, the
    estimator is as it was. Parameters that are set on the estimator in the meantime are kept.

    Another thread may predict with the estimator meanwhile. It sees the old model until the assignment and the new model
    after it; only a prediction that is under way at the moment of the assignment may read attributes of both. A callback
    of the fit sees the copy.

    The method must not change the values of old attributes in place: it replaces them.

    Parameters
    ----------
    method : function
        Method of an estimator, such as `fit`.

    Returns
    -------
    function

    Examples
    --------
    >>> class Mean:
    ...     @all_or_nothing
    ...     def fit(self, values):
    ...         self.n_ = len(values)
    ...         self.mean_ = sum(values) / self.n_
    ...         return self
    >>> model = Mean().fit([1.0, 3.0])
    >>> try:
    ...     model.fit([])
    ... except ZeroDivisionError:
    ...     print(model.n_, model.mean_)
    2 2.0
    """

    @wraps(method)
    def learn(self: Any, *args: Any, **options: Any) -> Any:
        before = vars(self).copy()
        learner = object.__new__(type(self))
        vars(learner).update(before)
        answer = method(learner, *args, **options)
        learned = vars(learner)
        kept = {name: value for name, value in vars(self).items() if name in learned or name not in before}
        changed = {name: value for name, value in learned.items() if name not in before or value is not before[name]}
        self.__dict__ = kept | changed
        return self if answer is learner else answer

    return cast(Method, learn)


class Estimator(BaseEstimator):
    """An estimator whose `fit` and `partial_fit`, and those of its subclasses, are :func:`all_or_nothing`.

    Examples
    --------
    >>> class Largest(Estimator):
    ...     def fit(self, values):
    ...         self.n_ = len(values)
    ...         self.largest_ = max(values)
    ...         return self
    >>> model = Largest()
    >>> try:
    ...     model.fit([])
    ... except ValueError:
    ...     print(hasattr(model, "n_"))
    False
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in LEARNING:
            method = vars(cls).get(name)
            if isfunction(method):
                setattr(cls, name, all_or_nothing(method))
