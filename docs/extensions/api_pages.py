"""The API reference: a page for every public module, whose tables of autosummary make a page for every public name."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from public_names import KINDS, PublicName, public_names
from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock

FOLDER = "api"
INTRODUCTION = """\
API reference
=============

Every public name, by the module it is imported from. :doc:`/guide` says by task which of them to use, and
:doc:`/glossary` what the words mean.

"""


def names_of_modules(mocked: list[str]) -> dict[str, list[PublicName]]:
    with mock(mocked):
        names = public_names()
    return {module: list(group) for module, group in groupby(names, attrgetter("module"))}


def summary(module: ModuleType) -> str:
    """What a module is, as its docstring says, without the example."""
    return inspect.getdoc(module).partition("\nExamples\n")[0].strip()


def heading(title: str, underline: str) -> str:
    return f"{title}\n{underline * len(title)}\n\n"


def module_page(module: ModuleType, names: list[PublicName]) -> str:
    """The page of a module: what it is, its names by kind, and those that have their page elsewhere."""
    name = module.__name__
    parts = [heading(name, "="), f".. currentmodule:: {name}\n\n", f".. module:: {name}\n   :no-index-entry:\n\n", summary(module), "\n\n"]
    here = [public for public in names if public.home == name]
    for kind, title in KINDS.items():
        of_kind = [public.name for public in here if public.kind == kind]
        if of_kind:
            table = f".. autosummary::\n   :toctree: .\n   :template: autosummary/{kind}.rst\n\n"
            parts += [heading(title, "-"), table, *(f"   {each}\n" for each in of_kind), "\n"]
    elsewhere = [f":py:obj:`{public.path}`" for public in names if public.home != name]
    if elsewhere:
        parts += [heading("Also here", "-"), ", ".join(elsewhere), "\n"]
    return "".join(parts)


def pages(mocked: list[str]) -> Iterator[tuple[str, str]]:
    """(name of the page, text) of the index and of every module."""
    modules = names_of_modules(mocked)
    rows, entries = [], []
    for name, names in modules.items():
        with mock(mocked):
            module = import_module(name)
        yield name, module_page(module, names)
        first = summary(module).partition("\n\n")[0].replace("\n", " ")
        rows.append(f"   * - :doc:`{name} <{name}>`\n     - {first}\n")
        entries.append(f"   {name}\n")
    table = ".. list-table::\n   :widths: 25 75\n\n"
    toctree = "\n.. toctree::\n   :hidden:\n\n"
    yield "index", INTRODUCTION + table + "".join(rows) + toctree + "".join(entries)


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir, FOLDER)
    folder.mkdir(exist_ok=True)
    for name, text in pages(app.config.autodoc_mock_imports):
        path = folder / f"{name}.rst"
        # A page that is as it was keeps its time, so that Sphinx does not read it again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    # Before autosummary, which reads these pages to find what it has to make.
    app.connect("builder-inited", write_pages, priority=100)
    return {"parallel_read_safe": True}
