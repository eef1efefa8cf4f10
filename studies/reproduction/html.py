"""One HTML file of Markdown pages and their figures, which needs no other file."""

import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from markdown_it import MarkdownIt

STYLE = Path(__file__).parent / "pages" / "page.css"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{first}
{others}
</main>
</body>
</html>
"""
PART = """<details class="page" id="{name}">
<summary>{title}</summary>
{body}
</details>
"""
OPEN_TARGET = """<script>
// A link to a part opens it.
function show() {
  const part = document.getElementById(location.hash.slice(1));
  if (part && part.tagName === "DETAILS") { part.open = true; part.scrollIntoView(); }
}
addEventListener("hashchange", show);
show();
</script>
"""


def to_page(first: str, others: Mapping[str, str], titles: Mapping[str, str], docs: Path) -> str:
    """Return one HTML page of several texts: the first, and each of the others in a part that opens.

    Parameters
    ----------
    first : str
        Markdown.
    others : dict of str to str
        Markdown by the name of the page, as links call it: reproduction/NAME.md.
    titles : dict of str to str
        Content of each of the others, in a few words.
    docs : path
        Folder with the folder `images`, whose figures become part of the page.
    """
    title = first.partition("\n")[0].lstrip("# ")
    parts = [
        PART.format(name=name, title=_first_up(titles[name]), body=to_html(text, list(others), docs))
        for name, text in others.items()
    ]
    style = STYLE.read_text(encoding="utf-8")
    body = to_html(first, list(others), docs)
    return PAGE.format(title=title, style=style, first=body, others="\n".join(parts) + OPEN_TARGET)


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]


def to_html(text: str, parts: list[str], docs: Path) -> str:
    """Return a text as HTML with scrolling tables and embedded figures.

    Links to the other pages become links to parts of this one. Of links to files of the repository the words stay.

    Examples
    --------
    >>> to_html("See [all](reproduction/oracle.md) and [rows](../rows.csv).", ["oracle"], Path("docs"))
    '<p>See <a href="#oracle">all</a> and rows.</p>\\n'
    """
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    html = html.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")
    names = "|".join(map(re.escape, parts))
    html = re.sub(rf'href="(?:reproduction/)?({names})\.md"', r'href="#\1"', html)
    html = re.sub(r'<a href="(?!#|https?:)[^"]*">(.*?)</a>', r"\1", html)
    return re.sub(r'src="(?:\.\./)?(images/[^"]+\.svg)"', lambda match: _embedded(docs / match[1]), html)


def _embedded(figure: Path) -> str:
    return f'src="data:image/svg+xml;base64,{b64encode(figure.read_bytes()).decode()}"'
