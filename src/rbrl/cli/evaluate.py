"""`rbrl evaluate`: how good is a model on labelled data?"""

from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.options import Base, Data, DataHome, IndexBase, Json, LabelBase, Labels, parse_bases
from rbrl.cli.output import show, show_json


def run(
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
    from rbrl.datasets.blocks import row_blocks
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
