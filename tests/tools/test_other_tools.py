"""The table of versions at the end of docs/other-tools.md: what it lists, and when it is written."""

import re
from datetime import date

import pytest

import other_tools

TEXT = f"""# Tools

```python needs=optuna
```
```python needs=shap
```
```python needs=optuna
```
{other_tools.BEGIN}old
{other_tools.END}
the end
"""


def test_the_table_lists_the_packages_of_the_page():
    text = other_tools.PAGE.read_text(encoding="utf-8")
    table = text.split(other_tools.BEGIN)[1].split(other_tools.END)[0]
    listed = re.findall(r"^\| ([\w-]+) \| \d+\.\S+ \|$", table, re.MULTILINE)
    assert listed == ["Python", *other_tools.COMMON, *other_tools.tools_of(text)]
    assert re.search(r"^Run on 20\d\d-\d\d-\d\d ", table, re.MULTILINE)


def test_only_the_table_is_replaced():
    assert other_tools.tools_of(TEXT) == ["optuna", "shap"]
    new = other_tools.with_table(TEXT, "new\n")
    assert new == TEXT.replace("old\n", "new\n")


def test_versions_are_those_of_the_environment():
    table = other_tools.version_table(["pytest"], date(2026, 11, 19))
    assert f"| pytest | {pytest.__version__} |" in table
    assert table.startswith("Run on 2026-11-19 ")


def test_a_missing_package_is_named():
    with pytest.raises(SystemExit, match="need not_a_package, which"):
        other_tools.version_table(["not_a_package"], date(2026, 11, 19))


def test_a_block_that_fails_leaves_the_page(tmp_path, monkeypatch):
    page = tmp_path / "other-tools.md"
    page.write_text(TEXT.replace("optuna", "pytest").replace("shap", "pytest"), encoding="utf-8")
    monkeypatch.setattr(other_tools, "PAGE", page)
    monkeypatch.setattr(other_tools, "ROOT", tmp_path)  # without tests/test_docs.py, pytest fails
    with pytest.raises(SystemExit, match="The table was not changed"):
        other_tools.main()
    assert "old\n" in page.read_text(encoding="utf-8")
