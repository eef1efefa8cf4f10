"""What a plain `pip install rbrl` can do: fit, predict, save and load; the rest is one line that names an extra."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import rbrl
from rbrl._common.environment import EXTRAS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = sorted({name for names in EXTRAS.values() for name in names})
# None of an extra's packages is found: neither imported nor, as the folder of river is, looked for.
HIDE = """
import sys
from importlib.machinery import PathFinder
class Hidden(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {} else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Hidden
"""


def run(code, *, hidden=MODULES, **environment):
    """Run code in a process that cannot import the hidden modules."""
    environment = os.environ | {"PYTHONPATH": str(Path(rbrl.__file__).parents[1]), "RBRL_CACHE": ""} | environment
    code = HIDE.format(hidden) + code
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def names(requirements):
    return {line.partition(">=")[0].partition("[")[0] for line in requirements}


def test_what_is_required_and_what_the_extras_bring():
    assert names(PROJECT["dependencies"]) == {"numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "skops"}
    extras = PROJECT["optional-dependencies"]
    assert {name: set(modules) - {"distributed"} for name, modules in EXTRAS.items()} == {
        name: names(extras[name]) for name in EXTRAS
    }
    # All but torch, which takes gigabytes where its installer does not choose a build for the processor alone.
    assert extras["all"] == [f"rbrl[{','.join([*EXTRAS, 'onnx'])}]"]


FIT = """
from sklearn.datasets import make_multilabel_classification
X, Y = make_multilabel_classification(30, 6, n_classes=4, random_state=0)
import rbrl
{}
"""
EVERYTHING = """
for name in ("RBRLClassifier", "BRLClassifier", "CPNL", "BinaryRelevance", "MLkNN", "RankSVMz", "TunedThresholdClassifier"):
    model = getattr(rbrl, name)
    model = model(rbrl.BRLClassifier()) if name.startswith("Tuned") else model()
    labels = model.fit(X, Y).predict(X)
rbrl.RBRLClassifierCV(cv=2).fit(X, Y)
rbrl.save(rbrl.RBRLClassifier(verbose=1).fit(X, Y), "model.rbrl")
rbrl.load("model.rbrl").predict(X)
rbrl.evaluate(Y, labels, model.decision_function(X))
rbrl.experiments.statistics, rbrl.solvers, rbrl.splits, rbrl.decision, rbrl.datasets, rbrl.experiments
print("done")
"""


def test_fit_predict_save_and_load_need_no_extra(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = run(FIT.format(EVERYTHING))
    assert answer.stdout.endswith("done\n"), answer.stderr


NEEDED = [
    ("report", "rbrl.experiments.Results"),
    ("report", "rbrl.selection.tune(rbrl.BRLClassifier(), {'ridge': [1]}, X, Y, folds=2)"),
    ("report", "rbrl.experiments.Store('store').rows()"),
    ("data", "rbrl.datasets.load('yeast')"),
    ("data", "rbrl.datasets.load('emotions')"),
    ("data", "rbrl.datasets.catalogue()"),
    ("data", "rbrl.datasets.save_file(rbrl.datasets.Dataset(X, Y), 'a.parquet')"),
    ("dask", "from rbrl.out_of_core.sources import DaskBlocks; DaskBlocks([])"),
    ("dask", "from rbrl.experiments.worker import _connect; _connect(None)"),
]


def test_what_needs_an_extra_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RBRL_DATA", raising=False)
    tries = f"""
for code in {[code for _, code in NEEDED]}:
    try:
        exec(code)
    except ImportError as error:
        print(error)
"""
    answer = run(FIT.format(tries))
    lines = answer.stdout.splitlines()
    assert len(lines) == len(NEEDED), answer.stderr
    for line, (extra, _) in zip(lines, NEEDED, strict=True):
        assert line.endswith(f'which is not installed: pip install "rbrl[{extra}]".')


def test_the_command_without_its_extra_is_one_line():
    answer = run("from rbrl.cli import main; main(['--help'])")
    assert answer.returncode == 2
    assert answer.stderr == 'rbrl: The command line needs typer, which is not installed: pip install "rbrl[cli]".\n'
    assert answer.stdout == ""


def test_an_estimator_imports_nothing_of_the_extras():
    """scikit-learn imports some of them by itself where they are there, so that it comes first."""
    code = f"""
import sys, sklearn.preprocessing, sklearn.svm, sklearn.metrics
before = set(sys.modules)
from rbrl import RBRLClassifier, BinaryRelevance, RankSVMz
print([name for name in {[*MODULES, "skops"]} if name in set(sys.modules) - before])
"""
    assert run(code, hidden=[]).stdout == "[]\n"


def test_every_listed_name_of_the_package_can_be_looked_at():
    code = """
import inspect, rbrl
print({name for name, _ in inspect.getmembers(rbrl)} >= {*rbrl.__all__, *rbrl._MODULES})
print(all(inspect.getmembers(getattr(rbrl, name)) for name in rbrl._MODULES))
"""
    answer = run(code, hidden=[*MODULES, "onnx", "onnxruntime", "torch"])
    assert answer.stdout == "True\nTrue\n", answer.stderr


COMPARE = "compare -d yeast -m br -m ml-knn --splits 1 -o run"


def call(command, hidden):
    """Run `rbrl` in a process that cannot import the hidden modules."""
    return run(f"from rbrl.cli import main; main({command.split()})", hidden=hidden)


def test_compare_without_the_extra_report_writes_tables(tmp_path, monkeypatch):
    """The README installs the extras data and cli."""
    monkeypatch.chdir(tmp_path)
    hidden = ["matplotlib", "jinja2"]
    answer = call(COMPARE, hidden)
    assert answer.returncode == 0, answer.stderr
    notice = "rbrl: matplotlib and jinja2 are not installed, so that tables are written, but no figures and no page."
    remedy = 'To get them later: pip install "rbrl[report]", then `rbrl report run`.'
    assert answer.stderr.splitlines()[0] == f"{notice} {remedy}", "before the runs"
    assert answer.stderr.count("not installed") == 1
    assert "Hamming loss" in answer.stdout
    assert {path.name for path in (tmp_path / "run" / "report").iterdir()} == {"tables"}
    assert (tmp_path / "run" / "report" / "tables" / "results.csv").is_file()
    answer = call(f"{COMPARE} --json", hidden)
    found = json.loads(answer.stdout)
    assert (found["n_done"], found["n_reused"], found["page"]) == (0, 2, None)
    assert {"results", "average-ranks"} <= set(found["tables"])
    answer = call("report run --formats csv -o other", hidden)
    assert answer.returncode == 0, answer.stderr
    assert "then repeat the command" in answer.stderr
    assert (tmp_path / "other" / "tables" / "results.csv").is_file()
    answer = call("report run -o other", [])
    assert (answer.returncode, (tmp_path / "other" / "report.html").is_file()) == (0, True)


def test_compare_without_pandas_ends_before_the_first_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = call(COMPARE, ["pandas"])
    message = 'rbrl: A table of a comparison needs pandas, which is not installed: pip install "rbrl[report]".\n'
    assert (answer.returncode, answer.stderr) == (2, message)
    assert not (tmp_path / "run").exists()
