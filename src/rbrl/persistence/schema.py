"""List of the loaders that a model file may use, and of the classes that each loader may build.

The schema of a file is a tree of nodes. A node names a class and one of skops's loaders, which decides how the
class is used: "ObjectNode" builds an instance, "TypeNode" returns the class itself, and "MethodNode" returns
an attribute of any object. The class alone therefore does not tell whether a node is safe. This module checks
the pairs of loader and class before skops reads the file, in addition to the checks of skops.
"""

import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.special
from sklearn.utils import all_estimators

from rbrl import decision, estimators, ranking_svm, selection, solvers, targets
from rbrl.exceptions import ModelFileError

# Every supported version of skops writes protocol 2 or a later one. Older protocols read some nodes differently.
OLDEST_PROTOCOL = 2
PLAIN_TYPES = frozenset(f"builtins.{name}" for name in ("bool", "float", "int", "str"))
SPARSE_TYPES = frozenset(
    {"scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix", "scipy.sparse._csc.csc_array"}
)  # fmt: skip
# Suffix of the entries of the archive that a loader reads.
ENTRY_SUFFIXES = {"BytesNode": ".bin", "NdArrayNode": ".npy", "SparseMatrixNode": ".npz"}
# Losses of scikit-learn's linear models, in Cython, and in Python with their links.
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
# Keys of a node. A dict with one of these keys counts as a node, because skops may treat it as one.
NODE_KEYS = frozenset({"__class__", "__id__", "__loader__", "__module__"})
MAX_TEXT_LENGTH = 400
# Loaders of immutable objects. Python may share such an object between two attributes or not.
IMMUTABLE_LOADERS = ("DTypeNode", "FunctionNode", "JsonNode", "TypeNode")
# Ends of the names of attributes, and of columns in the table of a search, with the seconds of a fit.
SECONDS = ("_seconds", "_seconds_")


def model_classes() -> Iterable[type]:
    """Yield the classes of rbrl that may be part of a model, some of them more than once.

    Yields
    ------
    type
    """
    yield targets.SignedTargets
    for module in (estimators, ranking_svm, selection, solvers, decision):
        yield from (cls for _, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__.startswith("rbrl."))


@cache
def permitted_classes() -> dict[str, frozenset[str]]:
    """Return the full names of the classes that each loader may build. Other loaders are not allowed.

    Returns
    -------
    dict of str to frozenset of str
    """
    ours = {_full_name(cls) for cls in model_classes()}
    scikit_learn = {name for _, cls in all_estimators() if (name := _full_name(cls)).startswith("sklearn.")}
    # The type "object" is excluded, because arrays run methods of their objects. "void" may have any size.
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
        "SparseMatrixNode": SPARSE_TYPES,
        "TupleNode": frozenset({"builtins.tuple"}),
        "TypeNode": PLAIN_TYPES | SPARSE_TYPES | numbers,
    }


def _full_name(cls: type) -> str:
    """Return the module and the qualified name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def _names_in(modules: dict[str, tuple[str, ...]]) -> set[str]:
    """Return the full names of classes, given by module."""
    return {f"{module}.{name}" for module, names in modules.items() for name in names}


def _ufunc_names() -> Iterator[str]:
    """Yield the names of elementwise functions, such as `np.log1p` of a FunctionTransformer, in all their modules."""
    for home in (np, scipy.special):
        for module_name, module in sys.modules.copy().items():
            if module_name == home.__name__ or module_name.startswith(f"{home.__name__}._"):
                functions = [name for name, value in vars(module).items() if isinstance(value, np.ufunc)]
                yield from (f"{module_name}.{name}" for name in functions)


def trusted_types() -> list[str]:
    """Return the names that skops must trust to load a model: classes of rbrl, `numpy.dtype` and sparse arrays.

    They are for other programs that store models with skops, such as MLflow with its parameter
    `skops_trusted_types`. skops trusts the other types of a model by default. :func:`rbrl.load` needs no
    list. It also checks the parts of a model, which skops alone does not.

    Returns
    -------
    list of str
        Full names in alphabetical order.

    Examples
    --------
    >>> import numpy as np
    >>> import skops.io
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.persistence import trusted_types
    >>> archive = skops.io.dumps(RBRLClassifier().fit(np.eye(4), np.eye(4, dtype=int)))
    >>> skops.io.loads(archive, trusted=trusted_types()).predict(np.eye(4)[:1])
    array([[1, 0, 0, 0]])
    """
    return sorted({"numpy.dtype", *SPARSE_TYPES, *map(_full_name, model_classes())})


def iterate_nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a schema, outer nodes before inner nodes.

    Parameters
    ----------
    value : dict, list or any other JSON value

    Yields
    ------
    dict
        Every dict with a key of `NODE_KEYS`. The content of a "DictNode" is no node: its keys are data.
    """
    if isinstance(value, dict) and not NODE_KEYS.isdisjoint(value):
        yield value
    for child in _children(value):
        yield from iterate_nodes(child)


def _children(value: Any) -> Iterator[Any]:
    """Yield the values in a dict or a list, and the values in the content of a "DictNode"."""
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        content = value.get("content") if value.get("__loader__") == "DictNode" else None
        yield from (child for key, child in value.items() if key != "content" or not isinstance(content, dict))
        if isinstance(content, dict):
            yield from content.values()


def find_refused_pairs(schema: Any) -> list[str]:
    """Return the pairs of class and loader of a schema that are not allowed.

    Parameters
    ----------
    schema : dict
        Schema in the form of `json.loads`.

    Returns
    -------
    list of str
        Texts such as "os.system by FunctionNode"; empty if all pairs are allowed.

    Examples
    --------
    >>> node = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode", "__id__": 1}
    >>> find_refused_pairs({"content": [node]})
    ['os.system by FunctionNode']
    """
    permitted = permitted_classes()
    refused = set()
    for node in iterate_nodes(schema):
        loader = node.get("__loader__")
        if not isinstance(loader, str) or _class_name(node) not in permitted.get(loader, ()):
            refused.add(make_printable(f"{_class_name(node)} by {loader}"))
    return sorted(refused)


def _class_name(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def check_schema(schema: Any) -> None:
    """Raise ModelFileError if a schema asks for objects that are not allowed, or is ambiguous.

    Parameters
    ----------
    schema : dict
        Schema in the form of `json.loads`.

    Raises
    ------
    ModelFileError
        A pair of loader and class is not allowed, the protocol is too old, a dict has keys that are neither
        text nor numbers, or two different nodes have the same number. skops would build the first of these
        nodes in both places.
    """
    if refused := find_refused_pairs(schema):
        raise ModelFileError(f"rejected, because it asks for types that no rbrl model needs: {', '.join(refused)}.")
    protocol = schema.get("protocol")
    if type(protocol) is not int or protocol < OLDEST_PROTOCOL:
        shown = make_printable(repr(protocol))
        raise ModelFileError(f"its protocol of skops must be a whole number >= {OLDEST_PROTOCOL}. Got {shown}.")
    for node in iterate_nodes(schema):
        if type(node.get("__id__")) is not int:
            shown = make_printable(repr(node.get("__id__")))
            raise ModelFileError(f"the number of {_class_name(node)} in it must be a whole number. Got {shown}.")
        if node["__loader__"] == "DictNode":
            _check_key_types(node.get("key_types"))
    _check_numbers(schema, {})


def _check_key_types(listed: Any) -> None:
    """Raise ModelFileError if a key type is no type of text or numbers, because skops calls it with the key."""
    content = listed.get("content") if isinstance(listed, dict) and listed["__loader__"] == "ListNode" else None
    if not isinstance(content, list) or not all(_is_key_type(node) for node in content):
        raise ModelFileError("the keys of a dict in it must be text or numbers; rbrl.save did not write it.")


def _is_key_type(node: Any) -> bool:
    return isinstance(node, dict) and node.get("__loader__") == "TypeNode" and _class_name(node) not in SPARSE_TYPES


def _check_numbers(value: Any, known: dict[Any, str]) -> str:
    """Return a fingerprint of a part of the schema; raise ModelFileError if two objects share a number.

    The fingerprint does not depend on numbers and names of files, which differ if an object is saved twice.
    """
    if not isinstance(value, dict | list):
        return repr(value)
    items = value.items() if isinstance(value, dict) else enumerate(value)
    parts = [(key, _check_numbers(child, known)) for key, child in items]
    stable = [part for part in parts if part[0] not in ("__id__", "file")]
    fingerprint = hashlib.sha256(repr(stable).encode()).hexdigest()
    number = value.get("__id__") if isinstance(value, dict) else None
    if type(number) is int and known.setdefault(number, fingerprint) != fingerprint:
        raise ModelFileError(f"two different objects in it have the number {number}; rbrl.save did not write it.")
    return fingerprint


def make_reproducible(schema: Any) -> dict[str, str]:
    """Remove from a schema what differs between equal models: addresses, names of files, and seconds.

    The numbers of the objects, which are addresses in memory, become 0, 1, 2, ... in the order of the
    schema. The items of a set are sorted.

    Parameters
    ----------
    schema : dict
        Schema in the form of `json.loads`, which is changed in place.

    Returns
    -------
    dict of str to str
        New name of each file of the archive that the schema still names, in the order of the schema.
    """
    for node in list(iterate_nodes(schema)):
        _remove_seconds(node)
        if node.get("__loader__") == "SetNode":
            node["content"].sort(key=lambda item: _check_numbers(item, {}))
    numbers: dict[Any, int] = {}
    files: dict[str, str] = {}
    for count, node in enumerate(iterate_nodes(schema)):
        old = ("new", count) if node["__loader__"] in IMMUTABLE_LOADERS else node["__id__"]
        node["__id__"] = numbers.setdefault(old, len(numbers))
        if "file" in node:
            suffix = ENTRY_SUFFIXES[node["__loader__"]]
            node["file"] = files.setdefault(node["file"], f"{len(files)}{suffix}")
    return files


def _remove_seconds(node: dict[str, Any]) -> None:
    """Remove the seconds that a fit took from the attributes of an object, or from its table."""
    if node.get("__loader__") != "ObjectNode" or not isinstance(node.get("content"), dict):
        return
    state = node["content"]
    for table in (state, state.get("content", {}).get("cv_results_", {})):
        if table.get("__loader__") == "DictNode":
            _remove_keys_of_seconds(table)


def _remove_keys_of_seconds(node: dict[str, Any]) -> None:
    """Remove the keys of seconds from the content of a "DictNode", together with their types."""
    content = node["content"]
    kept = [not key.endswith(SECONDS) for key in content]
    listed = node["key_types"]
    listed["content"] = [kind for kind, is_kept in zip(listed["content"], kept) if is_kept]
    node["content"] = {key: content[key] for key, is_kept in zip(content, kept) if is_kept}


def update_modules(schema: Any) -> bool:
    """Replace modules of rbrl that the classes of a model have left since; return True if there were any.

    The present module of a class is found by the name of the class, so that files of version 0.1.0 load. Only
    names are changed. Whether a class may be built is decided afterwards, by its present name.

    Parameters
    ----------
    schema : dict
        Schema in the form of `json.loads`, which is changed in place.

    Returns
    -------
    bool
    """
    present = {cls.__name__: cls.__module__ for cls in model_classes()}
    has_changed = False
    for node in iterate_nodes(schema):
        module = node.get("__module__")
        name = node.get("__class__")
        if isinstance(module, str) and module.startswith("rbrl.") and isinstance(name, str):
            node["__module__"] = present.get(name, module)
            has_changed |= node["__module__"] != module
    return has_changed


def make_printable(text: str) -> str:
    """Return text of a file for a message: shortened, and without control characters of a terminal.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> print(make_printable("red: \\x1b[31m"))
    red: \\x1b[31m
    """
    shown = text if len(text) <= MAX_TEXT_LENGTH else f"{text[:MAX_TEXT_LENGTH]}..."
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in shown)
