"""The methods as tables, from their registry. ``python -m reproduction.methods`` prints the page docs/methods.md."""

import sys
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rbrl.registry import METHODS, Method
from rbrl.report import Table, to_markdown, word
from reproduction.paper import published

PAGE = """# Methods

Written by `python -m reproduction.methods`, from the registry in `rbrl.registry`.

A method's name is what plans and the command line call it; its class is imported from `rbrl`. Every class describes its
model and its parameters, and the pages linked here say more.

{methods}

## In the paper

What the paper searched for each method (its Table 2), the model on its dense data sets and on its text, when its programs
call a label relevant, and how sure we are that ours is the original; m is the number of features.

{paper}

The same grids are in the plan [paper.toml](../reproduction/plans/paper.toml), and
`python -m reproduction table2` prints them beside the paper's.
"""


def paper_table() -> Table:
    """What the paper did with each of its methods, and how sure we are."""
    columns = ["method", "searched", "dense", "text", "relevant", "confidence"]
    records = [(m.title, searched(m), m.dense, m.sparse, m.rule, m.confidence) for m in METHODS if m.grids]
    titles = ("Method", "Searched", "On dense data", "On text", "A label is relevant by", "How sure we are")
    rows = tuple(tuple(word(text) for text in record) for record in records)
    return Table("methods-in-the-paper", "In the paper", titles, rows, pd.DataFrame(records, columns=columns))


def parameters_beside() -> Table:
    """Table 2: the grids of the registry beside those that the paper prints."""
    printed = published("hyper-parameters").set_index("method").hyper_parameters
    records = [(m.title, searched(m), printed[m.title]) for m in METHODS if m.title in printed]
    rows = tuple(tuple(word(text) for text in record) for record in records)
    frame = pd.DataFrame(records, columns=["method", "searched", "printed"])
    return Table("table2", "Table 2: hyper-parameters", ("Method", "Searched", "Printed"), rows, frame)


def searched(method: Method) -> str:
    """A method's grids in words."""
    return "; or ".join("; ".join(_axes(grid)) for grid in method.grids)


def _axes(grid: Mapping[str, Any]) -> list[str]:
    """Parameters with their values; those with the same values together."""
    names: dict[tuple[float, ...], list[str]] = {}
    for name, values in grid.items():
        names.setdefault(values, []).append(name)
    return [f"{', '.join(group)} in {_values(values)}" for values, group in names.items()]


def _values(values: tuple[float, ...]) -> str:
    shown = [f"{value:g}" for value in values]
    return ", ".join([*shown[:2], "…", shown[-1]] if len(shown) > 4 else shown)


def methods_page() -> str:
    """The text of docs/methods.md."""
    names = ["| Name | Method | Class |", "| --- | --- | --- |", *map(_line, METHODS)]
    paper = [line for line in to_markdown(paper_table()).splitlines() if line.startswith("|")]
    return PAGE.format(methods="\n".join(names), paper="\n".join(paper))


def _line(method: Method) -> str:
    title = f"[{method.title}](methods/{method.page}.md)" if method.page else method.title
    return f"| `{method.name}` | {title} | `{method.estimator.__name__}` |"


if __name__ == "__main__":
    sys.stdout.write(methods_page())
