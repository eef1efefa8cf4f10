"""Names of modules that were moved: they still work, with a DeprecationWarning.

`MODULES` is the only place that knows an old name. To move a module, add a row.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from warnings import warn

# Old module, and the modules in which its names are looked up today, the first of them first.
MODULES = {
    "rbrl.estimators.binary_reductions": ("rbrl.estimators.reductions",),
    "rbrl.estimators.cpnl": ("rbrl.estimators.rbrl",),
    "rbrl.explanations": ("rbrl.inspection",),
    "rbrl.onnx": ("rbrl.interop.onnx",),
    "rbrl.report": (
        "rbrl.experiments", "rbrl.experiments.tables", "rbrl.experiments.comparison",
        "rbrl.experiments.comparison_tables", "rbrl.experiments.results",
        "rbrl.experiments.page", "rbrl.experiments.label_figures",
    ),
    "rbrl.report.figures": ("rbrl.experiments.figures", "rbrl.experiments.label_figures"),
    "rbrl.search": ("rbrl.selection", "rbrl.selection.path", "rbrl.registry"),
    "rbrl.statistics": (
        "rbrl.experiments.statistics", "rbrl.experiments.ranks",
    ),
    "rbrl.torch": ("rbrl.interop.torch",),
}  # fmt: skip
# Old name of an attribute, and its name today where it was renamed as well.
NAMES = {
    "rbrl.report.KEYS": "RUN_KEYS",
    "rbrl.report.figures.styled": "use_style",
    "rbrl.search.PAPER_GRID": "WEIGHTS",
}


def import_old_module(name: str, stacklevel: int) -> ModuleType:
    """Return a module that stands for an old one, and warn that it has moved.

    Parameters
    ----------
    name : str
        Old name of the module, a key of `MODULES`.
    stacklevel : int
        Level of the line to which the warning points; 1 is the caller of this function.

    Returns
    -------
    module
        Its attributes are those of the modules that replace the old one. The warning comes once.

    Examples
    --------
    >>> import warnings
    >>> from rbrl._common.old_names import import_old_module
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DeprecationWarning)
    ...     module = import_old_module("rbrl.statistics", stacklevel=1)
    >>> module.ranks.__module__
    'rbrl.experiments.ranks'
    """
    if name in sys.modules:
        return sys.modules[name]
    homes = MODULES[name]
    text = f"{name} has moved to {homes[0]}; the old name will be removed in the next release."
    warn(text, DeprecationWarning, stacklevel=stacklevel + 1)
    sys.modules[name] = module = ModuleType(name, f"Old name of {homes[0]}.")
    module.__path__ = []  # old modules may lie inside it
    module.__dict__["__getattr__"] = lambda attribute: _look_up(name, attribute)
    return module


def _look_up(name: str, attribute: str) -> Any:
    """Return an attribute of an old module from the first of its new homes that has it.

    It raises AttributeError if none has it, and for special names other than `__all__`. This keeps
    `hasattr` and the import system working.
    """
    if attribute == "__all__":
        return sorted({public for home in MODULES[name] for public in getattr(import_module(home), "__all__", ())})
    if not attribute.startswith("__"):
        new = NAMES.get(f"{name}.{attribute}", attribute)
        for home in MODULES[name]:
            module = import_module(home)
            if hasattr(module, new):
                return getattr(module, new)
    raise AttributeError(f"module {name!r} has no attribute {attribute!r}")


class OldModuleFinder(MetaPathFinder, Loader):
    """Import hook for old names; Python asks it last, for names that nothing else provides.

    Examples
    --------
    >>> from rbrl._common.old_names import OldModuleFinder
    >>> OldModuleFinder().find_spec("rbrl.metrics") is None
    True
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a specification for an old module, and None for any other name."""
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module that stands for the old one."""
        # Python leaves the frames of the import system out: level 2 is the line with the import.
        return import_old_module(spec.name, stacklevel=2)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""


def install() -> None:
    """Make Python import old names by way of `OldModuleFinder`; a second call changes nothing."""
    if not any(isinstance(finder, OldModuleFinder) for finder in sys.meta_path):
        sys.meta_path.append(OldModuleFinder())
