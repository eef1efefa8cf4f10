"""Every public name has a docstring in order, with an example that a reader can paste; `test_docs` runs them all."""

import ast
import builtins
import doctest
import inspect
import re
from pathlib import Path

import pytest
from numpydoc.validate import validate
from public_names import public_names

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "rbrl"
LIST = re.compile(r"^__all__ = (\[.*?\])", re.MULTILINE | re.DOTALL)
# What others define, such as scikit-learn's ConvergenceWarning, they document.
NAMES = [
    name
    for name in public_names()
    if name.home == name.module and name.kind != "constant" and name.value.__module__.startswith("rbrl.")
]
DEFINITIONS = ast.FunctionDef | ast.ClassDef
# Of numpydoc's codes: sections that are malformed or out of order, parameters that are unknown, out of order or without a
# type, and what a summary or a function cannot do without.
MALFORMED = {
    "GL01",
    "GL06",
    "GL07",
    "GL08",
    "GL09",
    "PR02",
    "PR03",
    "PR04",
    "PR05",
    "PR10",
    "SS01",
    "SS04",
    "SS06",
    "YD01",
}
OF_FUNCTIONS = {"PR01", "RT01"}
# What its options may be stands among its other parameters.
EXCEPTIONS = {("rbrl.datasets.load_file", "PR02")}


def example_of(name):
    """The statements of a name's examples."""
    text = inspect.cleandoc(name.value.__doc__ or "")
    _, heading, section = text.partition("\nExamples\n--------\n")
    assert heading, f"{name.path} has no section Examples"
    return "".join(example.source for example in doctest.DocTestParser().get_examples(section))


def bound_names(tree):
    """Every name that statements give a value somewhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, DEFINITIONS | ast.ExceptHandler):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def used_names(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def test_at_most_150_names_are_listed_and_the_names_with_examples_are_nearly_all_of_them():
    lists = [
        ast.literal_eval(found[1]) for path in PACKAGE.rglob("*.py") if (found := LIST.search(path.read_text("utf-8")))
    ]
    n_listed = sum(map(len, lists))
    assert n_listed <= 150
    # Modules, constants and the version have no example of their own.
    assert len(NAMES) >= 0.75 * n_listed


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.path)
def test_the_example_can_be_pasted(name):
    """A doctest sees what its module imports; a reader does not."""
    tree = ast.parse(example_of(name))
    assert tree.body, f"{name.path} has a section Examples without an example"
    unknown = used_names(tree) - set(bound_names(tree)) - set(dir(builtins))
    assert not unknown, f"the example of {name.path} does not say where these come from: {sorted(unknown)}"


@pytest.mark.parametrize("name", [name for name in NAMES if name.kind == "function"], ids=lambda name: name.path)
def test_the_example_of_a_function_calls_it(name):
    assert name.name in used_names(ast.parse(example_of(name))) | attributes(ast.parse(example_of(name)))


def attributes(tree):
    """What is called by way of its module: `rbrl.load`."""
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.path)
def test_the_docstring_is_well_formed(name):
    """Records say in Attributes what they hold, so that Parameters are asked of functions alone."""
    codes = MALFORMED | (OF_FUNCTIONS if name.kind == "function" else set())
    found = validate(f"{name.value.__module__}.{name.value.__qualname__}")["errors"]
    assert not [error for error in found if error[0] in codes and (name.path, error[0]) not in EXCEPTIONS]
