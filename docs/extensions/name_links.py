"""Code in the text that is a public name of rbrl leads to its page: `RBRLClassifier`, `rbrl.save`, `datasets.load("a")`."""

import re
from functools import cache
from itertools import chain

from api_pages import names_of_modules
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

NAME = re.compile(r"(?:rbrl\.)?(?P<name>[A-Za-z_]\w*(?:\.\w+)*)(?:\(.*\))?")


@cache
def paths() -> dict[str, str]:
    """Every way to write a public name without `rbrl.`, and the path of its page."""
    names = chain.from_iterable(names_of_modules().values())
    return {f"{name.module}.{name.name}".removeprefix("rbrl."): name.path for name in names}


def link_names(app: Sphinx, document: nodes.document) -> None:
    if app.env.docname.startswith(("api/", "auto_examples/")):
        return
    for literal in list(document.findall(nodes.literal)):
        match = NAME.fullmatch(literal.astext())
        path = match and paths().get(match["name"])
        if path and not isinstance(literal.parent, (nodes.reference, addnodes.pending_xref, nodes.title)):
            reference = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=path, refexplicit=True)
            reference["refdoc"] = app.env.docname
            literal.replace_self(reference)
            reference += literal


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True}
