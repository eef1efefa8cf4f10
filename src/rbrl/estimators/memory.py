"""How much memory a fit will need, by the shapes alone, beside how much there is: said before the work, not after it.

Two figures: the `least` that any fit of these shapes holds at one time, below which it is refused, and what it `usually`
holds, below which a warning says what needs less. Both count arrays of weights (n_features x n_labels), of scores
(n_samples x n_labels) and of the decomposition, and were measured; the first leaves out whatever a fit that ends early
does without.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scipy import sparse

from rbrl.exceptions import MemoryWarning
from rbrl.problem import LARGEST_DECOMPOSITION

if TYPE_CHECKING:
    from rbrl.estimators.convex_problem import ConvexProblem

DOUBLE = 8
CGROUPS = Path("/sys/fs/cgroup")


class Needs(NamedTuple):
    """Bytes."""

    least: int
    usually: int


@contextmanager
def enough_memory(problem: "ConvexProblem") -> Iterator[None]:
    """Solve a problem inside this: what cannot do with the memory there is says so first.

    A MemoryError that comes all the same has the same words.
    """
    needs, available = memory_needed(problem), available_bytes()
    if available is not None and needs.least > available:
        raise MemoryError(_words(problem, needs, available))
    if available is not None and needs.usually > available:
        # The call of `fit` is what warns: above it are `_fit`, the context and this function.
        warnings.warn(_words(problem, needs, available), MemoryWarning, stacklevel=5)
    try:
        yield
    except MemoryError as error:
        words = _words(problem, needs, available)
        raise MemoryError(f"{words} ({error})" if str(error) else words) from error


def memory_needed(problem: "ConvexProblem") -> Needs:
    """The bytes that a solution holds at one time.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> memory_needed(RBRLClassifier().problem(np.ones((100, 5)), np.eye(100, 3))).least
    6600
    """
    (n, m), n_labels, model = problem.X.shape, problem.Y.shape[1], problem.model
    weights, scores = DOUBLE * (m + model.fit_intercept) * n_labels, DOUBLE * n * n_labels
    if problem.kind == "blocks":
        return Needs(scores, 10 * scores)
    if problem.kind == "approximation":
        features = DOUBLE * n * min(model.n_components, n)
        return Needs(features + scores, 3 * features + 10 * scores)
    if problem.kind == "kernel":
        return Needs(DOUBLE * n**2 + scores, 4 * DOUBLE * n**2 + 10 * scores)
    if model.max_rank is not None:
        return Needs(weights + scores, 6 * weights + 10 * scores)
    if min(n, m) > LARGEST_DECOMPOSITION:
        return Needs(5 * weights + scores, 22 * weights + 10 * scores)
    square = DOUBLE * min(n, m) ** 2
    if n < m:
        least, usually = max(2 * square, square + 2 * weights), max(4 * square, square + 4 * weights)
    else:
        rotated = 0 if sparse.issparse(problem.X) else DOUBLE * n * m
        least, usually = square + rotated, 4 * square + rotated
    return Needs(least + scores, usually + 10 * scores)


def _words(problem: "ConvexProblem", needs: Needs, available: int | None) -> str:
    (n, m), model = problem.X.shape, problem.model
    usually, least, there = (f"{size / 1e9:.3g} GB" for size in (needs.usually, needs.least, available or 0))
    # Short factors where weights are many, blocks where rows are.
    if problem.kind == "approximation":
        less = "a smaller n_components, or fewer rows"
    elif problem.kind != "linear":
        less = "approximation='nystroem', or fewer rows"
    elif m <= n:
        less = "rows in blocks, as in fit(rbrl.datasets.write_shards((X, y), folder)), or fewer labels"
    else:
        less = "max_rank, such as max_rank=50" if model.max_rank is None else "fewer features or labels"
    return (
        f"{type(model).__name__} usually needs about {usually} for {n} rows, {m} features and {problem.Y.shape[1]} labels, "
        f"at least {least}{'' if available is None else f', and {there} are available'}. What needs less: {less}."
    )


def available_bytes() -> int | None:
    """Memory that this process may still take, of the machine, its control groups, its address space; None if unknown."""
    # Of the machine: what can be had without harm to others, and what can be moved to disk.
    table = _table(Path("/proc/meminfo"))
    free = table.get("MemAvailable:")
    of_machine = None if free is None else 1024 * (free + table.get("SwapFree:", 0))
    return min((size for size in (of_machine, _of_cgroups(), _of_address_space()) if size is not None), default=None)


def _of_cgroups(root: Path = CGROUPS, own: Path = Path("/proc/self/cgroup")) -> int | None:
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


def _of_address_space() -> int | None:
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _text(Path("/proc/self/statm")).split()
    if most == resource.RLIM_INFINITY or not pages:
        return None
    return max(most - int(pages[0]) * os.sysconf("SC_PAGE_SIZE"), 0)


def _table(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    words = [line.split() for line in _text(path).splitlines()]
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
