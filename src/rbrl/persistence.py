"""Model files that are safe to load: no pickle, nothing in a file is executed.

A file is one line with our name and the format's number, one with the SHA-256 of the rest, and then a skops archive. The
checksum refuses damage before anything is parsed; against a file that was made to harm, only the types listed here are
built, whatever the archive asks for; what it would unpack to is measured before anything is unpacked, and the arrays of
a model must fit together.
"""

import hashlib
import inspect
import io
import json
import math
import os
import platform
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy
import sklearn
import skops
import skops.io
from numpy.lib import format as npy
from sklearn.base import BaseEstimator

from rbrl import decision, estimators, search, solvers, targets
from rbrl._version import __version__
from rbrl.datasets.formats.text import MAX_BYTES
from rbrl.exceptions import ModelFileError, ModelVersionWarning

MAGIC = b"rbrl model 1\n"
LONGEST_DIGEST = 100
VERSIONS = {
    "rbrl": __version__,
    "scikit-learn": sklearn.__version__,
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "skops": skops.__version__,
    "python": platform.python_version(),
}
# What a model computes with: another version of these may answer differently.
NOTED = ("rbrl", "scikit-learn")
# The axes of a model's arrays: those of one name have one size.
AXES = {
    "classes_": ("classes",),
    "coef_": ("scores", "features"),
    "constant_": ("scores",),
    "dual_coef_": ("rows", "scores"),
    "enriched_labels_": ("rows", "labels"),
    "feature_coef_": ("components", "scores"),
    "feature_names_in_": ("features",),
    "intercept_": ("scores",),
    "label_names_": ("labels",),
    "likelihood_irrelevant_": ("labels", "counts"),
    "likelihood_relevant_": ("labels", "counts"),
    "pairs_": ("pairs", "two"),
    "played_": ("pairs",),
    "prior_": ("labels",),
    "reconstruction_": ("rows", "rows"),
    "threshold_coef_": ("labels",),
    "X_fit_": ("rows", "features"),
    "Y_fit_": ("rows", "labels"),
}
# Plain containers that skops does not list among its own.
HARMLESS = {"numpy.dtype", "scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix", "scipy.sparse._csc.csc_array"}


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
    content = {"version": __version__, "versions": VERSIONS, "class": type(model).__name__}
    content |= {"summary": summary, "model": model}
    archive = skops.io.dumps(content)
    refused = _refused_types(archive)
    if refused:
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved: it holds {', '.join(refused)}, which a model file must not contain. "
            "A kernel given as a function is such a thing: compute the kernel matrix and use kernel='precomputed'."
        )
    _write(Path(path), MAGIC + hashlib.sha256(archive).hexdigest().encode() + b"\n" + archive)


def load(path, max_bytes=MAX_BYTES):
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or Path
    max_bytes : int
        Refuse files that unpack to more; 4 GiB by default.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        The file is damaged, not ours, too large, asks for types that a model does not need, or its arrays do not fit
        together.

    Warns
    -----
    ModelVersionWarning
        Another version of rbrl or scikit-learn wrote it.
    """
    content = _content(Path(path), max_bytes)
    _note_versions(path, content)
    return content["model"]


def describe(path, max_bytes=MAX_BYTES):
    """Version, class and training summary of a model file, and the versions of what wrote it."""
    content = _content(Path(path), max_bytes)
    return {name: content[name] for name in ("version", "versions", "class", "summary") if name in content}


def _content(path, max_bytes):
    archive = _archive(path, max_bytes)
    _check_sizes(path, archive, max_bytes)
    refused = _refused_types(archive)
    if refused:
        raise ModelFileError(f"{path}: refused, it asks for types that no rbrl model needs: {', '.join(refused)}.")
    try:
        content = skops.io.loads(archive, trusted=sorted(_allowed()))
    except MemoryError:
        raise
    except Exception as error:  # whatever a forged archive provokes is one answer to the user
        raise ModelFileError(f"{path}: the archive in it cannot be read ({type(error).__name__}: {error}).") from error
    if not isinstance(content, dict) or "model" not in content:
        raise ModelFileError(f"{path}: holds a {type(content).__name__}, not a model written by rbrl.save.")
    for model in _models(content["model"]):
        _check_arrays(path, model)
    return content


def _archive(path, max_bytes):
    """The skops archive in a file, its checksum verified."""
    if path.stat().st_size > max_bytes:
        raise ModelFileError(f"{path}: it has {path.stat().st_size} bytes, more than the {max_bytes} of max_bytes=.")
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
        if start != MAGIC:
            raise ModelFileError(f"{path}: not an rbrl model file; it starts with {start!r}, not {MAGIC!r}.")
        digest, archive = file.readline(LONGEST_DIGEST), file.read()
    found = hashlib.sha256(archive).hexdigest()
    if digest != found.encode() + b"\n":
        raise ModelFileError(
            f"{path}: damaged or cut off; its checksum is {found[:12]}..., not {digest[:12].decode('latin1')}..."
        )
    return archive


def _check_sizes(path, archive, max_bytes):
    """Refuse an archive whose arrays would take more memory than it has bytes, or more than `max_bytes`.

    `save` packs nothing but sparse arrays, so what unpacks to more was not written by it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as entries:
            _check_unpacked(path, entries.infolist(), len(archive))
            schema = json.loads(entries.read("schema.json"))
            arrays = [entry for entry in entries.infolist() if entry.filename.endswith((".npy", ".npz"))]
            needed = sum(_array_bytes(path, entries, entry) for entry in arrays)
            times = Counter(name for name, _ in set(_files(schema)))
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:  # as above
        raise ModelFileError(f"{path}: the archive in it cannot be read ({type(error).__name__}: {error}).") from error
    if needed > max_bytes:
        raise ModelFileError(f"{path}: its arrays have {needed} bytes, more than the {max_bytes} of max_bytes=.")
    copied = next((name for name in times if times[name] > 1), None)
    if copied is not None:
        raise ModelFileError(
            f"{path}: it asks for {times[copied]} copies of {copied}; rbrl.save did not write this file."
        )


def _check_unpacked(path, entries, n_bytes):
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > n_bytes:
        raise ModelFileError(
            f"{path}: its {n_bytes} bytes would unpack to {unpacked}; rbrl.save, which packs nothing, did not write it."
        )


def _array_bytes(path, entries, entry):
    """Bytes of an array, or of those that make up a sparse one."""
    with entries.open(entry) as stream:
        if entry.filename.endswith(".npy"):
            return _claimed(path, stream, entry.file_size)
        with zipfile.ZipFile(io.BytesIO(stream.read())) as parts:
            return sum(_claimed(path, parts.open(part), part.file_size) for part in parts.infolist())


def _claimed(path, stream, size):
    """Bytes of the array in a stream, by its head; no more than there are."""
    version = npy.read_magic(stream)
    shape, _, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)
    if math.prod(shape) * dtype.itemsize > size:
        raise ModelFileError(f"{path}: an array of shape {shape} does not fit in {size} bytes.")
    return size


def _files(node):
    """The files that a schema asks for, each with the number of the object made of it: one number, one object."""
    if isinstance(node, dict):
        if isinstance(node.get("file"), str):
            number = node.get("__id__")
            yield node["file"], number if isinstance(number, int) else object()
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        yield from _files(child)


def _models(value) -> Iterator[BaseEstimator]:
    """A model of ours, and those inside it."""
    if isinstance(value, BaseEstimator):
        if type(value).__module__.startswith("rbrl."):
            yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    for child in value if isinstance(value, list | tuple) else ():
        yield from _models(child)


def _check_arrays(path, model):
    """Refuse a model whose arrays do not have the sizes that they have in common."""
    sizes, owner = _sizes(path, model), type(model).__name__
    for name, axes in AXES.items():
        shape = getattr(vars(model).get(name), "shape", None)
        if shape is None:
            continue
        expected = [sizes.setdefault(axis, size) for axis, size in zip(axes, shape)]
        if len(shape) != len(axes) or list(shape) != expected:
            told = " and ".join(f"{sizes[axis]} {axis}" for axis in axes)
            raise ModelFileError(f"{path}: the arrays of its {owner} do not fit together: {name} {shape}, but {told}.")


def _sizes(path, model):
    """Sizes that a model knows by itself."""
    known = {"two": 2, "features": getattr(model, "n_features_in_", None)}
    encoder = vars(model).get("targets_")
    if encoder is not None:
        try:
            known |= {"labels": encoder.n_columns, "classes": len(encoder.classes_)}
        except (AttributeError, TypeError) as error:
            raise ModelFileError(f"{path}: its {type(model).__name__} has no readable targets_: {error}.") from error
        if not hasattr(model, "pairs_"):  # a label ranking also scores pairs of labels
            known["scores"] = known["labels"]
    if getattr(model, "kernel", None) == "precomputed":
        known["rows"] = known["features"]
    return {axis: size for axis, size in known.items() if size is not None}


def _note_versions(path, content):
    wrote = {"rbrl": content.get("version"), **content.get("versions", {})}
    differ = [
        f"{name} {wrote[name]}, here {VERSIONS[name]}"
        for name in NOTED
        if wrote.get(name) not in (None, VERSIONS[name])
    ]
    if differ:
        warnings.warn(
            f"{path}: written by {'; '.join(differ)}. Answers may differ; fit the model again where that matters.",
            ModelVersionWarning,
            stacklevel=3,
        )


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
