"""Reproduction and comparison are users of rbrl like any other: they know its public names only. Their examples are true."""

import ast
import doctest
import importlib
from pathlib import Path

import pytest

STUDIES = Path(__file__).resolve().parents[3] / "studies"
MODULES = sorted(path for name in ("", "reproduction", "comparison") for path in (STUDIES / name).glob("*.py"))
FILES = [
    *MODULES,
    *sorted((STUDIES / "reproduction").glob("*/*.py")),
    *sorted((STUDIES / "comparison" / "commands").glob("*.py")),
]
PUBLIC = [
    *(
        "rbrl",
        "rbrl.experiments",
        "rbrl.experiments.figures",
        "rbrl.experiments.tables",
        "rbrl.metrics",
        "rbrl.experiments.statistics",
        "rbrl.datasets",
    ),
    *("rbrl.selection", "rbrl.solvers", "rbrl.estimators", "rbrl.problem", "rbrl.registry", "rbrl.decision"),
    *("rbrl.exceptions", "rbrl.ranking_svm", "rbrl.splits"),
]

# Parts of the library that the studies build on. Users do not need them, so no `__all__` lists them.
UNLISTED = {
    "rbrl.experiments": {
        "DatasetLoader",
        "RUN_KEYS",
        "expand",
        "friedman_table",
        "machine",
        "progress_for",
        "rank_table",
        "ranks_table",
    },
    "rbrl.experiments.figures": {"HEAT", "INK", "MUTED"},
    "rbrl.experiments.statistics": {"median_differences", "ranks"},
    "rbrl.ranking_svm": {"HingePairs", "zero_label_pairs"},
    "rbrl.experiments.tables": {
        "Cell",
        "MISSING",
        "Table",
        "best_of",
        "count",
        "heading",
        "join",
        "number",
        "p_text",
        "seconds",
        "show_tables",
        "spread",
        "to_markdown",
        "word",
        "write_text",
    },
}


def imported(path):
    """(module, name) of everything that a file imports from rbrl; the name is None for a whole module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [(node.module, alias.name) for alias in node.names]
        else:
            found = []
        yield from ((module, name) for module, name in found if module.partition(".")[0] == "rbrl")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_only_public_names_are_imported(path):
    for module, name in imported(path):
        assert module in PUBLIC, f"{path.name} imports {module}"
        public = {*getattr(importlib.import_module(module), "__all__", ()), *UNLISTED.get(module, ())}
        is_module = f"{module}.{name}" in PUBLIC
        assert name is None or is_module or name in public, f"{module}.{name} is not public"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_private_attribute_of_another_object_is_used(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")]
    others = [node for node in used if not (isinstance(node.value, ast.Name) and node.value.id == "self")]
    assert {node.attr for node in others} <= {"_replace", "__dict__", "__name__"}, "all public in Python"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_docstring_examples(path):
    name = ".".join(path.relative_to(STUDIES.parent).with_suffix("").parts)
    assert doctest.testmod(importlib.import_module(name)).failed == 0
