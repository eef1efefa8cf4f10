"""Plans that extend others; and a writer of what `tomllib` reads, since the standard library has none."""

import json
import math
import re
import tomllib

from rbrl.experiments.errors import PlanError

BARE = re.compile(r"[A-Za-z0-9_-]+")


def extended(table, folder, seen=()):
    """Put the keys of `table` into the plan that it extends, if it extends one; tables are merged key by key."""
    if "extends" not in table:
        return table
    name = table["extends"]
    path = folder / str(name)
    if not isinstance(name, str) or path in seen:
        raise PlanError(
            f"extends must be the path of another plan, not of one that extends this. Got {name!r} instead."
        )
    try:
        base = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"extends = {name!r}: the plan cannot be read: {error}.") from error
    own = {key: value for key, value in table.items() if key != "extends"}
    return merged(extended(base, path.parent, (*seen, path)), own)


def merged(base, change):
    """`base` with the values of `change`; what is a table in both is merged in its turn."""
    both = {
        key: merged(base[key], value)
        for key, value in change.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return base | change | both


def dumps(table, prefix=""):
    """Text of a plan: plain values first, then a section for each table."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    text = "".join(f"{line}\n" for line in lines)
    for key, value in table.items():
        if isinstance(value, dict):
            name = f"{prefix}{_key(key)}"
            inner = dumps(value, f"{name}.")
            has_header = not value or any(not isinstance(one, dict) for one in value.values())
            text += f"\n[{name}]\n{inner}" if has_header else inner
    return text


def _key(key):
    return key if BARE.fullmatch(key) else _text(key)


def _value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    return _number(value)


def _number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else f"{'-' if value < 0 else ''}inf"
    return repr(value)


def _text(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
