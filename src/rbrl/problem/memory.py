"""Estimates of the memory of a fit from the sizes of its data, and the error for a fit that needs too much memory."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.checks import users_level
from rbrl._common.environment import available_bytes
from rbrl._common.matrices import PRODUCT_BLOCK
from rbrl._common.typing import issparse
from rbrl.exceptions import MemoryWarning
from rbrl.problem.design import LARGEST_DECOMPOSITION
from rbrl.problem.kernel import storage_type
from rbrl.problem.linear import DIRECTIONS

BYTES_OF_DOUBLE = 8
# Largest number of entries of R or Z'R that are in memory for the lower bound of a ridge model: 512 MB.
LARGEST_PULL = 2**26
# A fit that needs at most this number of bytes does not ask for the available memory: Python and the libraries that
# this package imports take more.
ALWAYS_AVAILABLE = 2**26
FEWER_ROWS = "use rows in blocks, as in fit(rbrl.datasets.write_shards((X, y), folder)), or fewer labels"
LOW_RANK = "set max_rank, such as max_rank=50"
INDEPENDENT = f"{LOW_RANK}, or fit groups of labels, with ranking=0 and nuclear=0"


class FitSize(NamedTuple):
    """The sizes of the data of a fit.

    Attributes
    ----------
    n_samples, n_features, n_labels : int
    """

    n_samples: int
    n_features: int
    n_labels: int

    def count_bytes(self) -> tuple[int, int]:
        """Return the numbers of bytes of a matrix of scores, and of a matrix of weights with the intercepts."""
        n_bytes = BYTES_OF_DOUBLE * self.n_labels
        return n_bytes * self.n_samples, n_bytes * (self.n_features + 1)


class MemoryNeeds(NamedTuple):
    """The memory of a fit, estimated before it starts.

    Attributes
    ----------
    size : FitSize
    least : int
        Number of bytes that every fit of these sizes holds at one time. With less memory, the fit
        raises an error.
    usual : int
        Number of bytes that a fit of these sizes usually holds. With less memory, the fit warns.
    remedy : str
        Change of the data or the parameters with which the fit needs less memory.
    """

    size: FitSize
    least: int
    usual: int
    remedy: str


def estimate_kernel(size: FitSize, is_decomposed: bool, n_copies: int = 1) -> MemoryNeeds:
    """Estimate the memory of a kernel model.

    Parameters
    ----------
    size : FitSize
    is_decomposed : bool
        Whether the kernel matrix is decomposed. Otherwise its rows are visited.
    n_copies : int, default=1
        Number of arrays of the size of the kernel matrix whose rows are visited.

    Returns
    -------
    MemoryNeeds

    Examples
    --------
    >>> from rbrl.problem.memory import FitSize, estimate_kernel
    >>> estimate_kernel(FitSize(1000, 10, 5), is_decomposed=True).least
    8040000
    """
    scores, _ = size.count_bytes()
    kernel = BYTES_OF_DOUBLE * size.n_samples**2
    remedy = "set approximation='nystroem', or use fewer rows"
    if is_decomposed:
        return MemoryNeeds(size, kernel + scores, 4 * kernel + 10 * scores, remedy)
    is_stored = storage_type(size.n_samples) == np.float64
    return MemoryNeeds(size, scores, (n_copies * kernel if is_stored else 0) + 10 * scores, remedy)


def estimate_feature_map(size: FitSize, n_components: int) -> MemoryNeeds:
    """Estimate the memory of a kernel model whose kernel is approximated by `n_components` features.

    The usual need counts 3 arrays of the size of these features and 10 of the size of the scores.
    """
    features = BYTES_OF_DOUBLE * size.n_samples * min(n_components, size.n_samples)
    scores, _ = size.count_bytes()
    remedy = "set a smaller n_components, or use fewer rows"
    return MemoryNeeds(size, features + scores, 3 * features + 10 * scores, remedy)


def estimate_factors(size: FitSize) -> MemoryNeeds:
    """Estimate the memory of a linear model in factors of a given rank.

    Parameters
    ----------
    size : FitSize

    Returns
    -------
    MemoryNeeds
    """
    scores, weights = size.count_bytes()
    remedy = FEWER_ROWS if size.n_features <= size.n_samples else "use fewer features or labels"
    return MemoryNeeds(size, weights + scores, 6 * weights + 10 * scores, remedy)


class FactorSize(NamedTuple):
    """Sizes on which the memory of a model in factors depends besides the sizes of the data.

    Attributes
    ----------
    rank : int
        Number of columns of each factor.
    n_steps : int
        Number of steps that the solver remembers.
    """

    rank: int
    n_steps: int


def estimate_factors_in_blocks(size: FitSize, X: Any, factors: FactorSize) -> MemoryNeeds:
    """Estimate the memory of a linear model in factors whose scores are computed in blocks of rows.

    Parameters
    ----------
    size : FitSize
    X : array or CSR matrix (n_samples, n_features)
    factors : FactorSize

    Returns
    -------
    MemoryNeeds

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl.problem.memory import FactorSize, FitSize, estimate_factors_in_blocks
    >>> estimate_factors_in_blocks(FitSize(100, 50, 10), np.ones((100, 50)), FactorSize(rank=2, n_steps=5)).least
    2928
    """
    n_columns = size.n_features + 1
    column = BYTES_OF_DOUBLE * factors.rank
    weights = column * (n_columns + size.n_labels)
    # The rows with the column of ones, and the leading directions or the eigenvectors of their columns.
    if issparse(X):
        design = (BYTES_OF_DOUBLE + X.indices.itemsize) * X.nnz + 3 * BYTES_OF_DOUBLE * DIRECTIONS * n_columns
    else:
        n_vectors = min(size.n_samples, n_columns, LARGEST_DECOMPOSITION)
        design = 2 * BYTES_OF_DOUBLE * n_columns * size.n_samples + 4 * BYTES_OF_DOUBLE * n_vectors**2
    # The remembered steps, and the arrays of an iteration.
    steps = (2 * factors.n_steps + 10) * weights + 6 * column * size.n_samples
    blocks = 6 * BYTES_OF_DOUBLE * min(PRODUCT_BLOCK, size.n_samples * size.n_labels)
    # The proof holds R or Z'R for some labels.
    pull = BYTES_OF_DOUBLE * min(LARGEST_PULL, min(size.n_samples, n_columns) * size.n_labels)
    remedy = "set a smaller max_rank, or use fewer features or labels"
    return MemoryNeeds(size, 3 * weights, design + blocks + max(steps, pull + 5 * weights), remedy)


class AscentSize(NamedTuple):
    """Sizes on which the memory of dual ascent depends besides the sizes of the data.

    Attributes
    ----------
    design : int
        Number of bytes of the design, which is a copy of the rows with the column of the intercept.
    n_columns : int
        Number of columns of the design. Empty columns of sparse features are not in it.
    n_grouped : int
        Number of labels that are solved at one time.
    n_copies : int
        Number of arrays of the size of the weights that a pass holds: the weights, and the centres of
        the proximal problems.
    itemsize : int
        Number of bytes of a stored coefficient.
    has_nuclear_norm : bool
    is_compressed : bool
        Whether the coefficients of each group are compressed before the next group is solved.
    """

    design: int
    n_columns: int
    n_grouped: int
    n_copies: int
    itemsize: int
    has_nuclear_norm: bool
    is_compressed: bool = False


def estimate_dual_ascent(size: FitSize, ascent: AscentSize) -> MemoryNeeds:
    """Estimate the memory of a linear model by dual ascent.

    Parameters
    ----------
    size : FitSize
    ascent : AscentSize

    Returns
    -------
    MemoryNeeds

    Examples
    --------
    >>> from rbrl.problem.memory import AscentSize, FitSize, estimate_dual_ascent
    >>> all_labels = AscentSize(16_000, 20, n_grouped=10, n_copies=1, itemsize=8, has_nuclear_norm=False)
    >>> estimate_dual_ascent(FitSize(100, 50, 10), all_labels).least
    25600
    """
    group_bytes = BYTES_OF_DOUBLE * ascent.n_grouped
    scores = group_bytes * size.n_samples
    weights = group_bytes * ascent.n_columns
    coefficients = ascent.itemsize * (size.n_features + 1)
    is_grouped = ascent.n_grouped < size.n_labels
    all_coefficients = coefficients * size.n_labels if is_grouped and not ascent.is_compressed else 0
    fixed = all_coefficients + ascent.design
    least = fixed + scores + weights
    if ascent.has_nuclear_norm:
        # Weights, their gradient and its factors, and the singular values in the proof.
        return MemoryNeeds(size, least, fixed + 7 * weights + 4 * scores, LOW_RANK)
    # First the passes, then the coefficients as they are stored, and at last a proof with Z'R or R.
    stored = coefficients * ascent.n_grouped
    peaks = (
        scores + ascent.n_copies * weights,
        scores + weights + stored,
        scores + stored + min(scores, weights),
    )
    remedy = INDEPENDENT if ascent.n_grouped == size.n_labels else LOW_RANK
    if size.n_features <= size.n_samples:
        remedy = f"{remedy}, or {FEWER_ROWS}"
    return MemoryNeeds(size, least, fixed + max(peaks), remedy)


def estimate_quasi_newton(size: FitSize, X: Any, n_steps: int, largest_blocks: int) -> MemoryNeeds:
    """Estimate the memory of a linear model by the quasi-Newton solver.

    Parameters
    ----------
    size : FitSize
    X : array or CSR matrix (n_samples, n_features)
    n_steps : int
        Number of steps that the solver remembers.
    largest_blocks : int
        Largest number of entries of the square matrices, one for each label, that Newton's direction stores; 0 if
        the solver is not likely to take this direction.

    Returns
    -------
    MemoryNeeds
    """
    n = size.n_samples
    m = size.n_features
    scores, weights = size.count_bytes()
    remedy = FEWER_ROWS if m <= n else LOW_RANK
    if min(n, m) > LARGEST_DECOMPOSITION:
        return MemoryNeeds(size, 5 * weights + scores, 22 * weights + 10 * scores, remedy)
    square = BYTES_OF_DOUBLE * min(n, m) ** 2
    # The remembered steps, and for Newton's direction a square matrix for each label.
    steps = 2 * n_steps * BYTES_OF_DOUBLE * min(n, m) * size.n_labels
    if size.n_labels * min(n, m) ** 2 <= largest_blocks:
        steps += size.n_labels * square
    if n < m:
        least = max(2 * square, square + 2 * weights)
        usual = max(4 * square, square + 4 * weights) + steps
    else:
        rotated = 0 if issparse(X) else BYTES_OF_DOUBLE * n * m
        least = square + rotated
        usual = 4 * square + rotated + steps
    return MemoryNeeds(size, least + scores, usual + 10 * scores, remedy)


@contextmanager
def check_memory(needs: MemoryNeeds, owner: str) -> Iterator[None]:
    """Raise MemoryError, or warn, before a fit for which there is not enough memory.

    Nothing is checked if the available memory is not known. If a MemoryError occurs during the fit, it gets
    the same explanation.

    Parameters
    ----------
    needs : MemoryNeeds
    owner : str
        Name of the model.
    """
    if needs.usual > ALWAYS_AVAILABLE:
        available = available_bytes()
        if available is not None and needs.least > available:
            raise MemoryError(_explain(needs, owner, available))
        if available is not None and needs.usual > available:
            warnings.warn(_explain(needs, owner, available), MemoryWarning, stacklevel=users_level())
    try:
        yield
    except MemoryError as error:
        text = _explain(needs, owner, available_bytes())
        raise MemoryError(f"{text} ({error})" if str(error) else text) from error


def _explain(needs: MemoryNeeds, owner: str, available: int | None) -> str:
    """Return a message with the memory that a fit needs, the available memory, and the remedy.

    `available` is a number of bytes, or None if it is not known.
    """
    known = "" if available is None else f", and {available / 1e9:.3g} GB are available"
    size = needs.size
    return (
        f"{owner} usually needs about {needs.usual / 1e9:.3g} GB for {size.n_samples} rows, {size.n_features} features and "
        f"{size.n_labels} labels, at least {needs.least / 1e9:.3g} GB{known}. To use less memory: {needs.remedy}."
    )
