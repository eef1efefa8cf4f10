"""scikit-learn's base classes, as mypy sees them; apart, so that what needs arrays only does not wait for scikit-learn."""

from typing import TYPE_CHECKING, Any, Self

from rbrl._common.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    # scikit-learn has no types: with its own classes as bases every attribute would be Any, a misspelt one too.
    class BaseEstimator:
        """What our estimators inherit from scikit-learn."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """What our classifiers inherit from scikit-learn."""

        def score(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> float: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["BaseEstimator", "ClassifierMixin"]
