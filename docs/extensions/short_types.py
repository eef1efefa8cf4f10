"""NumPy's types in signatures under the names by which they are written: `ArrayLike`, `NDArray[floating]`."""

import re
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

# autodoc prints what an alias stands for: eight lines for a parameter that is any array.
ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
ND_ARRAY = re.compile(
    r"~numpy\.ndarray\[~?tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[([^\[\]]+)(?:\[[^\[\]]*\])?\]\]"
)


def shortened(text: str | None) -> str | None:
    return text and ND_ARRAY.sub(r"~numpy.typing.NDArray[\1]", text.replace(ARRAY_LIKE, "~numpy.typing.ArrayLike"))


def shorten_signature(app: Sphinx, what: str, name: str, thing: Any, options: Any, *parts: str | None) -> Any:
    return tuple(map(shortened, parts))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-signature", shorten_signature)
    return {"parallel_read_safe": True}
