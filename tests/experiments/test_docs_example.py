"""The documentation's own data, method and plan go the whole way."""

import re
from pathlib import Path

from rbrl.experiments import Plan, Store, execute

PAGE = Path(__file__).resolve().parents[2] / "docs" / "experiments.md"
FILES = re.compile(r"^```\w+ file=(?P<name>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^```python in=folder\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_own_data_and_own_method(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    names = []
    for match in FILES.finditer(page):
        Path(match["name"]).write_text(match["text"], encoding="utf-8")
        names.append(match["name"])
    assert names == ["birds.csv", "nearest.py", "birds.toml", "rules.toml"]
    namespace = {}
    exec(compile(PROGRAM.search(page)["text"], str(PAGE), "exec"), namespace)
    assert namespace["summary"].n_done == 6, namespace["summary"].failures
    rows = Store("birds-store").rows()
    assert set(rows.method) == {"mine", "rbrl"}
    assert len(rows) == 2 * 3 * 6
    assert rows.value.notna().all()
    assert execute("rules.toml", "birds-store").n_done == 3
    rule = """extends = "birds.toml"\n[methods.br]\nparams = { scores = "decision" }\nnon_empty = true"""
    summary = execute(Plan.from_text(rule, "."), "birds-store")
    assert (summary.n_done, summary.n_reused) == (0, 9), "the other rule's runs are done"
