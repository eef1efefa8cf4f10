"""The site is complete: every page is in its navigation, every public name in its reference."""

import gzip
import re
from importlib import import_module
from pathlib import Path

import pytest
from api_pages import pages
from public_names import comment_of, public_names
from repository_pages import Repository, without_code

DOCS = Path(__file__).resolve().parents[1] / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# What Sphinx makes, or what is a part of a page.
NO_PAGES = ("_build", "api", "auto_examples", "repository", "reproduction")


def written_pages():
    return [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in NO_PAGES]


def entries(page):
    """The pages that the toctrees of a page name."""
    for block in TOCTREE.finditer(page.read_text(encoding="utf-8")):
        lines = [line for line in block["text"].splitlines() if line and not line.startswith(":")]
        for line in lines:
            yield from DOCS.glob(f"{line}.md") if "*" in line else [DOCS / f"{line}.md"]


def test_every_page_can_be_reached_from_the_start():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.exists():
            reached.add(page)
            waiting += entries(page)
    assert set(written_pages()) == reached


@pytest.mark.parametrize("page", ["guide.md", "background.md", "develop.md"])
def test_what_is_in_the_navigation_is_in_the_text(page):
    """On a forge a toctree is no navigation: the same pages are linked to, so that each is two clicks from the start."""
    text = without_code((DOCS / page).read_text(encoding="utf-8"))
    linked = {(DOCS / match).resolve() for match in re.findall(r"\]\(([\w./-]+\.md)", text)}
    methods = set((DOCS / "methods").iterdir())
    assert set(entries(DOCS / page)) - methods <= linked
    assert f"({page})" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_every_public_name_has_one_page():
    shown = {path for text in dict(pages()).values() for path in listed(text)}
    assert {name.path for name in public_names()} == shown
    assert len({id(name.value) for name in public_names() if name.kind != "constant"}) == len(
        {name.path for name in public_names() if name.kind != "constant"}
    )


def listed(text):
    """Full names in the tables of a module's page."""
    module = re.search(r"^\.\. currentmodule:: (\S+)$", text, re.MULTILINE)
    for table in re.findall(r"^\.\. autosummary::\n(?:   .*\n)*\n((?:   \w+\n)+)", text, re.MULTILINE):
        yield from (f"{module[1]}.{name}" for name in table.split())


def test_every_constant_has_a_comment():
    constants = [name for name in public_names() if name.kind == "constant"]
    assert [name.path for name in constants if not comment_of(import_module(name.module), name.name)] == []


def test_links_to_files_of_the_repository_become_links_to_pages(tmp_path):
    docs = tmp_path / "docs"
    files = (
        "docs/a.md",
        "bench/rows/results.md",
        "tests/test_a.py",
        "examples/plot_b.py",
        "plans/demo.toml",
        "src/rbrl/b.py",
    )
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[all](../rows)\n", encoding="utf-8")
    text = "[m](../bench/rows) [t](../tests/test_a.py) [g](../examples/plot_b.py) [p](a.md#x) [w](https://a.b) [f](../plans)"
    made = "[all](../examples) [names](../src/rbrl)"
    repository = Repository(docs)
    assert repository.with_links(text, docs, docs) == (
        "[m](repository/bench/rows/results.md) [t](repository/tests/test_a.py.md) [g](auto_examples/plot_b.rst) "
        "[p](a.md#x) [w](https://a.b) [f](repository/plans.md)"
    )
    assert repository.with_links(made, docs, docs) == "[all](auto_examples/index.rst) [names](api/index.rst)"
    assert "[all](results.md)" in repository.shown(tmp_path / "bench/rows/results.md")
    assert "`demo.toml`" in repository.shown(tmp_path / "plans")
    named = "`tests/test_a.py::test_b` `tests/none.py` [`tests/test_a.py`](https://a.b)"
    assert repository.with_links(named, docs, docs) == (
        "[`tests/test_a.py::test_b`](repository/tests/test_a.py.md) `tests/none.py` [`tests/test_a.py`](https://a.b)"
    )
    code = "```sh\n[m](../bench/rows)\n```\n"
    assert repository.with_links(code, docs, docs) == code


def test_source_code_links_back_to_the_page_of_a_name():
    source_links = pytest.importorskip("source_links", reason="the site needs Sphinx, which is not installed")
    page = 'href="../api/rbrl.metrics.Metric.html#rbrl.'
    assert source_links.with_anchors(f'{page}Metric.value"') == (
        'href="../api/rbrl.metrics.Metric.html#rbrl.metrics.Metric.value"'
    )
    right = 'href="../api/rbrl.save.html#rbrl.save"'
    assert source_links.with_anchors(right) == right


def test_a_compressed_file_becomes_a_page_of_its_text(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(b"method,value\nbrl,0.5\n"))
    assert "brl,0.5" in Repository(tmp_path / "docs").shown(tmp_path / "rows.csv.gz")
