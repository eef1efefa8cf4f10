"""Run the blocks of docs/other-tools.md with the packages of this environment, and write their versions into the page.

    python -m pip install mlflow optuna shap mapie cleanlab skore pytest ".[data]"
    python tools/other_tools.py

Without one of the packages, or if the output of a block differs from the page, nothing is written.
"""

import platform
import re
import subprocess
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "other-tools.md"
# Packages that every block needs.
COMMON = ("numpy", "scikit-learn", "pandas", "skops")
BEGIN = "<!-- versions: written by `python tools/other_tools.py` -->\n"
END = "<!-- /versions -->"


def main():
    text = PAGE.read_text(encoding="utf-8")
    table = version_table(tools_of(text), date.today())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_docs.py", "-k", PAGE.name]
    if subprocess.run(command, cwd=ROOT).returncode:
        sys.exit("Every block of docs/other-tools.md must print what the page says. The table was not changed.")
    PAGE.write_text(with_table(text, table), encoding="utf-8")
    print(table)


def tools_of(text):
    """Return the packages that blocks of the page name, in their order."""
    return list(dict.fromkeys(re.findall(r"^```python needs=(\w+)$", text, re.MULTILINE)))


def version_table(tools, day):
    """Return the table of the installed versions; exit if a package is missing."""
    installed, missing = {"Python": platform.python_version()}, []
    for name in (*COMMON, *tools):
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        sys.exit(
            f"The blocks need {', '.join(missing)}, which this environment does not have: "
            f"pip install {' '.join(missing)}"
        )
    rows = "".join(f"| {name} | {number} |\n" for name, number in installed.items())
    return f"Run on {day.isoformat()} with these versions:\n\n| package | version |\n|---|---|\n{rows}\n"


def with_table(text, table):
    """Return the page with another table."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    main()
