"""Where a run was done, in a line."""

import os
import platform
from functools import cache
from importlib.metadata import version


@cache
def machine():
    """Kind of machine and versions of what the figures depend on; not its name, since reports are passed on.

    Examples
    --------
    >>> machine().split(", ")[3].split()[0]
    'NumPy'
    """
    packages = [("NumPy", "numpy"), ("SciPy", "scipy"), ("scikit-learn", "scikit-learn")]
    versions = [f"{title} {version(name)}" for title, name in packages]
    cores = f"{os.cpu_count()} cores"
    return ", ".join(
        [f"{platform.system()} {platform.machine()}", cores, f"Python {platform.python_version()}", *versions]
    )
