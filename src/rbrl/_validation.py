"""Argument checks; the wording of their messages lives here."""

import numbers

import numpy as np


def check_number(owner, name, value, *, low=0.0, strict=False, integer=False):
    """Return `value` if it is a finite number above `low`; name owner, rule and value otherwise."""
    kind = numbers.Integral if integer else numbers.Real
    ok = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(value)
    ok = ok and (value > low if strict else value >= low)
    if not ok:
        rule = f"{'an integer' if integer else 'a finite number'} {'>' if strict else '>='} {low:g}"
        raise ValueError(f"The {name} parameter of {owner} must be {rule}. Got {value!r} instead.")
    return value


def check_choice(owner, name, value, choices):
    """Return `value` if it is one of `choices`; list them otherwise."""
    if value not in choices:
        allowed = ", ".join(repr(c) for c in choices)
        raise ValueError(f"The {name} parameter of {owner} must be one of {allowed}. Got {value!r} instead.")
    return value


def check_row_weights(weights, n_samples):
    """Row weights as float64, or ones; refuse negative ones and an all-zero vector."""
    if weights is None:
        return np.ones(n_samples)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), one weight per row of X. Got {weights.shape}.")
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError(f"sample_weight must be finite and >= 0. Got values from {weights.min()} to {weights.max()}.")
    if not weights.any():
        raise ValueError(f"sample_weight is zero for all {n_samples} rows: nothing is left to learn from.")
    return weights
