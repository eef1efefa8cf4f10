"""Model files that are safe to load: they contain no pickle, and loading executes nothing of a file.

A file has one line with the name and number of the format, one line with the SHA-256 of the rest, and a skops
archive. The checksum finds damage before anything is parsed. Four checks protect against a malicious file:
the size of the unpacked archive is limited, each of its nodes must be on the list of
`rbrl.persistence.schema`, skops must trust it, and `rbrl.persistence.contents` must accept the model.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
import skops
import skops.io
from sklearn.utils.validation import check_is_fitted

from rbrl._common.bases import BaseEstimator
from rbrl._common.environment import read_array_header, replace_file
from rbrl._version import __version__
from rbrl.exceptions import ModelFileError, ModelVersionWarning
from rbrl.persistence.contents import check_model
from rbrl.persistence.schema import (
    ENTRY_SUFFIXES,
    check_schema,
    find_refused_pairs,
    iterate_nodes,
    make_printable,
    make_reproducible,
    trusted_types,
    update_modules,
)

__all__ = ["describe", "trusted_types"]

MAGIC = b"rbrl model 1\n"
MAX_DIGEST_BYTES = 100
DEFAULT_MAX_BYTES = 4 << 30
VERSIONS = {
    "rbrl": __version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__, "scipy": scipy.__version__,
    "skops": skops.__version__, "python": platform.python_version(),
}  # fmt: skip
# Packages whose version may change the predictions of a model.
PREDICTING_PACKAGES = ("rbrl", "scikit-learn")
SCHEMA_FILE = "schema.json"
# Number of Unix as the system that created an entry of an archive.
UNIX = 3
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
    check_is_fitted(model)
    facts = ("objective_", "gap_", "n_iter_")
    summary = {name: getattr(model, name) for name in facts if hasattr(model, name)}
    # The rank is stored only if it was computed before: computing it may take longer than the fit.
    summary |= {name: value for name, value in vars(model).items() if name == "rank_"}
    content = {"version": __version__, "versions": VERSIONS, "class": type(model).__name__}
    with _without_callbacks(model):
        archive = skops.io.dumps({**content, "summary": summary, "model": model})
    untrusted = sorted(set(skops.io.get_untrusted_types(data=archive)) - set(trusted_types()))
    schema = _read_schema(archive)
    refused = [*find_refused_pairs(schema), *untrusted]
    if refused:
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved: it holds {', '.join(refused)}, which a model file must not contain. "
            "If the kernel is a function, compute the kernel matrix and use kernel='precomputed'."
        )
    try:
        check_model(model)
    except ModelFileError as error:
        name = type(model).__name__
        raise ModelFileError(f"{name} cannot be saved, because rbrl.load would reject it: {error}") from None
    files = make_reproducible(schema)
    archive = _pack_archive(archive, files, schema)
    digest = hashlib.sha256(archive).hexdigest().encode()
    with replace_file(path) as temporary, open(temporary, "wb") as file:
        file.write(MAGIC + digest + b"\n")
        file.write(archive)


@contextmanager
def _without_callbacks(model: BaseEstimator) -> Iterator[None]:
    """Remove scikit-learn's callbacks from a model and its parts for a while; files do not contain them."""
    parts = [model, *model.get_params().values(), *vars(model).values()]
    holders = {id(part): part for part in parts if "_skl_callbacks" in getattr(part, "__dict__", ())}
    callbacks = {key: vars(part).pop("_skl_callbacks") for key, part in holders.items()}
    try:
        yield
    finally:
        for key, part in holders.items():
            vars(part)["_skl_callbacks"] = callbacks[key]


def load(path: str | Path, max_bytes: int = DEFAULT_MAX_BYTES) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or Path
    max_bytes : int
        Largest size of the file and of its unpacked arrays; the default is 4 GiB.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        The file is damaged, is no model file, is too large, asks for types that a model does not need, or
        its arrays do not fit together.

    Warns
    -----
    ModelVersionWarning
        Another version of rbrl or scikit-learn wrote the file.

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
    content = _read(Path(path), max_bytes)
    versions = {"rbrl": content.get("version"), **content.get("versions", {})}
    changed = [name for name in PREDICTING_PACKAGES if versions.get(name) not in (None, VERSIONS[name])]
    if changed:
        written = "; ".join(f"{name} {versions[name]}, here {VERSIONS[name]}" for name in changed)
        text = f"written by {written}. Predictions may differ; fit the model again if that matters."
        warnings.warn(f"{path}: {text}", ModelVersionWarning, stacklevel=2)
    return content["model"]


def describe(path: str | Path, max_bytes: int = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Return the version, the class and the training summary of a model file.

    Parameters
    ----------
    path : str or Path
    max_bytes : int
        Largest size; see :func:`load`.

    Returns
    -------
    dict
        Items `version`, `versions` (of the packages that wrote the file), `class` and `summary`, if the
        file has them.

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
    content = _read(Path(path), max_bytes)
    return {name: content[name] for name in ("version", "versions", "class", "summary") if name in content}


def _read(path: Path, max_bytes: int) -> dict[str, Any]:
    """Return the checked content of a model file."""
    archive = _read_archive(path, max_bytes)
    try:
        _check_sizes(archive, max_bytes)
        schema = _read_schema(archive)
        _check_entries([node for node in iterate_nodes(schema) if "file" in node])
        if update_modules(schema):
            archive = _replace_schema(archive, schema)
        check_schema(schema)
        content = skops.io.loads(archive, trusted=trusted_types())
        _check_notes(content)
        check_model(content["model"])
    except MemoryError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error.__cause__
    except Exception as error:  # a forged archive may provoke any error
        reason = make_printable(f"{type(error).__name__}: {error}")
        raise ModelFileError(f"{path}: the archive in it cannot be read ({reason}).") from error
    return content


def _read_schema(archive: bytes) -> Any:
    """Return the schema of an archive, which is JSON that skops wrote; it is not checked."""
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        return json.loads(entries.read(SCHEMA_FILE))


def _replace_schema(archive: bytes, schema: Any) -> bytes:
    """Return a copy of an archive with another schema, which is the object that JSON text stands for."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as entries, zipfile.ZipFile(changed, "w") as copy:
        for name in entries.namelist():
            copy.writestr(name, json.dumps(schema) if name == SCHEMA_FILE else entries.read(name))
    return changed.getvalue()


def _pack_archive(archive: bytes, files: Mapping[str, str], schema: Any) -> bytes:
    """Return an archive with files of another archive under new names, and with a new schema.

    Its bytes depend on the contents only, and not on the time.
    """
    copied = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as entries, zipfile.ZipFile(copied, "w") as copy:
        for old, new in files.items():
            content = entries.read(old)
            copy.writestr(_undated_entry(new), _pack_sparse(content) if new.endswith(".npz") else content)
        copy.writestr(_undated_entry(SCHEMA_FILE), json.dumps(schema))
    return copied.getvalue()


def _pack_sparse(content: bytes) -> bytes:
    """Return the file of a sparse array, which is an archive of compressed arrays, without dates."""
    copied = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as parts, zipfile.ZipFile(copied, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in parts.namelist():
            copy.writestr(_undated_entry(name), parts.read(name), zipfile.ZIP_DEFLATED)
    return copied.getvalue()


def _undated_entry(name: str) -> zipfile.ZipInfo:
    """Return the header of an entry with the earliest date, which is the same on all systems."""
    entry = zipfile.ZipInfo(name)
    entry.create_system = UNIX
    return entry


def _check_notes(content: Any) -> None:
    """Raise ModelFileError if the notes on the model have a form that `save` does not write."""
    if not isinstance(content, dict) or "model" not in content:
        raise ModelFileError(f"it holds a {type(content).__name__}, not a model written by rbrl.save.")
    versions = content.get("versions", {})
    noted = [content.get("version", __version__), *(versions.values() if isinstance(versions, dict) else [None])]
    are_versions = all(isinstance(version, str) and VERSION.fullmatch(version) for version in noted)
    is_class = isinstance(content.get("class", ""), str)
    is_summary = isinstance(content.get("summary", {}), dict)
    if not (are_versions and is_class and is_summary):
        raise ModelFileError("its notes on versions, class or training have a form that rbrl.save does not write.")


def _read_archive(path: Path, max_bytes: int) -> bytes:
    """Return the skops archive in a file after a check of its size and checksum."""
    if path.stat().st_size > max_bytes:
        raise ModelFileError(f"{path}: it has {path.stat().st_size} bytes, more than the limit max_bytes={max_bytes}.")
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
        if start != MAGIC:
            raise ModelFileError(f"{path}: not an rbrl model file; it starts with {start!r}, not {MAGIC!r}.")
        digest = file.readline(MAX_DIGEST_BYTES)
        archive = file.read()
    found = hashlib.sha256(archive).hexdigest()
    if digest != found.encode() + b"\n":
        raise ModelFileError(
            f"{path}: damaged or truncated; its checksum is {found[:12]}..., not {digest[:12].decode('latin1')}..."
        )
    return archive


def _check_sizes(archive: bytes, max_bytes: int) -> None:
    """Raise ModelFileError if the archive unpacks to more bytes than it has, or the arrays have more than `max_bytes`.

    `save` compresses the parts of a sparse array, but not the entries of the archive.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        unpacked = sum(entry.file_size for entry in entries.infolist())
        if unpacked > len(archive):
            raise ModelFileError(
                f"its {len(archive)} bytes would unpack to {unpacked}. rbrl.save does not compress and did not write it."
            )
        arrays = [entry for entry in entries.infolist() if entry.filename.endswith((".npy", ".npz"))]
        needed = sum(_measure_array(entries, entry) for entry in arrays)
    if needed > max_bytes:
        raise ModelFileError(f"its arrays have {needed} bytes, more than the limit max_bytes={max_bytes}.")


def _check_entries(readers: list[dict[str, Any]]) -> None:
    """Raise ModelFileError if a node reads an unmeasured entry, or if several nodes read the same entry."""
    for node in readers:
        suffix = ENTRY_SUFFIXES.get(str(node.get("__loader__")))
        if suffix is None or not isinstance(node["file"], str) or not node["file"].endswith(suffix):
            request = make_printable(f"{node.get('__loader__')} reads {node['file']!r}")
            raise ModelFileError(f"{request}, which is no entry for it; rbrl.save did not write this file.")
    # Nodes with the same number are one object, which takes memory once.
    n_copies = Counter(name for name, _ in {(node["file"], str(node.get("__id__"))) for node in readers})
    for name, count in n_copies.items():
        if count > 1:
            request = f"it asks for {count} copies of {make_printable(name)}"
            raise ModelFileError(f"{request}; rbrl.save did not write this file.")


def _measure_array(entries: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """Return the number of bytes of a dense or sparse array, after a check of its header."""
    with entries.open(entry) as stream:
        if entry.filename.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(stream.read())) as parts:
                return sum(_measure_array(parts, part) for part in parts.infolist())
        shape = read_array_header(stream, entry.file_size)[0]
    # Elements of 0 bytes would let a small file declare an array of any size.
    if min(shape, default=0) < 0 or math.prod(shape) > entry.file_size:
        raise ModelFileError(f"an array of shape {shape} does not fit in {entry.file_size} bytes.")
    return entry.file_size
