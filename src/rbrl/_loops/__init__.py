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
    if list(Path(__file__).parent.glob("_core.*")):
        return f"the compiled core is there but cannot be loaded ({error}): install rbrl again"
    missing = []
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        missing.append("a C++ compiler")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        missing.append("Python's headers")
    if missing:
        return f"there is no compiled core, for want of {' and '.join(missing)}: get that and install rbrl again"
    return "there is no compiled core, though this machine could make one: pip install -v shows what fails"


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
