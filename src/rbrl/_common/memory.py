"""The memory that this process may still allocate."""

import re
from pathlib import Path
from typing import Any


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
    >>> from rbrl._common.memory import available_bytes
    >>> size = available_bytes()
    >>> size is None or size >= 0
    True
    """
    limits = [*_machine_limits(), *_group_limits(groups, own_groups), *_address_space_limits()]
    return max(min(limits), 0) if limits else None


def _machine_limits() -> list[int]:
    """Return the memory that is free or can be freed at once, plus the free swap space."""
    meminfo = Path("/proc/meminfo")
    free = _find_all(meminfo, r"^MemAvailable:\s*(\d+)")
    swap = _find_all(meminfo, r"^SwapFree:\s*(\d+)")
    return [1024 * sum(map(int, free + swap))] if free else []


def _group_limits(groups: Path, own_groups: Path) -> list[int]:
    """Return what the control groups of the process and their parents leave, for both versions of control groups."""
    limits = []
    for version_1, name in _find_all(own_groups, r"^\d+:(memory|):(.*)"):
        folder = groups / version_1 / name.strip("/")
        for place in (folder, *folder.parents):
            if place.is_relative_to(groups):
                limits += _limits_of_group(place, bool(version_1))
    return limits


def _limits_of_group(folder: Path, is_version_1: bool) -> list[int]:
    """Return what one control group leaves, or nothing if it has no limit. Cached files can be dropped at any time."""
    if is_version_1:
        most_file, used_file, cached_field = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"
    else:
        most_file, used_file, cached_field = "memory.max", "memory.current", "file"
    most = _find_all(folder / most_file, r"\A\d+")
    used = _find_all(folder / used_file, r"\A\d+")
    cached = _find_all(folder / "memory.stat", rf"^{cached_field} (\d+)")
    return [int(most[0]) - int(used[0]) + sum(map(int, cached))] if most and used else []


def _address_space_limits() -> list[int]:
    """Return what `ulimit -v` leaves, or nothing if the address space is not limited."""
    pages = _find_all(Path("/proc/self/statm"), r"\A\d+")
    if not pages:
        return []
    import resource  # missing on Windows, which has no /proc either

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if limit == resource.RLIM_INFINITY else [limit - int(pages[0]) * resource.getpagesize()]


def _find_all(path: Path, pattern: str) -> list[Any]:
    """Return all matches of a pattern in a file, line by line; none if the file cannot be read."""
    try:
        return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return []
