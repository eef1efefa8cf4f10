"""Files that were made to harm by what they ask for: each is refused with one error, and nothing of it runs."""

import io
import json
import re
import sys
import zipfile
from functools import partial

import numpy as np
import pytest
import skops.io
from scipy import sparse

import rbrl
from forged_files import CANARY, answers, code_files, code_nodes, list_node, mapping, node, text, with_schema
from forging import archive_of, fitted, refused
from rbrl import solvers
from rbrl.exceptions import ModelFileError


@pytest.mark.parametrize("name", code_nodes())
def test_code_is_refused_before_skops_reads_the_file(name, tmp_path, monkeypatch):
    content = code_files()[name]
    monkeypatch.setattr(skops.io, "loads", lambda *_, **__: pytest.fail("skops was asked to load the file"))
    monkeypatch.setattr(skops.io, "get_untrusted_types", lambda **_: pytest.fail("skops was asked to read the file"))
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"asks for types that no rbrl model needs: .* by \w+Node"):
        rbrl.load(tmp_path / "model")


def test_no_code_of_a_file_runs(tmp_path):
    assert set(answers(tmp_path).values()) == {"refused"}
    assert CANARY not in sys.modules


def given(*names, **rest):
    return partial(node, *names, **rest)


OURS = (rbrl.RBRLClassifier.__module__, "RBRLClassifier")
ONE = {"content": {"func": "fit", "obj": node("TypeNode", *OURS)}}
NODES = {
    "class of ours": given("TypeNode", *OURS),
    "class that makes iterators": given("TypeNode", "builtins", "map"),
    "object type": given("TypeNode", "numpy", "object_"),
    "function of ours": given("FunctionNode", "rbrl", "load"),
    "function of Python": given("FunctionNode", "builtins", "eval"),
    "function of the system": given("FunctionNode", "os", "system"),
    "own class as a function": given("FunctionNode", *OURS),
    "method": given("MethodNode", *OURS, **ONE),
    "operator": given("OperatorFuncNode", "operator", "attrgetter", attrs=list_node(text("os"))),
    "constructor": given("ConstructorFromReduceNode", *OURS, content=list_node(text(1))),
    "reference": given("CachedNode", "builtins", "dict"),
    "default dict": given("DefaultDictNode", "collections", "defaultdict"),
    "tree": given("TreeNode", "sklearn.tree._tree", "Tree"),
    "tree of boosting": given(
        "ObjectNode", "sklearn.ensemble._hist_gradient_boosting.predictor", "TreePredictor", content=mapping({})
    ),
    "instance of a foreign class": given("ObjectNode", "subprocess", "Popen", content=mapping({})),
    "array class of no array": given("NdArrayNode", "os", "system", type="numpy", file="1.npy"),
    "bytes of any size": given("NdArrayNode", "numpy", "void", type="json", content=[], shape=list_node()),
    "loader that is unknown": given("NewNode", "builtins", "dict"),
    "loader that is no text": given(["DictNode"], "builtins", "dict"),
    "class that is no text": given("ObjectNode", "rbrl", None),
}


@pytest.mark.parametrize("place", ["coef_", "kernel", "targets_"])
@pytest.mark.parametrize("kind", NODES)
def test_nodes_that_are_not_on_the_list_are_refused(kind, place, tmp_path):
    def change(schema):
        schema["content"]["model"]["content"]["content"][place] = NODES[kind]()

    refused(
        tmp_path / "model", with_schema(archive_of(fitted()["linear"]), change), "asks for types that no rbrl model"
    )


def whole(schema, new):
    schema["content"]["model"] = new


def more(schema, new):
    schema["content"]["more"] = new


def twice(schema):
    first, second = text("harmless"), list_node(text("other"))
    second["__id__"] = first["__id__"]
    more(schema, list_node(first, second))


def inside_itself(schema):
    outer = list_node()
    outer["content"] = [dict(outer, content=[])]
    more(schema, outer)


def nested(schema):
    inner = list_node()
    for _ in range(300):
        inner = list_node(inner)
    # Deeper than the interpreter goes, without a schema that this test could not write itself.
    more(schema, dict(inner, content=[dict(text(0), content="[" * 100_000 + "]" * 100_000)]))


def repeated(schema):
    """A list of lists of lists, each of them by its number only: few bytes, and 10^10 elements."""
    inner = list_node(*[text(0)] * 10)
    for _ in range(9):
        inner = list_node(inner, *[{"__id__": inner["__id__"]}] * 9)
    more(
        schema,
        node("NdArrayNode", "numpy", "ndarray", type="json", content=inner["content"], shape=list_node(text(10))),
    )


SCHEMAS = {
    "a number of two objects": (twice, "two different objects in it have the number"),
    "an object inside itself": (inside_itself, "two different objects in it have the number"),
    "an object by its number only": (repeated, "asks for types that no rbrl model"),
    "deep nesting": (nested, "cannot be read .RecursionError"),
    "a number that is a fraction": (lambda s: more(s, dict(text(1), __id__=5.0)), "must be a whole number. Got 5.0"),
    "no number": (lambda s: more(s, dict(text(1), __id__=None)), "must be a whole number. Got None"),
    "an old protocol": (lambda s: s.update(protocol=1), "protocol of skops must be a whole number >= 2. Got 1"),
    "a protocol that is true": (lambda s: s.update(protocol=True), "protocol of skops .* Got True"),
    "no protocol": (lambda s: s.pop("protocol") and None, "protocol of skops .* Got None"),
    "a protocol of the future": (lambda s: s.update(protocol=99), "cannot be read"),
    "keys that are functions": (
        lambda s: more(s, mapping({"key": text(1)}, [node("FunctionNode", "numpy", "add")])),
        "keys of a dict in it must be text or numbers",
    ),
    "keys that are arrays": (
        lambda s: more(s, mapping({"key": text(1)}, [node("TypeNode", "scipy.sparse._csr", "csr_array")])),
        "keys of a dict in it must be text or numbers",
    ),
    "a class as the model": (lambda s: whole(s, node("TypeNode", "builtins", "float")), "holds the class float,"),
    "a list as the model": (lambda s: whole(s, list_node()), "holds a value of type list, not a model"),
    "a solver as the model": (
        lambda s: whole(s, node("ObjectNode", solvers.APG.__module__, "APG", content=mapping({}))),
        "holds a value of type APG, not a model",
    ),
    "no model": (lambda s: s["content"].pop("model") and None, "holds a dict, not a model"),
    "a list": (lambda s: list_node() | {"protocol": 2}, "holds a list, not a model"),
    "a version that a terminal obeys": (
        lambda s: s["content"].update(version=text("\x1b[31m1.0")),
        "notes on versions, class or training",
    ),
    "a version that is a number": (lambda s: s["content"].update(version=text(1)), "notes on versions"),
    "versions that are a list": (lambda s: s["content"].update(versions=list_node()), "notes on versions"),
    "a name that a terminal obeys": (
        lambda s: more(s, node("ObjectNode", "\x1b[31mred", "Class")),
        re.escape(r"\x1b[31mred.Class by ObjectNode"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEMAS)
def test_schemas_that_mean_something_else_are_refused(case, tmp_path):
    change, message = SCHEMAS[case]
    refused(tmp_path / "model", with_schema(archive_of(fitted()["linear"]), change), message)


def first_array(archive, content):
    """The archive with other bytes in its first array."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        first = next(name for name in old.namelist() if name.endswith(".npy"))
        for name in old.namelist():
            new.writestr(name, content if name == first else old.read(name))
    return out.getvalue()


def head(description):
    return b"\x93NUMPY\x01\x00" + len(description).to_bytes(2, "little") + description.encode() + bytes(200)


HEADS = {
    "a negative size": "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 6), }\n",
    "two negative sizes": "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -6), }\n",
    "elements of no bytes": "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }\n",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (4,), }\n",
    "more than there is": "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 6000000000), }\n",
    "a program": "__import__('os').getcwd()\n",
}


@pytest.mark.parametrize("case", HEADS)
def test_arrays_of_impossible_sizes_are_refused(case, tmp_path):
    refused(
        tmp_path / "model",
        first_array(archive_of(fitted()["linear"]), head(HEADS[case])),
        "cannot be read|does not fit in",
    )


def test_an_array_in_an_entry_that_is_not_measured_is_refused(tmp_path):
    """Only entries with the names of arrays are measured, so a loader reads no other."""
    claim = head(HEADS["more than there is"])

    def change(schema):
        new = node("NdArrayNode", "numpy", "ndarray", type="numpy", file="more.bin")
        more(schema, new)

    archive = io.BytesIO(with_schema(archive_of(fitted()["linear"]), change))
    with zipfile.ZipFile(archive, "a") as entries:
        entries.writestr("more.bin", claim)
    refused(tmp_path / "model", archive.getvalue(), "NdArrayNode reads 'more.bin', which is no entry for it")


def test_a_sparse_array_of_another_format_is_refused(tmp_path):
    """The name in the schema is that of one format, and the array in the archive has another."""
    out, packed = io.BytesIO(), io.BytesIO()
    sparse.save_npz(packed, sparse.dia_array(np.eye(40)))
    with zipfile.ZipFile(io.BytesIO(archive_of(fitted()["mlfe"]))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, packed.getvalue() if name.endswith(".npz") else old.read(name))
    refused(tmp_path / "model", out.getvalue(), "must have the format csr or csc. Got dia")


def test_the_schema_of_this_file_is_what_skops_writes():
    """The nodes that these tests make have the form of skops's own."""
    with zipfile.ZipFile(io.BytesIO(archive_of(fitted()["linear"]))) as entries:
        schema = json.loads(entries.read("schema.json"))
    assert set(mapping({})) == set(schema["content"]["model"]["content"])
    assert schema["protocol"] == 2
