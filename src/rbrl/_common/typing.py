"""Types that signatures share: arrays, and what users may give as features or labels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

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
# Names of labels as a user may give them, or none.
LabelNames: TypeAlias = Sequence[str] | NDArray[np.str_] | None

if TYPE_CHECKING:

    def issparse(X: object) -> TypeGuard[sparse.csr_array]:
        """SciPy's, of which mypy learns that what is not sparse is an array."""

else:
    from scipy.sparse import issparse

__all__ = [
    "Array", "ArrayLike", "BoolArray", "FloatArray", "IntArray", "LabelNames", "Matrix",
    "MatrixLike", "issparse",
]  # fmt: skip
