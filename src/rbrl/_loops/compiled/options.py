"""How the loops are compiled."""

from numba import njit

# Sums may be reordered, which vectorises them; NaN and infinity keep their meaning.
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}}


def _compiled(function):
    """Compile a function when it is first called, and keep the machine code for other processes where that is possible.

    Numba refuses to keep it where neither the folder of the sources nor one of the user's can be written to, as in many
    containers; it is then compiled in every process.
    """
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        return njit(**_OPTIONS)(function)


compiled = _compiled
