"""Make the frozen answers anew, from the present code: `python tests/frozen/make.py`."""

import json
import os
import shutil
import sqlite3
import sys
import tempfile
import time
import warnings
import zipfile
from importlib.metadata import version
from pathlib import Path

import frozen_cases
import frozen_commands
import numpy as np
import pandas as pd

import rbrl
from rbrl.datasets import Dataset, save_file
from rbrl.experiments import Plan, Store, execute

HERE = Path(__file__).parent
ROWS = ["dataset", "method", "split", "metric", "value", "status", "params", "seed"]
PACKAGES = ("numpy", "scipy", "scikit-learn", "skops", "typer", "rich")


def make_answers():
    """What every estimator answers."""
    found = {f"{case}/{name}": value for case, make in frozen_cases.CASES.items() for name, value in make().items()}
    np.savez_compressed(HERE / "answers.npz", **{name: small(value) for name, value in found.items()})


def make_models():
    """A file of every class, packed together, and what the models answer."""
    new, found = frozen_cases.tiny().X_new, {}
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(HERE / "models.zip", "w", zipfile.ZIP_LZMA) as pack:
        for name, model in frozen_cases.models().items():
            rbrl.save(model, Path(folder, name))
            pack.write(Path(folder, name), name)
            found |= {f"{name}/scores": rbrl.metrics.scores_of(model, new), f"{name}/labels": small(model.predict(new))}
    np.savez_compressed(HERE / "models.npz", X=new, **found)


def small(value):
    """Whole numbers in the fewest bytes."""
    value = np.asarray(value)
    if value.dtype.kind != "i" or not value.size:
        return value
    return value.astype(np.result_type(np.min_scalar_type(value.min()), np.min_scalar_type(value.max())))


def make_store():
    """Data, and a comparison of them by the plan."""
    folder = HERE / "store"
    text, tiny = frozen_cases.text(), frozen_cases.tiny()
    save_file(Dataset(text.X[:60], text.Y[:60]), folder / "small.npz")
    frame = pd.DataFrame(np.round(tiny.X, 3)).add_prefix("f").assign(**dict(zip(("sea", "sand", "sky"), tiny.Y.T)))
    frame.to_csv(folder / "other.csv", index=False)
    (folder / "runs.sqlite").unlink(missing_ok=True)
    before = Path.cwd()
    os.chdir(folder)  # the store then names no folder of this machine
    try:
        store = Store(".")
        summary = execute(Plan.from_text(Path("plan.toml").read_text(encoding="utf-8"), "."), store)
        if summary.n_failed:
            raise RuntimeError(f"{summary.n_failed} runs failed: {summary.failures[0]}")
        store.rows()[ROWS].to_csv("rows.csv", index=False)
        store.close()
    finally:
        os.chdir(before)
    shutil.rmtree(folder / "locks", ignore_errors=True)
    with sqlite3.connect(folder / "runs.sqlite") as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()


def make_commands():
    """What the commands print."""
    with tempfile.TemporaryDirectory() as folder:
        found = frozen_commands.answers(folder)
    (HERE / "commands.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def make_note():
    """When, and with what."""
    lines = [f"made {time.strftime('%Y-%m-%d')}", f"rbrl {rbrl.__version__}", f"python {sys.version.split()[0]}"]
    lines += [f"{name} {version(name)}" for name in PACKAGES]
    (HERE / "MADE.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for make in (make_answers, make_models, make_store, make_commands, make_note):
        make()
