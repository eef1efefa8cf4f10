"""The API reference: a page for every public module, whose tables of autosummary make a page for every public name."""

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from public_names import KINDS, PublicName, comment_of, public_names

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

FOLDER = "api"
INTRODUCTION = """\
API reference
=============

Every public name, by the module it is imported from. :doc:`/guide` says by task which of them to use, and
:doc:`/glossary` what the words mean.

"""


@cache
def names_of_modules() -> dict[str, list[PublicName]]:
    """The names of every public module that has some of its own."""
    groups = {module: list(group) for module, group in groupby(public_names(), attrgetter("module"))}
    return {module: names for module, names in groups.items() if any(name.home == module for name in names)}


def summary(module: ModuleType) -> str:
    """What a module is, as its docstring says, without the example."""
    return inspect.getdoc(module).partition("\nExamples\n")[0].strip()


def heading(title: str, underline: str) -> str:
    return f"{title}\n{underline * len(title)}\n\n"


def module_page(module: ModuleType, names: list[PublicName]) -> str:
    """The page of a module: what it is, its names by kind, and those that have their page elsewhere."""
    name = module.__name__
    parts = [
        heading(name, "="),
        f".. currentmodule:: {name}\n\n",
        f".. module:: {name}\n   :no-index-entry:\n\n",
        summary(module),
        "\n\n",
    ]
    here = [public for public in names if public.home == name]
    for kind, title in KINDS.items():
        of_kind = [public.name for public in here if public.kind == kind]
        if of_kind:
            table = f".. autosummary::\n   :toctree: .\n   :nosignatures:\n   :template: autosummary/{kind}.rst\n\n"
            parts += [heading(title, "-"), table, *(f"   {each}\n" for each in of_kind), "\n"]
    elsewhere = [f":py:obj:`{public.path}`" for public in names if public.home != name]
    if elsewhere:
        parts += [heading("Also here", "-"), ", ".join(elsewhere), "\n"]
    return "".join(parts)


def pages() -> Iterator[tuple[str, str]]:
    """(name of the page, text) of the index and of every module."""
    rows, entries = [], []
    for name, names in names_of_modules().items():
        module = import_module(name)
        yield name, module_page(module, names)
        first = summary(module).partition("\n\n")[0].replace("\n", " ")
        rows.append(f"   * - :doc:`{name} <{name}>`\n     - {first}\n")
        entries.append(f"   {name}\n")
    table = ".. list-table::\n   :widths: 25 75\n\n"
    toctree = "\n.. toctree::\n   :hidden:\n\n"
    yield "index", INTRODUCTION + table + "".join(rows) + toctree + "".join(entries)


def write_pages(app: "Sphinx", config: "Config") -> None:
    from sphinx.ext.autodoc.mock import mock

    folder = Path(app.srcdir, FOLDER)
    folder.mkdir(exist_ok=True)
    with mock(config.autodoc_mock_imports):
        texts = dict(pages())
        paths = {name.path for name in public_names()}
    of_names = {config.autosummary_filename_map.get(path, path) for path in paths}
    for path in folder.glob("*.rst"):
        if path.stem not in texts and path.stem not in of_names:
            path.unlink()  # of a name that is no longer there
    config.autosummary_generate = [f"{FOLDER}/{name}.rst" for name in texts]
    for name, text in texts.items():
        path = folder / f"{name}.rst"
        # A page that is as it was keeps its time, so that Sphinx does not read it again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def shape(value: object) -> str:
    """A constant in a line: the keys of a dict, what is short as it is, of others the type."""
    if isinstance(value, dict):
        return "Keys: " + ", ".join(f"``{key}``" for key in value)
    text = repr(value)
    return f"Value: ``{text}``" if len(text) <= 200 else f"A {type(value).__name__} of {len(value)}."


def describe_constant(app: "Sphinx", what: str, path: str, value: object, options: object, lines: list[str]) -> None:
    """The docstring of a constant is that of its type, and says nothing: its comment does."""
    module, _, name = path.rpartition(".")
    if what == "data":
        lines[:] = [comment_of(import_module(module), name), "", shape(value)]


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("autodoc-process-docstring", describe_constant)
    # Before Sphinx looks what pages there are: autosummary reads them to find what it has to make.
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True}
