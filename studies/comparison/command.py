"""``python -m studies.comparison``: run, page, check, environments."""

import argparse
import subprocess
import venv
from dataclasses import replace
from pathlib import Path

from studies.comparison import rows

ENVIRONMENTS = Path(__file__).resolve().parent / "environments"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.comparison", description="Multi-label methods compared on equal terms."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run the cells that have no rows yet")
    for name, kind in (("dataset", str), ("method", str), ("split", int)):
        running.add_argument(f"--{name}", type=kind, action="append", help=f"only this {name}; may be given again")
    running.add_argument("--study", choices=["more-rows", "wide"], help="a study beside the main run; see RULES.md")
    running.add_argument("--jobs", type=int, default=1, help="cells at a time")
    commands.add_parser("environments", help="make the environments of methods that are commands")
    writing = commands.add_parser("page", help="write docs/comparison.md and its figures")
    writing.add_argument("--html", type=Path, metavar="FILE", help="write them into one HTML file as well")
    checking = commands.add_parser("check", help="recompute random rows; exit code 1 if one differs")
    checking.add_argument("--rows", type=int, default=10, help="number of rows")
    checking.add_argument("--seed", type=int, default=0, help="seed of the draw")
    for one in (running, writing, checking):
        one.add_argument("--results", type=Path, default=rows.FOLDER, help="folder of the rows")
    asked = parser.parse_args(arguments)
    return {"run": _run, "page": _page, "check": _check, "environments": _environments}[asked.command](asked)


def _run(asked: argparse.Namespace) -> int:
    from studies.comparison import methods, rules
    from studies.comparison.run import cells, more_rows, run, wider_searches

    if asked.study == "more-rows":
        rules.TRAIN_ROWS = rules.MORE_ROWS
    elif asked.study == "wide":
        methods.BY_NAME.update({one.name: replace(one, points=one.wide) for one in methods.METHODS if one.wide})
    todo = {"more-rows": more_rows, "wide": wider_searches, None: cells}[asked.study]()
    wanted = (asked.dataset, asked.split, asked.method)
    chosen = [cell for cell in todo if all(not some or one in some for one, some in zip(cell, wanted))]
    run(chosen, asked.jobs, asked.results / (asked.study or ""))
    return 0


def _page(asked: argparse.Namespace) -> int:
    from studies.comparison.answers import Findings
    from studies.comparison.page import README, with_answers, write_pages

    for path in write_pages(asked.results, html=asked.html):
        print(path)
    README.write_text(
        with_answers(README.read_text(encoding="utf-8"), Findings(rows.read(asked.results))), encoding="utf-8"
    )
    return 0


def _check(asked: argparse.Namespace) -> int:
    from studies.comparison.check import check_row, lines, sample

    checked = [check_row(row) for _, row in sample(rows.read(asked.results), asked.rows, asked.seed).iterrows()]
    print("\n".join(lines(checked)))
    return 0 if all(one.agrees for one in checked) else 1


def _environments(asked: argparse.Namespace) -> int:
    """Make a virtual environment for each file of requirements that has none."""
    for file in sorted(ENVIRONMENTS.glob("*.txt")):
        folder = file.with_suffix("")
        if not folder.exists():
            venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", "-r", file], check=True)
        print(f"{folder} is ready")
    return 0
