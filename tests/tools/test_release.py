"""What makes a release: the readme of an index, the archives that are checked, the changelog, the workflows."""

import io
import re
import shutil
import tarfile
import tomllib
from datetime import date
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

import changelog
import distributions
import index_readme
import rbrl

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


class TestReadmeOfAnIndex:
    def test_links_to_files_become_absolute_where_there_is_an_address(self):
        text = "See [a page](docs/a.md#part), [there](https://elsewhere.example) and [below](#more). ![a curve](docs/a.png)"
        assert index_readme.for_index(text, "https://example.org/rbrl", "1.2.0") == (
            "See [a page](https://example.org/rbrl/blob/v1.2.0/docs/a.md#part), [there](https://elsewhere.example) and "
            "[below](https://example.org/rbrl/blob/v1.2.0/README.md#more). "
            "![a curve](https://example.org/rbrl/raw/v1.2.0/docs/a.png)"
        )

    def test_words_stay_where_there_is_none(self):
        assert index_readme.for_index("[a page](docs/a.md), [it](https://a.example)", None, "1") == (
            "a page, [it](https://a.example)"
        )

    def test_an_image_inside_a_link(self):
        shown = index_readme.for_index("[![state](a.svg)](b.md)", "https://x.example", "1")
        assert shown == "[![state](https://x.example/raw/v1/a.svg)](https://x.example/blob/v1/b.md)"

    def test_code_stays_as_it_is(self):
        text = "```python\nf[0](x)\n```\n[a](b)"
        assert index_readme.for_index(text, None, "1") == "```python\nf[0](x)\n```\na"

    def test_links_that_it_could_not_see_are_refused(self):
        with pytest.raises(ValueError, match="in Markdown"):
            index_readme.for_index('<img src="docs/a.png">', None, "1")

    def test_ours_has_no_relative_link_left(self):
        readme = index_readme.dynamic_metadata({}, PYPROJECT["project"] | {"version": rbrl.__version__})["readme"]
        prose = "".join(index_readme.FENCE.split(readme["text"])[::2])
        assert readme["content-type"] == "text/markdown"
        assert all(re.match(r"[a-z]+:", match["target"]) for match in index_readme.LINK.finditer(prose))


METADATA = "Metadata-Version: 2.4\nName: rbrl\n\n# rbrl\n\n[paper](https://a.example)\n"


def sdist(folder, names, metadata=METADATA):
    path = folder / "rbrl-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in [*names, "PKG-INFO"]:
            content = metadata.encode() if name == "PKG-INFO" else b""
            member = tarfile.TarInfo(f"rbrl-0.1.0/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def wheel(folder, names, metadata=METADATA, tag="cp312-abi3-linux_x86_64"):
    path = folder / f"rbrl-0.1.0-{tag}.whl"
    about = {"METADATA": metadata, "entry_points.txt": "", "licenses/LICENSE": "", "RECORD": ""}
    with ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
        for name, content in about.items():
            archive.writestr(f"rbrl-0.1.0.dist-info/{name}", content)
    return path


class TestArchives:
    @pytest.fixture
    def package(self, tmp_path):
        for name in ("rbrl/__init__.py", "rbrl/py.typed", "rbrl/_loops/core/loops.hpp", "rbrl/_loops/_core.abi3.so"):
            path = tmp_path / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path / "src"

    def test_a_source_archive_holds_what_git_has(self, tmp_path):
        path = sdist(tmp_path, ["a.py", "left.over"])
        complaints = list(distributions.complaints_of_sdist(path, {"a.py", "tests/test_a.py"}))
        assert complaints == [f"{path.name} lacks tests/test_a.py", f"{path.name} must not have left.over"]
        assert not list(distributions.complaints_of_sdist(path, {"a.py", "left.over"}))

    def test_a_wheel_holds_the_package_and_its_core(self, tmp_path, package):
        names = ["rbrl/__init__.py", "rbrl/py.typed"]
        core = "rbrl/_loops/_core.abi3.so"
        assert not list(distributions.complaints_of_wheel(wheel(tmp_path, [*names, core]), package))
        assert not list(distributions.complaints_of_wheel(wheel(tmp_path, names, tag="py3-none-any"), package))

    @pytest.mark.parametrize(
        ("names", "complaint"),
        [
            (["rbrl/__init__.py", "rbrl/_loops/_core.abi3.so"], "lacks rbrl/py.typed"),
            (["rbrl/__init__.py", "rbrl/py.typed"], "a compiled core goes with"),
            (
                ["rbrl/__init__.py", "rbrl/py.typed", "rbrl/_loops/_core.abi3.so", "tests/test_a.py"],
                "have tests/test_a.py",
            ),
            (
                ["rbrl/__init__.py", "rbrl/py.typed", "rbrl/_loops/_core.abi3.so", "rbrl/_loops/core/loops.hpp"],
                "must not have rbrl/_loops/core/loops.hpp",
            ),
        ],
    )
    def test_a_wheel_that_lacks_something_or_has_too_much(self, tmp_path, package, names, complaint):
        (found,) = distributions.complaints_of_wheel(wheel(tmp_path, names), package)
        assert complaint in found

    def test_a_link_that_dies_on_an_index(self, tmp_path):
        path = sdist(tmp_path, ["a.py"], METADATA + "[page](docs/a.md)\n")
        (complaint,) = distributions.complaints_of_sdist(path, {"a.py"})
        assert complaint.endswith("dies on an index: docs/a.md")


class TestChangelog:
    @pytest.fixture
    def repository(self, tmp_path):
        for name in ("CHANGELOG.md", "CITATION.cff", "src/rbrl/_version.py"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
        (tmp_path / "CHANGELOG.md").write_text(changelog.HEAD + changelog.NONE_YET, encoding="utf-8")
        (tmp_path / "changes").mkdir()
        for name, text in {"README": "how", "a-loss": "- See [docs](../docs/a.md).\n", "Zed": "- Last.\n"}.items():
            (tmp_path / f"changes/{name}.md").write_text(text, encoding="utf-8")
        return tmp_path

    def test_becomes_a_section_of_the_version(self, repository):
        changelog.main([], repository)
        text = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
        today = date.today().isoformat()
        section = f"## {rbrl.__version__} ({today})\n\n### Zed\n\n- Last.\n\n### A loss\n\n- See [docs](docs/a.md).\n"
        assert text == f"{changelog.HEAD}\n{section}"
        assert [path.name for path in (repository / "changes").iterdir()] == ["README.md"]
        assert f"version: {rbrl.__version__}\ndate-released: {today}\n" in (repository / "CITATION.cff").read_text()

    def test_the_next_goes_above(self, repository):
        changelog.main([], repository)
        (repository / "src/rbrl/_version.py").write_text('__version__ = "99.0"\n', encoding="utf-8")
        (repository / "changes/b.md").write_text("- More.", encoding="utf-8")
        changelog.main([], repository)
        text = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
        assert re.findall(r"^## (\S+)", text, re.MULTILINE) == ["99.0", rbrl.__version__]
        assert (repository / "CITATION.cff").read_text().count("date-released") == 1

    def test_a_draft_changes_nothing(self, repository, capsys):
        changelog.main(["--draft"], repository)
        assert "### A loss" in capsys.readouterr().out
        assert len(list((repository / "changes").iterdir())) == 3

    def test_twice_the_same_version_is_refused(self, repository):
        changelog.main([], repository)
        (repository / "changes/b.md").write_text("- More.", encoding="utf-8")
        with pytest.raises(SystemExit, match="must not have the version"):
            changelog.main([], repository)

    def test_nothing_to_tell_is_refused(self, repository):
        for name in ("a-loss", "Zed"):
            (repository / f"changes/{name}.md").unlink()
        with pytest.raises(SystemExit, match="Got none"):
            changelog.main([], repository)

    def test_ours_can_be_written(self):
        assert (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").startswith(changelog.HEAD)


class TestWorkflows:
    @pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
    def test_targets_exist_and_actions_are_pinned_by_commit(self, path):
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
        steps = [step for job in jobs.values() for step in job["steps"]]
        commands = "\n".join(step.get("run", "") for step in steps)
        targets = re.findall(r"^make (?:-C \S+ )?([a-z]+)", commands, re.MULTILINE)
        assert set(targets) <= set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
        # The version that the commit has stands beside it, for the one who updates it.
        uses = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
        assert all(re.fullmatch(r"\S+ # v\d+\.\d+\.\d+", use) for use in uses)

    def test_every_python_of_the_classifiers_is_tested_and_no_other(self):
        matrix = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]["test"]["strategy"][
            "matrix"
        ]
        classifiers = PYPROJECT["project"]["classifiers"]
        named = [version for line in classifiers for version in re.findall(r":: (3\.\d+)$", line)]
        assert matrix["python"] == named
        assert PYPROJECT["project"]["requires-python"] == f">={named[0]}"

    def test_forms_ask_for_something(self):
        for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")):
            form = yaml.safe_load(path.read_text(encoding="utf-8"))
            if path.stem != "config":
                assert form["name"]
                assert form["description"]
                assert any(part.get("validations", {}).get("required") for part in form["body"])
