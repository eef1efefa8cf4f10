"""The documentation's own data, method and plan go the whole way."""

import os
import re
import sys
from pathlib import Path

from rbrl.experiments import Plan, Store, execute

PAGE = Path(__file__).resolve().parents[2] / "docs" / "experiments.md"
FILES = re.compile(r"^```\w+ file=(?P<name>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^```python in=folder\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

SAID_OF_COMMAND = "3 runs done, 0 failed"


def test_own_data_own_method_and_a_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    names = []
    for match in FILES.finditer(page):
        Path(match["name"]).write_text(match["text"], encoding="utf-8")
        names.append(match["name"])
    assert names == ["birds.csv", "nearest.py", "birds.toml", "majority.py", "commands.toml", "rules.toml"]
    own, command = (match["text"] for match in PROGRAM.finditer(page))
    namespace = {}
    exec(compile(own, str(PAGE), "exec"), namespace)
    assert namespace["summary"].n_done == 6, namespace["summary"].failures
    rows = Store("birds-store").rows()
    assert set(rows.method) == {"mine", "rbrl"}
    assert len(rows) == 2 * 3 * 6
    assert rows.value.notna().all()
    assert execute("rules.toml", "birds-store").n_done == 3
    rule = """extends = "birds.toml"\n[methods.br]\nparams = { scores = "decision" }\nnon_empty = true"""
    summary = execute(Plan.from_text(rule, "."), "birds-store")
    assert (summary.n_done, summary.n_reused) == (0, 9), "the other rule's runs are done"
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    exec(compile(command, str(PAGE), "exec"), namespace)
    assert capsys.readouterr().out.splitlines()[-1] == SAID_OF_COMMAND
    assert SAID_OF_COMMAND in page
    rows = Store("birds-store").rows()
    assert set(rows.method) == {"majority"}
    assert rows.value.notna().all()
