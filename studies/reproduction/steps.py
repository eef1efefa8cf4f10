"""The steps of a full reproduction: run the plans, record the results, compute the studies, write the pages."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from rbrl.experiments import execute, progress_for, write_page
from studies.reproduction.criteria import choices, summarise_choices
from studies.reproduction.figures import STUDIES, NotRecorded
from studies.reproduction.page import write_pages
from studies.reproduction.paper import published_results
from studies.reproduction.recorded import (
    COMMAND,
    PLANS,
    Facts,
    Recorded,
    Stored,
    completed,
    docs_folder,
    facts,
    read_plan,
    results_folder,
    run_keys,
    search_keys,
    table_file,
    write_rows,
    write_table,
)  # fmt: skip
from studies.reproduction.request import Request

STORE = Path("runs", "paper")


def all_steps(request: Request) -> None:
    """Run the missing runs of every plan, record them, compute the studies that are not recorded, write the pages."""
    store = request.store or STORE
    request = replace(request, store=store)
    failed = 0
    for name in PLANS:
        progress = None if request.quiet or request.json else progress_for()
        done = execute(read_plan(name), store, jobs=request.jobs, progress=progress, data_home=request.data_home)
        failed += done.n_failed
    for step in (export, studies, page):
        step(request)
    if failed:
        raise SystemExit(1)


def export(request: Request) -> None:
    """Write the records of a store into the folder of results."""
    for path in write_results(Stored(request.store or STORE), results_folder(request.folder), facts()):
        request.tell(str(path))


def write_results(source: Stored, folder: Path, facts_of_file: Facts, plans: Iterable[str] | None = None) -> list[Path]:
    """Write the records of a store into a folder: rows and tunings of plans, and the choices of other criteria.

    Records that the folder has and the store lacks are kept, if nothing that they depend on has changed.

    Parameters
    ----------
    source : Stored
    folder : path
    facts_of_file : dict
        Facts that every file has at its head.
    plans : iterable of str, optional
        Default: all plans of the reproduction. Tunings that a plan shares with one before it are written once.

    Returns
    -------
    list of Path
    """
    files: list[Path] = []
    written: list[pd.DataFrame] = []
    kept_rows, kept_efforts = Recorded(folder).kept()
    for name in plans or PLANS:
        rows, plan = source.rows(name), read_plan(name)
        if rows.empty:
            continue
        own = facts_of_file | {"plan": f"studies/reproduction/plans/{name}.toml"}
        rows = completed(rows, run_keys(plan), kept_rows, facts_of_file["date"])
        files.append(write_rows(table_file(folder, name), rows, own))
        effort = completed(source.effort(name), search_keys(plan), kept_efforts, facts_of_file["date"])
        if not any(effort.equals(other) for other in written):
            files.append(write_table(table_file(folder, f"{name}-tuning"), effort, own))
        written.append(effort)
    plan = read_plan("paper")
    found = choices(source.store, plan)
    if len(found):
        files.append(write_table(table_file(folder, "criteria"), summarise_choices(found, plan.metrics), facts_of_file))
    return files


def studies(request: Request) -> None:
    """Figures 3 to 5 and the comparison of solvers, where they are not recorded."""
    folder = results_folder(request.folder)
    for name, study in STUDIES.items():
        if Recorded(folder).has_table(name):
            continue
        try:
            for part, frame in study(replace(request, datasets=())).items():
                request.tell(str(write_table(table_file(folder, part), frame, facts())))
        except NotRecorded as reason:
            request.tell(f"{name} left out: {reason}")


def page(request: Request) -> None:
    """Write docs/reproduction.md with its figures, and the page of our results; or a page of the paper's results."""
    if request.published:
        options = {"title": "The paper's comparison, as published", "command": f"{COMMAND} page --published"}
        files = [write_page(published_results(), request.output / "report.html", **options)]
    else:
        files = write_pages(request.recorded, docs_folder(), request.html)
    for path in files:
        request.tell(str(path))


STEPS = {"export": export, "studies": studies, "page": page, "all": all_steps}
