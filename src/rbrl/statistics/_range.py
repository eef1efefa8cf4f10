"""The range of independent standard normal variables: the studentised range with infinitely many degrees of freedom.

SciPy has it in `scipy.stats`, for any number of degrees; importing that takes longer than everything else that a table
of tests needs.
"""

from typing import Any

import numpy as np
from scipy.special import ndtr

# Places of the smallest variable. The trapezoidal rule is exact to rounding error here: the integrand is smooth, and
# vanishes at both ends.
SMALLEST, STEP = np.linspace(-10.0, 10.0, 501, retstep=True)
DENSITY = np.exp(-(SMALLEST**2) / 2) / np.sqrt(2 * np.pi)


def range_sf(q: Any, n_variables: int) -> np.ndarray:
    """Probability that the range exceeds q: one of the variables is the smallest, the others lie within q above it."""
    within = ndtr(SMALLEST + np.asarray(q, dtype=float)[..., None]) - ndtr(SMALLEST)
    return np.clip(1 - n_variables * STEP * (within ** (n_variables - 1) @ DENSITY), 0.0, 1.0)


def range_isf(p: float, n_variables: int) -> float:
    """The q which the range exceeds with probability p, by bisection."""
    if not 0 < p < 1:
        raise ValueError(f"A level must lie between 0 and 1, both excluded. Got {p!r} instead.")
    low, high = 0.0, 2 * SMALLEST[-1]
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if range_sf(middle, n_variables) > p else (low, middle)
    return high
