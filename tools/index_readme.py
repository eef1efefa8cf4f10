"""Convert the README for a package index, where relative links to files of the repository do not work.

Where pyproject.toml has a project url `Source`, they become absolute, at the tag of the version; where it has none, the
words of a link stay and the link goes. scikit-build-core calls `dynamic_metadata` when it builds: see pyproject.toml.
"""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
# The words of a link may contain an image.
LINK = re.compile(r"(?P<image>!?)\[(?P<words>(?:[^\[\]]|!\[[^\[\]]*\]\([^()\s]+\))*)\]\((?P<target>[^()\s]+)\)")
HTML_LINK = re.compile(r"(?:src|href)=[\"']?(?![a-z]+:)", re.IGNORECASE)


def dynamic_metadata(settings, project):
    """Return the field `readme` of the metadata of a project."""
    source = project.get("urls", {}).get("Source")
    text = for_index(README.read_text(encoding="utf-8"), source and source.rstrip("/"), project["version"])
    return {"readme": {"content-type": "text/markdown", "text": text}}


def for_index(text, source, version):
    """Return Markdown with absolute links, or with the words of a link alone; blocks of code stay as they are."""
    parts = FENCE.split(text)
    for i in range(0, len(parts), 2):
        if found := HTML_LINK.search(parts[i]):
            raise ValueError(f"Write relative links in Markdown, so that they can be made absolute. Got {found[0]!r}.")
        parts[i] = LINK.sub(lambda match: _absolute(match, source, version), parts[i])
    return "".join(parts)


def _absolute(match, source, version):
    image, target = match["image"], match["target"]
    words = LINK.sub(lambda inner: _absolute(inner, source, version), match["words"])
    if not re.match(r"[a-z]+:", target):
        if not source:
            return words
        path = f"README.md{target}" if target.startswith("#") else target
        target = f"{source}/{'raw' if image else 'blob'}/v{version}/{path}"
    return f"{image}[{words}]({target})"
