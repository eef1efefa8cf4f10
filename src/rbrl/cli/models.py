"""`rbrl fit`, `rbrl predict`, `rbrl evaluate`: a model learned, used and judged."""

import csv
import sys
import time
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.inputs import (
    Base,
    Data,
    DataHome,
    IndexBase,
    Json,
    LabelBase,
    Labels,
    Method,
    Quiet,
    parse_bases,
    parse_settings,
)
from rbrl.cli.output import say, show, show_json


def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.", show_default=False)],
    method: Method = "rbrl",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="NAME=VALUE", help="A parameter; may be repeated.", show_default=False),
    ] = None,
    standardise: Annotated[
        bool, typer.Option(help="Scale features to mean 0 and deviation 1 first; sparse data keep their zeros.")
    ] = False,
    labels: Labels = None,
    index_base: IndexBase = Base.auto,
    label_base: LabelBase = Base.auto,
    data_home: DataHome = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a model from DATA and write it to a file that is safe to load.

    A folder or a pattern stands for shards, which are read one at a time and may be larger than memory.

    Examples:

    `rbrl fit yeast -o yeast.rbrl`

    `rbrl fit "shards/*.npz" -o large.rbrl`

    `rbrl fit my.csv --labels sea,sand -o my.rbrl --set kernel=rbf --set ridge=0.1 --standardise`
    """
    from rbrl.cli.inputs import is_shards
    from rbrl.persistence import save

    model = make_model(method, parse_settings(settings), standardise)
    _check_folder(output)
    started = time.perf_counter()
    learn = _learn_shards if is_shards(data) else _learn
    n_samples, n_labels = learn(model, data, labels, data_home, parse_bases(index_base, label_base))
    seconds = time.perf_counter() - started
    save(model, output)
    last = model[-1] if hasattr(model, "steps") else model
    facts = {"model": str(output), "method": method, "n_samples": n_samples, "n_labels": n_labels}
    facts |= {"seconds": seconds, "gap": getattr(last, "gap_", None), "rank": getattr(last, "rank_", None)}
    if json:
        show_json(facts)
    else:
        proved = "" if facts["gap"] is None else f", certified within {100 * facts['gap']:.2g} % of the optimum"
        say(f"{output}: {method} on {n_samples} samples, {seconds:.1f} s{proved}", quiet)


def _learn(model, data, labels, data_home, bases):
    from rbrl.cli.inputs import load_data
    from rbrl.estimators.base import remember_columns

    dataset = load_data(data, labels, data_home, bases)
    _scaled(model, dataset.X).fit(dataset.X, dataset.Y)
    remember_columns(model, dataset.columns)
    return dataset.n_samples, dataset.n_labels


def _learn_shards(model, data, labels, data_home, bases):
    from rbrl.cli.inputs import parse_labels
    from rbrl.datasets import open_shards
    from rbrl.estimators.convex import ObjectiveClassifier

    if not isinstance(model, ObjectiveClassifier):
        raise ValueError(
            f"Shards train rbrl, brl and cpnl, without --standardise. Got {model}; load {data} as one file for others."
        )
    model.fit(open_shards(data, parse_labels(labels), **bases))
    return model.n_samples_seen_, model.targets_.n_columns


def make_model(method, params, standardise):
    """A classifier of the registry with parameters, after a scaler if asked for."""
    from rbrl.registry import REGISTRY

    if method not in REGISTRY:
        raise ValueError(f"A method is one of {', '.join(REGISTRY)}. Got {method!r} instead.")
    model = REGISTRY[method]()
    unknown = [name for name in params if name not in model.get_params()]
    if unknown:
        known = ", ".join(sorted(model.get_params(deep=False)))
        raise ValueError(f"{method} has the parameters {known}. Got {', '.join(unknown)} instead.")
    model.set_params(**params)
    if not standardise:
        return model
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _scaled(model, X):
    """Tell the scaler to leave the zeros of sparse data alone."""
    from scipy import sparse

    if hasattr(model, "steps") and sparse.issparse(X):
        model[0].set_params(with_mean=False)
    return model


def _check_folder(path):
    """A long fit should not end with a path that cannot be written."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no such folder: {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the model file in it")


class Answer(StrEnum):
    """What is written for each row."""

    labels = "labels"
    names = "names"
    scores = "scores"


def predict(
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


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="A file that `rbrl fit` wrote.")],
    data: Data,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="A metric; may be repeated. Default: the paper's six.")
    ] = None,
    labels: Labels = None,
    index_base: IndexBase = Base.auto,
    label_base: LabelBase = Base.auto,
    data_home: DataHome = None,
    json: Json = False,
) -> None:
    """Compare the predictions of a model with the labels of DATA.

    Features and labels are matched with those that the model was fitted on by their names.

    Example: `rbrl evaluate yeast.rbrl test.arff --metric ranking_loss --metric f1_macro`
    """
    from rbrl.cli.inputs import load_data, load_model
    from rbrl.metrics import PAPER_METRICS, evaluate, get_metric

    metrics = [get_metric(name) for name in metric] if metric else list(PAPER_METRICS)
    fitted = load_model(model)
    dataset = load_data(data, labels, data_home, parse_bases(index_base, label_base), fitted)
    predicted, scores = _predictions(fitted, dataset)
    values = evaluate(dataset.Y, predicted, scores, metrics)
    if json:
        show_json(values)
    else:
        show(_table(metrics, values, dataset))


def _predictions(model, dataset, block_size=4096):
    """Labels as 0/1 and scores, in blocks: a kernel model needs a row of products for each row."""
    import numpy as np

    from rbrl.cli.inputs import rows_for
    from rbrl.datasets.files import row_blocks
    from rbrl.metrics import scores_of

    predicted, scores = [], []
    for block in row_blocks(dataset.X, block_size):
        X = rows_for(model, block)
        predicted.append((np.asarray(model.predict(X)) > 0).astype(np.int8))
        scores.append(scores_of(model, X))
    return np.vstack(predicted), np.vstack(scores)


def _table(metrics, values, dataset):
    import pandas as pd

    from rbrl.report.table import Table, number, word

    rows = tuple((word(f"{m.title} {m.arrow}"), number(values[m.name], 4)) for m in metrics)
    title = f"{dataset.name}: {dataset.n_samples} samples, {dataset.n_labels} labels"
    return Table("evaluation", title, ("Metric", "Value"), rows, pd.DataFrame([values]))
