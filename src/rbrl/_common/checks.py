"""Checks of arguments and of what plans say; the wording of their messages lives here.

There are two families. Parameters of classes are named with their owner and refused by `ValueError`. Keys of a plan are
named by their place in the file and refused by `PlanError`, with a guess at what was meant, since they are typed by hand.
"""

import difflib
import numbers
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbrl.exceptions import PlanError

T = TypeVar("T")
# Of a value in a plan: from its place, for messages, and the value to what is read.
Check: TypeAlias = Callable[[str, Any], Any]


def _required(ok: object, what: str, rule: str, value: T, error: type[Exception] = PlanError) -> T:
    """Return `value` if it is `ok`; say what it must do otherwise."""
    if not ok:
        raise error(f"{what} must {rule}. Got {value!r} instead.")
    return value


# Packages with frames between a user's call and a warning: scikit-learn's callbacks wrap `fit`, and joblib calls it.
BETWEEN = ("rbrl", "sklearn", "contextlib", "joblib")


def users_level() -> int:
    """The `stacklevel` with which a warning given by the caller of this function points at the user's own line.

    Returns
    -------
    int

    Examples
    --------
    >>> from rbrl._common.checks import users_level
    >>> users_level() >= 1
    True
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    return level


def check_number(
    owner: str, name: str, value: Any, *, low: float = 0.0, strict: bool = False, integer: bool = False,
    words: tuple[str | None, ...] = (),
) -> Any:  # fmt: skip
    """Return `value` if it is a finite number above `low`; name owner, rule and value otherwise.

    Parameters
    ----------
    owner, name : str
        The class, and its parameter.
    value : object
    low : float, default=0.0
    strict : bool, default=False
        Whether `low` itself is refused.
    integer : bool, default=False
        Whether only whole numbers are allowed.
    words : tuple of str or None
        What is allowed instead of a number.

    Returns
    -------
    number or word

    Examples
    --------
    >>> check_number("APG", "max_iter", 0, low=1, integer=True)
    Traceback (most recent call last):
    ValueError: The max_iter parameter of APG must be an integer >= 1. Got 0 instead.
    """
    if (value is None or isinstance(value, str)) and value in words:
        return value
    kind = numbers.Integral if integer else numbers.Real
    ok = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(value)  # type: ignore[call-overload]
    if ok and (value > low if strict else value >= low):
        return value
    number = "an integer" if integer else "a finite number"
    number += f" {'>' if strict else '>='} {low:g}" if low > -np.inf else ""
    rule = f"be {' or '.join([*map(repr, words), number])}"
    return _required(False, f"The {name} parameter of {owner}", rule, value, ValueError)


def check_choice(owner: str, name: str, value: T, choices: Collection[T]) -> T:
    """Return `value` if it is one of `choices`; list them otherwise.

    Parameters
    ----------
    owner, name : str
        The class, and its parameter.
    value : object
    choices : collection

    Returns
    -------
    object

    Examples
    --------
    >>> check_choice("APG", "stop", "never", ("gap", "paper"))
    Traceback (most recent call last):
    ValueError: The stop parameter of APG must be one of 'gap', 'paper'. Got 'never' instead.
    """
    if value in choices:
        return value
    rule = f"be one of {', '.join(map(repr, choices))}"
    return _required(False, f"The {name} parameter of {owner}", rule, value, ValueError)


def check_row_weights(weights: ArrayLike | None, n_samples: int) -> NDArray[np.float64]:
    """Row weights as float64, or ones; refuse negative ones and an all-zero vector.

    Parameters
    ----------
    weights : array of shape (n_samples,), number or None
    n_samples : int

    Returns
    -------
    array of shape (n_samples,)
    """
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


def hint(value: object, allowed: Iterable[object]) -> str:
    """The end of a message: the close match if there is one, and everything that is allowed.

    Parameters
    ----------
    value : object
        What was given.
    allowed : iterable

    Returns
    -------
    str

    Examples
    --------
    >>> hint("rigde", ["ridge", "nuclear"])
    " Did you mean 'ridge'? Allowed: ridge, nuclear."
    """
    names = [str(one) for one in allowed]
    close = difflib.get_close_matches(str(value), names, n=1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    return f"{meant} Allowed: {', '.join(names)}."


def check_table(where: str, value: Any) -> dict[str, Any]:
    """Return `value` if it is a table (a dict with text keys)."""
    return _required(isinstance(value, dict), where, "be a table", value)


def check_keys(where: str, table: Any, allowed: Iterable[str], required: Iterable[str] = ()) -> None:
    """Refuse keys that mean nothing here, and the absence of those that must be there.

    Parameters
    ----------
    where : str
        The table's place in the plan; empty for the plan itself.
    table : object
    allowed, required : iterable of str
    """
    inside = f" in {where}" if where else ""
    for key in check_table(where or "a plan", table):
        if key not in allowed:
            raise PlanError(f"the key {key!r}{inside} (value {table[key]!r}) means nothing.{hint(key, allowed)}")
    for key in required:
        if key not in table:
            raise PlanError(f"the key {key!r}{inside} is missing. There are: {', '.join(map(str, table)) or 'none'}.")


def checked(check: Callable[..., Any], **options: Any) -> dict[str, Check]:
    """Metadata of a dataclass's field whose value in a plan is checked; `options` are those of the check.

    Parameters
    ----------
    check : callable
        From the place and the value to what is read.
    **options : object

    Returns
    -------
    dict
    """
    return {"check": partial(check, **options)}


def checked_fields(cls: type) -> dict[str, Check]:
    """The checks of a dataclass by the name of the field, in the order of the fields.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Splits:
    ...     number: int = field(default=10, metadata=checked(check_whole, at_least=1))
    >>> read_as("splits", {"number": 3}, Splits)
    Splits(number=3)
    """
    return {one.name: one.metadata["check"] for one in fields(cls) if "check" in one.metadata}


def checked_table(where: str, table: Any, checks: Mapping[str, Check], required: Iterable[str] = ()) -> dict[str, Any]:
    """Return a copy of `table` in which every value is what the check of its key returns; refuse other keys.

    Parameters
    ----------
    where : str
        Its place in the plan, for messages.
    table : object
    checks : mapping of str to callable
    required : iterable of str

    Returns
    -------
    dict

    Examples
    --------
    >>> checked_table("splits", {"stratified": True}, {"stratified": check_flag})
    {'stratified': True}
    >>> checked_table("splits", {"stratified": 1}, {"stratified": check_flag})
    Traceback (most recent call last):
    rbrl.exceptions.PlanError: splits.stratified must be true or false. Got 1 instead.
    """
    check_keys(where, table, checks, required)
    return {key: checks[key](f"{where}.{key}" if where else key, value) for key, value in table.items()}


def read_as(where: str, table: Any, cls: type[T]) -> T:
    """Return a dataclass made of a table whose values its fields check.

    Parameters
    ----------
    where : str
        Its place in the plan, for messages.
    table : object
    cls : type
        The dataclass.

    Returns
    -------
    object
    """
    return cls(**checked_table(where, table, checked_fields(cls)))


def unchecked(where: str, value: T) -> T:
    """Return `value`; who uses it knows better."""
    return value


def check_one_of(where: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of `allowed`.

    Parameters
    ----------
    where : str
        Its place in the plan, for messages.
    value : object
    allowed : iterable of str

    Returns
    -------
    str
    """
    if not isinstance(value, str) or value not in allowed:
        raise PlanError(f"{where} = {value!r} is not possible.{hint(value, allowed)}")
    return value


def check_whole(where: str, value: Any, at_least: int) -> int:
    """Return `value` if it is a whole number that is large enough.

    Parameters
    ----------
    where : str
        Its place in the plan, for messages.
    value : object
    at_least : int

    Returns
    -------
    int
    """
    ok = isinstance(value, int) and not isinstance(value, bool) and value >= at_least
    return _required(ok, where, f"be a whole number >= {at_least}", value)


def check_share(where: str, value: Any) -> float:
    """Return `value` if it lies between 0 and 1, both excluded."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < 1
    return float(_required(ok, where, "lie between 0 and 1, both excluded", value))


def check_flag(where: str, value: Any) -> bool:
    """Return `value` if it is true or false."""
    return _required(isinstance(value, bool), where, "be true or false", value)


def check_text(where: str, value: Any) -> str:
    """Return `value` if it is text that is not empty."""
    return _required(isinstance(value, str) and value.strip(), where, "be text that is not empty", value)


def check_list(where: str, value: Any) -> list[Any]:
    """Return `value` if it is a list that is not empty."""
    return list(_required(isinstance(value, list | tuple) and value, where, "be a list that is not empty", value))
