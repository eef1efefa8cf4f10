"""What the command `rbrl` prints; as a script, runs the commands in the current folder and prints their answers as JSON."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

STORE = Path(__file__).parent / "store"
# The answers are those of the first defaults.
FIRST = "--set ranking=0.1 --set nuclear=0.1 --set intercept_ridge=null --set gamma=paper --set non_empty=false"
COMMANDS = {
    "version": "--version",
    **{
        f"help {name}".strip(): f"{name} --help".strip()
        for name in (
            *("", "compare", "report", "fit", "predict", "evaluate"),
            *("data", "data list", "data show", "data fetch", "data convert"),
        )
    },
    "data list": "data list",
    "data list json": "data list --json",
    "data show": "data show yeast",
    "data show json": "data show yeast --json",
    "data show file": "data show other.csv --labels -3",
    "data convert": "data convert other.csv other.arff --labels -3",
    "data convert shards": "data convert other.csv shards --labels -3 --rows-per-shard 25",
    "fit": f"fit other.csv --labels -3 -o model.rbrl --set tol=1e-10 --set ridge=10 {FIRST}",
    "fit json": f"fit other.arff -o kernel.rbrl --set kernel=rbf --standardise --set tol=1e-9 --json --set ridge=1 {FIRST}",
    "fit method": "fit small.npz -o neighbours.rbrl -m ml-knn --set n_neighbors=5",
    "fit shards": f"fit shards -o shards.rbrl --set tol=1e-10 --set ridge=10 {FIRST}",
    "predict": "predict model.rbrl other.csv",
    "predict names": "predict model.rbrl other.csv --write names",
    "predict scores": "predict kernel.rbrl other.arff --write scores --block-size 10",
    "predict top": "predict shards.rbrl other.csv --top 2",
    "predict file": "predict model.rbrl other.csv -o predicted.csv",
    "evaluate": "evaluate model.rbrl other.csv",
    "evaluate json": "evaluate kernel.rbrl other.arff --json",
    "evaluate metrics": "evaluate neighbours.rbrl small.npz --metric one_error --metric f1_macro",
    "compare": "compare plan.toml -d small -d other -o run",
    "compare json": "compare plan.toml -d small -d other -o run --json",
    "report": "report run -o other-report --formats csv",
    "report json": "report kept --json",
    "wrong method": "fit other.csv --labels -3 -o wrong.rbrl -m nothing",
    "wrong parameter": "fit other.csv --labels -3 -o wrong.rbrl --set nothing=1",
    "wrong model": "predict nothing.rbrl other.csv",
    "wrong metric": "evaluate model.rbrl other.csv --metric nothing",
    "wrong plan": "compare plan.toml -d nothing -o run",
    "wrong call": "compare",
    "wrong option": "fit other.csv --nothing",
}
# How far a comparison is, the command that has a home of its own, and the one that came later.
LEFT_OUT = r"^\[\d+/|reproduc|^│ info  "
# Fixed, so that neither the terminal nor a runner of tests decides how help is laid out.
ENVIRONMENT = {"COLUMNS": "120", "TERMINAL_WIDTH": "120", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
KEPT = ("PATH", "HOME", "TMPDIR", "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "PYTHONWARNINGS", "SYSTEMROOT")


def answers(folder):
    """Run every command in `folder`, on the data and the plan of the frozen store; return {name: [code, out, err]}."""
    for name in ("plan.toml", "own.py", "small.npz", "other.csv"):
        shutil.copy(STORE / name, folder)
    Path(folder, "kept").mkdir()
    shutil.copy(STORE / "runs.sqlite", Path(folder, "kept"))
    environment = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("RBRL_TESTS")}
    paths = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path]
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, paths)))
    done = subprocess.run(
        [sys.executable, __file__],
        cwd=folder,
        env=environment | ENVIRONMENT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout)
    return {name: [code, settled(out), settled(err)] for name, (code, out, err) in found.items()}


def settled(text):
    """Text without times, versions, the core, gaps and what is left out."""
    import rbrl

    text = text.replace(rbrl.__version__, "VERSION").replace(f" (core: {rbrl.info()['core']})", "")
    text = re.sub(r"\d+(\.\d+)? s\b", "TIME", text)
    text = re.sub(r'("[a-z_]*seconds": )[-+.e\d]+', r"\1null", text)
    text = re.sub(r"within \S+ %", "within GAP %", text)
    text = re.sub(r'("gap": )[-+.e\d]+', r"\1null", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if not re.search(LEFT_OUT, line))


def _run(main, arguments):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["rbrl", *arguments]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(arguments)
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()


def _run_all():
    from rbrl.cli import main

    found = {name: _run(main, command.split()) for name, command in COMMANDS.items()}
    written = sorted(path.as_posix() for path in Path("run", "report").rglob("*") if path.is_file())
    return found | {"files of a report": (0, "\n".join(written), "")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_run_all()))
