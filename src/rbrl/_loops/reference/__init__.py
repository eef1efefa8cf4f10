"""The loops in plain NumPy: the definition that the compiled ones are tested against."""

from rbrl._loops.reference.algebra import (
    block_solve,
    clipped_dual_maximum,
    column_dots,
    memory_backward,
    memory_forward,
)
from rbrl._loops.reference.hinge import (
    squared_hinge,
    squared_hinge_diagonal,
    squared_hinge_labels,
    squared_hinge_line,
    squared_hinge_product,
)
from rbrl._loops.reference.pairwise import (
    pairwise_hinge,
    pairwise_hinge_diagonal,
    pairwise_hinge_labels,
    pairwise_hinge_line,
    pairwise_hinge_product,
)
from rbrl._loops.reference.sparse import sparse_adjoint, sparse_product

__all__ = [
    "block_solve",
    "clipped_dual_maximum",
    "column_dots",
    "memory_backward",
    "memory_forward",
    "pairwise_hinge",
    "pairwise_hinge_diagonal",
    "pairwise_hinge_labels",
    "pairwise_hinge_line",
    "pairwise_hinge_product",
    "sparse_adjoint",
    "sparse_product",
    "squared_hinge",
    "squared_hinge_diagonal",
    "squared_hinge_labels",
    "squared_hinge_line",
    "squared_hinge_product",
]
