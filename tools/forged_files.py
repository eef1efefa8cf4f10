"""Try model files that were made to run code, with every version of skops that pyproject.toml allows.

    python tools/forged_files.py                  the versions that the package index has
    python tools/forged_files.py 0.11.0 0.16.0    these versions, allowed or not

Each version is installed into a folder of its own, beside the other packages of this Python. A file is "refused" where
`rbrl.load` raises ModelFileError before anything of the file has run, and "EXECUTED" where it has run. The exit code is
1 if any file was executed or loaded.
"""

import contextlib
import hashlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A module that the files try to import: if it was imported, code of a file has run.
CANARY = "rbrl_canary"
OURS = ("rbrl.estimators.rbrl", "RBRLClassifier")
NUMBERS = itertools.count(1)


def node(loader, module, name, **rest):
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": -next(NUMBERS), **rest}


def text(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def list_node(*items):
    return node("ListNode", "builtins", "list", content=list(items))


def mapping(content, key_types=None):
    """Return a dict node; skops calls each of the types with its key."""
    types = [node("TypeNode", "builtins", "str") for _ in content] if key_types is None else key_types
    return node("DictNode", "builtins", "dict", content=content, key_types=list_node(*types))


def method(holder, name):
    """Return a node for any attribute of any object, under the name of a class that we trust."""
    return node("MethodNode", *OURS, content={"func": name, "obj": holder})


def item(holder, key):
    """Return a node for an item of a dict, as an attribute of the steps of a pipeline."""
    steps = {"steps": holder, "memory": text(None), "verbose": text(False)}
    pipeline = node("ObjectNode", "sklearn.pipeline", "Pipeline", content=mapping(steps))
    return method(method(pipeline, "named_steps"), key)


def builtin(name):
    """Return a node for a function of Python, from the globals of one of our methods."""
    variables = method(method(node("TypeNode", *OURS), "fit"), "__globals__")
    return item(item(variables, "__builtins__"), name)


def partial(function, *arguments):
    given = node("TupleNode", "builtins", "tuple", content=list(arguments))
    parts = {"func": function, "args": given, "kwds": mapping({}), "namespace": text(None)}
    return node("PartialNode", *OURS, content=parts)


def code_nodes():
    """Return, by name, the nodes that run code when skops builds them."""
    loss = node("LossNode", CANARY, "Loss", content=mapping({}))
    loss["__reduce__"] = {"args": node("TupleNode", "builtins", "tuple", content=[])}
    seeds = {"bit_generator": mapping({"bit_generator": text(CANARY)}), "seed_seq": mapping({})}
    return {
        "method": mapping({f"import {CANARY}": text(1)}, [builtin("exec")]),
        "partial": mapping({"key": text(1)}, [partial(builtin("__import__"), text(CANARY))]),
        "import": loss,
        "generator": node("RandomGeneratorNode", "numpy.random._generator", "Generator", content=seeds),
    }


def sealed(archive):
    """Return the file of an archive, with the checksum that it must have."""
    return b"rbrl model 1\n" + hashlib.sha256(archive).hexdigest().encode() + b"\n" + archive


def with_schema(archive, change):
    """Return the archive with another schema: the result of `change`, or the schema that it changed in place."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                content = json.dumps(change(schema) or schema)
            new.writestr(name, content)
    return out.getvalue()


def code_files():
    """Return model files that run code, by name: each has a sound model and a forged node."""
    import numpy as np
    import skops.io

    import rbrl

    model = rbrl.RBRLClassifier().fit(np.eye(4), np.eye(4, dtype=int))
    archive = skops.io.dumps({"model": model, "more": None})
    files = {}
    for name, forged in code_nodes().items():
        files[name] = sealed(with_schema(archive, lambda schema, new=forged: schema["content"].update(more=new)))
    return files


def answers(folder):
    """Return what `rbrl.load` does with each file."""
    import numpy as np

    import rbrl

    Path(folder, f"{CANARY}.py").write_text("class Loss: pass\n", encoding="utf-8")
    sys.path.insert(0, str(folder))
    # A file that can call one function of numpy.random could call any of them.
    setattr(np.random, CANARY, lambda *_: __import__(CANARY))
    found = {}
    for name, content in code_files().items():
        sys.modules.pop(CANARY, None)
        path = Path(folder, name)
        path.write_bytes(content)
        with contextlib.suppress(rbrl.exceptions.ModelFileError):
            rbrl.load(path)
            found[name] = "loaded"
        found[name] = "EXECUTED" if CANARY in sys.modules else found.get(name, "refused")
    delattr(np.random, CANARY)
    sys.path.remove(str(folder))
    return found


def allowed_versions():
    """Return the versions of the index that pyproject.toml allows, oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bound,) = (name.partition(">=")[2] for name in project["dependencies"] if name.startswith("skops"))
    command = [sys.executable, "-m", "pip", "index", "versions", "skops"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed_versions = re.search(r"Available versions: (.*)", answer)[1].split(", ")
    return [version for version in reversed(listed_versions) if release(version) >= release(bound)]


def release(version):
    return tuple(int(number) for number in re.findall(r"\d+", version))


def load_with(version, folder):
    """Load each file in a process of its own with a version of skops, and return the outcomes."""
    packages = Path(folder, version)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages)]
    subprocess.run([*command, f"skops=={version}"], check=True)
    paths = [str(packages), str(ROOT / "src"), str(ROOT / "tools")]
    code = "import json, tempfile, forged_files, skops; " \
        "print(json.dumps([skops.__version__, forged_files.answers(tempfile.mkdtemp())]))"  # fmt: skip
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"skops {version} did not answer:\n{done.stderr}")
    used, found = json.loads(done.stdout.splitlines()[-1])
    assert used == version, f"expected skops {version}, found {used}"
    return found


def main(versions):
    names = list(code_nodes())
    print(f"{'skops':10}" + "".join(f"{name:11}" for name in names))
    harmless = True
    with tempfile.TemporaryDirectory() as folder:
        for version in versions or allowed_versions():
            found = load_with(version, folder)
            print(f"{version:10}" + "".join(f"{found[name]:11}" for name in names), flush=True)
            harmless &= set(found.values()) == {"refused"}
    return 0 if harmless else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
