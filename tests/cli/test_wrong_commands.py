"""Wrong commands: one message names the object, the rule, the value received and the way out, in terms of the shell."""

import os
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbrl import BRLClassifier, save
from rbrl.datasets import load_file

LABELS = "--labels sea,sun"
# Words of the Python library that a message at the shell must not have.
PYTHON_TERMS = re.compile(
    r"Traceback|StandardScaler|make_pipeline|SimpleImputer|load_file|open_shards|Classifier\b|parameter of [A-Z]|"
    r"\b(labels|ignore|positive|data_home|first_feature|first_label|first_line|format|X|y|Y)="
)
# Each command, and the fragments that its message must have: object, rule, value and way out.
WRONG_COMMANDS = [
    # Options
    ("fit data.csv --label sea,sun -o new.rbrl", ["--label", "No such option", "--labels"]),
    ("evaluate m.rbrl data.csv --metrics hamming_loss", ["--metrics", "No such option", "--metric"]),
    ("fti yeast -o new.rbrl", ["fti", "No such command", "fit"]),
    ("fit yeast", ["--output", "Missing option"]),
    ("fit yeast -o new.rbrl --calibrate sigmod", ["--calibrate", "sigmod", "sigmoid", "isotonic"]),
    ("predict m.rbrl data.csv --write probabilitis", ["--write", "probabilitis", "probabilities"]),
    ("predict m.rbrl data.csv --top three", ["--top", "three", "whole number"]),
    ("predict m.rbrl data.csv --block-size -5", ["--block-size", "-5", "0"]),
    ("predict m.rbrl data.csv --top 2 --write names", ["--top", "--write names", "leave it out", "--write scores"]),
    ("compare -d data.csv -m br -j 0 " + LABELS, ["--jobs", ">= 1", "-1", "Got '0'"]),
    ("compare", ["plan", "--dataset", "--method"]),
    ("report run --formats pdf", ["--formats", "csv", "pdf"]),
    ("compare -d data.csv -m br --backend dsk " + LABELS, ["--backend 'dsk'", "Did you mean 'dask'", "serial"]),
    # Names
    ("fit yeast -m rbl -o new.rbrl", ["--method", "'rbl'", "Did you mean 'rbrl'", "ml-knn"]),
    ("fit yeast -m rank_svm -o new.rbrl", ["--method", "'rank_svm'", "Did you mean 'rank-svm'"]),
    ("compare -d data.csv -m rbl " + LABELS, ["'rbl'", "Did you mean 'rbrl'", "ml-knn"]),
    ("evaluate m.rbrl data.csv --metric rankng_loss", ["--metric", "'rankng_loss'", "Did you mean 'ranking_loss'"]),
    ("fit yaest -o new.rbrl", ["'yaest'", "Did you mean 'yeast'"]),
    ("data show yaest", ["'yaest'", "Did you mean 'yeast'"]),
    ("data fetch yaest", ["'yaest'", "Did you mean 'yeast'"]),
    ("compare -d yaest -m br", ["--dataset 'yaest'", "Did you mean 'yeast'"]),
    ("fit yeast --set rigde=1 -o new.rbrl", ["--set", "rigde", "Did you mean 'ridge'", "nuclear"]),
    ("fit yeast --set ridge -o new.rbrl", ["--set", "NAME=VALUE", "'ridge'"]),
    ("fit yeast --set ridge=abc -o new.rbrl", ["--set ridge", "number", "'abc'"]),
    ("fit yeast --set nuclear=-1 -o new.rbrl", ["--set nuclear", ">= 0", "-1"]),
    ("fit yeast --set kernel=rbff -o new.rbrl", ["--set kernel", "'rbff'", "'rbf'"]),
    # Label columns
    ("fit data.csv -o new.rbrl", ["data.csv", "--labels", "sea"]),
    ("compare -d data.csv -m br", ["data.csv", "--labels", "sea"]),
    ("fit data.csv --labels sea,snu -o new.rbrl", ["data.csv", "--labels", "'snu'", "Did you mean 'sun'"]),
    ("fit data.csv --labels 9 -o new.rbrl", ["data.csv", "--labels", "9", "5 columns"]),
    ("fit data.csv --labels 0 -o new.rbrl", ["data.csv", "--labels", "0 labels", "from 1 to 4"]),
    ("fit data.csv --labels sea,sea -o new.rbrl", ["data.csv", "--labels", "'sea'", "2 times"]),
    ("fit data.csv --labels none.xml -o new.rbrl", ["none.xml", "--labels", "no such file"]),
    ("fit ja.csv --labels sea,sun -o new.rbrl", ["ja.csv", "'sea'", "--positive 'ja'"]),
    ("fit yeast --labels 3 -o new.rbrl", ["--labels", "goes with a file", "'yeast'"]),
    ("evaluate m.rbrl unlabelled.csv", ["unlabelled.csv", "labels", "sea"]),
    # Files
    ("fit dta.csv --labels sea,sun -o new.rbrl", ["no such file", "dta.csv", "Did you mean 'data.csv'"]),
    ("fit fake.arff --labels sea,sun -o new.rbrl", ["fake.arff", "ARFF", "x0,x1,x2,sea,sun", ".csv"]),
    (
        "fit empty.csv --labels sea,sun -o new.rbrl",
        ["empty.csv", "the file is empty", "write the names into the first line"],
    ),
    ("fit header.csv --labels sea,sun -o new.rbrl", ["header.csv", "no rows"]),
    ("fit words.csv --labels sea,sun -o new.rbrl", ["words.csv", "'city'", "town", "--ignore 'city'"]),
    ("fit gaps.csv --labels sea,sun -o new.rbrl", ["gaps.csv", "'x1'", "missing", "--ignore 'x1'"]),
    ("fit other.npz -o new.rbrl", ["other.npz", "'weights'", "X"]),
    ("predict m.rbrl other.csv", ["other.csv", "'x2'", "feature"]),
    ("predict m.rbrl yeast", ["yeast", "'x0'", "feature", "'Att1'"]),
    ("predict m.rbrl fake.csv", ["fake.csv", "'x0'", "feature", "'a'"]),
    ("predict data.csv m.rbrl", ["data.csv", "not a model file", "rbrl predict MODEL DATA"]),
    ("predict none.rbrl data.csv", ["no such model file", "none.rbrl", "rbrl fit"]),
    ("evaluate m.rbrl folder", ["folder", "is a folder", "file"]),
    ("fit folder -o new.rbrl", ["folder", "no data files", "*.npz"]),
    ("predict folder data.csv", ["folder", "is a folder", "model file"]),
    ("fit data.parquet --labels sea,sun -o new.rbrl", ["pyarrow", "not installed", 'pip install "rbrl[data]"']),
    ("report none", ["no such folder", "none", "rbrl compare"]),
    ("report folder", ["folder", "no comparison", "rbrl compare"]),
    ("compare none.toml", ["none.toml", "No such file"]),
    ("compare bad.toml", ["bad.toml", "'mehtods'", "Did you mean 'methods'"]),
    # Models and outputs
    ("predict m.rbrl data.csv --write probabilities", ["no probabilities", "rbrl fit --calibrate"]),
    ("fit shards --method br -o new.rbrl", ["--method", "br", "rbrl, brl or cpnl", "one file"]),
    ("fit data.csv --labels sea,sun -o data.csv", ["data.csv", "input", "another output file"]),
    ("predict m.rbrl data.csv -o m.rbrl", ["m.rbrl", "input", "another output file"]),
    ("data convert data.csv data.csv --labels sea,sun", ["data.csv", "input", "another output file"]),
    ("data convert data.csv new.foo --labels sea,sun", ["new.foo", ".npz", ".csv"]),
    ("fit data.csv --labels sea,sun -o folder", ["folder", "is a folder", "name the output file in it"]),
    ("fit data.csv --labels sea,sun -o none/new.rbrl", ["no such folder", "none", "create it"]),
    ("predict m.rbrl data.csv -o none/new.csv", ["no such folder", "none", "create it"]),
    ("fit data.csv --labels sea,sun -o readonly/new.rbrl", ["readonly", "not writable", "another folder"]),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the files of the commands."""
    place = tmp_path_factory.mktemp("place")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((30, 3)).round(3), columns=["x0", "x1", "x2"])
    frame = frame.assign(sea=(frame.x0 > 0).astype(int), sun=(frame.x1 > 0).astype(int))
    frame.to_csv(place / "data.csv", index=False)
    frame.to_csv(place / "fake.arff", index=False)
    frame.head(0).to_csv(place / "header.csv", index=False)
    frame.assign(city=[f"town {i}" for i in range(len(frame))]).to_csv(place / "words.csv", index=False)
    frame.assign(x1=frame.x1.where(frame.x1 > 0)).to_csv(place / "gaps.csv", index=False)
    frame.replace({"sea": {0: "nein", 1: "ja"}}).to_csv(place / "ja.csv", index=False)
    frame[["x0", "x1", "sea", "sun"]].to_csv(place / "other.csv", index=False)
    frame[["x0", "x1", "x2"]].to_csv(place / "unlabelled.csv", index=False)
    np.savez(place / "other.npz", weights=np.eye(3))
    (place / "empty.csv").touch()
    (place / "fake.csv").write_text("a,b,c\n1,2,3\n")
    (place / "data.parquet").write_bytes(b"PAR1")
    (place / "bad.toml").write_text('datasets = ["yeast"]\nmehtods = ["br"]\n')
    for folder in ("folder", "readonly", "shards", "run"):
        (place / folder).mkdir()
    (place / "readonly").chmod(0o555)
    dataset = load_file(place / "data.csv", ["sea", "sun"])
    np.savez(place / "shards" / "a.npz", X=dataset.X, Y=dataset.Y)
    columns = ["x0", "x1", "x2"]
    save(BRLClassifier().fit(frame[columns], frame[["sea", "sun"]]), place / "m.rbrl")
    return place


@pytest.mark.parametrize(("command", "fragments"), WRONG_COMMANDS, ids=[command for command, _ in WRONG_COMMANDS])
def test_a_wrong_command_names_object_rule_value_and_way_out(rbrl, place, monkeypatch, command, fragments):
    monkeypatch.chdir(place)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    # The superuser may write into every folder.
    can_write = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "readonly" and can_write(path, mode))
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    answer = rbrl(*shlex.split(command))
    message = " ".join(re.sub("[│╭╮╰╯─]", " ", answer.err).split())
    assert answer.code == 2, message
    assert [fragment for fragment in fragments if fragment not in message] == [], message
    assert not PYTHON_TERMS.search(message), message
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*") if "run" not in path.parts} == {
        path: time for path, time in before.items() if "run" not in path.parts
    }
