"""One thread of linear algebra, so that the same run gives the same digits whatever runs beside it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_users, _limits = 0, None


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread until the last of the concurrent users leaves.

    The limit belongs to the whole process: were it lifted by whoever leaves first, a run in another thread of the same
    worker would go on with several threads.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> import numpy
    >>> with one_thread():
    ...     max(library["num_threads"] for library in threadpool_info())
    1
    """
    global _users, _limits
    with _lock:
        _users += 1
        if _users == 1:
            _limits = threadpool_limits(1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _limits is not None:
                _limits.restore_original_limits()
