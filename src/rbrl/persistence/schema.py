"""The list of what a model file may ask for: loaders, and for each of them the classes that it may build.

The schema of a file is a tree of nodes. A node names one of skops's loaders and a class, and the loader decides what is
done with the class: "ObjectNode" builds an instance of it, "TypeNode" gives the class itself, "MethodNode" an attribute
of anything. So a class alone says nothing about safety. This module checks pairs of loader and class before skops sees
the file, whatever skops itself trusts.
"""

import hashlib
import inspect
import io
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.special
from sklearn.utils import all_estimators

from rbrl import decision, estimators, ranking_svm, selection, solvers, targets
from rbrl.exceptions import ModelFileError

# Every version of skops that rbrl works with writes protocol 2 or a later one. Older protocols read some nodes otherwise.
OLDEST_PROTOCOL = 2
PLAIN = frozenset(f"builtins.{name}" for name in ("bool", "float", "int", "str"))
SPARSE = frozenset(
    {"scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix", "scipy.sparse._csc.csc_array"}
)  # fmt: skip
# The part of the archive that a loader reads, by the end of its name.
ENTRIES = {"BytesNode": ".bin", "NdArrayNode": ".npy", "SparseMatrixNode": ".npz"}
# Parts of scikit-learn's linear models that are no estimators: losses in Cython, and in Python with their links.
CYTHON_LOSSES = {
    "sklearn.linear_model._sgd_fast": (
        "EpsilonInsensitive", "Hinge", "ModifiedHuber", "SquaredEpsilonInsensitive", "SquaredHinge",
    ),
    "sklearn._loss._loss": (
        "CyAbsoluteError", "CyExponentialLoss", "CyHalfBinomialLoss", "CyHalfGammaLoss", "CyHalfMultinomialLoss",
        "CyHalfPoissonLoss", "CyHalfSquaredError", "CyHalfTweedieLoss", "CyHalfTweedieLossIdentity", "CyHuberLoss",
        "CyPinballLoss",
    ),
}  # fmt: skip
PYTHON_LOSSES = {
    "sklearn._loss.link": ("HalfLogitLink", "IdentityLink", "Interval", "LogLink", "LogitLink", "MultinomialLogit"),
    "sklearn._loss.loss": (
        "AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss", "HalfPoissonLoss",
        "HalfSquaredError", "HuberLoss", "PinballLoss",
    ),
}  # fmt: skip
# What makes a dict of the schema a node. One of the keys is enough for skops to look for the others, or for an earlier
# node with the same number.
MARKS = frozenset({"__class__", "__id__", "__loader__", "__module__"})
LONGEST_TEXT = 400
# Earlier modules of the classes of a model: those of version 0.1.0, and those between 0.1.0 and the next release. A
# class that has moved since is found by its own name; these files are read until the release after the next.
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
    "rbrl.search.calibration": ("CalibratedMultiLabelClassifier",),
    "rbrl.search.cv": ("PathSearchCV", "RBRLClassifierCV"), "rbrl.search.rbrl_cv": ("RBRLClassifierCV",),
    "rbrl.search.thresholds": ("TunedThresholdClassifier",), "rbrl.search.tuned_threshold": ("TunedThresholdClassifier",),
    "rbrl.solvers.apg": ("APG",), "rbrl.solvers.kernel_blocks": ("KernelBlocks",),
    "rbrl.solvers.low_rank": ("LowRank",), "rbrl.solvers.quasi_newton": ("QuasiNewton",),
    "rbrl.targets": ("SignedTargets",),
}  # fmt: skip


def model_classes() -> Iterable[type]:
    """Yield our own classes that may be part of a model.

    Yields
    ------
    type
    """
    yield targets.SignedTargets
    for module in (estimators, ranking_svm, selection, solvers, decision):
        yield from (cls for _, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__.startswith("rbrl."))


@cache
def permitted_classes() -> dict[str, frozenset[str]]:
    """Return the full names of the classes that each loader may build; a loader that is missing may not be used.

    Returns
    -------
    dict of str to frozenset of str
    """
    ours = {_full_name(cls) for cls in model_classes()}
    scikit_learn = {name for _, cls in all_estimators() if (name := _full_name(cls)).startswith("sklearn.")}
    # Not "object" and not "void": an array of the first runs the methods of its elements, one of the second has any size.
    numbers = {_full_name(cls) for cls in np.sctypeDict.values() if np.dtype(cls).kind not in "OV"}
    return {
        "BytesNode": frozenset({"builtins.bytes"}),
        "DTypeNode": frozenset({"numpy.dtype"}),
        "DictNode": frozenset({"builtins.dict", "collections.OrderedDict"}),
        "FunctionNode": frozenset(_ufunc_names()),
        "JsonNode": frozenset({"builtins.str"}),
        "ListNode": frozenset({"builtins.list"}),
        "LossNode": frozenset(_names_in(CYTHON_LOSSES)),
        "NdArrayNode": frozenset({"numpy.ndarray", *numbers}),
        "ObjectNode": frozenset(ours | scikit_learn | _names_in(PYTHON_LOSSES)),
        "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
        "SetNode": frozenset({"builtins.set"}),
        "SliceNode": frozenset({"builtins.slice"}),
        "SparseMatrixNode": SPARSE,
        "TupleNode": frozenset({"builtins.tuple"}),
        "TypeNode": PLAIN | SPARSE | numbers,
    }


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _names_in(modules: dict[str, tuple[str, ...]]) -> set[str]:
    return {f"{module}.{name}" for module, names in modules.items() for name in names}


def _ufunc_names() -> Iterator[str]:
    """Yield the names of elementwise functions, such as that of `FunctionTransformer(np.log1p)`, in all their modules."""
    for home in (np, scipy.special):
        for module_name, module in sys.modules.copy().items():
            if module_name == home.__name__ or module_name.startswith(f"{home.__name__}._"):
                functions = [name for name, value in vars(module).items() if isinstance(value, np.ufunc)]
                yield from (f"{module_name}.{name}" for name in functions)


def trusted_names() -> list[str]:
    """Return the names that skops must trust: of our classes, and of plain containers that it does not know.

    Returns
    -------
    list of str
    """
    return sorted({"numpy.dtype", *SPARSE, *map(_full_name, model_classes())})


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a schema, from the outside to the inside.

    Parameters
    ----------
    value : dict, list or anything else that JSON has

    Yields
    ------
    dict
        Every dict with one of the keys that `MARKS` names. The content of a "DictNode" is none: its keys are data.
    """
    is_node = isinstance(value, dict) and not MARKS.isdisjoint(value)
    if is_node:
        yield value
    for child in _children(value):
        yield from nodes(child)


def _children(value: Any) -> Iterator[Any]:
    """Yield what is directly inside a dict or a list; inside a "DictNode", the values of its content."""
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        keyed = value.get("content") if value.get("__loader__") == "DictNode" else None
        yield from (child for key, child in value.items() if key != "content" or not isinstance(keyed, dict))
        if isinstance(keyed, dict):
            yield from keyed.values()


def refused_pairs(schema: Any) -> list[str]:
    """Return the classes and loaders of a schema that are not on the list.

    Parameters
    ----------
    schema : dict
        Schema in the form of `json.loads`.

    Returns
    -------
    list of str
        Such as "os.system by FunctionNode"; empty if all are permitted.

    Examples
    --------
    >>> node = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode", "__id__": 1}
    >>> refused_pairs({"content": [node]})
    ['os.system by FunctionNode']
    """
    permitted, found = permitted_classes(), set()
    for node in nodes(schema):
        loader = node.get("__loader__")
        if not isinstance(loader, str) or _built(node) not in permitted.get(loader, ()):
            found.add(printable(f"{_built(node)} by {loader}"))
    return sorted(found)


def _built(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def check_schema(schema: Any) -> None:
    """Refuse a schema that asks for what is not on the list, or that means anything else than it says.

    Parameters
    ----------
    schema : dict
        Schema in the form of `json.loads`.

    Raises
    ------
    ModelFileError
        A pair of loader and class is not permitted, the protocol is older than ours, a dict has keys that are neither
        text nor numbers, or two nodes with one number differ, of which skops would build the first in both places.
    """
    if refused := refused_pairs(schema):
        raise ModelFileError(f"refused, it asks for types that no rbrl model needs: {', '.join(refused)}.")
    protocol = schema.get("protocol")
    if type(protocol) is not int or protocol < OLDEST_PROTOCOL:
        shown = printable(repr(protocol))
        raise ModelFileError(f"its protocol of skops must be a whole number from {OLDEST_PROTOCOL} on. Got {shown}.")
    for node in nodes(schema):
        if type(node.get("__id__")) is not int:
            shown = printable(repr(node.get("__id__")))
            raise ModelFileError(f"the number of {_built(node)} in it must be a whole number. Got {shown}.")
        if node["__loader__"] == "DictNode":
            _check_key_types(node.get("key_types"))
    _check_numbers(schema, {})


def _check_key_types(listed: Any) -> None:
    """Refuse types of keys that make neither text nor a number of a key: skops calls each of them with its key."""
    content = listed.get("content") if isinstance(listed, dict) and listed["__loader__"] == "ListNode" else None
    if not isinstance(content, list) or not all(_is_key_type(node) for node in content):
        raise ModelFileError("the keys of a dict in it must be text or numbers; rbrl.save did not write it.")


def _is_key_type(node: Any) -> bool:
    return isinstance(node, dict) and node.get("__loader__") == "TypeNode" and _built(node) not in SPARSE


def _check_numbers(value: Any, known: dict[Any, str]) -> str:
    """Return a fingerprint of a part of the schema; refuse a number that stands for two different objects.

    Numbers themselves and names of files are left out: an object that is saved twice has other ones each time.
    """
    if not isinstance(value, dict | list):
        return repr(value)
    named = value.items() if isinstance(value, dict) else enumerate(value)
    parts = [(key, _check_numbers(child, known)) for key, child in named]
    stable = [part for part in parts if part[0] not in ("__id__", "file")]
    fingerprint = hashlib.sha256(repr(stable).encode()).hexdigest()
    number = value.get("__id__") if isinstance(value, dict) else None
    if type(number) is int and known.setdefault(number, fingerprint) != fingerprint:
        raise ModelFileError(f"two different objects in it have the number {number}; rbrl.save did not write it.")
    return fingerprint


def present_names(archive: bytes) -> bytes:
    """Return the archive with the classes of `FIRST_HOMES` under the names that they have now; else as it is.

    Only names are changed: whether a class may be built is decided afterwards, by its present name.

    Parameters
    ----------
    archive : bytes

    Returns
    -------
    bytes
    """
    present = {cls.__name__: cls.__module__ for cls in model_classes()}
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        schema, moved = json.loads(entries.read("schema.json")), False
        for node in nodes(schema):
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


def printable(text: str) -> str:
    """Return text of a file as a message may show it: short, and without characters that a terminal obeys.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> print(printable("red: \\x1b[31m"))
    red: \\x1b[31m
    """
    shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in shown)
