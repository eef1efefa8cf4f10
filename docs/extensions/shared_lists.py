"""A page may show the first list of another: where it says `<!-- list of comparison.md -->`, which a forge does not show.

What a page that is written by a program says in its first lines is thus told twice, and written once.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

PLACE = re.compile(r"^<!-- list of (?P<page>[\w-]+\.md) -->$", re.MULTILINE)
LIST = re.compile(r"(?:^- .*\n)+", re.MULTILINE)


def show_lists(app: Sphinx, name: str, content: list[str]) -> None:
    def found(match: re.Match[str]) -> str:
        page = Path(app.srcdir, match["page"])
        app.env.note_dependency(page, docname=name)
        return LIST.search(page.read_text(encoding="utf-8"))[0]

    content[0] = PLACE.sub(found, content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", show_lists)
    return {"parallel_read_safe": True}
