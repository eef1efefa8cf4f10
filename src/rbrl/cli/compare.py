"""`rbrl compare`: from data to significance; `rbrl report`: its tables, figures and page."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli import STOPPED
from rbrl.cli.inputs import DataHome, Datasets, Json, Labels, Methods, Quiet, parse_labels
from rbrl.cli.output import records, say, show, show_json


def report_store(store, folder, *, formats, command, ablation=None, json=False, quiet=False, extra=None):
    """Write the report of a store and show its tables."""
    from rbrl.report.write import write_report

    plan = store.plan()
    if plan is None:
        raise FileNotFoundError(f"{store.path} has no comparison in it; `rbrl compare` makes one")
    report = write_report(
        store.rows(),
        folder,
        title=plan.title or "Comparison of multi-label methods",
        command=command,
        plan=plan.to_toml(),
        ablation=ablation,
        formats=formats,
        datasets=store.datasets(),
    )
    if json:
        tables = {name: records(table) for name, table in report.tables.items()}
        show_json({**(extra or {}), "page": str(report.page), "tables": tables})
    elif not quiet:
        tested = report.tables["friedman"].frame["F_F"].notna().any()
        names = ["results", "average-ranks", *(["friedman", "pairs"] if tested else [])]
        show(*(report.tables[name] for name in names))
        say("" if tested else f"\n{report.tables['friedman'].note}")
        say(f"The page: {report.page}")
    return report


def command_line():
    """The command as it was typed."""
    return shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "rbrl"), *sys.argv[1:]])


def parse_formats(text: str) -> tuple[str, ...]:
    """Endings of the tables' files, with commas."""
    from rbrl.report.table import FORMATS

    formats = tuple(name.strip().lstrip(".") for name in text.split(",") if name.strip())
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"Tables are written as {', '.join(FORMATS)}. Got {', '.join(unknown)} instead.")
    return formats


FORMATS = "csv,tex,md,html"


def compare(
    plan: Annotated[
        Path | None, typer.Argument(metavar="PLAN.toml", show_default=False, help="What to compare.")
    ] = None,
    dataset: Datasets = None,
    method: Methods = None,
    split: Annotated[
        list[int] | None,
        typer.Option(
            "--split", "-s", min=0, help="A split, from 0; may be repeated. Default: all.", show_default=False
        ),
    ] = None,
    labels: Labels = None,
    splits: Annotated[int, typer.Option(min=1, help="Number of splits, without a plan.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed, without a plan.")] = 0,
    store: Annotated[
        Path | None,
        typer.Option("--store", "-o", help="Folder of the results; default: runs/PLAN.", show_default=False),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Runs at a time; -1 for one per core.")] = 1,
    backend: Annotated[
        str | None, typer.Option(help="serial, processes or dask; default: by --jobs.", show_default=False)
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.", show_default=False)] = None,
    data_home: DataHome = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs once more.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tune, train and test methods on data sets; rank them, test the differences, write the report.

    It may be stopped at any moment: the same command goes on where it was. A plan's import paths run code. With a plan,
    --dataset, --method and --split choose a part of it, whose results are those of the whole.

    Examples:

    `rbrl compare plans/demo.toml`

    `rbrl compare --dataset yeast --method rbrl --method brl --splits 3 -o runs/yeast`

    `rbrl compare --dataset my.csv --labels sea,sand --method rbrl --method br`

    `rbrl compare plans/paper.toml -o runs/paper --jobs 8`

    `rbrl compare plans/paper.toml --dataset emotions --method rbrl --split 0`
    """
    from rbrl.experiments import Store, execute

    chosen = _plan(plan, _datasets(dataset, labels), method, split, splits, seed)
    folder = store or Path("runs", plan.stem if plan else "comparison")
    kept = Store(folder)
    try:
        summary = execute(
            chosen,
            kept,
            jobs=jobs,
            backend=backend,
            scheduler=scheduler,
            progress=_progress(quiet or json),
            data_home=data_home,
            retry_failed=retry_failed,
        )
    except KeyboardInterrupt:
        say(f"rbrl: stopped; what is finished is kept in {folder}, and the same command goes on from there")
        raise typer.Exit(STOPPED) from None
    _report(kept, folder, summary, json, quiet)
    if summary.n_failed:
        say(_failed(summary))
        raise typer.Exit(1)


def _datasets(names, labels):
    """Entries of a plan: names of the catalogue, and files with their labels."""
    if labels is None or not names:
        return names
    from rbrl.cli.inputs import is_file

    catalogued = [name for name in names if not is_file(name)]
    if catalogued:
        raise ValueError(f"--labels goes with files; {', '.join(catalogued)} is in the catalogue.")
    return [{"file": name, "labels": parse_labels(labels)} for name in names]


def _plan(path, datasets, methods, only, splits, seed):
    from rbrl.experiments import Plan

    if path is not None:
        return Plan.from_toml(path).part(datasets, methods, only)
    if not (datasets and methods):
        missing = " and ".join(name for name, given in (("dataset", datasets), ("method", methods)) if not given)
        raise ValueError(f"Give a plan, or at least one --dataset and one --method. Got no plan and no {missing}.")
    table = {"datasets": datasets, "methods": {name: {} for name in methods}}
    return Plan.from_dict({**table, "splits": {"number": splits, "seed": seed}}).part(splits=only)


def _progress(silent):
    if silent:
        return None
    from rbrl.experiments.progress import progress_for

    return progress_for()


def _report(kept, folder, summary, json, quiet):

    counts = {name: getattr(summary, name) for name in ("n_done", "n_reused", "n_failed")}
    failures = [dict(zip(("dataset", "method", "split", "error"), failure)) for failure in summary.failures]
    counts |= {"failures": failures, "store": str(folder)}
    if not (kept.rows().status == "ok").any():
        if json:
            show_json(counts)
        return
    look = {"formats": parse_formats(FORMATS), "command": command_line(), "json": json, "quiet": quiet}
    report_store(kept, folder / "report", extra=counts, **look)
    say(f"{summary.n_done} runs done, {summary.n_reused} reused, {summary.n_failed} failed", quiet or json)


def _failed(summary):
    """A line about the runs that failed: the first of them, and the way out."""
    dataset, method, split, error = summary.failures[0]
    how_many = f"{summary.n_failed} of {summary.n_runs} runs failed"
    first = f"{dataset} · {method} · split {split}: {' '.join(error.split())}"
    return f"rbrl: {how_many}; the first, {first}; mend it, and --retry-failed does them again"


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", show_default=False, help="Folder that `compare` wrote.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to; default: RUN/report.", show_default=False)
    ] = None,
    formats: Annotated[
        str, typer.Option(help="Of the tables: csv, json, tex, md, html, with commas.")
    ] = "csv,tex,md,html",
    ablation: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Two methods for the ablation table; default: brl,rbrl.", show_default=False),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the tables (CSV, LaTeX, Markdown, HTML), the figures (SVG, PNG) and one self-contained page of a run.

    Works on an unfinished run, too.

    Example: `rbrl report runs/demo`
    """

    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}; `rbrl compare` makes one")
    from rbrl.experiments import Store

    report_store(
        Store(folder),
        output or folder / "report",
        formats=parse_formats(formats),
        command="rbrl compare plan.toml   # with the plan below",
        ablation=_pair(ablation),
        json=json,
        quiet=quiet,
    )


def _pair(text):
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2:
        raise ValueError(f"--ablation takes two methods with a comma between them. Got {text!r} instead.")
    return names[0], names[1]
