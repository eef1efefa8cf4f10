"""Write what `tomllib` reads; the standard library has no writer."""

import json
import math
import re

BARE = re.compile(r"[A-Za-z0-9_-]+")


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
