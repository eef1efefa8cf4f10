"""How much memory a fit will need, by the shapes alone, beside how much there is: said before the work, not after it.

Two figures: the `least` that any fit of these shapes holds at one time, below which it is refused, and what it `usually`
holds, below which a warning says what needs less. Both count arrays of weights (n_features x n_labels), of scores
(n_samples x n_labels) and of the decomposition, and were measured; the first leaves out whatever a fit that ends early
does without.
"""

import functools
import os
import warnings
from pathlib import Path
from typing import NamedTuple

from scipy import sparse

from rbrl.exceptions import MemoryWarning
from rbrl.problem import LARGEST_DECOMPOSITION

DOUBLE = 8
CGROUPS = Path("/sys/fs/cgroup")


class Needs(NamedTuple):
    """Bytes, and what would need less."""

    least: int
    usually: int
    way_out: str


def says_memory_needed(fit):
    """Decorate ``_fit(self, X, Y, weights)``: a fit that cannot do with the memory there is says so first.

    A MemoryError that comes all the same has the same words.
    """

    @functools.wraps(fit)
    def _fit(self, X, Y, weights):
        needs, available = memory_needed(self, X, Y.shape[1]), available_bytes()
        words = _words(self, X, Y, needs, available)
        if available is not None and needs.least > available:
            raise MemoryError(words)
        if available is not None and needs.usually > available:
            warnings.warn(words, MemoryWarning, stacklevel=4)
        try:
            return fit(self, X, Y, weights)
        except MemoryError as error:
            raise MemoryError(f"{words} ({error})" if str(error) else words) from error

    return _fit


def memory_needed(model, X, n_labels):
    """The :class:`Needs` of a fit of an ObjectiveClassifier to X and labels in memory."""
    n, m = X.shape
    weights = DOUBLE * (m + model.fit_intercept) * n_labels
    scores = DOUBLE * n * n_labels
    square = DOUBLE * min(n, m) ** 2
    if not model._is_linear():
        return _of_kernel(model, n, scores)
    if model.max_rank is not None:
        return Needs(weights + scores, 6 * weights + 10 * scores, _fewer(model, n, m))
    if min(n, m) > LARGEST_DECOMPOSITION:
        return Needs(5 * weights + scores, 22 * weights + 10 * scores, _fewer(model, n, m))
    if n < m:
        least, usually = max(2 * square, square + 2 * weights), max(4 * square, square + 4 * weights)
    else:
        rotated = 0 if sparse.issparse(X) else DOUBLE * n * m
        least, usually = square + rotated, 4 * square + rotated
    return Needs(least + scores, usually + 10 * scores, _fewer(model, n, m))


def _of_kernel(model, n, scores):
    if model.approximation is not None:
        features = DOUBLE * n * min(model.n_components, n)
        return Needs(features + scores, 3 * features + 10 * scores, "a smaller n_components, or fewer rows")
    if model._too_large_to_decompose(n):
        return Needs(scores, 10 * scores, "approximation='nystroem', or fewer rows")
    kernel = DOUBLE * n**2
    return Needs(kernel + scores, 4 * kernel + 10 * scores, "approximation='nystroem', or fewer rows")


def _fewer(model, n, m):
    """What needs less: short factors where weights are many, blocks where rows are."""
    blocks = "rows in blocks, as in fit(rbrl.datasets.write_shards((X, y), folder))"
    if m <= n:
        return f"{blocks}, or fewer labels"
    return "max_rank, such as max_rank=50" if model.max_rank is None else "fewer features or labels"


def _words(model, X, Y, needs, available):
    there = "" if available is None else f", and {_gigabytes(available)} are available"
    return (
        f"{type(model).__name__} usually needs about {_gigabytes(needs.usually)} for {X.shape[0]} rows, "
        f"{X.shape[1]} features and {Y.shape[1]} labels, at least {_gigabytes(needs.least)}{there}. What needs less: "
        f"{needs.way_out}."
    )


def _gigabytes(n_bytes):
    return f"{n_bytes / 1e9:.3g} GB"


def available_bytes():
    """Memory that this process may still take, of the machine, its control groups, its address space; None if unknown."""
    known = [limit for limit in (_of_machine(), _of_cgroups(), _of_address_space()) if limit is not None]
    return min(known, default=None)


def _of_machine():
    """What can be had without harm to others, and what can be moved to disk."""
    table = _table(Path("/proc/meminfo"))
    if "MemAvailable:" not in table:
        return None
    return 1024 * (table["MemAvailable:"] + table.get("SwapFree:", 0))


def _of_cgroups(root=CGROUPS, own=Path("/proc/self/cgroup")):
    """The tightest limit of the groups that this process is in; what is only cached can be given up."""
    groups = [line.split(":", 2) for line in _text(own).splitlines()]
    limits = []
    for _, kinds, name in (group for group in groups if len(group) == 3):
        if kinds not in ("", "memory"):
            continue
        folder = root / kinds / name.strip("/")
        files = ("memory.limit_in_bytes", "memory.usage_in_bytes") if kinds else ("memory.max", "memory.current")
        for place in (folder, *folder.parents):
            if not place.is_relative_to(root):
                break
            most, used = (_text(place / file).strip() for file in files)
            if most.isdecimal() and used.isdecimal():
                stat = _table(place / "memory.stat")
                limits.append(int(most) - int(used) + stat.get("total_cache" if kinds else "file", 0))
    return max(min(limits), 0) if limits else None


def _of_address_space():
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _text(Path("/proc/self/statm")).split()
    if most == resource.RLIM_INFINITY or not pages:
        return None
    return max(most - int(pages[0]) * os.sysconf("SC_PAGE_SIZE"), 0)


def _table(path):
    """Lines of a name and a number."""
    words = [line.split() for line in _text(path).splitlines()]
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdecimal()}


def _text(path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
