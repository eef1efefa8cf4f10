"""`rbrl fit`, `rbrl predict`, `rbrl evaluate`: a model learned, used and judged."""

import ast
import csv
import json as json_format
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rbrl._common.texts import escape_formula
from rbrl.cli import shared
from rbrl.cli.shared import (
    Base,
    Data,
    DataHome,
    Ignore,
    IndexBase,
    Json,
    LabelBase,
    Labels,
    Method,
    Model,
    Positive,
    Quiet,
    option,
    say,
)  # fmt: skip

if TYPE_CHECKING:
    from rbrl._common.typing import Array
    from rbrl.datasets import Dataset

BLOCK = 4096  # rows at a time: a kernel model needs a row of products for each


SETTING = (
    "A parameter of the method, as in Python or JSON, such as threshold=f1_micro or non_empty=true; may be repeated."
)


class Calibration(StrEnum):
    """How scores become probabilities.

    Examples
    --------
    >>> f"--calibrate {Calibration.sigmoid}"
    '--calibrate sigmoid'
    """

    sigmoid = "sigmoid"
    isotonic = "isotonic"


def fit(
    data: Data,
    output: Annotated[Path, option("--output", "-o", help="The model file to write.")],
    method: Method = "rbrl",
    settings: Annotated[
        list[str] | None, option("--set", "-s", metavar="NAME=VALUE", help=SETTING)
    ] = None,
    calibrate: Annotated[
        Calibration | None, option(help="Learn probabilities too, on held-out rows: for `predict` and `evaluate`.")
    ] = None,
    standardise: Annotated[
        bool, typer.Option(help="Scale features to mean 0 and deviation 1 first; sparse data keep their zeros.")
    ] = False,
    labels: Labels = None, positive: Positive = None, ignore: Ignore = None, index_base: IndexBase = Base.auto,
    label_base: LabelBase = Base.auto, data_home: DataHome = None, json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Learn a model from DATA and write it to a file that is safe to load.

    A folder or a pattern stands for shards, which are read one at a time and may be larger than memory.

    Examples:

    `rbrl fit yeast -o yeast.rbrl`

    `rbrl fit "shards/*.npz" -o large.rbrl`

    `rbrl fit my.csv --labels sea,sand -o my.rbrl --set kernel=rbf --set ridge=0.1 --standardise`

    `rbrl fit my.csv --labels sea,sand --positive ja --ignore id,date -o my.rbrl`

    `rbrl fit yeast -o yeast.rbrl --calibrate sigmoid`
    """
    from rbrl.persistence import save

    model = _make_model(method, parse_settings(settings), standardise, calibrate)
    _check_folder(output)
    shared.check_output(output, shared.input_files(data, labels, data_home))
    started = time.perf_counter()
    options = shared.parse_options(index_base, label_base, ignore, positive)
    if shared.is_shards(data):
        n_samples, n_labels = _learn_shards(model, data, labels, options)
    else:
        n_samples, n_labels = _learn(model, shared.load_data(data, labels, data_home, options))
    seconds = time.perf_counter() - started
    save(model, output)
    last = model[-1] if standardise else model
    gap = getattr(last, "gap_", None)
    if json:
        facts = {"model": str(output), "method": method, "n_samples": n_samples, "n_labels": n_labels}
        shared.show_json(facts | {"seconds": seconds, "gap": gap, "rank": getattr(last, "rank_", None)})
    else:
        proved = "" if gap is None else f", certified within {100 * gap:.2g} % of the optimum"
        say(f"{output}: {method} on {n_samples} samples, {seconds:.1f} s{proved}", quiet)


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Return parameters given as name=value; a value is JSON or Python where it can be, and text otherwise.

    Parameters
    ----------
    settings : list of str or None

    Returns
    -------
    dict of str to value

    Examples
    --------
    >>> parse_settings(["ridge=0.1", "kernel=rbf", "non_empty=True", "class_weight={0: 5.0}"])
    {'ridge': 0.1, 'kernel': 'rbf', 'non_empty': True, 'class_weight': {0: 5.0}}
    """
    found = {}
    for text in settings or []:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ValueError(f"A parameter is given as name=value. Got {text!r} instead.")
        found[name.strip()] = _parse_value(value)
    return found


def _parse_value(text: str) -> Any:
    for parse in (json_format.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, TypeError):
            continue
    return text


def _make_model(method: str, params: dict[str, Any], standardise: bool, calibrate: Calibration | None) -> Any:
    """A classifier of the registry with parameters, with probabilities and after a scaler if asked for."""
    from rbrl.registry import REGISTRY

    if method not in REGISTRY:
        raise ValueError(f"A method is one of {', '.join(REGISTRY)}. Got {method!r} instead.")
    model: Any = REGISTRY[method]()
    unknown = [name for name in params if name not in model.get_params()]
    if unknown:
        known = ", ".join(sorted(model.get_params(deep=False)))
        raise ValueError(f"{method} has the parameters {known}. Got {', '.join(unknown)} instead.")
    model.set_params(**params)
    if calibrate:
        from rbrl.selection import CalibratedMultiLabelClassifier

        model = CalibratedMultiLabelClassifier(model, method=calibrate.value)
    if not standardise:
        return model
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _check_folder(path: Path) -> None:
    """A long fit should not end with a path that cannot be written."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no such folder: {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the model file in it")


def _learn(model: Any, dataset: "Dataset") -> tuple[int, int]:
    """Fit a model to data in memory; return the numbers of rows and labels."""
    from scipy import sparse

    from rbrl.estimators.base import remember_columns

    if hasattr(model, "steps") and sparse.issparse(dataset.X):
        model.set_params(standardscaler__with_mean=False)  # zeros stay zeros
    model.fit(dataset.X, dataset.Y)
    remember_columns(model, dataset.columns)
    return dataset.n_samples, dataset.n_labels


def _learn_shards(model: Any, data: str, labels: list[str] | None, options: dict[str, Any]) -> tuple[int, int]:
    """Fit a model to files that are read one at a time; return the numbers of rows and labels."""
    from rbrl.datasets import open_shards
    from rbrl.estimators.convex import ObjectiveClassifier

    if not isinstance(model, ObjectiveClassifier):
        others = f"Got {model}; load {data} as one file for others."
        raise ValueError(f"Shards train rbrl, brl and cpnl, without --standardise and --calibrate. {others}")
    model.fit(open_shards(data, shared.parse_labels(labels), **options))
    return model.n_samples_seen_, model.targets_.n_columns


class Answer(StrEnum):
    """What is written for each row.

    Examples
    --------
    >>> f"--write {Answer.names}"
    '--write names'
    """

    labels = "labels"
    names = "names"
    scores = "scores"
    probabilities = "probabilities"


def predict(
    model: Model, data: Data,
    output: Annotated[Path | None, option("--output", "-o", help="A CSV file; default: standard output.")] = None,
    write: Annotated[Answer, typer.Option(help="0/1 per label, the names, scores or probabilities.")] = Answer.labels,
    top: Annotated[int | None, option(min=1, help="Number of labels of each row: the best, with their scores.")] = None,
    block_size: Annotated[int, typer.Option(min=0, help="Rows at a time; 0 reads everything first.")] = BLOCK,
    labels: Labels = None, ignore: Ignore = None, index_base: IndexBase = Base.auto, data_home: DataHome = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Predict the labels of DATA, in blocks, so that a file may be larger than memory.

    Columns are matched with those that the model was fitted on by their names. Label columns are not needed; they and the
    columns that `fit` ignored are left out.

    Examples:

    `rbrl predict yeast.rbrl new.csv`

    `rbrl predict yeast.rbrl new.svm --write scores -o scores.csv`

    `rbrl predict yeast.rbrl new.csv --top 3`
    """
    from rbrl.datasets.formats import create_text

    if top and write is not Answer.labels:
        raise ValueError(f"--top writes names and scores of its own; leave out --write {write}.")
    if output:
        shared.check_output(output, [model, *shared.input_files(data, labels, data_home)])
    fitted = shared.load_model(model)
    options, n_rows = shared.parse_options(index_base, ignore=ignore), 0
    with create_text(output) if output else nullcontext(sys.stdout) as stream:
        rows = csv.writer(stream, lineterminator="\n")
        for X in shared.load_blocks(data, fitted, labels, block_size, data_home, options):
            answers = _answers(fitted, X, Answer.scores if top else write)
            names = _label_names(fitted, answers.shape[1])
            if n_rows == 0:
                rows.writerow(map(escape_formula, _header(write, top, names)))
            rows.writerows(map(escape_formula, line) for line in _lines(answers, write, top, names))
            n_rows += len(answers)
    if output:
        say(f"{output}: {n_rows} rows", quiet)


def _answers(model: Any, X: Any, write: Answer) -> "Array":
    """What is asked of rows; a scaler that was fitted on dense rows moves zeros, so sparse ones are written out."""
    import numpy as np
    from scipy import sparse

    from rbrl.metrics import probabilities_of, scores_of

    moves_zeros = hasattr(model, "steps") and getattr(model[0], "with_mean", False)
    X = X.toarray() if moves_zeros and sparse.issparse(X) else X
    if write is Answer.probabilities and not hasattr(model, "predict_proba"):
        name = type(model[-1] if hasattr(model, "steps") else model).__name__
        raise ValueError(
            f"The model must have probabilities. Got {name}, which has none; `rbrl fit --calibrate` adds them."
        )
    known: dict[Answer, Any] = {Answer.scores: scores_of, Answer.probabilities: probabilities_of}
    answers: Any = known[write](model, X) if write in known else model.predict(X)
    answers = answers.toarray() if sparse.issparse(answers) else np.asarray(answers)
    return answers[:, None] if answers.ndim == 1 else answers


def _label_names(model: Any, n_labels: int) -> list[str]:
    """Names of the labels that a model was fitted with, or numbers."""
    from rbrl.estimators.named_answers import label_names

    names = label_names(model)
    return names if names is not None and len(names) == n_labels else [f"label{i + 1}" for i in range(n_labels)]


def _header(write: Answer, top: int | None, names: list[str]) -> list[str]:
    if top:
        return [f"{kind}{i + 1}" for i in range(top) for kind in ("label", "score")]
    return ["labels"] if write is Answer.names else names


def _lines(answers: "Array", write: Answer, top: int | None, names: list[str]) -> Iterator[list[Any]]:
    """What is written for each row: name and score of the best labels in turn, or one cell per label, or their names."""
    from rbrl.decision import top_labels

    if top:
        best = (zip(*row) for row in zip(*top_labels(answers, top)))
        return ([cell for label, value in row for cell in (names[label], f"{value:.9g}")] for row in best)
    rows = answers.tolist()
    if write is Answer.names:
        # Each name, and not the cell alone: where a list separator is a semicolon, programs split the cell there.
        shown = [escape_formula(name) for name in names]
        return ([";".join(name for name, value in zip(shown, row) if value > 0)] for row in rows)
    as_numbers = write in (Answer.scores, Answer.probabilities)
    return ([f"{value:.9g}" if as_numbers else int(value > 0) for value in row] for row in rows)


def evaluate(
    model: Model, data: Data,
    metric: Annotated[list[str] | None, option(help="A metric; may be repeated. Default: the paper's six.")] = None,
    labels: Labels = None, positive: Positive = None, ignore: Ignore = None, index_base: IndexBase = Base.auto,
    label_base: LabelBase = Base.auto, data_home: DataHome = None, json: Json = False,
) -> None:  # fmt: skip
    """Compare the predictions of a model with the labels of DATA.

    Features and labels are matched with those that the model was fitted on by their names.

    Example: `rbrl evaluate yeast.rbrl test.arff --metric ranking_loss --metric f1_macro`
    """
    import numpy as np
    import pandas as pd

    from rbrl.experiments.tables import Table, heading, number, show_tables, word
    from rbrl.metrics import CONVENTIONS, PAPER_METRICS, get_metric
    from rbrl.selection.grid import Predicted

    metrics = [get_metric(name) for name in metric] if metric else list(PAPER_METRICS)
    fitted = shared.load_model(model)
    options = shared.parse_options(index_base, label_base, ignore, positive)
    dataset = shared.load_data(data, labels, data_home, options, fitted)
    blocks = list(shared.row_blocks(dataset.X, BLOCK))
    predicted = np.vstack([_answers(fitted, X, Answer.labels) > 0 for X in blocks]).astype(np.int8)
    needs = {one.needs for one in metrics}
    found: dict[str, Any] = {
        kind: np.vstack([_answers(fitted, X, kind) for X in blocks])
        for kind in (Answer.scores, Answer.probabilities)
        if kind in needs
    }
    values = Predicted(predicted, **found).judged(dataset.Y, metrics, CONVENTIONS[0])
    if json:
        shared.show_json(values)
        return
    rows = tuple((word(heading(one)), number(values[one.name], 4)) for one in metrics)
    title = f"{dataset.name}: {dataset.n_samples} samples, {dataset.n_labels} labels"
    show_tables(Table("evaluation", title, ("Metric", "Value"), rows, pd.DataFrame([values])))
