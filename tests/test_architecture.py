"""The map of the package is complete, and what its pages say of adding something is so."""

import os
import re
import shutil
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import rbrl

ROOT = Path(__file__).resolve().parents[1]
MAP = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (?P<title>[^\n]*)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?:python|toml) (?P<option>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ADDITIONS = {
    section["title"]: [(block["option"], block["text"]) for block in BLOCK.finditer(section["text"])]
    for section in SECTION.finditer((ROOT / "docs/extending.md").read_text(encoding="utf-8"))
}


def named_modules():
    """Modules that the table names, as dotted paths below rbrl; a package itself is not one."""
    packages = ROOT / "src/rbrl"
    for first, modules in re.findall(r"^\| (`[^|]*`) \|([^|]*)\|", MAP.partition("| package |")[2], re.MULTILINE):
        for name in re.findall(r"`([\w.]+)`", first):
            if not (packages / name.replace(".", "/")).is_dir():
                yield name
            yield from (f"{name}.{module}" for module in re.findall(r"`(\w+)`", modules))


def present_modules():
    for path in (ROOT / "src/rbrl").rglob("*.py"):
        if not path.name.startswith("__"):
            yield ".".join(path.relative_to(ROOT / "src/rbrl").with_suffix("").parts)


def test_the_table_names_every_module_and_no_other():
    named, present = list(named_modules()), set(present_modules())
    assert len(named) == len(set(named))
    assert set(named) - present == set(), "named, but not there"
    assert present - set(named) == set(), "there, but not named"


def test_the_functions_on_the_way_of_the_data_are_there():
    picture = MAP.partition("```text\n")[2].partition("```")[0]
    names = re.findall(r"^ *(?:│ +)?(?:\w+ +)?(\w+\.\w+)  ", picture, re.MULTILINE)
    assert len(names) == 10
    said = re.findall(r"`(experiments\.\w+)`", MAP.partition("## Layers")[0])
    assert said
    for name in [*names, *said]:
        assert callable(attrgetter(name)(rbrl))


def test_the_map_is_short():
    assert len(MAP.splitlines()) <= 180


def test_every_addition_takes_two_places_at_most_and_is_used():
    assert len(ADDITIONS) == MAP.partition("## Where to add what")[2].count("\n| a ")
    for blocks in ADDITIONS.values():
        assert 1 <= sum(option.startswith("into=") for option, _ in blocks) <= 2
        assert blocks[-1][0] == "use"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of package and tests with all additions in it."""
    root = tmp_path_factory.mktemp("repository")
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, root / part)
    shutil.copy(ROOT / "pyproject.toml", root)
    for option, text in (block for blocks in ADDITIONS.values() for block in blocks):
        if option.startswith("into="):
            place, _, collection = option.removeprefix("into=").partition(":")
            add(root / place, text, collection)
    return root


def add(path, text, collection):
    """Append text to a file, or put it first into a collection, its imports before those of the file."""
    before = path.read_text(encoding="utf-8") if path.exists() else f'"""Added: {path.stem}."""\n\n'
    if not collection:
        path.write_text(f"{before}\n\n{text}", encoding="utf-8")
        return
    imports = re.findall(r"^from .*\n", text, re.MULTILINE)
    lines = re.sub(r"^from .*\n\n?", "", text, flags=re.MULTILINE)
    (bracket,) = re.finditer(rf"^{collection}\b[^=\n]*= [(\[{{]", before, re.MULTILINE)
    after = before[: bracket.end()] + f"\n{lines}" + before[bracket.end() :].lstrip("\n")
    first_import = re.search(r"^from rbrl", after, re.MULTILINE)
    place = first_import.start() if first_import else 0
    path.write_text(after[:place] + "".join(imports) + after[place:], encoding="utf-8")


def run(copy, command, folder):
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_additions_are_used_as_the_page_says(copy, tmp_path):
    """All in one process, as a reader would type them: later sections use the data of the first."""
    session = "\n".join(text for blocks in ADDITIONS.values() for option, text in blocks if option == "use")
    (tmp_path / "session.txt").write_text(session, encoding="utf-8")
    run(copy, ["-m", "doctest", "session.txt"], tmp_path)


def test_the_tests_of_all_losses_run_over_the_one_that_was_added(copy):
    options = ["-q", "-p", "no:cacheprovider", "-k", "LeastSquares", "tests/losses/test_losses.py"]
    passed = re.search(r"(\d+) passed", run(copy, ["-m", "pytest", *options], copy))
    assert int(passed[1]) > 5
