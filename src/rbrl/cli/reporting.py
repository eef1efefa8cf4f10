"""What `compare` and `report` share: the report of a store, and the tables shown at the end."""

import shlex
import sys
from pathlib import Path

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
    from rbrl.report.formats import FORMATS

    formats = tuple(name.strip().lstrip(".") for name in text.split(",") if name.strip())
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"Tables are written as {', '.join(FORMATS)}. Got {', '.join(unknown)} instead.")
    return formats


FORMATS = "csv,tex,md,html"
