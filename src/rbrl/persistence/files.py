"""Write and read model files.

A file is one line with our name and the number of the format, one line with the SHA-256 of the rest, and then a skops
archive. The checksum refuses damage before anything is parsed. Against a file that was made to harm, four checks follow:
what the archive would unpack to is measured, each of its nodes must be on the list of `rbrl.persistence.schema`, skops
must trust it, and the model must be one that `rbrl.persistence.contents` accepts.
"""

import hashlib
import io
import json
import math
import platform
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
import skops
import skops.io

from rbrl._common.atomic_files import read_array_header, replace_file
from rbrl._common.bases import BaseEstimator
from rbrl._version import __version__
from rbrl.exceptions import ModelFileError, ModelVersionWarning
from rbrl.persistence.contents import check_model
from rbrl.persistence.schema import (
    ENTRIES,
    check_schema,
    nodes,
    present_names,
    printable,
    refused_pairs,
    trusted_names,
)

MAGIC = b"rbrl model 1\n"
LONGEST_DIGEST = 100
MAX_BYTES = 4 << 30
VERSIONS = {
    "rbrl": __version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__, "scipy": scipy.__version__,
    "skops": skops.__version__, "python": platform.python_version(),
}  # fmt: skip
# What a model computes with: another version of these may answer differently.
NOTED = ("rbrl", "scikit-learn")
VERSION = re.compile(r"[\w.+!-]{1,60}")


def save(model: BaseEstimator, path: str | Path) -> None:
    """Write a fitted model to `path`, atomically.

    Parameters
    ----------
    model : estimator of this package, or a scikit-learn pipeline around one
    path : str or Path

    Raises
    ------
    ModelFileError
        The model holds something that a model file must not contain, such as a function.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier, load, save
    >>> X, Y = np.eye(4), np.array([[0, 1], [1, 1], [1, 0], [0, 1]])
    >>> path = Path(mkdtemp(), "model")
    >>> save(RBRLClassifier().fit(X, Y), path)
    >>> load(path).predict(X)[1]
    array([1, 1])
    """
    facts = ("objective_", "gap_", "n_iter_")
    summary = {name: getattr(model, name) for name in facts if hasattr(model, name)}
    # A rank that nobody has asked for yet may take longer than the fit.
    summary |= {name: value for name, value in vars(model).items() if name == "rank_"}
    content = {"version": __version__, "versions": VERSIONS, "class": type(model).__name__}
    with _without_callbacks(model):
        archive = skops.io.dumps({**content, "summary": summary, "model": model})
    refused = [*refused_pairs(_schema(archive)), *_untrusted_names(archive)]
    if refused:
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved: it holds {', '.join(refused)}, which a model file must not contain. "
            "A kernel given as a function is such a thing: compute the kernel matrix and use kernel='precomputed'."
        )
    try:
        check_model(model)
    except ModelFileError as error:
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved, since rbrl.load would refuse it: {error}"
        ) from None
    with replace_file(path) as temporary:
        temporary.write_bytes(MAGIC + hashlib.sha256(archive).hexdigest().encode() + b"\n" + archive)


def _untrusted_names(archive: bytes) -> list[str]:
    return sorted(set(skops.io.get_untrusted_types(data=archive)) - set(trusted_names()))


@contextmanager
def _without_callbacks(model: BaseEstimator) -> Iterator[None]:
    """Callbacks watch the fit of a model, of steps of a pipeline, or of what a search has found: they are no part of it."""
    parts = [model, *model.get_params().values(), *vars(model).values()]
    watched = {id(part): part for part in parts if "_skl_callbacks" in getattr(part, "__dict__", ())}
    callbacks = {name: vars(part).pop("_skl_callbacks") for name, part in watched.items()}
    try:
        yield
    finally:
        for name, part in watched.items():
            vars(part)["_skl_callbacks"] = callbacks[name]


def load(path: str | Path, max_bytes: int = MAX_BYTES) -> Any:
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

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import rbrl
    >>> model = rbrl.RBRLClassifier().fit(np.eye(4), np.eye(4, dtype=int))
    >>> path = Path(tempfile.mkdtemp(), "model.rbrl")
    >>> rbrl.save(model, path)
    >>> again = rbrl.load(path)
    >>> np.array_equal(again.coef_, model.coef_), again.gap_ == model.gap_
    (True, True)
    """
    content = _content(Path(path), max_bytes)
    wrote = {"rbrl": content.get("version"), **content.get("versions", {})}
    others = [name for name in NOTED if wrote.get(name) not in (None, VERSIONS[name])]
    differ = [f"{name} {wrote[name]}, here {VERSIONS[name]}" for name in others]
    if differ:
        text = f"written by {'; '.join(differ)}. Answers may differ; fit the model again where that matters."
        warnings.warn(f"{path}: {text}", ModelVersionWarning, stacklevel=2)
    return content["model"]


def describe(path: str | Path, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Version, class and training summary of a model file, and the versions of what wrote it.

    Parameters
    ----------
    path : str or Path
    max_bytes : int
        As for :func:`load`.

    Returns
    -------
    dict
        With the keys `version`, `versions`, `class` and `summary`, as far as the file has them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier, save
    >>> from rbrl.persistence import describe
    >>> path = Path(mkdtemp(), "model.rbrl")
    >>> save(RBRLClassifier().fit(np.eye(4), np.eye(4, dtype=int)), path)
    >>> found = describe(path)
    >>> found["class"], sorted(found["versions"])
    ('RBRLClassifier', ['numpy', 'python', 'rbrl', 'scikit-learn', 'scipy', 'skops'])
    """
    content = _content(Path(path), max_bytes)
    return {name: content[name] for name in ("version", "versions", "class", "summary") if name in content}


def _content(path: Path, max_bytes: int) -> dict[str, Any]:
    archive = _archive(path, max_bytes)
    try:
        _check_bytes(archive, max_bytes)
        archive = present_names(archive)
        check_schema(_schema(archive))
        content = skops.io.loads(archive, trusted=trusted_names())
        _check_head(content)
        check_model(content["model"])
    except MemoryError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error.__cause__
    except Exception as error:  # whatever a forged archive provokes is one answer to the user
        reason = printable(f"{type(error).__name__}: {error}")
        raise ModelFileError(f"{path}: the archive in it cannot be read ({reason}).") from error
    return content


def _schema(archive: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        return json.loads(entries.read("schema.json"))


def _check_head(content: Any) -> None:
    """Refuse a file whose notes on the model are not what `save` writes."""
    if not isinstance(content, dict) or "model" not in content:
        raise ModelFileError(f"it holds a {type(content).__name__}, not a model written by rbrl.save.")
    versions = content.get("versions", {})
    noted = [content.get("version", __version__), *(versions.values() if isinstance(versions, dict) else [None])]
    are_versions = all(isinstance(version, str) and VERSION.fullmatch(version) for version in noted)
    is_class, is_summary = isinstance(content.get("class", ""), str), isinstance(content.get("summary", {}), dict)
    if not (are_versions and is_class and is_summary):
        raise ModelFileError("its notes on versions, class or training are not such as rbrl.save writes.")


def _archive(path: Path, max_bytes: int) -> bytes:
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


def _check_bytes(archive: bytes, max_bytes: int) -> None:
    """Refuse an archive whose arrays would take more memory than it has bytes, or more than `max_bytes`.

    `save` packs nothing but sparse arrays, so what unpacks to more was not written by it.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        unpacked = sum(entry.file_size for entry in entries.infolist())
        if unpacked > len(archive):
            raise ModelFileError(
                f"its {len(archive)} bytes would unpack to {unpacked}; rbrl.save, which packs nothing, did not write it."
            )
        arrays = [entry for entry in entries.infolist() if entry.filename.endswith((".npy", ".npz"))]
        needed = sum(_array_bytes(entries, entry) for entry in arrays)
    if needed > max_bytes:
        raise ModelFileError(f"its arrays have {needed} bytes, more than the {max_bytes} of max_bytes=.")
    _check_entries([node for node in nodes(_schema(archive)) if "file" in node])


def _check_entries(readers: list[dict[str, Any]]) -> None:
    """Refuse nodes that read an entry of another kind, which was not measured, or that read one entry several times."""
    for node in readers:
        ending = ENTRIES.get(str(node.get("__loader__")))
        if ending is None or not isinstance(node["file"], str) or not node["file"].endswith(ending):
            request = printable(f"{node.get('__loader__')} reads {node['file']!r}")
            raise ModelFileError(f"{request}, which is no entry for it; rbrl.save did not write this file.")
    # One number, one object, however often the schema refers to it: only further objects take memory.
    times = Counter(name for name, _ in {(node["file"], str(node.get("__id__"))) for node in readers})
    copied = next((name for name in times if times[name] > 1), None)
    if copied is not None:
        asked = f"it asks for {times[copied]} copies of {printable(copied)}"
        raise ModelFileError(f"{asked}; rbrl.save did not write this file.")


def _array_bytes(entries: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """Return the bytes of an array, or of those that make up a sparse one; none of them claims more than it has."""
    with entries.open(entry) as stream:
        if entry.filename.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(stream.read())) as parts:
                return sum(_array_bytes(parts, part) for part in parts.infolist())
        shape = read_array_header(stream, entry.file_size)[0]
    # An element of no bytes would let a small file hold any number of them.
    if min(shape, default=0) < 0 or math.prod(shape) > entry.file_size:
        raise ModelFileError(f"an array of shape {shape} does not fit in {entry.file_size} bytes.")
    return entry.file_size
