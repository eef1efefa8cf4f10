"""Types of arrays, and of the features and labels that users may pass."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
BoolArray: TypeAlias = NDArray[np.bool_]
# Features or labels as users may pass them. Data frames have `__array__` and are array-like.
MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
# Checked matrix: dense, or in compressed sparse rows.
Matrix: TypeAlias = FloatArray | sparse.csr_array | sparse.csr_matrix
# Names of labels as users may pass them, or None.
LabelNames: TypeAlias = Sequence[str] | NDArray[np.str_] | None

if TYPE_CHECKING:

    def issparse(X: object) -> TypeGuard[sparse.csr_array]:
        """Function of SciPy, with a type from which mypy learns that other matrices are arrays."""

else:
    from scipy.sparse import issparse as issparse
