"""`rbrl fit`, `rbrl predict` and `rbrl evaluate`: fit a model, use it, and measure it."""

import ast
import csv
import json as json_format
import re
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rbrl.cli import sources
from rbrl.cli.sources import Base, option, say

if TYPE_CHECKING:
    import pandas as pd

    from rbrl._common.typing import Array
    from rbrl.experiments.tables import Table
    from rbrl.metrics import Metric


# Calibrations of scores to probabilities.
Calibration = StrEnum("Calibration", "sigmoid isotonic")
# Forms of predictions.
Answer = StrEnum("Answer", "labels names scores probabilities")


def fit(
    data: sources.ShardData,
    output: Annotated[Path, option("--output", "-o", help="Model file to write.")],
    method: Annotated[
        str,
        typer.Option("--method", "-m", help="Method, such as rbrl, br or ml-knn.", autocompletion=sources.complete_method),
    ] = "rbrl",
    settings: Annotated[
        list[str] | None,
        option(
            "--set", "-s", metavar="NAME=VALUE",
            help="Parameter of the method, as in Python or JSON, such as ridge=0.1 or non_empty=true. Can be repeated.",
        ),
    ] = None,
    calibrate: Annotated[
        Calibration | None,
        option(help="Calibrate probabilities on held-out rows, so that `predict` and `evaluate` can use them."),
    ] = None,
    standardise: Annotated[
        bool, typer.Option(help="Scale features to mean 0 and standard deviation 1; sparse data are not centred.")
    ] = False,
    labels: sources.Labels = None, positive: sources.Positive = None, ignore: sources.Ignore = None,
    index_base: sources.IndexBase = Base.auto, label_base: sources.LabelBase = Base.auto,
    data_home: sources.DataHome = None, json: sources.Json = False, quiet: sources.Quiet = False,
) -> None:  # fmt: skip
    """Fit a model to DATA and write it to a file.

    Shards are several files, of which one is in memory at a time; together they may be larger than
    memory. Loading a model file runs no code from the file.

    Examples:

    `rbrl fit yeast -o yeast.rbrl`

    `rbrl fit my.csv --labels sea,sand -o my.rbrl --set kernel=rbf --set ridge=0.1 --standardise`

    `rbrl fit my.csv --labels sea,sand --positive ja --ignore id,date -o my.rbrl`

    `rbrl fit yeast -o yeast.rbrl --calibrate sigmoid`

    `rbrl fit "shards/*.npz" -o large.rbrl`
    """
    from rbrl.persistence import save

    model = _make_model(method, parse_settings(settings), standardise, calibrate)
    file_options = sources.parse_file_options(labels, ignore, positive, index_base, label_base)
    source = sources.Source(data, data_home, file_options)
    sources.check_output_folder(output)
    sources.check_output(output, source.find_input_files())
    started = time.perf_counter()
    n_samples, n_labels = (_fit_shards if source.is_shards else _fit_dataset)(model, source)
    seconds = time.perf_counter() - started
    save(model, output)
    classifier = model[-1] if standardise else model
    gap = getattr(classifier, "gap_", None)
    if json:
        facts = {"model": str(output), "method": method, "n_samples": n_samples, "n_labels": n_labels}
        sources.show_json(facts | {"seconds": seconds, "gap": gap, "rank": getattr(classifier, "rank_", None)})
    else:
        certificate = "" if gap is None else f", certified within {100 * gap:.2g} % of the optimum"
        say(f"{output}: {method} on {n_samples} samples, {seconds:.1f} s{certificate}", quiet)


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Return the parameters in texts name=value; a value that is neither JSON nor Python is text.

    Examples
    --------
    >>> parse_settings(["ridge=0.1", "kernel=rbf", "non_empty=True", "class_weight={0: 5.0}"])
    {'ridge': 0.1, 'kernel': 'rbf', 'non_empty': True, 'class_weight': {0: 5.0}}
    """
    found: dict[str, Any] = {}
    for text in settings or []:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ValueError(f"--set takes NAME=VALUE. Got {text!r} instead.")
        found[name.strip()] = value
        for parse in (ast.literal_eval, json_format.loads):
            with suppress(ValueError, SyntaxError, TypeError):
                found[name.strip()] = parse(value)
    return found


def _make_model(method: str, params: dict[str, Any], standardise: bool, calibrate: Calibration | None) -> Any:
    """Return a classifier with these parameters, calibrated and behind a scaler if requested."""
    from rbrl._common.checks import suggest
    from rbrl.registry import REGISTRY

    if method not in REGISTRY:
        raise ValueError(f"--method takes {', '.join(REGISTRY)}. Got {method!r} instead.{suggest(method, REGISTRY)}")
    model: Any = REGISTRY[method]()
    unknown = [name for name in params if name not in model.get_params()]
    if unknown:
        known = sorted(model.get_params(deep=False))
        meant = suggest(unknown[0], known)
        raise ValueError(
            f"--set takes the parameters of {method}: {', '.join(known)}. Got {', '.join(unknown)} instead.{meant}"
        )
    model.set_params(**params)
    if calibrate:
        from rbrl.selection import CalibratedMultiLabelClassifier

        model = CalibratedMultiLabelClassifier(model, method=calibrate.value)
    if not standardise:
        return model
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _fit_dataset(model: Any, source: sources.Source) -> tuple[int, int]:
    """Fit a model to data in memory; return the number of rows and of labels."""
    from scipy import sparse

    from rbrl.estimators.validation import store_columns

    dataset = source.load()
    source.check_features(dataset.X, dataset.columns.feature_names, may_ignore=sources.is_file(source.data))
    if hasattr(model, "steps") and sparse.issparse(dataset.X):
        model.set_params(standardscaler__with_mean=False)  # centring would make the data dense
    model.fit(dataset.X, dataset.Y)
    store_columns(model, dataset.columns)
    return dataset.n_samples, dataset.n_labels


def _fit_shards(model: Any, source: sources.Source) -> tuple[int, int]:
    """Fit a model to files that are read one at a time; return the number of rows and of labels."""
    from rbrl.datasets import open_shards
    from rbrl.estimators.convex import ConvexClassifier

    if not isinstance(model, ConvexClassifier):
        raise ValueError(
            "Shards can be fitted with --method rbrl, brl or cpnl, without --standardise and --calibrate. "
            f"For other models, put the rows of {source.data} into one file."
        )
    model.fit(open_shards(source.data, **source.options))
    return model.n_samples_seen_, model.targets_.n_columns


def predict(
    model: sources.Model, data: sources.ShardData,
    output: Annotated[
        Path | None, option("--output", "-o", help="CSV file to write, also as .csv.gz. Default: standard output.")
    ] = None,
    write: Annotated[
        Answer, typer.Option(help="0/1 for each label, the names of the relevant labels, scores, or probabilities.")
    ] = Answer.labels,
    top: Annotated[
        int | None,
        option(
            parser=sources.whole_number(1), metavar="N",
            help="Write the N best labels of each row, with scores, or with probabilities if the model is calibrated.",
        ),
    ] = None,
    block_size: Annotated[
        int,
        typer.Option(
            parser=sources.whole_number(0), metavar="N",
            help="Number of rows in memory at a time; 0 for all rows.",
        ),
    ] = 4096,
    labels: sources.Labels = None, ignore: sources.Ignore = None, index_base: sources.IndexBase = Base.auto,
    data_home: sources.DataHome = None, quiet: sources.Quiet = False,
) -> None:  # fmt: skip
    """Predict the labels of DATA and write them as CSV.

    Rows are read in blocks, so that a file may be larger than memory. The columns of DATA are
    matched by name with those of the model. Label columns are not needed, and are not used.

    Examples:

    `rbrl predict yeast.rbrl new.csv`

    `rbrl predict yeast.rbrl new.svm --write scores -o scores.csv`

    `rbrl predict yeast.rbrl new.csv --top 3`

    `rbrl predict calibrated.rbrl new.csv --top 3 --write probabilities`
    """
    from rbrl._common.texts import escape_formula
    from rbrl.datasets.formats import create_text
    from rbrl.estimators.validation import get_columns

    if top and write is Answer.names:
        raise ValueError(
            "--top writes the names of the best labels with numbers. Got --write names; leave it out, or use "
            "--write scores or --write probabilities."
        )
    options = sources.parse_file_options(labels, ignore, None, index_base)
    source = sources.Source(data, data_home, options)
    if output:
        sources.check_output_folder(output)
        sources.check_output(output, [model, *source.find_input_files()])
    fitted = _load_model(model)
    write = _choose_numbers(fitted) if top and write is Answer.labels else write
    n_rows = 0
    with create_text(output) if output else nullcontext(sys.stdout) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for X in source.read_blocks(fitted, block_size):
            source.check_features(X, get_columns(fitted).feature_names, may_ignore=False)
            answers = _predict_rows(fitted, X, write)
            names = _label_names(fitted, answers.shape[1])
            if n_rows == 0:
                writer.writerow(map(escape_formula, _make_header(write, top, names)))
            writer.writerows(map(escape_formula, row) for row in _make_rows(answers, write, top, names))
            n_rows += len(answers)
    if output:
        say(f"{output}: {n_rows} rows", quiet)


def _load_model(path: Path) -> Any:
    """Return the model in a file of any size."""
    from rbrl.datasets.files import FORMAT_OF_ENDING, file_ending
    from rbrl.persistence import load

    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the model file in it.")
    if not path.is_file():
        raise FileNotFoundError(f"no such model file: {path}; `rbrl fit DATA -o {path}` writes one.")
    if file_ending(path) in FORMAT_OF_ENDING:
        with path.open("rb") as stream:
            if stream.read(5) != b"rbrl ":
                raise ValueError(
                    f"{path} is a data file and not a model file: name the model first, `rbrl predict MODEL DATA`."
                )
    # The user chose the file and knows its size; the content is never larger than the file.
    return load(path, max_bytes=sys.maxsize)


def _predict_rows(model: Any, X: Any, write: Answer) -> "Array":
    """Return labels, scores or probabilities of rows as a dense matrix (n_rows, n_labels)."""
    import numpy as np

    from rbrl._common.frames import as_dense
    from rbrl.metrics import probabilities_of, scores_of

    if hasattr(model, "steps") and getattr(model[0], "with_mean", False):
        X = as_dense(X)  # the scaler subtracts the means
    if write is Answer.probabilities and not hasattr(model, "predict_proba"):
        raise ValueError("The model has no probabilities: fit it with `rbrl fit --calibrate sigmoid` or `isotonic`.")
    functions: dict[Answer, Any] = {Answer.scores: scores_of, Answer.probabilities: probabilities_of}
    answers = as_dense(functions[write](model, X) if write in functions else model.predict(X))
    return answers[:, np.newaxis] if answers.ndim == 1 else answers


def _label_names(model: Any, n_labels: int) -> list[str]:
    """Return the label names that a model was fitted with, or default names."""
    from rbrl.estimators.named_answers import label_names

    names = label_names(model)
    return names if names is not None and len(names) == n_labels else [f"label{i + 1}" for i in range(n_labels)]


def _choose_numbers(model: Any) -> Answer:
    """Return the numbers of the best labels: probabilities of a calibrated model, scores of any other."""
    from rbrl.selection import CalibratedMultiLabelClassifier

    classifier = model[-1] if hasattr(model, "steps") else model
    is_calibrated = isinstance(classifier, CalibratedMultiLabelClassifier)
    return Answer.probabilities if is_calibrated else Answer.scores


def _make_header(write: Answer, top: int | None, names: list[str]) -> list[str]:
    """Return the titles of the columns that `_make_rows` fills."""
    if top:
        number = "probability" if write is Answer.probabilities else "score"
        return [f"{kind}{i + 1}" for i in range(top) for kind in ("label", number)]
    return ["labels"] if write is Answer.names else names


def _make_rows(answers: "Array", write: Answer, top: int | None, names: list[str]) -> Iterator[list[Any]]:
    """Return the cells of each row: names and numbers of the best labels, all names, or a cell per label."""
    from rbrl._common.texts import escape_formula
    from rbrl.decision import top_labels

    if top:
        best = (zip(*row) for row in zip(*top_labels(answers, top)))
        return ([cell for label, score in row for cell in (names[label], f"{score:.9g}")] for row in best)
    rows = answers.tolist()
    if write is Answer.names:
        # Each name is escaped, since spreadsheets that separate cells by semicolons split the list.
        escaped = [escape_formula(name) for name in names]
        return ([";".join(name for name, value in zip(escaped, row) if value > 0)] for row in rows)
    if write is Answer.labels:
        return ([int(value > 0) for value in row] for row in rows)
    return ([f"{value:.9g}" for value in row] for row in rows)


def evaluate(
    model: sources.Model, data: sources.Data,
    metric: Annotated[
        list[str] | None,
        option(
            help="Metric, such as ranking_loss, precision_at_3, ndcg_at_5 or psp_at_5. Can be repeated. Default: the six "
            "metrics of the paper.",
        ),
    ] = None,
    by_frequency: Annotated[
        bool,
        typer.Option(
            "--by-frequency",
            help="Report frequent labels (head), medium labels (torso) and rare labels (tail).",
        ),
    ] = False,
    top: Annotated[
        int | None,
        option(
            parser=sources.whole_number(1), metavar="N",
            help="Number of best labels of each row that --by-frequency counts. Default: 5.",
        ),
    ] = None,
    train: Annotated[
        str | None,
        option(
            metavar="DATA",
            help="Training data of the model: --by-frequency and psp_at_k need the frequencies of its labels.",
        ),
    ] = None,
    labels: sources.Labels = None, positive: sources.Positive = None, ignore: sources.Ignore = None,
    index_base: sources.IndexBase = Base.auto, label_base: sources.LabelBase = Base.auto,
    data_home: sources.DataHome = None, json: sources.Json = False,
) -> None:  # fmt: skip
    """Compute metrics of a model on labelled DATA.

    The columns of DATA are matched by name with those of the model.

    Examples:

    `rbrl evaluate yeast.rbrl test.arff --metric ranking_loss --metric f1_macro`

    `rbrl evaluate tags.rbrl test.svm --metric precision_at_3 --metric psp_at_3 --by-frequency --train train.svm`
    """
    import numpy as np
    import pandas as pd

    from rbrl.experiments.tables import Table, heading, number, show_tables, word
    from rbrl.metrics import CONVENTIONS, PAPER_METRICS, frequency_report
    from rbrl.selection.grid_search import Predictions

    _check_frequency_options(by_frequency, top, train)
    options = sources.parse_file_options(labels, ignore, positive, index_base, label_base)
    fitted = None
    Y_train = None
    if train is not None:
        fitted = _load_model(model)
        Y_train = sources.Source(train, data_home, options).load(fitted).Y
    metrics = _find_metrics(metric, Y_train) if metric else list(PAPER_METRICS)
    fitted = fitted or _load_model(model)
    source = sources.Source(data, data_home, options)
    dataset = source.load(fitted)
    source.check_features(dataset.X, dataset.columns.feature_names, may_ignore=False)
    predicted = (_predict_rows(fitted, dataset.X, Answer.labels) > 0).astype(np.int8)
    needed = {str(one.needs) for one in metrics} | ({"scores"} if by_frequency else set())
    needs = needed & {Answer.scores, Answer.probabilities}
    others: dict[str, Any] = {kind: _predict_rows(fitted, dataset.X, Answer(kind)) for kind in needs}
    values = Predictions(predicted, **others).evaluate(dataset.Y, metrics, CONVENTIONS[0])
    more = []
    if by_frequency:
        k = top or 5
        more = [_tabulate_parts(frequency_report(dataset.Y, others[Answer.scores], Y_train, k), k)]
    if json:
        sources.show_json(values | {table.name: table.records() for table in more})
        return
    rows = tuple((word(heading(one)), number(values[one.name], 4)) for one in metrics)
    title = f"{dataset.name}: {dataset.n_samples} samples, {dataset.n_labels} labels"
    show_tables(Table("evaluation", title, ("Metric", "Value"), rows, pd.DataFrame([values])), *more)


def _check_frequency_options(by_frequency: bool, top: int | None, train: str | None) -> None:
    """Refuse options of the report of frequent and rare labels that lack another option."""
    if by_frequency and train is None:
        raise ValueError(
            "--by-frequency needs the frequencies of the labels: name the training data with --train DATA."
        )
    if top is not None and not by_frequency:
        raise ValueError(
            f"--top goes with --by-frequency. Got --top {top}; for P@{top}, use --metric precision_at_{top}."
        )


def _find_metrics(names: list[str], Y_train: Any) -> "list[Metric]":
    """Return the metrics with these names, with the propensities of the training labels."""
    from rbrl.metrics import get_metric, propensities

    weights = None if Y_train is None else propensities(Y_train)
    try:
        return [get_metric(name, weights) for name in names]
    except ValueError as error:
        text = str(error).replace("A metric", "--metric", 1)
        remedy = ": name the training data with --train DATA."
        raise ValueError(re.sub(r"\. Got propensities=None.*", remedy, text)) from None


def _tabulate_parts(parts: "pd.DataFrame", k: int) -> "Table":
    """Return the table of `rbrl.metrics.frequency_report`."""
    from rbrl.experiments.tables import Table, number, word

    columns = ("Part", "Labels", "Lowest", "Highest", "Relevant", f"P@{k} ↑", f"Found at {k} ↑")
    digits = (0, 0, 0, 0, 4, 4)
    rows = tuple(
        (word(part), *(number(value, n) for value, n in zip(values, digits)))
        for part, values in zip(parts.index, parts.to_numpy())
    )
    note = f"Frequencies are those of the training data. The values of P@{k} of the parts add up to P@{k}."
    frame = parts.rename(columns=lambda name: name.replace("_at_k", f"_at_{k}"))
    frame = frame.rename_axis("part").reset_index()
    return Table("by_frequency", "Frequent and rare labels", columns, rows, frame, n_foot=1, note=note)
