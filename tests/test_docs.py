"""The documentation is true: its examples run, its links lead somewhere, its lists are those of the project."""

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rbrl
from rbrl._common.old_names import MODULES, NAMES
from rbrl.cli import main

ROOT = Path(__file__).resolve().parents[1]
# What `make docs` writes among the pages.
MADE = {ROOT / "docs" / name for name in ("_build", "api", "auto_examples", "repository")}
WRITTEN = [page for page in ROOT.glob("docs/**/*.md") if MADE.isdisjoint(page.parents)]
PAGES = sorted([*ROOT.glob("*.md"), *WRITTEN, *ROOT.glob("changes/*.md")])
# Pages without examples that are run, whose links are checked as well.
LINKING = [*PAGES, *sorted([*ROOT.glob("studies/**/*.md"), *ROOT.glob("tests/**/*.md"), *ROOT.glob("tools/*.md")])]
BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# A page whose examples need an extra names its modules: <!-- needs: torch -->
NEEDS = re.compile(r"^<!-- needs: (?P<modules>[\w, ]+) -->$", re.MULTILINE)
# A block that needs a package outside the extras names it: ```python needs=optuna
TOOL_BLOCK = re.compile(r"^```python needs=(?P<package>\w+)$", re.MULTILINE)
# Modules that can be imported without the extra, but whose examples need a package of it.
EXAMPLES_NEED = {"rbrl.interop.onnx": "onnxruntime"}
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blocks(page):
    """The fenced blocks of a page: (language and options, text, whether it follows its predecessor directly)."""
    text, end = page.read_text(encoding="utf-8"), 0
    for match in BLOCK.finditer(text):
        yield match["kind"].split(), match["text"], not text[end : match.start()].strip()
        end = match.end()


def prose(page):
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch):
    for needs in NEEDS.finditer(page.read_text(encoding="utf-8")):
        for module in needs["modules"].split(", "):
            pytest.importorskip(module, reason=f"the page needs {module}, which is not installed")
    monkeypatch.chdir(tmp_path)
    run_examples(page, ["python"])


def tools_of(page):
    """Return the packages outside the extras that blocks of a page need, in their order on the page."""
    return list(dict.fromkeys(TOOL_BLOCK.findall(page.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    ("page", "package"),
    [(page, package) for page in PAGES for package in tools_of(page)],
    ids=lambda value: value if isinstance(value, str) else name_of(value),
)
def test_examples_with_other_tools_print_what_the_page_says(page, package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DO_NOT_TRACK", "true")  # some packages report their use to their makers
    pytest.importorskip(package, reason=f"the blocks need {package}, which is not installed")
    run_examples(page, ["python", f"needs={package}"])


def run_examples(page, python):
    """Write the files of a page, run its commands and the blocks of the kind `python`, and compare their output."""
    namespace, printed = {"__name__": "__main__"}, None
    for kind, text, adjacent in blocks(page):
        for file in (option.removeprefix("file=") for option in kind if option.startswith("file=")):
            Path(file).write_text(text, encoding="utf-8")
        if kind == python:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, name_of(page), "exec"), namespace)
            printed = out.getvalue()
        elif kind == ["sh", "run"]:
            printed = output_of(text)
        else:
            if kind == ["text"] and adjacent and printed is not None:
                assert printed.strip() == text.strip()
            printed = None


# Characters that only a shell understands, outside of quotes.
OF_A_SHELL = re.compile(r"[|&;<>()$`\\*?#~\[\]{}]")


def output_of(commands):
    """Return the output of commands, typed at a shell in which `rbrl` is this package.

    Without a line for the shell itself, they are run in this process, which has the package imported.
    """
    lines = commands.splitlines()
    if all(line.startswith("rbrl ") and not OF_A_SHELL.search(without_quoted(line)) for line in lines):
        return "".join(output_of_rbrl(shlex.split(line)[1:]) for line in lines)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    shell = f'set -e\nrbrl() {{ "{sys.executable}" -m rbrl.cli "$@"; }}\n{commands}'
    run = subprocess.run(["sh", "-c", shell], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def without_quoted(line):
    return re.sub(r"""'[^']*'|"[^"$`\\]*\"""", "", line)


def output_of_rbrl(arguments):
    """Return the output of a call of `rbrl` that ends well."""
    out, error = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")  # as in a pipe, also if the tests run in a terminal
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            code = exit_code_of(arguments)
    assert code == 0, error.getvalue()
    return out.getvalue()


def exit_code_of(arguments):
    try:
        main(arguments)
    except SystemExit as end:
        return end.code or 0
    return 0


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_excerpts_stand_in_their_file(page):
    for kind, text, _ in blocks(page):
        sources = [option.removeprefix("from=") for option in kind if option.startswith("from=")]
        for source in sources:
            assert text in (ROOT / source).read_text(encoding="utf-8"), f"{source} no longer holds:\n{text}"


def anchors_of(page):
    """Return the anchors of the headings of a page; a repeated heading gets a number."""
    found = []
    for title in re.findall(r"^#{1,6} (.*)$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title.strip()).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = sum(one == slug for one, _ in found)
        found.append((slug, f"{slug}-{number}" if number else slug))
    return {anchor for _, anchor in found}


def leads_somewhere(page, target):
    """Return True if the file of a relative link exists and has a heading with the anchor of the link."""
    file, _, anchor = target.partition("#")
    path = (page.parent / file).resolve() if file else page
    return path.exists() and (not anchor or path.suffix != ".md" or anchor in anchors_of(path))


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_links_lead_somewhere(page):
    targets = [match["target"] for match in LINK.finditer(prose(page))]
    relative = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in relative if not leads_somewhere(page, target)] == []


def test_dead_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n\n# One\n\n## `gap_`: *it* [is](x.md)\n", encoding="utf-8")
    assert anchors_of(page) == {"one", "one-1", "gap_-it-is"}
    for target in ("page.md", "#one", "page.md#one-1"):
        assert leads_somewhere(page, target)
    for target in ("other.md", "#two", "page.md#one-2"):
        assert not leads_somewhere(page, target)


def modules():
    return [info.name for info in pkgutil.walk_packages(rbrl.__path__, "rbrl.")]


@pytest.mark.parametrize("module", modules())
def test_docstring_examples(module):
    assert doctest.testmod(imported(module)).failed == 0


def imported(module):
    """A module; the test is skipped where it says which extra it needs."""
    for package in (package for name, package in EXAMPLES_NEED.items() if f"{module}.".startswith(f"{name}.")):
        pytest.importorskip(package, reason=f"the examples need {package}, which is not installed")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if "pip install 'rbrl[" not in str(error):
            raise
        return pytest.skip(str(error))


def layers_of(lines):
    """Layers as sets of names; parentheses, which mark what may be absent, are left out."""
    return [{name.strip(" ()") for name in line.split("|")} for line in lines]


def test_the_picture_of_the_layers_is_the_contract():
    (shown,) = [text for kind, text, _ in blocks(ROOT / "docs/architecture.md") if kind == ["layers"]]
    (contract,) = PYPROJECT["tool"]["importlinter"]["contracts"]
    assert layers_of(shown.splitlines()) == layers_of(contract["layers"])
    assert "ignore_imports" not in contract


def test_modules_keep_to_their_layers():
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run([*command, "--no-cache"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def requirements():
    project = PYPROJECT["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    lines = [*project["dependencies"], *extras, *PYPROJECT["build-system"]["requires"]]
    return {re.match(r"[\w.-]+", line)[0].lower() for line in lines} - {"rbrl"}


def test_every_dependency_has_its_reason():
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| ([\w.-]+) \|", page, re.MULTILINE)) - {"package"}
    assert explained == requirements(), "docs/dependencies.md needs a line for each dependency of pyproject.toml"


def test_versions_agree():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert rbrl.__version__ == cited


def test_the_glossary_lists_every_old_name():
    """Modules inside a package of today are left out, because no page documents them."""
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    documented = [name for name in MODULES if name.rpartition(".")[0] in {"rbrl", *MODULES}]
    assert [name for name in [*documented, *NAMES] if f"| `{name}` |" not in page] == []
