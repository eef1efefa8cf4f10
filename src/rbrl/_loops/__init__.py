"""Loops over rows, for the losses, and small algebra, for the solvers: compiled with Numba, or plain NumPy without it.

The modules `compiled` and `reference` hold the same functions with the same signatures; the tests compare them.
Conventions of the losses' kernels:

- ``Y`` (n, l) int8 in {-1, 0, +1}, 0 an entry that nobody looked at; ``F`` (n, l) scores; ``weights`` (n,) of rows, or
  (n, l) of entries, positive where ``Y`` is not 0; ``scale`` a factor of the whole loss;
- a function adds to its output arrays, so that a sum of losses is a sequence of calls.
"""

from types import ModuleType

rows: ModuleType
try:
    import numba  # noqa: F401
except ImportError:  # pragma: no cover - exercised by a test in a subprocess
    from rbrl._loops import reference as rows

    COMPILED = False
else:
    from rbrl._loops import compiled as rows

    COMPILED = True

__all__ = ["COMPILED", "rows"]
