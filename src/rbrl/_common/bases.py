"""Base classes of the estimators: scikit-learn's classes with types, and an atomic `fit`.

They have a module of their own, so that a module that only needs arrays does not import scikit-learn.
"""

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from rbrl._common.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    # scikit-learn has no types. If its classes were the bases, every attribute would have the type
    # Any, and mypy would not find a misspelt attribute.
    class BaseEstimator:
        """Methods that the estimators inherit from scikit-learn."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """Methods that the classifiers inherit from scikit-learn."""

        def score(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> float: ...

else:
    from sklearn.base import BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin

Method = TypeVar("Method", bound=Callable[..., Any])
# Methods that set the fitted attributes of an estimator.
FIT_METHODS = ("fit", "partial_fit")


def all_or_nothing(method: Method) -> Method:
    """Make a method such as `fit` set all attributes together at its end, or none if it fails.

    The method works on a shallow copy of the estimator. When the method returns, the attributes of the
    estimator are replaced in one assignment. If the method raises an exception, KeyboardInterrupt
    included, the estimator does not change. Parameters that are set during the fit are kept.

    Another thread may predict with the estimator during the fit. It uses the old model before the
    assignment and the new model after it. Only a prediction that is running at the moment of the
    assignment may read attributes of both models. A callback of the fit receives the copy.

    The method must replace the values of old attributes and never change them in place.

    Parameters
    ----------
    method : function
        Method of an estimator, such as `fit`.

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
    def fit_copy(self: Any, *args: Any, **options: Any) -> Any:
        before = vars(self).copy()
        copy = object.__new__(type(self))
        vars(copy).update(before)
        result = method(copy, *args, **options)
        after = vars(copy)
        kept = {k: v for k, v in vars(self).items() if k in after or k not in before}
        changed = {k: v for k, v in after.items() if k not in before or v is not before[k]}
        self.__dict__ = kept | changed
        return self if result is copy else result

    return cast(Method, fit_copy)


class Estimator(BaseEstimator):
    """Estimator whose `fit` and `partial_fit`, also in subclasses, are :func:`all_or_nothing`.

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
        """Make the fit methods that a subclass defines itself atomic."""
        super().__init_subclass__(**options)
        for name in FIT_METHODS:
            method = vars(cls).get(name)
            if isfunction(method):
                setattr(cls, name, all_or_nothing(method))
