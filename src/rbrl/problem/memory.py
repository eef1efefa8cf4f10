"""Estimates of the memory of a fit from the sizes of its data, and the error for a fit that needs too much memory."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rbrl._common.checks import users_level
from rbrl._common.environment import available_bytes
from rbrl._common.typing import issparse
from rbrl.exceptions import MemoryWarning
from rbrl.problem.design import LARGEST_DECOMPOSITION
from rbrl.problem.kernel import storage_type

BYTES_OF_DOUBLE = 8


class MemoryNeeds(NamedTuple):
    """The memory of a fit, estimated before it starts.

    Attributes
    ----------
    least : int
        Number of bytes that every fit of these sizes holds at one time. With less memory, the fit
        raises an error.
    usual : int
        Number of bytes that a fit of these sizes usually holds. With less memory, the fit warns.
    """

    least: int
    usual: int


class FitSize(NamedTuple):
    """The sizes of the data of a fit.

    Attributes
    ----------
    n_samples, n_features, n_labels : int
    """

    n_samples: int
    n_features: int
    n_labels: int

    @property
    def score_bytes(self) -> int:
        """Number of bytes of a matrix of scores."""
        return BYTES_OF_DOUBLE * self.n_samples * self.n_labels

    @property
    def weight_bytes(self) -> int:
        """Number of bytes of a matrix of weights, with the intercepts."""
        return BYTES_OF_DOUBLE * (self.n_features + 1) * self.n_labels

    @property
    def kernel_bytes(self) -> int:
        """Number of bytes of a kernel matrix."""
        return BYTES_OF_DOUBLE * self.n_samples**2


def estimate_kernel(size: FitSize, is_decomposed: bool) -> MemoryNeeds:
    """Estimate the memory of a kernel model.

    Parameters
    ----------
    size : FitSize
    is_decomposed : bool
        Whether the kernel matrix is decomposed. Otherwise its rows are visited.

    Returns
    -------
    MemoryNeeds

    Examples
    --------
    >>> from rbrl.problem.memory import FitSize, estimate_kernel
    >>> estimate_kernel(FitSize(1000, 10, 5), is_decomposed=True).least
    8040000
    """
    if is_decomposed:
        return MemoryNeeds(size.kernel_bytes + size.score_bytes, 4 * size.kernel_bytes + 10 * size.score_bytes)
    is_stored = storage_type(size.n_samples) == np.float64
    return MemoryNeeds(size.score_bytes, (2 * size.kernel_bytes if is_stored else 0) + 10 * size.score_bytes)


def estimate_feature_map(size: FitSize, n_components: int) -> MemoryNeeds:
    """Estimate the memory of a kernel model whose kernel is approximated by features.

    Parameters
    ----------
    size : FitSize
    n_components : int

    Returns
    -------
    MemoryNeeds
    """
    features = BYTES_OF_DOUBLE * size.n_samples * min(n_components, size.n_samples)
    return MemoryNeeds(features + size.score_bytes, 3 * features + 10 * size.score_bytes)


def estimate_factors(size: FitSize) -> MemoryNeeds:
    """Estimate the memory of a linear model in factors of a given rank.

    Parameters
    ----------
    size : FitSize

    Returns
    -------
    MemoryNeeds
    """
    return MemoryNeeds(size.weight_bytes + size.score_bytes, 6 * size.weight_bytes + 10 * size.score_bytes)


def estimate_dual_ascent(size: FitSize, has_nuclear_norm: bool) -> MemoryNeeds:
    """Estimate the memory of a linear model by dual ascent.

    Parameters
    ----------
    size : FitSize
    has_nuclear_norm : bool

    Returns
    -------
    MemoryNeeds
    """
    least = size.weight_bytes + size.score_bytes
    if has_nuclear_norm:
        # Weights, their gradient and its factors, and the singular values in the proof.
        return MemoryNeeds(least, 7 * size.weight_bytes + 4 * size.score_bytes)
    # Weights and dual scores, with blocks of them in the proof: `python -m studies.benchmarks.text` has the peaks.
    return MemoryNeeds(least, 3 * least // 2)


def estimate_quasi_newton(size: FitSize, X: Any) -> MemoryNeeds:
    """Estimate the memory of a linear model by the quasi-Newton solver.

    Parameters
    ----------
    size : FitSize
    X : array or CSR matrix (n_samples, n_features)

    Returns
    -------
    MemoryNeeds
    """
    n, m = size.n_samples, size.n_features
    weights = size.weight_bytes
    if min(n, m) > LARGEST_DECOMPOSITION:
        return MemoryNeeds(5 * weights + size.score_bytes, 22 * weights + 10 * size.score_bytes)
    square = BYTES_OF_DOUBLE * min(n, m) ** 2
    if n < m:
        least = max(2 * square, square + 2 * weights)
        usual = max(4 * square, square + 4 * weights)
    else:
        rotated = 0 if issparse(X) else BYTES_OF_DOUBLE * n * m
        least = square + rotated
        usual = 4 * square + rotated
    return MemoryNeeds(least + size.score_bytes, usual + 10 * size.score_bytes)


@contextmanager
def check_memory(needs: MemoryNeeds, size: FitSize, owner: str, remedy: str) -> Iterator[None]:
    """Raise an error, or warn, before a fit for which there is not enough memory.

    If a MemoryError occurs during the fit, it gets the same explanation.

    Parameters
    ----------
    needs : MemoryNeeds
    size : FitSize
    owner : str
        Name of the model.
    remedy : str
        Change of the parameters with which the model needs less memory.
    """
    available = available_bytes()
    text = _explain(needs, size, owner, remedy, available)
    if available is not None and needs.least > available:
        raise MemoryError(text)
    if available is not None and needs.usual > available:
        warnings.warn(text, MemoryWarning, stacklevel=users_level())
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"{text} ({error})" if str(error) else text) from error


def _explain(needs: MemoryNeeds, size: FitSize, owner: str, remedy: str, available: int | None) -> str:
    """Return a message with the memory that a fit needs, the available memory, and the remedy."""
    known = "" if available is None else f", and {available / 1e9:.3g} GB are available"
    return (
        f"{owner} usually needs about {needs.usual / 1e9:.3g} GB for {size.n_samples} rows, {size.n_features} features and "
        f"{size.n_labels} labels, at least {needs.least / 1e9:.3g} GB{known}. To use less memory: {remedy}."
    )
