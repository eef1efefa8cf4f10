"""Links from source code on the site back to the page of a name.

`sphinx.ext.viewcode` assumes that all names of a module are documented in one package. Here a name has its page in the
package from which users import it, so two names of a module may have different packages. The anchors are corrected.
"""

import re
from typing import Any

from sphinx.application import Sphinx

LINK = re.compile(r'(?P<page>[./]*api/(?P<path>[\w.]+?)(?:-function)?\.html)#(?P<anchor>[\w.]+)"')


def with_anchors(body: str) -> str:
    """Return a page of source code in which the links to names have the anchors of their pages."""

    def link(match: re.Match[str]) -> str:
        name = match["path"].rpartition(".")[2]
        member = re.search(rf"\.{name}(?P<member>\.\w+)?$", match["anchor"])
        anchor = match["path"] + (member["member"] or "") if member else match["anchor"]
        return f'{match["page"]}#{anchor}"'

    return LINK.sub(link, body)


def correct_links(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Correct the links of a page if it contains source code."""
    if name.startswith("_modules/") and "body" in context:
        context["body"] = with_anchors(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", correct_links)
    return {"parallel_read_safe": True}
