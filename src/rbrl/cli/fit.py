"""`rbrl fit`: learn a model and keep it."""

import time
from pathlib import Path
from typing import Annotated

import typer

from rbrl.cli.options import Data, DataHome, Json, Labels, Method, Quiet, parse_settings
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
    data_home: DataHome = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a model from DATA and write it to a file that is safe to load.

    Examples:

    `rbrl fit yeast -o yeast.rbrl`

    `rbrl fit my.csv --labels sea,sand -o my.rbrl --set kernel=rbf --set ridge=0.1 --standardise`
    """
    from rbrl.cli.inputs import load_data

    model = make_model(method, parse_settings(settings), standardise)
    dataset = load_data(data, labels, data_home)
    _check_folder(output)
    from rbrl.persistence import save

    started = time.perf_counter()
    _scaled(model, dataset.X).fit(dataset.X, dataset.Y)
    seconds = time.perf_counter() - started
    model.label_names_ = list(dataset.label_names)
    save(model, output)
    last = model[-1] if hasattr(model, "steps") else model
    facts = {"model": str(output), "method": method, "n_samples": dataset.n_samples, "n_labels": dataset.n_labels}
    facts |= {"seconds": seconds, "gap": getattr(last, "gap_", None), "rank": getattr(last, "rank_", None)}
    if json:
        show_json(facts)
    else:
        proved = "" if facts["gap"] is None else f", certified within {100 * facts['gap']:.2g} % of the optimum"
        say(f"{output}: {method} on {dataset.n_samples} samples, {seconds:.1f} s{proved}", quiet)


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
