"""How the loops are compiled."""

from numba import njit

# Sums may be reordered, which vectorises them; NaN and infinity keep their meaning.
compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
