"""`rbrl predict`: labels or scores for rows of any number."""

import csv
import sys
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.options import Base, Data, DataHome, IndexBase, Labels, Quiet, parse_bases
from rbrl.cli.output import say


class Answer(StrEnum):
    """What is written for each row."""

    labels = "labels"
    names = "names"
    scores = "scores"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="A file that `rbrl fit` wrote.")],
    data: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A CSV file; default: standard output.")] = None,
    write: Annotated[Answer, typer.Option(help="0/1 per label, the names of the labels, or scores.")] = Answer.labels,
    top: Annotated[
        int | None, typer.Option(min=1, show_default=False, help="Only the so many best labels, with their scores.")
    ] = None,
    block_size: Annotated[int, typer.Option(min=0, help="Rows at a time; 0 reads everything first.")] = 4096,
    labels: Labels = None,
    index_base: IndexBase = Base.auto,
    data_home: DataHome = None,
    quiet: Quiet = False,
) -> None:
    """Predict the labels of DATA, in blocks, so that a file may be larger than memory.

    Columns are matched with those that the model was fitted on by their names. Label columns are not needed; where they are,
    they are left out.

    Examples:

    `rbrl predict yeast.rbrl new.csv`

    `rbrl predict yeast.rbrl new.svm --write scores -o scores.csv`

    `rbrl predict yeast.rbrl new.csv --top 3`
    """
    from rbrl.cli.inputs import label_names, load_blocks, load_model

    if top and write is not Answer.labels:
        raise ValueError(f"--top writes names and scores of its own; leave out --write {write}.")
    fitted = load_model(model)
    n_rows = 0
    with _writer(output) as rows:
        for X in load_blocks(data, fitted, labels, block_size, data_home, parse_bases(index_base)):
            answers = _answers(fitted, X, Answer.scores if top else write)
            names = label_names(fitted, answers.shape[1])
            if n_rows == 0:
                rows.writerow(_header(write, top, names))
            rows.writerows(_best(answers, top, names) if top else _lines(answers, write, names))
            n_rows += len(answers)
    if output:
        say(f"{output}: {n_rows} rows", quiet)


@contextmanager
def _writer(output):
    if output is None:
        yield csv.writer(sys.stdout, lineterminator="\n")
        return
    from rbrl.datasets.formats.text import writing_text

    with writing_text(output) as stream:
        yield csv.writer(stream, lineterminator="\n")


def _answers(model, X, write):
    import numpy as np
    from scipy import sparse

    from rbrl.cli.inputs import rows_for
    from rbrl.metrics import scores_of

    X = rows_for(model, X)
    answers = scores_of(model, X) if write is Answer.scores else model.predict(X)
    answers = answers.toarray() if sparse.issparse(answers) else np.asarray(answers)
    return answers[:, None] if answers.ndim == 1 else answers


def _header(write, top, names):
    if top:
        return [f"{kind}{i + 1}" for i in range(top) for kind in ("label", "score")]
    return ["labels"] if write is Answer.names else names


def _best(scores, top, names):
    """Name and score of the best labels, in turn."""
    from rbrl.decision import top_labels

    for labels, values in zip(*top_labels(scores, top)):
        yield [cell for label, value in zip(labels, values) for cell in (names[label], f"{value:.9g}")]


def _lines(answers, write, names):
    if write is Answer.scores:
        return ([f"{value:.9g}" for value in row] for row in answers.tolist())
    if write is Answer.labels:
        return ([int(value > 0) for value in row] for row in answers.tolist())
    return ([";".join(name for name, value in zip(names, row) if value > 0)] for row in answers.tolist())
