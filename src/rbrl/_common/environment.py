"""Optional packages, free memory, sizes of blocks and threads of the process, and atomic writing of files.

A file is written atomically: a reader sees either the complete old file or the complete new file.
This module does not import NumPy, so that the command line starts quickly.
"""

import math
import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    import numpy as np

# Modules that each extra of pyproject.toml installs and that the library imports.
EXTRAS = {
    "cli": ("typer", "rich"),
    "report": ("matplotlib", "jinja2", "pandas"),
    "data": ("river", "platformdirs", "requests", "pandas", "pyarrow"),
    "dask": ("dask", "distributed"),
}
# Files of a control group with its limit and its use, and the field with cached files, by the name of
# the controller in versions 1 and 2 of control groups.
GROUP_FILES = {
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"),
    "": ("memory.max", "memory.current", "file"),
}
# Number of characters of the target's name that the name of the temporary file repeats. File systems
# allow names of 255 bytes, and a character may take four bytes.
MAX_PREFIX_LENGTH = 50

_lock = threading.Lock()
_n_users = 0
_limits: threadpool_limits | None = None
# Limits of the number of entries in a block of scores or weights. A block of at most 2 MB stays in
# the cache of the processor. A block with a small share of all entries keeps arrays that are
# computed from it small, too. Smaller blocks than 128 kB waste time. The size of a block affects only
# time, memory and rounding.
LARGEST_BLOCK = 2**18
SMALLEST_BLOCK = 2**14
LARGEST_SHARE = 1 / 64


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an extra.

    Parameters
    ----------
    module : str
    extra : str
        Name of the extra, a key of `EXTRAS`.
    purpose : str
        Task that needs the module, as the subject of a sentence.

    Raises
    ------
    ImportError
        The module is not installed; the message names the extra.

    Examples
    --------
    >>> import_extra("json", "data", "Reading JSON").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise explain_import_error(error, extra, purpose) from error


def missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed.

    Parameters
    ----------
    extra : str
        Name of the extra, a key of `EXTRAS`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> set(missing_modules("cli")) <= {"typer", "rich"}
    True
    """
    return [module for module in EXTRAS[extra] if find_spec(module) is None]


def explain_import_error(error: ImportError, extra: str, purpose: str) -> ImportError:
    """Return an error that names the extra to install; return any other import error unchanged.

    Parameters
    ----------
    error : ImportError
    extra : str
        Name of the extra, a key of `EXTRAS`.
    purpose : str
        Task that needs the module, as the subject of a sentence.

    Examples
    --------
    >>> error = ModuleNotFoundError(name="typer")
    >>> print(explain_import_error(error, "cli", "The command line"))
    The command line needs typer, which is not installed: pip install "rbrl[cli]".
    """
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS[extra]:
        return error
    message = f'{purpose} needs {name}, which is not installed: pip install "rbrl[{extra}]".'
    return ImportError(message, name=name)


def available_bytes(groups: Path = Path("/sys/fs/cgroup"), own_groups: Path = Path("/proc/self/cgroup")) -> int | None:
    """Return the number of bytes that this process may still allocate.

    The smallest of three limits counts: the free memory of the machine, the limits of the control groups of the
    process, and the limit of its address space.

    Parameters
    ----------
    groups : Path, default=/sys/fs/cgroup
        Folder of all control groups.
    own_groups : Path, default=/proc/self/cgroup
        File that names the control groups of this process.

    Returns
    -------
    int or None
        None on a system that states no limit, such as Windows or macOS.

    Examples
    --------
    >>> from rbrl._common.environment import available_bytes
    >>> size = available_bytes()
    >>> size is None or size >= 0
    True
    """
    limits = [*_machine_limits(), *_group_limits(groups, own_groups), *_address_space_limits()]
    return max(min(limits), 0) if limits else None


def _machine_limits() -> list[int]:
    """Return the number of bytes that are free or can be freed at once, plus the free swap space.

    The list has one number, or none on a system without /proc/meminfo.
    """
    fields = ("MemAvailable", "SwapFree")
    free, swap = (_find_all(Path("/proc/meminfo"), rf"^{field}:\s*(\d+)") for field in fields)
    return [1024 * sum(map(int, free + swap))] if free else []


def _group_limits(groups: Path, own_groups: Path) -> Iterator[int]:
    """Yield the free bytes of each control group of the process and of its parents.

    The arguments are those of :func:`available_bytes`. Cached files count as free, because they can
    be dropped at any time. A number is negative if a group uses more than its limit.
    """
    for controller, name in _find_all(own_groups, r"^\d+:(memory|):(.*)"):
        most_file, used_file, cached_field = GROUP_FILES[controller]
        folder = groups / controller / name.strip("/")
        for place in (folder, *folder.parents):
            most = _find_all(place / most_file, r"\A\d+")
            used = _find_all(place / used_file, r"\A\d+")
            cached = _find_all(place / "memory.stat", rf"^{cached_field} (\d+)")
            if most and used and place.is_relative_to(groups):
                yield int(most[0]) - int(used[0]) + sum(map(int, cached))


def _address_space_limits() -> list[int]:
    """Return the number of bytes that `ulimit -v` leaves, in a list of one number.

    The list is empty if the address space is not limited, or on a system without /proc.
    """
    pages = _find_all(Path("/proc/self/statm"), r"\A\d+")
    if not pages:
        return []
    import resource  # missing on Windows, which has no /proc either

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if limit == resource.RLIM_INFINITY else [limit - int(pages[0]) * resource.getpagesize()]


def _find_all(path: Path, pattern: str) -> list[Any]:
    """Return all matches of a pattern in a text file; none if the file cannot be read.

    "^" and "$" match at every line. A match is a string, or a tuple if the pattern has several
    groups.
    """
    try:
        return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return []


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread, so that a run gives the same digits whatever runs beside it.

    The limit belongs to the whole process. It is lifted when the last of the concurrent users leaves.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> import numpy
    >>> with one_thread():
    ...     max(library["num_threads"] for library in threadpool_info())
    1
    """
    global _n_users, _limits
    with _lock:
        _n_users += 1
        if _n_users == 1:
            _limits = threadpool_limits(1)
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0 and _limits is not None:
                _limits.restore_original_limits()


@contextmanager
def replace_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces `path` at the end.

    The temporary file is removed if an error is raised.

    Parameters
    ----------
    path : path
        File to write. Its folder must exist. An existing file is replaced.

    Yields
    ------
    Path
        An empty file, with the permissions that the user's umask gives to new files.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> target = Path(mkdtemp(), "numbers.txt")
    >>> with replace_file(target) as temporary:
    ...     _ = temporary.write_text("1 2 3")
    ...     target.exists()
    False
    >>> target.read_text()
    '1 2 3'
    """
    path = Path(path)
    # `tempfile.mkstemp` creates files that only their owner may read. Correcting the mode would need
    # the umask, and reading the umask changes it for all threads.
    temporary = path.with_name(f".{path.name[:MAX_PREFIX_LENGTH]}.{secrets.token_hex(8)}.tmp")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8 with plain line feeds, completely or not at all.

    Parameters
    ----------
    path : path
        File to write. Its folder must exist.
    text : str
    """
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_array_header(stream: IO[bytes], size: int) -> "tuple[tuple[int, ...], bool, np.dtype[Any]]":
    """Read the header of an array in NumPy's format and check it against the size of the file.

    Parameters
    ----------
    stream : binary file
        The position is at the first byte of the array afterwards.
    size : int
        Number of bytes that the array has in its file.

    Returns
    -------
    shape : tuple of int
    fortran_order : bool
    dtype : dtype

    Raises
    ------
    ValueError
        The header declares more bytes than the file has.
    """
    from numpy.lib import format as npy

    version = npy.read_magic(stream)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(stream)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} does not fit in {size} bytes")
    return shape, fortran, dtype


def block_size(n_entries: int) -> int:
    """Return the number of entries of a block, for an array with `n_entries` entries that is computed in blocks.

    Examples
    --------
    >>> from rbrl._common.environment import block_size
    >>> block_size(100), block_size(10**6), block_size(10**9)
    (16384, 16384, 262144)
    """
    return min(max(int(LARGEST_SHARE * n_entries), SMALLEST_BLOCK), LARGEST_BLOCK)
