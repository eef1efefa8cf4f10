"""Checks of parameters and of the values in a plan, with their error messages.

There are two families. A wrong parameter of a class raises `ValueError`, and the message names the
class and the parameter. A wrong value in a plan raises `PlanError`. Its message names the place in the
file and suggests the closest allowed key or value, because plans are typed by hand.
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
# Check of a value in a plan: takes the place of the value, for messages, and the value, and returns
# the checked value.
Check: TypeAlias = Callable[[str, Any], Any]


def _require(condition: object, subject: str, rule: str, value: T, error: type[Exception] = PlanError) -> T:
    """Return `value` if the condition holds; raise `error` with the rule otherwise.

    `subject` opens the sentence, such as "The tol parameter of X", and `rule` follows "must".
    """
    if not condition:
        raise error(f"{subject} must {rule}. Got {value!r} instead.")
    return value


# Packages whose frames lie between the user's call and a warning: scikit-learn's callbacks wrap `fit`,
# and joblib calls it.
INNER_PACKAGES = ("rbrl", "sklearn", "contextlib", "joblib")


def users_level() -> int:
    """Return the `stacklevel` with which a warning of the calling function points at the user's line.

    Call it in the function that calls `warnings.warn`, since it counts the frames from its caller on.

    Examples
    --------
    >>> from rbrl._common.checks import users_level
    >>> users_level() >= 1
    True
    """
    frame = sys._getframe(1)
    level = 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in INNER_PACKAGES:
        frame = frame.f_back
        level += 1
    return level


def check_number(
    owner: str, name: str, value: Any, *, low: float = 0.0, strict: bool = False, integer: bool = False,
    words: tuple[str | None, ...] = (),
) -> Any:  # fmt: skip
    """Return `value` if it is a finite number of at least `low`; raise ValueError otherwise.

    Parameters
    ----------
    owner, name : str
        Class and name of the parameter.
    value : object
    low : float, default=0.0
        Smallest allowed number; `-inf` means no limit.
    strict : bool, default=False
        Whether the number must be larger than `low`.
    integer : bool, default=False
        Whether the number must be an integer.
    words : tuple of str or None
        Values that are allowed instead of a number.

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
    return _require(False, f"The {name} parameter of {owner}", rule, value, ValueError)


def check_choice(owner: str, name: str, value: T, choices: Collection[T]) -> T:
    """Return `value` if it is one of `choices`; raise ValueError with the choices otherwise.

    Parameters
    ----------
    owner, name : str
        Class and name of the parameter.
    value : object
    choices : collection

    Examples
    --------
    >>> check_choice("APG", "stop", "never", ("gap", "paper"))
    Traceback (most recent call last):
    ValueError: The stop parameter of APG must be one of 'gap', 'paper'. Got 'never' instead.
    """
    if value in choices:
        return value
    raise ValueError(
        f"The {name} parameter of {owner} must be one of {', '.join(map(repr, choices))}. Got {value!r} instead."
        f"{suggest(value, choices)}"
    )


def check_row_weights(weights: ArrayLike | None, n_samples: int, rows: str = "X") -> NDArray[np.float64]:
    """Return row weights as float64; raise ValueError if one is negative or if all are zero.

    Parameters
    ----------
    weights : array of shape (n_samples,), number or None
        Weight of each row, one weight for all rows, or None for weights of 1.
    n_samples : int
    rows : str, default="X"
        Argument of the user with the rows, for messages.

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
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one weight per row of {rows}. Got {weights.shape}."
        )
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError(
            f"sample_weight must be finite and >= 0. Got values from {weights.min()} to {weights.max()}; "
            "a weight of 0 leaves a row out."
        )
    if not weights.any():
        raise ValueError(f"sample_weight is zero for all {n_samples} rows; at least one weight must be above zero.")
    return weights


def hint(value: object, allowed: Iterable[object]) -> str:
    """Return the end of a message: the closest allowed value, if one is close, and all of them.

    Parameters
    ----------
    value : object
        Value that the user gave.
    allowed : iterable

    Examples
    --------
    >>> hint("rigde", ["ridge", "nuclear"])
    " Did you mean 'ridge'? Allowed: ridge, nuclear."
    """
    names = [str(one) for one in allowed]
    return f"{suggest(value, names)} Allowed: {', '.join(names)}."


def suggest(value: object, allowed: Iterable[object]) -> str:
    """Return the end of a message with the closest allowed value; empty if no value is close.

    Parameters
    ----------
    value : object
        Value that the user gave.
    allowed : iterable

    Returns
    -------
    str

    Examples
    --------
    >>> suggest("rigde", ["ridge", "nuclear"]), suggest("tol", ["ridge", "nuclear"])
    (" Did you mean 'ridge'?", '')
    """
    close = difflib.get_close_matches(str(value), [str(one) for one in allowed], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def check_table(where: str, value: Any) -> dict[str, Any]:
    """Return `value` if it is a table, which is a dict; raise PlanError otherwise."""
    return _require(isinstance(value, dict), where, "be a table", value)


def check_keys(where: str, table: Any, allowed: Iterable[str], required: Iterable[str] = ()) -> None:
    """Raise PlanError if a table has an unknown key or lacks a required key.

    Parameters
    ----------
    where : str
        Place of the table in the plan; empty for the plan itself.
    table : object
    allowed, required : iterable of str
    """
    inside = f" in {where}" if where else ""
    for key in check_table(where or "a plan", table):
        if key not in allowed:
            raise PlanError(f"the key {key!r}{inside} (value {table[key]!r}) is unknown.{hint(key, allowed)}")
    for key in required:
        if key not in table:
            raise PlanError(f"the key {key!r}{inside} is missing. There are: {', '.join(map(str, table)) or 'none'}.")


def check_with(check: Callable[..., Any], **options: Any) -> dict[str, Check]:
    """Return the metadata of a dataclass field whose value in a plan is checked.

    Parameters
    ----------
    check : callable
        Check of the value; see :data:`Check`.
    **options : object
        Keyword arguments of the check.
    """
    return {"check": partial(check, **options)}


def field_checks(cls: type) -> dict[str, Check]:
    """Return the checks of a dataclass by the name of the field, in the order of the fields.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Splits:
    ...     number: int = field(default=10, metadata=check_with(check_whole, at_least=1))
    >>> read_as("splits", {"number": 3}, Splits)
    Splits(number=3)
    """
    return {one.name: one.metadata["check"] for one in fields(cls) if "check" in one.metadata}


def check_values(where: str, table: Any, checks: Mapping[str, Check], required: Iterable[str] = ()) -> dict[str, Any]:
    """Return a copy of `table` with checked values; raise PlanError if a key has no check.

    Parameters
    ----------
    where : str
        Place of the table in the plan, for messages.
    table : object
    checks : mapping of str to callable
    required : iterable of str

    Examples
    --------
    >>> check_values("splits", {"stratified": True}, {"stratified": check_flag})
    {'stratified': True}
    >>> check_values("splits", {"stratified": 1}, {"stratified": check_flag})
    Traceback (most recent call last):
    rbrl.exceptions.PlanError: splits.stratified must be true or false. Got 1 instead.
    """
    check_keys(where, table, checks, required)
    return {key: checks[key](f"{where}.{key}" if where else key, value) for key, value in table.items()}


def read_as(where: str, table: Any, cls: type[T]) -> T:
    """Return an instance of a dataclass with the checked values of a table; raise PlanError if one is wrong.

    Parameters
    ----------
    where : str
        Place of the table in the plan, for messages.
    table : object
    cls : type
        Dataclass whose fields declare checks.
    """
    return cls(**check_values(where, table, field_checks(cls)))


def accept_any(where: str, value: T) -> T:
    """Return `value` unchecked, because the code that uses the value checks it."""
    return value


def check_one_of(where: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of `allowed`; raise PlanError otherwise.

    Parameters
    ----------
    where : str
        Place of the value in the plan, for messages.
    value : object
    allowed : iterable of str
    """
    if not isinstance(value, str) or value not in allowed:
        raise PlanError(f"{where} = {value!r} is not allowed.{hint(value, allowed)}")
    return value


def check_whole(where: str, value: Any, at_least: int) -> int:
    """Return `value` if it is an integer of at least `at_least`; raise PlanError otherwise.

    Parameters
    ----------
    where : str
        Place of the value in the plan, for messages.
    value : object
    at_least : int
    """
    ok = isinstance(value, int) and not isinstance(value, bool) and value >= at_least
    return _require(ok, where, f"be a whole number >= {at_least}", value)


def check_share(where: str, value: Any) -> float:
    """Return `value` if it lies between 0 and 1, both excluded; raise PlanError otherwise."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < 1
    return float(_require(ok, where, "lie between 0 and 1, both excluded", value))


def check_flag(where: str, value: Any) -> bool:
    """Return `value` if it is true or false; raise PlanError otherwise."""
    return _require(isinstance(value, bool), where, "be true or false", value)


def check_text(where: str, value: Any) -> str:
    """Return `value` if it is text that is not empty; raise PlanError otherwise."""
    ok = isinstance(value, str) and value.strip()
    return _require(ok, where, "be text that is not empty", value)


def check_list(where: str, value: Any) -> list[Any]:
    """Return a copy of `value` if it is a list or tuple that is not empty; raise PlanError otherwise."""
    ok = isinstance(value, list | tuple) and value
    return list(_require(ok, where, "be a list that is not empty", value))
