"""Compare ten figures of speed and memory with the recorded ones: ``python -m studies.benchmarks.asv [--record]``

asv measures the rbrl of this environment by `suite/figures.py`; its own commands (`asv show`, `asv publish`) work on what it
leaves in .asv/. The baseline is `baseline.json`; with ``--record`` this run becomes it. Figures of another machine are shown
beside, but say little. It needs the extra `release`.
"""

import argparse
import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import rbrl
from studies.benchmarks.problems import write_results

HERE = Path(__file__).parent
ROOT, BASELINE = HERE.parents[2], HERE / "baseline.json"
CONFIG = json.loads((HERE / "asv.conf.json").read_text(encoding="utf-8"))
# What each figure is called, its unit, and what to multiply asv's number with.
FIGURES = {
    "Processes.track_import": ("import of a classifier, in a new process", "s", 1),
    "Processes.track_first_fit": ("import and a first fit (300 rows), in a new process", "s", 1),
    "Yeast.time_fit_linear": ("default fit, yeast, linear", "s", 1),
    "Yeast.time_fit_rbf": ("default fit, yeast, rbf", "s", 1),
    "Search.time_search": ("`RBRLClassifierCV(cv=2)`, 500 rows of yeast", "s", 1),
    "Prediction.time_predict_single_rows": ("predict a single row", "ms", 10),  # of a hundred, one by one
    "ManyLabels.time_fit_many_labels": ("fit of 1,000 labels, 2,000 sparse rows", "s", 1),
    "OutOfCore.track_pass": ("fit from files, for each pass over 20,000 rows", "s", 1),
    "Memory.peakmem_fit": ("peak memory of a fit of 20,000 x 200, X and imports included", "MB", 1e-6),
    "Counted.track_evaluations": ("evaluations of a default fit, yeast", "", 1),
}
TEXT = """Those recorded are of rbrl {version} on {date} ({machine}). Times are processor seconds of one thread: of new
processes the least of three, of the others asv's median. On another machine their ratios say little."""


def machine():
    """Machine and versions that the figures depend on."""
    found = rbrl.info()
    return {"processor": processor()} | {name: found[name] for name in found if name not in ("rbrl", "extras")}


def processor():
    """Return the system's name of the processor."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def asv(*arguments):
    subprocess.run([sys.executable, "-m", "asv", *arguments, "--config", str(HERE / "asv.conf.json")], check=True)


def measured():
    """asv's numbers of this environment, by name."""
    if find_spec("asv") is None:
        sys.exit('This benchmark needs asv, which is not installed: make asv, or pip install ".[release]".')
    asv("machine", "--yes")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    commit = head.stdout.strip()
    asv("run", "--environment", f"existing:{sys.executable}", "--set-commit-hash", commit, "--show-stderr")
    written = (HERE / CONFIG["results_dir"]).resolve().glob(f"*/{commit[:8]}-existing*.json")
    newest = max(written, key=lambda path: path.stat().st_mtime)
    run = json.loads(newest.read_text(encoding="utf-8"))
    column = run["result_columns"].index("result")
    values = {name.removeprefix("figures."): row[column][0] for name, row in run["results"].items()}
    return {name: values[name] * scale for name, (_, _, scale) in FIGURES.items()}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="make this run the baseline")
    record, figures = parser.parse_args(arguments).record, measured()
    if record:
        about = {"rbrl": rbrl.__version__, "date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine()}
        rounded = {name: float(f"{value:.3g}") for name, value in figures.items()}
        BASELINE.write_text(json.dumps(about | {"figures": rounded}, indent=1) + "\n", encoding="utf-8")
    before = json.loads(BASELINE.read_text(encoding="utf-8"))
    rows = []
    for name, (title, unit, _) in FIGURES.items():
        old, new = before["figures"][name], figures[name]
        shown = {
            "figure": title,
            "unit": unit,
            "recorded": f"{old:.3g}",
            "now": f"{new:.3g}",
            "ratio": f"{new / old:.2f}",
        }
        rows.append(shown)
    about = {"version": before["rbrl"], "date": before["date"], "machine": before["machine"]["processor"]}
    write_results(__file__, "The figures that a release is compared by", TEXT.format(**about), rows)


if __name__ == "__main__":
    main(sys.argv[1:])
