"""Check that docstrings open plainly and that a constant has one value.

    python tools/check_words.py [FOLDER ...]        default: src; exit code 1 with a line for each violation

- A docstring opens with an imperative verb or a complete noun phrase, so not with a pronoun, a preposition or a question
  word: "Return the rows that have a label.", not "What has a label.".
- The description of a parameter or an attribute opens in the same way; "Whether to ..." is allowed there.
- A module constant that is a number has the same value wherever its name is used.
"""

import ast
import re
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_AN_OPENER = re.compile(
    r"(What|Which|Whose|Who|Where|When|How(?! many)|Of|That|Those|To|By|For|From|With|In(?! place)|As|Up to)\b"
)
NOT_A_DOCSTRING = re.compile(r"Whether\b")
# "name : type", as numpydoc writes it.
FIELD = re.compile(r"[\w*, ]+ : \S")
NUMBER = re.compile(r"[-+*/() _.\de]*\d[-+*/() _.\de]*")


def docstrings(tree):
    """Yield (name, line, docstring) of the module, its classes and its functions."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), getattr(node, "lineno", 1), text


def check_docstrings(path, tree):
    """Yield a complaint for each docstring and each field description with a wrong opener."""
    for name, line, text in docstrings(tree):
        lines = text.splitlines()
        if NOT_AN_OPENER.match(lines[0]) or NOT_A_DOCSTRING.match(lines[0]):
            yield f"{path}:{line}: the docstring of {name} must open with a verb or a noun phrase. Got {lines[0]!r}."
        for field, description in pairwise(lines):
            if FIELD.match(field.strip()) is None:
                continue
            is_deeper = len(description) - len(description.lstrip()) > len(field) - len(field.lstrip())
            if is_deeper and NOT_AN_OPENER.match(description.strip()):
                yield f"{path}:{line}: in {name}, a description opens with {description.strip()[:60]!r}."


def constants(tree):
    """Yield (name, line, value) of the module constants that are numbers."""
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = ast.unparse(node.value)
        for target in targets:
            if isinstance(target, ast.Name) and target.id.isupper() and NUMBER.fullmatch(value):
                yield target.id, node.lineno, value


def check(folders):
    """Return the complaints about the Python files of some folders."""
    complaints = []
    values = defaultdict(dict)
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            complaints += check_docstrings(path, tree)
            for name, line, value in constants(tree):
                values[name].setdefault(value, f"{path}:{line}")
    for name, places in values.items():
        if len(places) > 1:
            found = ", ".join(f"{value} at {place}" for value, place in places.items())
            complaints.append(f"{name} must have one value. Got {found}.")
    return complaints


def main(folders):
    """Print the complaints; return the exit code."""
    complaints = check(folders or [ROOT / "src"])
    print("\n".join(complaints) or "Every docstring opens plainly, and every constant has one value.")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
