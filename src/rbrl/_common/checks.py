"""Checks of arguments and of what files say; the wording of their messages lives here."""

import difflib
import numbers

import numpy as np

from rbrl.exceptions import PlanError


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


def hint(value, allowed):
    """The end of a message: the close match if there is one, and everything that is allowed."""
    allowed = [str(one) for one in allowed]
    close = difflib.get_close_matches(str(value), allowed, n=1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    return f"{meant} Allowed: {', '.join(allowed)}."


def check_table(where, value):
    """Return `value` if it is a table (a dict with text keys)."""
    if not isinstance(value, dict):
        raise PlanError(f"{where} must be a table. Got {value!r} instead.")
    return value


def check_keys(where, table, allowed, required=()):
    """Refuse keys that mean nothing here, and the absence of those that must be there."""
    inside = f" in {where}" if where else ""
    for key in check_table(where or "a plan", table):
        if key not in allowed:
            raise PlanError(f"the key {key!r}{inside} (value {table[key]!r}) means nothing.{hint(key, allowed)}")
    for key in required:
        if key not in table:
            raise PlanError(f"the key {key!r}{inside} is missing. There are: {', '.join(map(str, table)) or 'none'}.")


def check_one_of(where, value, allowed):
    """Return `value` if it is one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        raise PlanError(f"{where} = {value!r} is not possible.{hint(value, allowed)}")
    return value


def check_whole(where, value, at_least):
    """Return `value` if it is a whole number that is large enough."""
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise PlanError(f"{where} must be a whole number >= {at_least}. Got {value!r} instead.")
    return value


def check_share(where, value):
    """Return `value` if it lies between 0 and 1, both excluded."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < value < 1:
        raise PlanError(f"{where} must lie between 0 and 1, both excluded. Got {value!r} instead.")
    return float(value)


def check_flag(where, value):
    """Return `value` if it is true or false."""
    if not isinstance(value, bool):
        raise PlanError(f"{where} must be true or false. Got {value!r} instead.")
    return value


def check_text(where, value):
    """Return `value` if it is text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise PlanError(f"{where} must be text that is not empty. Got {value!r} instead.")
    return value


def check_list(where, value):
    """Return `value` if it is a list that is not empty."""
    if not isinstance(value, list | tuple) or not value:
        raise PlanError(f"{where} must be a list that is not empty. Got {value!r} instead.")
    return list(value)
