"""`rbrl fit`: learn a model and keep it."""

import time
from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.options import (
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
from rbrl.cli.output import say, show_json


def run(
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
    from rbrl.cli.options import parse_labels
    from rbrl.datasets import open_shards
    from rbrl.estimators.objective import ObjectiveClassifier

    if not isinstance(model, ObjectiveClassifier):
        raise ValueError(
            f"Shards train rbrl, brl and cpnl, without --standardise. Got {model}; load {data} as one file for others."
        )
    model.fit(open_shards(data, parse_labels(labels), **bases))
    return model.n_samples_seen_, model.targets_.n_columns


def make_model(method, params, standardise):
    """A classifier of the registry with parameters, after a scaler if asked for."""
    from rbrl.estimators import REGISTRY

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
