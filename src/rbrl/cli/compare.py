"""`rbrl compare`: compare methods on data sets; `rbrl report`: tables, figures and a page of the results."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rbrl.cli import shared
from rbrl.cli.shared import argument, option, say

if TYPE_CHECKING:
    from rbrl.experiments import Plan, Store, Summary


def compare(
    plan: Annotated[Path | None, argument("PLAN.toml", "Plan of the comparison: data sets, methods and splits.")] = None,
    dataset: Annotated[
        list[str] | None,
        option("--dataset", "-d", help="Data set or data file. Can be repeated.", autocompletion=shared.complete_dataset),
    ] = None,
    method: Annotated[
        list[str] | None,
        option("--method", "-m", help="Method. Can be repeated.", autocompletion=shared.complete_method),
    ] = None,
    split: Annotated[
        list[int] | None,
        option("--split", "-s", min=0, help="Number of a split, from 0. Can be repeated. Default: all splits."),
    ] = None,
    splits: Annotated[int, typer.Option(min=1, help="Number of random splits, if there is no plan.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits, if there is no plan.")] = 0,
    store: Annotated[Path | None, option("--store", "-o", help="Folder for the results. Default: runs/PLAN.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Number of parallel runs; -1 for one per core.")] = 1,
    backend: Annotated[
        str | None,
        option(help="How runs are executed: serial, processes or dask. Default: serial or processes, by --jobs."),
    ] = None,
    scheduler: Annotated[str | None, option(help="Address of a Dask scheduler.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat failed runs.")] = False,
    labels: shared.Labels = None, positive: shared.Positive = None, ignore: shared.Ignore = None,
    data_home: shared.DataHome = None, json: shared.Json = False, quiet: shared.Quiet = False,
) -> None:  # fmt: skip
    """Compare methods on data sets, with ranks, significance tests and a report.

    Each method is tuned, trained and tested on every split. You can stop the command at any time;
    the same command continues where it stopped. With a plan, --dataset, --method and --split run
    a part of the plan. A plan can import Python code: run only plans that you trust.

    Examples:

    `rbrl compare examples/demo.toml`

    `rbrl compare --dataset yeast --method rbrl --method brl --splits 3 -o runs/yeast`

    `rbrl compare --dataset my.csv --labels sea,sand --method rbrl --method br`

    `rbrl compare examples/demo.toml -o runs/demo --jobs 8`

    `rbrl compare examples/demo.toml --dataset yeast --method rbrl --split 0`
    """
    from rbrl.experiments import Plan, Store, execute, progress_for

    options = shared.parse_file_options(ignore, positive)
    options = ({"labels": shared.parse_labels(labels)} if labels else {}) | options
    if plan and options:
        raise ValueError(
            f"--labels, --ignore and --positive go with --dataset FILE and no plan: write them into {plan}."
        )
    entries = _plan_entries(dataset, options)
    if plan:
        chosen = Plan.from_toml(plan).part(entries, method, split)
    else:
        chosen = _make_plan(entries, method, splits, seed).part(splits=split)
    folder = store or Path("runs", plan.stem if plan else "comparison")
    inputs = [Path(chosen.folder, one.file) for one in chosen.datasets if one.file] + ([plan] if plan else [])
    for output in (folder, *folder.glob("report/*")):
        shared.check_output(output, inputs)
    results = Store(folder)
    try:
        summary = execute(
            chosen, results, jobs=jobs, backend=backend, scheduler=scheduler, data_home=data_home,
            retry_failed=retry_failed, progress=None if quiet or json else progress_for(),
        )  # fmt: skip
    except KeyboardInterrupt:
        say(f"rbrl: stopped; finished runs are kept in {folder}. Repeat the command to continue.")
        raise typer.Exit(shared.EXIT_INTERRUPTED) from None
    facts = _summary_facts(summary) | {"store": str(folder)}
    if (results.rows().status == "ok").any():
        command = shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "rbrl"), *sys.argv[1:]])
        _write_report(results, folder / "report", json, quiet, facts, command=command)
        say(f"{summary.n_done} runs done, {summary.n_reused} reused, {summary.n_failed} failed", quiet or json)
    elif json:
        shared.show_json(facts)
    if summary.failures:
        data_set, name, number, error = summary.failures[0]
        say(
            f"rbrl: {summary.n_failed} of {summary.n_runs} runs failed. The first is {data_set} · {name} · split {number}: "
            f"{' '.join(error.split())}. Correct the cause, and repeat the command with --retry-failed."
        )
        raise typer.Exit(1)


def _summary_facts(summary: "Summary") -> dict[str, Any]:
    keys = ("dataset", "method", "split", "error")
    failures = [dict(zip(keys, failure)) for failure in summary.failures]
    return {name: getattr(summary, name) for name in ("n_done", "n_reused", "n_failed")} | {"failures": failures}


def _plan_entries(names: list[str] | None, options: dict[str, Any]) -> list[Any] | None:
    """Return the data sets of a plan: names, or files with the options to read them."""
    if not names or not options:
        return names
    for name in names:
        if not shared.is_file(name):
            shared.refuse_file_options(name, options)
    return [{"file": name, **options} for name in names]


def _make_plan(datasets: list[Any] | None, methods: list[str] | None, splits: int, seed: int) -> "Plan":
    """Return a plan with the default parameters of the methods."""
    from rbrl.experiments import Plan

    if not (datasets and methods):
        missing = " and ".join(name for name, given in (("dataset", datasets), ("method", methods)) if not given)
        raise ValueError(f"Give a plan, or at least one --dataset and one --method. Got no plan and no {missing}.")
    splits_table = {"number": splits, "seed": seed}
    return Plan.from_dict({"datasets": datasets, "methods": {name: {} for name in methods}, "splits": splits_table})


def report(
    folder: Annotated[Path, argument("RUN", "Folder written by `rbrl compare`.")],
    output: Annotated[Path | None, option("--output", "-o", help="Folder to write to. Default: RUN/report.")] = None,
    formats: Annotated[
        str, typer.Option(help="Formats of the tables, separated by commas: csv, json, tex, md, html.")
    ] = "csv,tex,md,html",
    ablation: Annotated[
        str | None, option(metavar="A,B", help="Two methods for the ablation table. Default: brl,rbrl.")
    ] = None,
    json: shared.Json = False, quiet: shared.Quiet = False,
) -> None:  # fmt: skip
    """Write tables, figures and an HTML page of a comparison.

    The comparison may be unfinished.

    Example: `rbrl report runs/demo`
    """
    from rbrl.experiments import Store

    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}; `rbrl compare` makes one")
    output = output or folder / "report"
    shared.check_output(output, [path for path in folder.iterdir() if path.is_file()])
    options = {"formats": _parse_formats(formats), "ablation": _parse_pair(ablation)}
    command = "rbrl compare plan.toml   # with the plan below"
    _write_report(Store(folder), output, json, quiet, {}, command=command, **options)


def _parse_formats(text: str) -> list[str]:
    from rbrl.experiments.tables import FORMATS

    formats = [name.lstrip(".") for name in shared.split_names([text])]
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"--formats takes {', '.join(FORMATS)}. Got {', '.join(unknown)} instead.")
    return formats


def _parse_pair(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = shared.split_names([text])
    if len(names) != 2:
        raise ValueError(f"--ablation takes two methods with a comma between them. Got {text!r} instead.")
    return names[0], names[1]


def _write_report(store: "Store", folder: Path, json: bool, quiet: bool, facts: dict[str, Any], **options: Any) -> None:
    """Write the report of a store, and print its tables, as JSON together with some facts."""
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
        is_tested = friedman.frame["F_F"].notna().any()
        names = ["results", "average-ranks", *(["friedman", "pairs"] if is_tested else [])]
        show_tables(*(report.tables[name] for name in names))
        say("" if is_tested else f"\n{friedman.note}")
        say(f"Report: {report.page}")
