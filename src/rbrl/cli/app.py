"""The program `rbrl`: `rbrl compare`, `rbrl report`, `rbrl info`, and the messages of all commands.

Heavy packages are imported when a command runs, so that help is quick.
"""

import os
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import rbrl
from rbrl._common.environment import import_extra, missing_modules
from rbrl.cli import models, sources
from rbrl.cli.sources import argument, option, say, whole_number

if TYPE_CHECKING:
    from rbrl.experiments import Plan, Store

app = typer.Typer(
    name="rbrl", cls=sources.Group, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
COMMANDS = (models.fit, models.predict, models.evaluate)
for command in COMMANDS:
    app.command(cls=sources.Command)(command)
app.add_typer(sources.data_app, name="data", help="List, show, download and convert data sets.")
EXIT_INTERRUPTED = 130  # exit code of an interrupted program, by the convention of shells
MAX_REPEATED = 60  # characters of a warning that the line with its number repeats
# Terms of the Python library, and what to type at a shell instead.
SHELL_OPTIONS = {
    "labels": "--labels", "ignore": "--ignore", "positive": "--positive", "first_feature": "--index-base",
    "first_label": "--label-base", "data_home": "--data-home",
}  # fmt: skip


@app.command(cls=sources.Command)
def compare(
    plan: Annotated[Path | None, argument("PLAN.toml", "Plan of the comparison: data sets, methods and splits.")] = None,
    dataset: Annotated[
        list[str] | None,
        option("--dataset", "-d", help="Data set or data file. Can be repeated.", autocompletion=sources.complete_dataset),
    ] = None,
    method: Annotated[
        list[str] | None,
        option("--method", "-m", help="Method. Can be repeated.", autocompletion=sources.complete_method),
    ] = None,
    split: Annotated[
        list[int] | None,
        option(
            "--split", "-s", parser=whole_number(0), metavar="N",
            help="Number of a split, from 0. Can be repeated. Default: all splits.",
        ),
    ] = None,
    splits: Annotated[
        int, typer.Option(parser=whole_number(1), metavar="N", help="Number of random splits, if there is no plan.")
    ] = 10,
    seed: Annotated[
        int, typer.Option(parser=whole_number(0), metavar="N", help="Seed of the splits, if there is no plan.")
    ] = 0,
    store: Annotated[Path | None, option("--store", "-o", help="Folder for the results. Default: runs/PLAN.")] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", parser=whole_number(1, or_else=-1), metavar="N",
            help="Number of parallel runs; -1 for one per core.",
        ),
    ] = 1,
    backend: Annotated[
        str | None,
        option(help="How runs are executed: serial, processes or dask. Default: serial or processes, by --jobs."),
    ] = None,
    scheduler: Annotated[str | None, option(help="Address of a Dask scheduler.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat failed runs.")] = False,
    labels: sources.Labels = None, positive: sources.Positive = None, ignore: sources.Ignore = None,
    data_home: sources.DataHome = None, json: sources.Json = False, quiet: sources.Quiet = False,
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

    options = sources.parse_file_options(labels, ignore, positive)
    if plan and options:
        raise ValueError(f"--labels, --ignore and --positive need --dataset FILE; with a plan, write them into {plan}.")
    entries = _plan_entries(dataset, options)
    if plan:
        chosen = Plan.from_toml(plan).part(entries, method, split)
    else:
        chosen = _make_plan(entries, method, splits, seed).part(splits=split)
    folder = store or Path("runs", plan.stem if plan else "comparison")
    inputs = [Path(chosen.folder, one.file) for one in chosen.datasets if one.file] + ([plan] if plan else [])
    for output in (folder, *folder.glob("report/*")):
        sources.check_output(output, inputs)
    _check_report_extra(f"`rbrl report {folder}`")
    results = Store(folder)
    try:
        summary = execute(
            chosen, results, jobs=jobs, backend=backend, scheduler=scheduler, data_home=data_home,
            retry_failed=retry_failed, progress=None if quiet or json else progress_for(),
        )  # fmt: skip
    except KeyboardInterrupt:
        say(f"rbrl: stopped; finished runs are kept in {folder}. Repeat the command to continue.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    facts: dict[str, Any] = {name: getattr(summary, name) for name in ("n_done", "n_reused", "n_failed")}
    keys = ("dataset", "method", "split", "error")
    facts |= {"failures": [dict(zip(keys, one)) for one in summary.failures], "store": str(folder)}
    if (results.rows().status == "ok").any():
        command = shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "rbrl"), *sys.argv[1:]])
        _write_report(results, folder / "report", json, quiet, facts, command=command)
        say(f"{summary.n_done} runs done, {summary.n_reused} reused, {summary.n_failed} failed", quiet or json)
    elif json:
        sources.show_json(facts)
    if summary.failures:
        data_set, name, number, error = summary.failures[0]
        say(
            f"rbrl: {summary.n_failed} of {summary.n_runs} runs failed. The first is {data_set} · {name} · split {number}: "
            f"{' '.join(error.split())}. Correct the cause, and repeat the command with --retry-failed."
        )
        raise typer.Exit(1)


def _plan_entries(names: list[str] | None, options: dict[str, Any]) -> list[Any] | None:
    """Return the data sets of a plan: names, or files with the options to read them.

    `options` are those of `load_file`. It raises an error if they go with a name of the catalogue.
    """
    if not names or not options:
        return names
    for name in names:
        if not sources.is_file(name):
            sources.refuse_file_options(name, options)
    return [{"file": name, **options} for name in names]


def _make_plan(datasets: list[Any] | None, methods: list[str] | None, splits: int, seed: int) -> "Plan":
    """Return a plan with the default parameters of the methods; an error names the option."""
    from rbrl.exceptions import PlanError
    from rbrl.experiments import Plan

    if not (datasets and methods):
        missing = " and ".join(name for name, given in (("dataset", datasets), ("method", methods)) if not given)
        raise ValueError(f"Give a plan, or at least one --dataset and one --method. Got no plan and no {missing}.")
    splits_table = {"number": splits, "seed": seed}
    table = {"datasets": datasets, "methods": {name: {} for name in methods}, "splits": splits_table}
    try:
        return Plan.from_dict(table)
    except PlanError as error:
        raise PlanError(re.sub(r"datasets\[\d+\] =", "--dataset", str(error))) from None


@app.command(cls=sources.Command)
def report(
    folder: Annotated[Path, argument("RUN", "Folder written by `rbrl compare`.")],
    output: Annotated[Path | None, option("--output", "-o", help="Folder to write to. Default: RUN/report.")] = None,
    formats: Annotated[
        str, typer.Option(help="Formats of the tables, separated by commas: csv, json, tex, md, html.")
    ] = "csv,tex,md,html",
    ablation: Annotated[
        str | None, option(metavar="A,B", help="Two methods for the ablation table. Default: brl,rbrl.")
    ] = None,
    json: sources.Json = False, quiet: sources.Quiet = False,
) -> None:  # fmt: skip
    """Write tables, figures and an HTML page of a comparison.

    The comparison may be unfinished.

    Example: `rbrl report runs/demo`
    """
    from rbrl.experiments import Store
    from rbrl.experiments.tables import FORMATS

    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}; `rbrl compare` makes one")
    output = output or folder / "report"
    sources.check_output(output, [path for path in folder.iterdir() if path.is_file()])
    names = [name.lstrip(".") for name in sources.split_names([formats])]
    unknown = [name for name in names if name not in FORMATS]
    if unknown:
        raise ValueError(f"--formats takes {', '.join(FORMATS)}. Got {', '.join(unknown)} instead.")
    pair = None if ablation is None else tuple(sources.split_names([ablation]))
    if pair is not None and len(pair) != 2:
        raise ValueError(f"--ablation takes two methods, separated by a comma. Got {ablation!r} instead.")
    _check_report_extra("repeat the command")
    command = "rbrl compare plan.toml   # with the plan below"
    options = {"formats": names, "ablation": pair, "command": command}
    _write_report(Store(folder), output, json, quiet, {}, **options)


def _check_report_extra(remedy: str) -> None:
    """Say before a long work which parts of a report cannot be written; without pandas, refuse the work."""
    import_extra("pandas", "report", "A table of a comparison")
    if missing := missing_modules("report"):
        are = "are" if len(missing) > 1 else "is"
        say(
            f"rbrl: {' and '.join(missing)} {are} not installed, so that tables are written, but no figures and no page. "
            f'To get them later: pip install "rbrl[report]", then {remedy}.'
        )


def _write_report(store: "Store", folder: Path, json: bool, quiet: bool, facts: dict[str, Any], **options: Any) -> None:
    """Write the report of a store, and print its tables, as JSON together with some facts."""
    from rbrl.experiments import Results, write_report
    from rbrl.experiments.page import write_tables
    from rbrl.experiments.tables import show_tables

    plan = store.plan()
    if plan is None:
        raise FileNotFoundError(f"{store.path} has no comparison in it; `rbrl compare` makes one")
    results = Results.from_rows(store.rows(), store.datasets(), store.reliability())
    page = None
    if missing_modules("report"):
        kept = {name: options[name] for name in ("ablation", "formats") if name in options}
        tables, _ = write_tables(results, folder, **kept)
    else:
        options |= {"plan": plan.to_toml()} | ({"title": plan.title} if plan.title else {})
        report = write_report(results, folder, **options)
        tables = report.tables
        page = str(report.page)
    if json:
        records = {name: table.records() for name, table in tables.items()}
        sources.show_json(facts | {"page": page, "tables": records})
    elif not quiet:
        friedman = tables["friedman"]
        is_tested = friedman.frame["F_F"].notna().any()
        names = ["results", "average-ranks", *(["friedman", "pairs"] if is_tested else [])]
        show_tables(*(tables[name] for name in names))
        say("" if is_tested else f"\n{friedman.note}")
        say(f"Report: {page}" if page else f"Tables: {folder / 'tables'}")


@app.command(cls=sources.Command)
def info(json: sources.Json = False) -> None:
    """Show versions, the linear algebra library, installed extras, and whether loops are compiled.

    Example: `rbrl info --json`
    """
    found = rbrl.info()
    if json:
        sources.show_json(found)
    else:
        print("\n".join(f"{name:14} {value}" for name, value in found.items()))


def _show_version(is_given: bool) -> None:
    """Print the version and end the program if the option was given."""
    if is_given:
        print(f"rbrl {rbrl.__version__} (core: {rbrl.info()['core']})")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_show_version, is_eager=True),
) -> None:
    """Multi-label classification: fit models, predict labels, and compare methods.

    A first model, on a data set that needs no download:

    `rbrl fit yeast -o yeast.rbrl`

    `rbrl evaluate yeast.rbrl yeast`

    `rbrl COMMAND --help` explains a command.
    """


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command in the arguments; an error of the input becomes one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    shown: dict[str, list[str]] = {}
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_first_warning, shown)
            # Commands match columns by name before they call a model with arrays.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            app(args=arguments, prog_name="rbrl")
    except Exception as error:
        # An input can cause a wrong value, a missing file or extra, and too little memory.
        is_ours = type(error).__module__.startswith("rbrl")
        is_input_error = is_ours or isinstance(error, ValueError | OSError | ImportError | MemoryError)
        if os.environ.get("RBRL_DEBUG") or not is_input_error:
            raise
        say(f"rbrl: {_name_settings(_format_error(error), arguments)}")
        raise SystemExit(2) from None
    finally:
        for texts in shown.values():
            if len(texts) > 1:
                say(f"rbrl: {len(texts)} times in all, perhaps with other numbers: {texts[0][:MAX_REPEATED]}…")


def _format_error(error: Exception) -> str:
    """Return the message of an error in one line, in terms of the shell; never empty."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return _use_shell_terms(" ".join(str(error).split())) or type(error).__name__


def _use_shell_terms(text: str) -> str:
    """Replace Python options by shell options, and class names by names of methods."""
    options = rf"(?<![\w-])({'|'.join(SHELL_OPTIONS)})=(['\w-]?)"
    text = re.sub(options, lambda match: f"{SHELL_OPTIONS[match[1]]} {match[2]}".rstrip(), text)
    text = text.replace("sklearn.preprocessing.StandardScaler", "--standardise")
    text = re.sub(r"; or, in Python, [^;]*\]", "", text).replace("backend = ", "--backend ")
    registry = sys.modules.get("rbrl.registry")  # if it is not loaded, no classifier was used
    methods = {method.__name__: name for name, method in registry.REGISTRY.items()} if registry else {}
    return re.sub(r"\b[A-Z]\w+\b", lambda match: methods.get(match[0], match[0]), text)


def _name_settings(text: str, arguments: Sequence[str]) -> str:
    """Name the option --set for each parameter that was set with it."""
    given = {re.sub("^(--set=|-s=?)", "", one).partition("=")[0].strip() for one in arguments if "=" in one}
    rule = r"The (\w+) parameter of \S+ must"
    return re.sub(rule, lambda match: f"--set {match[1]} must" if match[1] in given else match[0], text)


def _show_first_warning(shown: dict[str, list[str]], message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning unless an equal one was shown before; numbers may differ. Append its text to `shown`.

    It replaces `warnings.showwarning`, whose other arguments it ignores. `run` reports the texts of
    `shown` that occurred several times.
    """
    text = _use_shell_terms(str(message))
    equal = shown.setdefault(re.sub(r"\d[\d.e+-]*", "0", text), [])
    equal.append(text)
    if len(equal) == 1:
        say(f"rbrl: {text}")
