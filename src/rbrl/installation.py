"""What is installed: versions, linear algebra, extras, and whether the loops are compiled."""

import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from joblib import cpu_count

from rbrl._common.extras import EXTRAS
from rbrl._loops import COMPILED, WHY_PLAIN
from rbrl._version import __version__

__all__ = ["core", "info"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "skops")
ALL_EXTRAS = {**EXTRAS, "onnx": ("onnx", "onnxruntime"), "torch": ("torch",)}


def core() -> str:
    """How the loops run.

    Returns
    -------
    str
        "compiled", or "plain NumPy" with the reason and what would help.

    Examples
    --------
    >>> from rbrl.installation import core
    >>> core().partition(":")[0] in ("compiled", "plain NumPy")
    True
    """
    return "compiled" if COMPILED else f"plain NumPy: {WHY_PLAIN}"


def info() -> dict[str, str]:
    """Say what runs here, for a report of a problem or of a measurement.

    Returns
    -------
    dict
        `core` is "compiled", or "plain NumPy" with the reason and what would help; `cores` is what this process may use,
        `blas` the libraries of linear algebra with their threads, `extras` those of which every package is there. The rest
        are versions.

    Examples
    --------
    >>> import rbrl
    >>> rbrl.info()["rbrl"] == rbrl.__version__
    True
    """
    machine = {"platform": platform.platform(), "cores": str(cpu_count()), "blas": _linear_algebra()}
    extras = ", ".join(extra for extra, modules in ALL_EXTRAS.items() if all(map(find_spec, modules)))
    found = {name: _version(name) for name in PACKAGES}
    return {
        "rbrl": __version__, "core": core(), "python": platform.python_version(), **machine, **found,
        "extras": extras or "none",
    }  # fmt: skip


def _linear_algebra() -> str:
    """Its libraries with version, kernel and threads, each once: NumPy and SciPy may have one each, loaded here."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    words = []
    for found in (library for library in threadpool_info() if library["user_api"] == "blas"):
        kernel, n_threads = found.get("architecture") or "unknown kernel", found["num_threads"]
        threads = f"{n_threads} thread{'' if n_threads == 1 else 's'}"
        words.append(f"{found['internal_api']} {found['version'] or 'of unknown version'} ({kernel}, {threads})")
    return "; ".join(dict.fromkeys(words)) or "unknown"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
