"""Model files that are safe to load: no pickle, nothing in a file is executed.

A file is one line with our name and the format's number, one with the SHA-256 of the rest, and then a skops archive. The
checksum refuses damage before anything is parsed; against a file that was made to harm, only the types listed here are
built, whatever the archive asks for.
"""

import hashlib
import inspect
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import skops.io

from rbrl import decision, estimators, search, solvers, targets
from rbrl._version import __version__
from rbrl.exceptions import ModelFileError

MAGIC = b"rbrl model 1\n"
# Plain containers that skops does not list among its own.
HARMLESS = {"numpy.dtype", "scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"}


def save(model, path):
    """Write a fitted model to `path`, atomically.

    Parameters
    ----------
    model : estimator of this package, or a scikit-learn pipeline around one
    path : str or Path
    """
    summary = {
        name: getattr(model, name) for name in ("objective_", "gap_", "rank_", "n_iter_") if hasattr(model, name)
    }
    content = {"version": __version__, "class": type(model).__name__, "summary": summary, "model": model}
    archive = skops.io.dumps(content)
    refused = _refused_types(archive)
    if refused:
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved: it holds {', '.join(refused)}, which a model file must not contain. "
            "A kernel given as a function is such a thing: compute the kernel matrix and use kernel='precomputed'."
        )
    _write(Path(path), MAGIC + hashlib.sha256(archive).hexdigest().encode() + b"\n" + archive)


def load(path):
    """Read a model that `save` wrote.

    Raises
    ------
    ModelFileError
        The file is damaged, not ours, or asks for types that a model does not need.
    """
    return _content(Path(path))["model"]


def describe(path):
    """Version, class and training summary of a model file."""
    content = _content(Path(path))
    return {name: content[name] for name in ("version", "class", "summary")}


def _content(path):
    archive = _archive(path)
    refused = _refused_types(archive)
    if refused:
        raise ModelFileError(f"{path}: refused, it asks for types that no rbrl model needs: {', '.join(refused)}.")
    try:
        content = skops.io.loads(archive, trusted=sorted(_allowed()))
    except Exception as error:  # whatever a forged archive provokes is one answer to the user
        raise ModelFileError(f"{path}: the archive in it cannot be read ({type(error).__name__}: {error}).") from error
    if not isinstance(content, dict) or "model" not in content:
        raise ModelFileError(f"{path}: holds a {type(content).__name__}, not a model written by rbrl.save.")
    return content


def _archive(path):
    """The skops archive in a file, its checksum verified."""
    raw = path.read_bytes()
    if not raw.startswith(MAGIC):
        raise ModelFileError(f"{path}: not an rbrl model file; it starts with {raw[: len(MAGIC)]!r}, not {MAGIC!r}.")
    digest, separator, archive = raw[len(MAGIC) :].partition(b"\n")
    found = hashlib.sha256(archive).hexdigest()
    if not separator or digest != found.encode():
        raise ModelFileError(
            f"{path}: damaged or cut off; its checksum is {found[:12]}..., not {digest[:12].decode('latin1')}..."
        )
    return archive


def _refused_types(archive):
    try:
        asked = skops.io.get_untrusted_types(data=archive)
    except Exception as error:  # as above
        raise ModelFileError(f"The archive cannot be read ({type(error).__name__}: {error}).") from error
    return sorted(set(asked) - _allowed())


def _allowed():
    """Full names of our own classes that may be part of a model."""
    return HARMLESS | {f"{cls.__module__}.{cls.__qualname__}" for cls in _classes()}


def _classes() -> Iterator[type]:
    yield targets.SignedTargets
    for module in (estimators, search, solvers, decision):
        yield from (cls for _, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__.startswith("rbrl."))


def _write(path, data):
    """To a temporary name in the same folder, then renamed: a reader never sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
