"""Import of optional packages, with an error that names the extra to install."""

from importlib import import_module
from typing import Any

# Modules that each extra of pyproject.toml installs and that the library imports.
EXTRAS = {
    "cli": ("typer", "rich"),
    "report": ("matplotlib", "jinja2", "pandas"),
    "data": ("river", "pooch", "requests", "pandas", "pyarrow"),
    "dask": ("dask", "distributed"),
}


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an extra.

    Parameters
    ----------
    module : str
    extra : str
        Name of the extra, a key of `EXTRAS`.
    purpose : str
        Task that needs the module, as the subject of a sentence.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        The module is not installed; the message names the extra.

    Examples
    --------
    >>> import_extra("json", "data", "Reading JSON").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise explain_import_error(error, extra, purpose) from error


def explain_import_error(error: ImportError, extra: str, purpose: str) -> ImportError:
    """Return an error that names the extra to install; return any other import error unchanged.

    Parameters
    ----------
    error : ImportError
    extra : str
        Name of the extra, a key of `EXTRAS`.
    purpose : str
        Task that needs the module, as the subject of a sentence.

    Returns
    -------
    ImportError

    Examples
    --------
    >>> error = ModuleNotFoundError(name="typer")
    >>> print(explain_import_error(error, "cli", "The command line"))
    The command line needs typer, which is not installed: pip install "rbrl[cli]".
    """
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS[extra]:
        return error
    message = f'{purpose} needs {name}, which is not installed: pip install "rbrl[{extra}]".'
    return ImportError(message, name=name)
