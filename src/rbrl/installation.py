"""What is installed: versions, and whether the loops are compiled."""

import platform
from importlib.metadata import PackageNotFoundError, version

from rbrl._loops import COMPILED, WHY_PLAIN
from rbrl._version import __version__

__all__ = ["info"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "skops")


def info() -> dict[str, str]:
    """Say what runs here, for a report of a problem or of a measurement.

    Returns
    -------
    dict
        `core` is "compiled", or "plain NumPy" with the reason and what would help; the rest are versions.

    Examples
    --------
    >>> import rbrl
    >>> rbrl.info()["rbrl"] == rbrl.__version__
    True
    """
    core = "compiled" if COMPILED else f"plain NumPy: {WHY_PLAIN}"
    found = {name: _version(name) for name in PACKAGES}
    return {"rbrl": __version__, "core": core, "python": platform.python_version(), **found}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
