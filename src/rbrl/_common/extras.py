"""Packages that only some need: imported when they are used; where one is missing, a line names the extra that brings it."""

from importlib import import_module
from typing import Any

# What each extra of pyproject.toml brings that is imported.
EXTRAS = {
    "cli": ("typer", "rich"),
    "report": ("matplotlib", "jinja2", "pandas"),
    "data": ("river", "pooch", "requests", "pandas", "pyarrow"),
    "dask": ("dask", "distributed"),
}


def missing_extra(what: str, extra: str, module: str) -> ImportError:
    """The error for something that cannot be had without an extra.

    Parameters
    ----------
    what : str
        What was asked for, as the subject of a sentence.
    extra : str
        One of `EXTRAS`.
    module : str
        What is not installed.

    Returns
    -------
    ImportError

    Examples
    --------
    >>> print(missing_extra("Reading Parquet files", "data", "pyarrow"))
    Reading Parquet files needs pyarrow, which is not installed: pip install "rbrl[data]".
    """
    return ImportError(f'{what} needs {module}, which is not installed: pip install "rbrl[{extra}]".', name=module)


def import_extra(module: str, extra: str, what: str) -> Any:
    """Import a module of an extra, or say how to get it.

    Parameters
    ----------
    module : str
    extra : str
        One of `EXTRAS`.
    what : str
        What it is needed for, as the subject of a sentence.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        It is not installed; the message names the extra.

    Examples
    --------
    >>> import_extra("json", "data", "Reading JSON").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise explained(error, extra, what) from error


def explained(error: ImportError, extra: str, what: str) -> ImportError:
    """The error that names the extra if one of its modules is missing; any other import error as it is.

    Parameters
    ----------
    error : ImportError
    extra : str
        One of `EXTRAS`.
    what : str
        What was being imported, as the subject of a sentence.

    Returns
    -------
    ImportError

    Examples
    --------
    >>> print(explained(ModuleNotFoundError(name="typer"), "cli", "The command line"))
    The command line needs typer, which is not installed: pip install "rbrl[cli]".
    """
    name = (error.name or "").partition(".")[0]
    return missing_extra(what, extra, name) if name in EXTRAS[extra] else error
