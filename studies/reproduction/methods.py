"""The methods as tables, from their registry. ``python -m studies.reproduction.methods`` prints the page docs/methods.md."""

import sys
from collections.abc import Mapping, Sequence

import pandas as pd

from rbrl.experiments.tables import Table, to_markdown, word
from rbrl.registry import METHODS, Method
from studies.reproduction.paper import published

PAGE = """# Methods

Written by `python -m studies.reproduction.methods`, from the registry in `rbrl.registry`.

Plans and the command line use the name of a method. In Python, import its class from `rbrl`. The documentation of a class
describes its model and its parameters. The linked pages have more details.

{methods}

## In the paper

The table lists, for each method of the paper, the grid of its search (Table 2 of the paper), the model on dense data and
on text, and the rule by which its program calls a label relevant. The last column is our confidence that the implementation
in rbrl equals the original method. m is the number of features.

{paper}

The same grids are in the plan [paper.toml](../studies/reproduction/plans/paper.toml), and
`python -m studies.reproduction table2` compares them with those of the paper.
"""

KERNEL = "RBF kernel of width 1/m"
MEAN_DISTANCE = "RBF kernel of the mean distance"
UNIT_RANGE = "Euclidean distance, features in [0, 1]"
LIBSVM = f"LIBSVM, {KERNEL}"
NEVER_EMPTY = "score above 0; a row without one gets its best label"
REPLAYED = "certain: replays the authors' program"
MULAN = "high: as Mulan does it; defaults of the base learners from general knowledge"
HARD_VOTES = "positive vote; ranked by hard votes, a later label before an earlier one"
LEARNED = "score at or above a threshold learned from the scores"
ZERO_LABEL = "score at or above that of the zero label"
# What the paper says of a method of the registry, or its program does: the model, or base learner, on dense data and on
# text; when a label is relevant; our confidence that the implementation equals the original.
IN_PAPER: dict[str, tuple[str, str, str, str]] = {
    "rbrl": (KERNEL, "linear", NEVER_EMPTY, REPLAYED),
    "brl": (KERNEL, "linear", NEVER_EMPTY, "certain: RBRL without its ranking term"),
    "rank-svm": (KERNEL, "linear", LEARNED, "certain: tested against the MATLAB program of Zhang"),
    "rank-svmz": (KERNEL, "linear", ZERO_LABEL, "high for model and threshold; the original's solver stops early"),
    "br": (LIBSVM, "LIBLINEAR", HARD_VOTES, MULAN),
    "ml-knn": (UNIT_RANGE, UNIT_RANGE, "probability above 1/2", "certain: equal to Mulan's figures to four digits"),
    "clr": (LIBSVM, "LIBLINEAR", "as many votes as the virtual label, or more", MULAN),
    "rakel": (LIBSVM, "LIBLINEAR", "at least half of the votes", MULAN),
    "cpnl": (KERNEL, "linear", NEVER_EMPTY, REPLAYED),
    "mlfe": (
        MEAN_DISTANCE,
        MEAN_DISTANCE,
        "score of 0 or more",
        "certain for stages 1 and 2 and the prediction; stage 3 is a reconstruction",
    ),
}


def paper_table() -> Table:
    """Settings of the paper for each of its methods, and our confidence in them."""
    columns = ["method", "searched", "dense", "text", "relevant", "confidence"]
    records = [(m.title, describe_grids(m), *IN_PAPER[m.name]) for m in METHODS if m.grids]
    titles = ("Method", "Searched", "On dense data", "On text", "A label is relevant by", "Confidence")
    rows = tuple(tuple(word(text) for text in record) for record in records)
    return Table("methods-in-the-paper", "In the paper", titles, rows, pd.DataFrame(records, columns=columns))


def parameters_beside() -> Table:
    """Table 2: the grids of the registry beside those that the paper prints."""
    printed = published("hyper-parameters").set_index("method").hyper_parameters
    records = [(m.title, describe_grids(m), printed[m.title]) for m in METHODS if m.title in printed]
    rows = tuple(tuple(word(text) for text in record) for record in records)
    frame = pd.DataFrame(records, columns=["method", "searched", "printed"])
    return Table("table2", "Table 2: hyper-parameters", ("Method", "Searched", "Printed"), rows, frame)


def describe_grids(method: Method) -> str:
    """Return the grids of a method in words."""
    return "; or ".join("; ".join(_axes(grid)) for grid in method.grids)


def _axes(grid: Mapping[str, Sequence[float]]) -> list[str]:
    """Return parameters with their values; parameters with the same values together."""
    names: dict[tuple[float, ...], list[str]] = {}
    for name, values in grid.items():
        names.setdefault(tuple(values), []).append(name)
    return [f"{', '.join(group)} in {_values(values)}" for values, group in names.items()]


def _values(values: tuple[float, ...]) -> str:
    shown = [f"{value:g}" for value in values]
    return ", ".join([*shown[:2], "…", shown[-1]] if len(shown) > 4 else shown)


def methods_page() -> str:
    """Return the text of docs/methods.md."""
    names = ["| Name | Method | Class |", "| --- | --- | --- |", *map(_line, METHODS)]
    paper = [line for line in to_markdown(paper_table()).splitlines() if line.startswith("|")]
    return PAGE.format(methods="\n".join(names), paper="\n".join(paper))


def _line(method: Method) -> str:
    title = f"[{method.title}](methods/{method.page}.md)" if method.page else method.title
    return f"| `{method.name}` | {title} | `{method.estimator.__name__}` |"


if __name__ == "__main__":
    sys.stdout.write(methods_page())
