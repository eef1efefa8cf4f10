"""`rbrl compare`: from data to significance; `rbrl report`: its tables, figures and page."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rbrl.cli import shared
from rbrl.cli.shared import (
    STOPPED,
    DataHome,
    Datasets,
    Ignore,
    Json,
    Labels,
    Methods,
    Positive,
    Quiet,
    argument,
    option,
    say,
)  # fmt: skip

if TYPE_CHECKING:
    from rbrl.experiments import Plan, Store


def compare(
    plan: Annotated[Path | None, argument("PLAN.toml", "What to compare.")] = None,
    dataset: Datasets = None, method: Methods = None,
    split: Annotated[
        list[int] | None, option("--split", "-s", min=0, help="A split, from 0; may be repeated. Default: all.")
    ] = None,
    labels: Labels = None, positive: Positive = None, ignore: Ignore = None,
    splits: Annotated[int, typer.Option(min=1, help="Number of splits, without a plan.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed, without a plan.")] = 0,
    store: Annotated[Path | None, option("--store", "-o", help="Folder of the results; default: runs/PLAN.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Runs at a time; -1 for one per core.")] = 1,
    backend: Annotated[str | None, option(help="serial, processes or dask; default: by --jobs.")] = None,
    scheduler: Annotated[str | None, option(help="Address of a Dask scheduler.")] = None,
    data_home: DataHome = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs once more.")] = False,
    json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Tune, train and test methods on data sets; rank them, test the differences, write the report.

    It may be stopped at any moment: the same command goes on where it was. A plan's import paths run code. With a plan,
    --dataset, --method and --split choose a part of it, whose results are those of the whole.

    Examples:

    `rbrl compare plans/demo.toml`

    `rbrl compare --dataset yeast --method rbrl --method brl --splits 3 -o runs/yeast`

    `rbrl compare --dataset my.csv --labels sea,sand --method rbrl --method br`

    `rbrl compare plans/demo.toml -o runs/demo --jobs 8`

    `rbrl compare plans/demo.toml --dataset yeast --method rbrl --split 0`
    """
    from rbrl.experiments import Plan, Store, execute, progress_for

    options = shared.parse_options(ignore=ignore, positive=positive)
    entries = _datasets(dataset, labels, options)
    if plan and (labels or options):
        raise ValueError(
            f"--labels, --ignore and --positive go with --dataset FILE and no plan: write them into {plan}."
        )
    if plan:
        chosen = Plan.from_toml(plan).part(entries, method, split)
    else:
        chosen = _new_plan(entries, method, splits, seed).part(splits=split)
    folder = store or Path("runs", plan.stem if plan else "comparison")
    inputs = [Path(chosen.folder, one.file) for one in chosen.datasets if one.file] + ([plan] if plan else [])
    for written in (folder, *folder.glob("report/*")):
        shared.check_output(written, inputs)
    kept, progress = Store(folder), None if quiet or json else progress_for()
    how: dict[str, Any] = {"jobs": jobs, "backend": backend, "scheduler": scheduler, "progress": progress}
    try:
        summary = execute(chosen, kept, **how, data_home=data_home, retry_failed=retry_failed)
    except KeyboardInterrupt:
        say(f"rbrl: stopped; what is finished is kept in {folder}, and the same command goes on from there")
        raise typer.Exit(STOPPED) from None
    facts: dict[str, Any] = {name: getattr(summary, name) for name in ("n_done", "n_reused", "n_failed")}
    facts["failures"] = [dict(zip(("dataset", "method", "split", "error"), failure)) for failure in summary.failures]
    facts["store"] = str(folder)
    if (kept.rows().status == "ok").any():
        typed = shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "rbrl"), *sys.argv[1:]])
        _report(kept, folder / "report", json, quiet, facts, command=typed)
        say(f"{summary.n_done} runs done, {summary.n_reused} reused, {summary.n_failed} failed", quiet or json)
    elif json:
        shared.show_json(facts)
    if summary.failures:
        name, by, number, error = summary.failures[0]
        why = f"the first, {name} · {by} · split {number}: {' '.join(error.split())}"
        many = f"{summary.n_failed} of {summary.n_runs} runs failed"
        say(f"rbrl: {many}; {why}; mend it, and --retry-failed does them again")
        raise typer.Exit(1)


def _datasets(names: list[str] | None, labels: list[str] | None, options: dict[str, Any]) -> list[Any] | None:
    """Return entries of a plan: names of the catalogue, and files with the options to read them."""
    chosen = options if not labels else {"labels": shared.parse_labels(labels), **options}
    if not names or not chosen:
        return names
    shared.check_for_files([name for name in names if not shared.is_file(name)], labels, options)
    return [{"file": name, **chosen} for name in names]


def _new_plan(datasets: list[Any] | None, methods: list[str] | None, splits: int, seed: int) -> "Plan":
    """A plan with the default parameters of its methods."""
    from rbrl.experiments import Plan

    if not (datasets and methods):
        missing = " and ".join(name for name, given in (("dataset", datasets), ("method", methods)) if not given)
        raise ValueError(f"Give a plan, or at least one --dataset and one --method. Got no plan and no {missing}.")
    table = {"datasets": datasets, "methods": {name: {} for name in methods}}
    return Plan.from_dict({**table, "splits": {"number": splits, "seed": seed}})


def report(
    folder: Annotated[Path, argument("RUN", "Folder that `compare` wrote.")],
    output: Annotated[Path | None, option("--output", "-o", help="Folder to write to; default: RUN/report.")] = None,
    formats: Annotated[
        str, typer.Option(help="Of the tables: csv, json, tex, md, html, with commas.")
    ] = "csv,tex,md,html",
    ablation: Annotated[
        str | None, option(metavar="A,B", help="Two methods for the ablation table; default: brl,rbrl.")
    ] = None,
    json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write the tables (CSV, LaTeX, Markdown, HTML), the figures (SVG, PNG) and one self-contained page of a run.

    Works on an unfinished run, too.

    Example: `rbrl report runs/demo`
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}; `rbrl compare` makes one")
    from rbrl.experiments import Store

    output = output or folder / "report"
    shared.check_output(output, [path for path in folder.iterdir() if path.is_file()])
    options = {"formats": _formats(formats), "ablation": _pair(ablation)}
    command = "rbrl compare plan.toml   # with the plan below"
    _report(Store(folder), output, json, quiet, {}, command=command, **options)


def _formats(text: str) -> tuple[str, ...]:
    """Endings of the tables' files, with commas."""
    from rbrl.experiments.tables import FORMATS

    formats = tuple(name.strip().lstrip(".") for name in text.split(",") if name.strip())
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"Tables are written as {', '.join(FORMATS)}. Got {', '.join(unknown)} instead.")
    return formats


def _pair(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2:
        raise ValueError(f"--ablation takes two methods with a comma between them. Got {text!r} instead.")
    return names[0], names[1]


def _report(store: "Store", folder: Path, json: bool, quiet: bool, facts: dict[str, Any], **options: Any) -> None:
    """Write the report of a store and show its tables, or print them as JSON beside some facts."""
    from rbrl.experiments import write_report
    from rbrl.experiments.tables import show_tables

    plan = store.plan()
    if plan is None:
        raise FileNotFoundError(f"{store.path} has no comparison in it; `rbrl compare` makes one")
    options |= {"plan": plan.to_toml(), "datasets": store.datasets(), "reliability": store.reliability()}
    options |= {"title": plan.title} if plan.title else {}
    report = write_report(store.rows(), folder, **options)
    if json:
        tables = {name: table.records() for name, table in report.tables.items()}
        shared.show_json(facts | {"page": str(report.page), "tables": tables})
    elif not quiet:
        friedman = report.tables["friedman"]
        tested = friedman.frame["F_F"].notna().any()
        names = ["results", "average-ranks", *(["friedman", "pairs"] if tested else [])]
        show_tables(*(report.tables[name] for name in names))
        say("" if tested else f"\n{friedman.note}")
        say(f"The page: {report.page}")
