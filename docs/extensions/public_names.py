"""The public names of rbrl: what `__all__` of the package and of its public modules says, each at one home.

A name that several modules export belongs to the first of them, the package itself before all others: there it has its page
of the reference, and the others point to it. Knows nothing of Sphinx, so that the tests can ask too.
"""

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import rbrl

# What a module's page shows under which heading, in this order.
KINDS = {"class": "Classes", "function": "Functions", "constant": "Constants", "exception": "Errors and warnings"}


@dataclass(frozen=True)
class PublicName:
    """One name of one module.

    Parameters
    ----------
    module, name : str
    value : object
    home : str
        The module of the name's page: this one, or the first that exports the same thing.
    """

    module: str
    name: str
    value: Any
    home: str

    @property
    def kind(self) -> str:
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if inspect.isroutine(self.value) else "constant"

    @property
    def path(self) -> str:
        return f"{self.home}.{self.name}"


def public_modules() -> Iterator[ModuleType]:
    """The package, and every module below it that says what it exports; those whose extra is not installed are left out."""
    yield rbrl
    for info in pkgutil.walk_packages(rbrl.__path__, "rbrl."):
        if "._" in info.name or info.name.startswith("rbrl.cli"):
            continue
        try:
            module = import_module(info.name)
        except ImportError as error:
            if "pip install 'rbrl[" not in str(error):
                raise
            continue
        if hasattr(module, "__all__"):
            yield module


def public_names() -> list[PublicName]:
    """Every name that a public module exports, but for modules and the version."""
    homes: dict[int, str] = {}
    found = []
    for module in public_modules():
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if inspect.ismodule(value) or name.startswith("_"):
                continue
            # Constants may be equal by chance, and then one object: they stay where they are.
            shared = inspect.isclass(value) or inspect.isroutine(value)
            home = homes.setdefault(id(value), module.__name__) if shared else module.__name__
            found.append(PublicName(module.__name__, name, value, home))
    return found


def comment_of(module: ModuleType, name: str) -> str:
    """What the comment above a constant says of it, in the module that defines it."""
    source = inspect.getsource(module)
    for statement in ast.walk(ast.parse(source)):  # those of the module itself come first
        if isinstance(statement, ast.ImportFrom) and name in [alias.name for alias in statement.names]:
            return comment_of(import_module(str(statement.module)), name)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and name in _assigned(statement):
            return _comment_above(source.splitlines(), statement.lineno - 1)
    return ""


def _assigned(statement: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def _comment_above(lines: list[str], line: int) -> str:
    found: list[str] = []
    while line > 0 and lines[line - 1].startswith("# "):
        line -= 1
        found.insert(0, lines[line].removeprefix("# "))
    return " ".join(found)
