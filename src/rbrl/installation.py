"""Report of the installation: versions, linear algebra, extras, and compiled loops."""

import platform
from importlib.metadata import version
from importlib.util import find_spec

from joblib import cpu_count

from rbrl._common.environment import EXTRAS
from rbrl._loops import COMPILED, WHY_PLAIN
from rbrl._version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "skops")
ALL_EXTRAS = {**EXTRAS, "onnx": ("onnx", "onnxruntime"), "torch": ("torch",)}


def info() -> dict[str, str]:
    """Describe the installation, for a report of a problem or of a measurement.

    Returns
    -------
    dict
        `core` is "compiled", or "plain NumPy" with the reason and the way to compile the loops.
        `cores` is the number of processor cores that this process may use, `blas` lists the
        linear algebra libraries with their threads, and `extras` the complete extras. All other
        entries are versions.

    Examples
    --------
    >>> import rbrl
    >>> rbrl.info()["rbrl"] == rbrl.__version__
    True
    """
    extras = ", ".join(extra for extra, modules in ALL_EXTRAS.items() if all(map(find_spec, modules)))
    return {
        "rbrl": __version__,
        "core": "compiled" if COMPILED else f"plain NumPy: {WHY_PLAIN}",
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": str(cpu_count()),
        "blas": _linear_algebra(),
        **{name: version(name) for name in PACKAGES},
        "extras": extras or "none",
    }


def _linear_algebra() -> str:
    """Return the BLAS libraries with version, kernel and threads, joined by "; "."""
    # NumPy and SciPy may bring a library each. This import loads SciPy's.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    descriptions = []
    for library in threadpool_info():
        if library["user_api"] == "blas":
            kernel = library.get("architecture") or "unknown kernel"
            threads = f"{library['num_threads']} thread{'s' * (library['num_threads'] != 1)}"
            name = f"{library['internal_api']} {library['version'] or 'of unknown version'}"
            descriptions.append(f"{name} ({kernel}, {threads})")
    return "; ".join(dict.fromkeys(descriptions)) or "unknown"
