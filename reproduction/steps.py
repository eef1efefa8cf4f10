"""The long way of `rbrl reproduce`: run the plans, record the results, write the page. Each step alone, too."""

from dataclasses import replace
from pathlib import Path

from reproduction.recorded import PLANS, Recorded, Stored, facts, project_folder, read_plan, write_table
from reproduction.recorded import export as write_results

RUN = Path("runs", "paper")
DOCS = Path("docs")


def all(request):  # the name of the step
    """Run what is missing of every plan, record it, compute the studies that are not recorded, write the page."""
    from rbrl.experiments import execute
    from rbrl.experiments.progress import progress_for

    request = replace(request, store=request.store or RUN)
    failed = 0
    for name in PLANS:
        progress = None if request.quiet or request.json else progress_for()
        summary = execute(
            read_plan(name), request.store, jobs=request.jobs, progress=progress, data_home=request.data_home
        )
        failed += summary.n_failed
    export(request)
    studies(request)
    page(request)
    if failed:
        raise SystemExit(1)


def export(request):
    """Write what a store has of the plans into the folder of results."""
    folder = request.folder or Path("results")
    for path in write_results(Stored(request.store or RUN), folder, facts()):
        request.tell(str(path))


def studies(request):
    """Figures 3 to 5 and the comparison of solvers, where they are not recorded."""
    from reproduction.figures import STUDIES, NotRecorded

    folder = request.folder or Path("results")
    for name, study in STUDIES.items():
        if Recorded(folder).has_table(name):
            continue
        try:
            for part, frame in study(replace(request, datasets=[])).items():
                request.tell(str(write_table(folder / f"{part}.csv", frame, facts())))
        except NotRecorded as reason:
            request.tell(f"{name} left out: {reason}")


def page(request):
    """Write docs/reproduction.md with its figures, and the page of our results; or a page of the paper's results."""
    from reproduction.page import write_pages

    if request.published:
        request.tell(str(_published_page(request.output / "report.html")))
        return
    folder = project_folder("results", request.folder)
    for path in write_pages(Recorded(folder), DOCS):
        request.tell(str(path))


def _published_page(path):
    from rbrl.report.page import write_page
    from reproduction.paper import published_results

    return write_page(
        published_results(),
        path,
        title="The paper's comparison, as published",
        command="rbrl reproduce page --published",
    )
