"""Loops over rows for the losses, the ranking SVMs and the solvers: compiled, or in plain NumPy.

The module `reference` defines each loop in NumPy. The extension `_core`, written in C++ in `core/`,
has the same functions with the same arguments. It is used if it could be compiled, and the tests
compare the two. Conventions of the loops of the losses:

- ``Y`` (n, l) has labels of type int8 in {-1, 0, +1}; 0 is a missing label.
- ``F`` (n, l) has the scores.
- ``weights`` has the weights of rows, (n,), or of single labels, (n, l). They are positive where
  ``Y`` is not 0. ``scale`` is a factor of the whole loss.
- A function adds to its output arrays, so that a sum of losses is a sequence of calls. The output
  arrays must be contiguous.
"""

import shutil
import sysconfig
import warnings
from multiprocessing import current_process
from pathlib import Path
from types import ModuleType

from rbrl.exceptions import SlowLoopsWarning


def _explain_plain_loops(error: ImportError) -> str:
    """Return the likely reason why the loops are not compiled on this machine, and a remedy.

    `error` is the error of the import of the compiled core. The text continues a sentence.
    """
    here = Path(__file__).parent
    # In a source tree, pip compiles in place. Elsewhere, pip must not reuse a wheel from its cache.
    of_sources = (here / "core").is_dir()
    again = (
        "pip install --no-deps -e ." if of_sources else "pip install --force-reinstall --no-deps --no-cache-dir rbrl"
    )
    if list(here.glob("_core.*")):
        return f"the compiled core cannot be loaded ({error}). To build it again, run `{again}`"
    missing = []
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        missing.append("no C++ compiler (in Debian, the package g++)")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        missing.append("no header files of Python (in Debian, the package python3-dev)")
    if missing:
        return (
            f"the core was not compiled because this machine has {' and '.join(missing)}. Install what is missing, "
            f"then run `{again}`"
        )
    return f"the core was not compiled, although this machine has a compiler. To see why, run `{again} -v`"


rows: ModuleType
try:
    from rbrl._loops import _core as rows  # type: ignore[attr-defined,no-redef,unused-ignore]
except ImportError as error:
    from rbrl._loops import reference

    rows = reference
    COMPILED = False
    WHY_PLAIN = _explain_plain_loops(error)
    # Only the main process warns, not every worker.
    if current_process().name == "MainProcess":
        warnings.warn(
            "rbrl is running its loops in plain NumPy, which is many times slower than its compiled core. "
            f"Reason: {WHY_PLAIN}.",
            SlowLoopsWarning,
            stacklevel=2,
        )
else:
    COMPILED = True
    WHY_PLAIN = ""
