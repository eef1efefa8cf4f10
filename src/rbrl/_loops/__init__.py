"""Loops over rows, for the losses and the ranking SVMs, and small algebra, for the solvers: compiled, or plain NumPy.

`reference` says what each loop means, in NumPy. The extension `_core`, C++ in `core/`, has the same functions with the same
arguments, and is used where it could be compiled; the tests compare the two. Conventions of the losses' loops:

- ``Y`` (n, l) int8 in {-1, 0, +1}, 0 an entry that nobody looked at; ``F`` (n, l) scores; ``weights`` (n,) of rows, or
  (n, l) of entries, positive where ``Y`` is not 0; ``scale`` a factor of the whole loss;
- a function adds to its output arrays, so that a sum of losses is a sequence of calls. These must be contiguous.
"""

import shutil
import sysconfig
import warnings
from multiprocessing import current_process
from pathlib import Path
from types import ModuleType

from rbrl.exceptions import SlowLoopsWarning

__all__ = ["COMPILED", "WHY_PLAIN", "rows"]


def _why_plain(error: ImportError) -> str:
    """What keeps the loops from being compiled on this machine, as far as one can tell, and what would help."""
    here = Path(__file__).parent
    # In a tree of sources make and pip compile in place; elsewhere pip would take the wheel that it made before and kept.
    of_sources = (here / "core").is_dir()
    again = (
        "pip install --no-deps -e ." if of_sources else "pip install --force-reinstall --no-deps --no-cache-dir rbrl"
    )
    if list(here.glob("_core.*")):
        return f"the compiled core is there but cannot be loaded ({error}); to make it anew: `{again}`"
    missing = []
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        missing.append("no C++ compiler (Debian's g++)")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        missing.append("no headers of Python (Debian's python3-dev)")
    if missing:
        return f"the core was not compiled, for this machine has {' and '.join(missing)}; once it has: `{again}`"
    return f"the core was not compiled, though this machine has a compiler; to see why: `{again} -v`"


rows: ModuleType
try:
    from rbrl._loops import _core as rows  # type: ignore[attr-defined,no-redef,unused-ignore]
except ImportError as error:
    from rbrl._loops import reference as rows

    COMPILED, WHY_PLAIN = False, _why_plain(error)
    # Once, not by every worker.
    if current_process().name == "MainProcess":
        warnings.warn(
            f"rbrl runs its loops in plain NumPy, many times slower than compiled: {WHY_PLAIN}.",
            SlowLoopsWarning,
            stacklevel=2,
        )
else:
    COMPILED, WHY_PLAIN = True, ""
