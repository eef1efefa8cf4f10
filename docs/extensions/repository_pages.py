"""Links from the pages to files of the repository lead to pages of the site: on a forge, and here, every link works.

A page links to `../studies/benchmarks/rows/results.md` or `../tests/test_docs.py` as on a forge. Here each such file
becomes a page below `repository/`: Markdown as it is, everything else as text, and a folder as the page in it,
or as the list of its files.
An example of the gallery is its page of the gallery. A file that the text names in code, such as
`tests/test_docs.py::test_versions_agree`, is linked to here only.
"""

import gzip
import re
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

FOLDER = "repository"
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
FENCE = re.compile(r"^(```.*?^```[^\S\n]*$)", re.MULTILINE | re.DOTALL)
# A file, and maybe a test in it, that is named in code and no link yet.
NAMED = re.compile(r"(?<![\[`])`(?P<file>[a-z]+/[\w./-]+\.\w+)(?:::\w+)?`(?!\])")
IMAGES = {".svg", ".png"}
LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "sh", ".cff": "yaml", ".yml": "yaml"}
# What stands for a folder.
COVERS = ("README.md", "results.md")
# A folder below docs whose pages are linked to from one of them, and not in the navigation.
PARTS = "reproduction"
# Folders of which the site makes pages of another kind: the gallery, and the reference.
MADE = {"examples": "auto_examples/index.rst", "src/rbrl": "api/index.rst"}


class Repository:
    """The files around the pages, and those of them that the pages link to."""

    def __init__(self, docs: Path) -> None:
        self.docs, self.root = docs, docs.parent

    def linked(self, text: str, home: Path) -> Iterator[Path]:
        """The files that a text which lies in `home` links to, below the repository but outside the pages."""
        for match in LINK.finditer(without_code(self.with_named(text, home))):
            file = self.file(match["target"], home)
            if file and not self.stays(file) and not in_gallery(file) and self.made(file) is None:
                yield file

    def made(self, file: Path) -> str | None:
        """The page that the site makes of a whole folder, or None."""
        return MADE.get(file.relative_to(self.root).as_posix())

    def stays(self, file: Path) -> bool:
        """Whether a link can lead to the file itself: a page, or a figure."""
        is_page = file.is_relative_to(self.docs) and not file.is_relative_to(self.docs / PARTS)
        return is_page or file.suffix in IMAGES

    def file(self, target: str, home: Path) -> Path | None:
        """The file that a link leads to, or None if it leads elsewhere."""
        if re.match(r"[a-z]+:|#|/", target):
            return None
        path = (home / target).resolve()
        covers = [path / name for name in COVERS if (path / name).is_file()]
        return next(iter(covers), path) if path.exists() and path.is_relative_to(self.root) else None

    def page(self, file: Path) -> Path:
        """Where the page of a file lies."""
        inside, made = file.relative_to(self.root), self.made(file)
        if made is not None:
            return self.docs / made
        if in_gallery(file):
            return self.docs / "auto_examples" / f"{file.stem}.rst"
        return self.docs / FOLDER / (inside if file.suffix == ".md" else inside.with_name(f"{inside.name}.md"))

    def with_named(self, text: str, home: Path) -> str:
        """A text in which files that it names in code are links."""

        def link(match: re.Match[str]) -> str:
            file = self.root / match["file"]
            return f"[{match[0]}]({relpath(file, home)})" if file.is_file() else match[0]

        return NAMED.sub(link, text)

    def with_links(self, text: str, home: Path, folder: Path) -> str:
        """A text of `home` as a page in `folder`: its links to files lead to their pages."""

        def link(match: re.Match[str]) -> str:
            file = self.file(match["target"], home)
            if file is None:
                return match[0]
            target = relpath(file if self.stays(file) else self.page(file), folder)
            return f"{match['image']}[{match['text']}]({target}{match['anchor'] or ''})"

        def prose(part: str) -> str:
            return LINK.sub(link, self.with_named(part, home))

        return "".join(part if part.startswith("```") else prose(part) for part in FENCE.split(text))

    def shown(self, file: Path) -> str:
        """The text of the page of a file or a folder."""
        head = "---\norphan: true\n---\n\n"
        if file.suffix == ".md":
            return head + self.with_links(file.read_text(encoding="utf-8"), file.parent, self.page(file).parent)
        head += f"# {file.relative_to(self.root).as_posix()}\n\n"
        if file.is_dir():
            return head + "".join(f"- `{each.name}`\n" for each in sorted(file.iterdir()))
        data = file.read_bytes()
        text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode("utf-8")
        fence = "`" * 4
        return f"{head}{fence}{LANGUAGES.get(file.suffix, 'text')}\n{text}\n{fence}\n"


def without_code(text: str) -> str:
    return FENCE.sub("", text)


def in_gallery(file: Path) -> bool:
    return file.parent.name == "examples" and file.name.startswith("plot_")


def write_pages(app: "Sphinx", config: "Config") -> None:
    """A page for every file that a page links to, and for those that these link to."""
    repository = Repository(Path(app.srcdir).resolve())
    texts = (path for path in repository.docs.rglob("*.md") if FOLDER not in path.relative_to(repository.docs).parts)
    waiting = [file for path in texts for file in repository.linked(path.read_text(encoding="utf-8"), path.parent)]
    done: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in done:
            continue
        done.add(file)
        if file.suffix == ".md":
            waiting += repository.linked(file.read_text(encoding="utf-8"), file.parent)
        page, text = repository.page(file), repository.shown(file)
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for page in set(Path(app.srcdir, FOLDER).resolve().rglob("*.md")) - {repository.page(file) for file in done}:
        page.unlink()  # of a file that no page links to any more


def lead_to_pages(app: "Sphinx", name: str, content: list[str]) -> None:
    path = Path(app.env.doc2path(name))
    if path.suffix == ".md" and not name.startswith(FOLDER):
        content[0] = Repository(Path(app.srcdir).resolve()).with_links(content[0], path.parent, path.parent)


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("config-inited", write_pages)
    app.connect("source-read", lead_to_pages)
    return {"parallel_read_safe": True}
