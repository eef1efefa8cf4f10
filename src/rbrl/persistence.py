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
import platform
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
import skops
import skops.io

from rbrl import decision, estimators, ranking_svm, search, solvers, targets
from rbrl._common.atomic_files import array_head, replacing
from rbrl._common.bases import BaseEstimator
from rbrl._version import __version__
from rbrl.exceptions import ModelFileError, ModelVersionWarning

__all__ = ["FIRST_HOMES", "describe", "load", "save"]

MAGIC = b"rbrl model 1\n"
LONGEST_DIGEST = 100
MAX_BYTES = 4 << 30
VERSIONS = {
    "rbrl": __version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__, "scipy": scipy.__version__,
    "skops": skops.__version__, "python": platform.python_version(),
}  # fmt: skip
# What a model computes with: another version of these may answer differently.
NOTED = ("rbrl", "scikit-learn")
# The axes of a model's arrays: those of one name have one size.
AXES = {
    "classes_": ("classes",), "coef_": ("scores", "features"), "constant_": ("scores",), "dual_coef_": ("rows", "scores"),
    "enriched_labels_": ("rows", "labels"), "feature_coef_": ("components", "scores"), "feature_names_in_": ("features",),
    "intercept_": ("scores",), "intercepts_": ("labels",), "label_names_": ("labels",),
    "likelihood_irrelevant_": ("labels", "counts"), "likelihood_relevant_": ("labels", "counts"), "pairs_": ("pairs", "two"),
    "played_": ("pairs",), "pooled_": ("two",), "prior_": ("labels",), "reconstruction_": ("rows", "rows"),
    "slopes_": ("labels",), "threshold_coef_": ("labels",), "X_fit_": ("rows", "features"), "Y_fit_": ("rows", "labels"),
}  # fmt: skip
# Plain containers that skops does not list among its own.
HARMLESS = {"numpy.dtype", "scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix", "scipy.sparse._csc.csc_array"}
# Where the classes of a model were in version 0.1.0, whose files name them so. A class that has moved since is found by
# its own name; files of 0.1.0 are read until the release after the next.
FIRST_HOMES = {
    "rbrl.decision._fixed": ("NonEmpty", "TopK", "ZeroThreshold"), "rbrl.decision._row": ("RowThreshold",),
    "rbrl.decision._rule": ("Chain", "DecisionRule"),
    "rbrl.decision._thresholds": ("GlobalThreshold", "LabelThresholds"),
    "rbrl.estimators.binary_relevance": ("BinaryRelevance",),
    "rbrl.estimators.calibrated_ranking": ("CalibratedLabelRanking",), "rbrl.estimators.chains": ("EnsembleOfChains",),
    "rbrl.estimators.cpnl": ("CPNL",), "rbrl.estimators.label_powerset": ("LabelPowerset",),
    "rbrl.estimators.ml_knn": ("MLkNN",), "rbrl.estimators.mlfe": ("MLFE",), "rbrl.estimators.rakel": ("RAkEL",),
    "rbrl.estimators.rank_svm": ("CalibratedRankSVM", "RankSVM", "RankSVMz"),
    "rbrl.estimators.rbrl": ("BRLClassifier", "RBRLClassifier"), "rbrl.search.path_search": ("PathSearchCV",),
    "rbrl.search.rbrl_cv": ("RBRLClassifierCV",), "rbrl.search.thresholds": ("TunedThresholdClassifier",),
    "rbrl.solvers.apg": ("APG",), "rbrl.solvers.kernel_blocks": ("KernelBlocks",),
    "rbrl.solvers.low_rank": ("LowRank",), "rbrl.solvers.quasi_newton": ("QuasiNewton",),
    "rbrl.targets": ("SignedTargets",),
}  # fmt: skip


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
    facts = ("objective_", "gap_", "rank_", "n_iter_")
    summary = {name: getattr(model, name) for name in facts if hasattr(model, name)}
    content = {"version": __version__, "versions": VERSIONS, "class": type(model).__name__}
    with _without_callbacks(model):
        archive = skops.io.dumps({**content, "summary": summary, "model": model})
    refused = _refused_types(archive)
    if refused:
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved: it holds {', '.join(refused)}, which a model file must not contain. "
            "A kernel given as a function is such a thing: compute the kernel matrix and use kernel='precomputed'."
        )
    with replacing(path) as temporary:
        temporary.write_bytes(MAGIC + hashlib.sha256(archive).hexdigest().encode() + b"\n" + archive)


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
        _check_sizes(path, archive, max_bytes)
        archive = _with_present_names(archive)
        refused = _refused_types(archive)
        if refused:
            raise ModelFileError(f"{path}: refused, it asks for types that no rbrl model needs: {', '.join(refused)}.")
        content = skops.io.loads(archive, trusted=sorted(_allowed()))
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:  # whatever a forged archive provokes is one answer to the user
        raise ModelFileError(f"{path}: the archive in it cannot be read ({type(error).__name__}: {error}).") from error
    if not isinstance(content, dict) or "model" not in content:
        raise ModelFileError(f"{path}: holds a {type(content).__name__}, not a model written by rbrl.save.")
    for model in _models(content["model"]):
        _check_arrays(path, model)
    return content


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


def _check_sizes(path: Path, archive: bytes, max_bytes: int) -> None:
    """Refuse an archive whose arrays would take more memory than it has bytes, or more than `max_bytes`.

    `save` packs nothing but sparse arrays, so what unpacks to more was not written by it.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        unpacked = sum(entry.file_size for entry in entries.infolist())
        if unpacked > len(archive):
            raise ModelFileError(
                f"{path}: its {len(archive)} bytes would unpack to {unpacked}; rbrl.save, which packs nothing, did not "
                "write it."
            )
        arrays = [entry for entry in entries.infolist() if entry.filename.endswith((".npy", ".npz"))]
        needed = sum(_array_bytes(entries, entry) for entry in arrays)
        schema = json.loads(entries.read("schema.json"))
    if needed > max_bytes:
        raise ModelFileError(f"{path}: its arrays have {needed} bytes, more than the {max_bytes} of max_bytes=.")
    # One number, one object, however often the schema refers to it: only further objects take memory.
    nodes = [node for node in _nodes(schema) if isinstance(node.get("file"), str)]
    numbers = [node["__id__"] if isinstance(node.get("__id__"), int) else object() for node in nodes]
    times = Counter(name for name, _ in {(node["file"], number) for node, number in zip(nodes, numbers)})
    copied = next((name for name in times if times[name] > 1), None)
    if copied is not None:
        asked = f"it asks for {times[copied]} copies of {copied}"
        raise ModelFileError(f"{path}: {asked}; rbrl.save did not write this file.")


def _array_bytes(entries: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """Bytes of an array, or of those that make up a sparse one; none of them claims more than it has."""
    with entries.open(entry) as stream:
        if entry.filename.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(stream.read())) as parts:
                return sum(_array_bytes(parts, part) for part in parts.infolist())
        array_head(stream, entry.file_size)
    return entry.file_size


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """The dicts in a schema."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for child in value if isinstance(value, list) else ():
        yield from _nodes(child)


def _with_present_names(archive: bytes) -> bytes:
    """The archive with the classes of `FIRST_HOMES` under the names that they have now; else as it is.

    Only names are changed: whether a class may be built is decided afterwards, by its present name.
    """
    present = {cls.__name__: cls.__module__ for cls in _classes()}
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        schema, moved = json.loads(entries.read("schema.json")), False
        for node in _nodes(schema):
            name, home = node.get("__class__"), node.get("__module__")
            if isinstance(home, str) and name in FIRST_HOMES.get(home, ()) and present.get(name, home) != home:
                node["__module__"], moved = present[name], True
        if not moved:
            return archive
        renamed = io.BytesIO()
        with zipfile.ZipFile(renamed, "w") as copy:
            for entry in entries.infolist():
                is_schema = entry.filename == "schema.json"
                copy.writestr(entry.filename, json.dumps(schema) if is_schema else entries.read(entry))
    return renamed.getvalue()


def _models(value: Any) -> Iterator[BaseEstimator]:
    """A model of ours, and those inside it; not decision rules, whose `coef_` is of labels, and which check it in use."""
    if isinstance(value, BaseEstimator):
        if type(value).__module__.startswith("rbrl.") and not isinstance(value, decision.DecisionRule):
            yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    for child in value if isinstance(value, list | tuple) else ():
        yield from _models(child)


def _check_arrays(path: Path, model: BaseEstimator) -> None:
    """Refuse a model whose arrays do not have the sizes that they have in common."""
    sizes, owner = _sizes(path, model), type(model).__name__
    for name, axes in AXES.items():
        shape = getattr(vars(model).get(name), "shape", None)
        if shape is None:
            continue
        expected = [sizes.setdefault(axis, size) for axis, size in zip(axes, shape)]
        if len(shape) != len(axes) or list(shape) != expected:
            told = " and ".join(f"{sizes[axis]} {axis}" for axis in axes if axis in sizes)
            raise ModelFileError(f"{path}: the arrays of its {owner} do not fit together: {name} {shape}, but {told}.")


def _sizes(path: Path, model: BaseEstimator) -> dict[str, int]:
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


def _refused_types(archive: bytes) -> list[str]:
    return sorted(set(skops.io.get_untrusted_types(data=archive)) - _allowed())


def _allowed() -> set[str]:
    """Full names of our own classes that may be part of a model."""
    return HARMLESS | {f"{cls.__module__}.{cls.__qualname__}" for cls in _classes()}


def _classes() -> Iterable[type]:
    yield targets.SignedTargets
    for module in (estimators, ranking_svm, search, solvers, decision):
        yield from (cls for _, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__.startswith("rbrl."))
