"""Types that signatures share: arrays, what users may give as features or labels, scikit-learn's classes for mypy."""

from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
BoolArray: TypeAlias = NDArray[np.bool_]
# What a user may give where rows of features or labels are asked for; frames have `__array__` and are array-like.
MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
# The same after it was checked: dense, or in compressed sparse rows.
Matrix: TypeAlias = FloatArray | sparse.csr_array | sparse.csr_matrix

if TYPE_CHECKING:

    def issparse(X: object) -> TypeGuard[sparse.csr_array]:
        """SciPy's, of which mypy learns that what is not sparse is an array."""

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
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = [
    "Array", "ArrayLike", "BaseEstimator", "BoolArray", "ClassifierMixin", "FloatArray", "IntArray", "Matrix", "MatrixLike",
    "issparse",
]  # fmt: skip
