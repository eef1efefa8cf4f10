"""The paper's five figures, each drawn and saved; the last three are computed where they are not recorded."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from rbrl import RankSVM, RBRLClassifier
from rbrl.datasets import CARDS, Dataset, load, load_file
from rbrl.experiments import Results, compare, rank_table
from rbrl.experiments.figures import draw_average_ranks, draw_critical_difference, save_figure
from rbrl.metrics import get_metric
from studies.reproduction import studies
from studies.reproduction.drawings import draw_convergence, draw_gamma, draw_leads, draw_pairs
from studies.reproduction.paper import OVERALL, as_published, by_decision_values, key, published_results
from studies.reproduction.recorded import Recorded, table_file
from studies.reproduction.request import Request
from studies.reproduction.verdicts import RANKING, ROPE, gains

Frames: TypeAlias = dict[str, pd.DataFrame]
Params: TypeAlias = dict[str, Any]

# Iterations within which the paper's algorithm converges, according to the paper.
CLAIMED = {"emotions": 500, "arts": 50}
# The methods that rank by votes as published, and the best of the others.
LEADS_OVER = ("BR", "RAKEL", "CLR", "CPNL")
# Parameters on data sets that no plan has.
DEFAULTS = {"rbrl": {"ridge": 1.0, "ranking": 0.1, "nuclear": 1.0}, "rank-svm": {"C": 1.0}}


class NotRecorded(ValueError):
    """A study needs parameters that no recorded result has."""


def average_ranks(request: Request) -> list[Path]:
    """Figure 1: bars of overall average ranks; minimum ranks of ties, as the paper has them."""
    ranks = rank_table(request.results(), ties="minimum").loc[OVERALL]
    return save_figure(draw_average_ranks(ranks), Path(request.output, "figure1"))


def critical_differences(request: Request) -> list[Path]:
    """Figure 2: a critical-difference diagram for each metric."""
    results, files = request.results(), []
    for metric in results.metrics:
        figure = draw_critical_difference(compare(results, metric))
        files += save_figure(figure, Path(request.output, f"figure2-{metric.name}"))
    return files


def convergence(request: Request) -> list[Path]:
    """Figure 3: convergence on emotions (kernel) and arts (linear), or on other data sets."""
    curves = study(request, "figure3")
    return _save(draw_convergence(curves), curves, Path(request.output, "figure3"))


def gamma(request: Request) -> list[Path]:
    """Figure 4: sensitivity to the kernel width on image, or on another data set."""
    values = study(request, "figure4")
    title = f"Sensitivity to the kernel width, {(request.datasets or ['image'])[0]}"
    return _save(draw_gamma(values, title), values, Path(request.output, "figure4"))


def pairs(request: Request) -> list[Path]:
    """Figure 5: sensitivity to pairs of lambdas on arts, or on another data set; 147 fits of the linear model."""
    values = study(request, "figure5")
    title = f"Sensitivity to pairs of penalties, {(request.datasets or ['arts'])[0]}"
    return _save(draw_pairs(values, title), values, Path(request.output, "figure5"))


FIGURES = {1: average_ranks, 2: critical_differences, 3: convergence, 4: gamma, 5: pairs}


def convergence_study(request: Request) -> Frames:
    """Compute curves of three solvers at the parameters chosen on split 0, and their gaps at the paper's iterations."""
    problems: dict[str, tuple[RBRLClassifier, Any, Any]] = {}
    claimed: dict[str, int] = {}
    for name in request.datasets or list(CLAIMED):
        data, (chosen,) = _problem(request, name, "rbrl")
        model = studies.model_for(data, **chosen)
        train, _ = studies.parts(data)
        problem = f"{data.name}, {'linear' if model.kernel == 'linear' else 'RBF kernel'}"
        problems[problem] = (model, *train)
        claimed |= {problem: CLAIMED[data.name]} if data.name in CLAIMED else {}
        request.tell(f"{data.name}: convergence on {train.X.shape[0]} rows")
    curves = studies.convergence(problems)
    return {"figure3": studies.thinned(curves), "figure3-claims": studies.convergence_claims(curves, claimed)}


def gamma_study(request: Request) -> Frames:
    """Compute metrics on the test part of split 0 over kernel widths, of RBRL and Rank-SVM."""
    data, (rbrl, rank_svm) = _problem(request, (request.datasets or ["image"])[0], "rbrl", "rank-svm")
    kernel = {"kernel": "rbf"}
    models = {"RBRL": studies.model_for(data, **rbrl | kernel), "Rank-SVM": RankSVM(**rank_svm | kernel)}
    request.tell(f"{data.name}: {len(studies.FACTORS)} kernel widths")
    return {"figure4": studies.gamma_sensitivity(models, data)}


def pair_study(request: Request) -> Frames:
    """Compute metrics on the test part of split 0 over each pair of penalties, the third as chosen there."""
    data, (chosen,) = _problem(request, (request.datasets or ["arts"])[0], "rbrl")
    model = studies.model_for(data, **chosen)

    def progress(done: int, total: int) -> None:
        if done % 20 == 0 or done == total:
            request.tell(f"{data.name}: {done} of {total} fits")

    return {"figure5": studies.pair_sensitivity(model, data, progress=progress)}


def solver_study(request: Request) -> Frames:
    """Run our solver and the authors' algorithm on split 0 of each data set, at the parameters chosen there."""
    names = request.datasets or list(dict.fromkeys(request.source.rows("paper").dataset))
    chosen = {name: _chosen(request, name, "rbrl") for name in names}
    data = {name: _load(name, request.data_home) for name in names}
    return {"solver": studies.against_authors(data, chosen, request.tell)}


STUDIES = {"figure3": convergence_study, "figure4": gamma_study, "figure5": pair_study, "solver": solver_study}


def study(request: Request, name: str) -> pd.DataFrame:
    """Return the recorded frame of a study, or compute it for other data or if none is recorded."""
    if request.datasets or request.store or not request.recorded.has_table(name):
        return STUDIES[name](request)[name]
    request.tell(f"from {table_file(request.recorded.folder, name)}")
    return request.recorded.table(name)


def _problem(request: Request, name: str, *methods: str) -> tuple[Dataset, list[Params]]:
    """Return a data set, and the parameters of some methods on it.

    Parameters of a known data set are looked up first: nothing is downloaded for a study that is then left out.
    """
    chosen = [_chosen(request, name, method) for method in methods if name in CARDS]
    data = _load(name, request.data_home)
    return data, chosen or [_chosen(request, data.name, method) for method in methods]


def _chosen(request: Request, dataset: str, method: str) -> Params:
    """Return the parameters recorded for split 0; for data sets outside the plan those of the figure."""
    if dataset not in CARDS:
        request.tell(f"{dataset}: no recorded parameters, so {DEFAULTS[method]}")
        return dict(DEFAULTS[method])
    rows = request.source.rows("paper")
    found = rows[(rows.dataset == dataset) & (rows.method.map(key) == key(method)) & (rows.split == 0)]
    if found.empty:
        where = f"{method} on split 0 of {dataset}"
        raise NotRecorded(f"There is no recorded result of {where}, whose parameters are needed.")
    params: Params = json.loads(found.params.iloc[0])
    request.tell(f"{dataset}: {method} with {params}")
    return params


def _load(name: str, data_home: Path | None) -> Dataset:
    """Load a data set of the catalogue, or a file; a name that looks like a path gives the error of a missing file."""
    path = Path(name)
    if path.is_file() or (name not in CARDS and (path.suffix or len(path.parts) > 1)):
        return load_file(path)
    return load(name, data_home)


def _save(figure: Any, frame: pd.DataFrame, path: Path) -> list[Path]:
    """Save a drawing, and its data as CSV."""
    files = save_figure(figure, path)
    frame.to_csv(path.with_suffix(".csv"), index=False)
    return [*files, path.with_suffix(".csv")]


def lead_table(hard: Results, soft: Results) -> pd.DataFrame:
    """Return RBRL's lead in rankings over the methods that vote and over CPNL, by data set, under two scoring rules."""
    records = []
    for rival, name in product((rival for rival in LEADS_OVER if rival in hard.methods), RANKING):
        metric = get_metric(name)
        both = pd.DataFrame({"hard": gains(hard, metric, rival), "soft": gains(soft, metric, rival)}).dropna()
        records += [(name, rival, dataset, *pair) for dataset, *pair in both.itertuples()]
    return pd.DataFrame(records, columns=["metric", "rival", "dataset", "hard", "soft"])


def draw_all(recorded: Recorded, folder: Path) -> dict[str, list[dict[str, str]]]:
    """Draw every figure that there are results for; return {part: [{file, alt}]}."""
    drawn: dict[str, list[dict[str, str]]] = {
        "leads": [],
        "ranks": [],
        "differences": [],
        "convergence": [],
        "sensitivity": [],
    }

    def keep(part: str, figure: Any, name: str, alt: str) -> None:
        save_figure(figure, folder / name, formats=("svg",))
        drawn[part].append({"file": f"{name}.svg", "alt": alt})

    for who, results in (("ours", as_published(recorded.rows("paper"))), ("paper", published_results())):
        owner = "our results" if who == "ours" else "the paper's results"
        ranks = rank_table(results, ties="minimum").loc[OVERALL].dropna()
        if len(ranks):
            title = f"Average rank over all metrics, {owner}"
            keep("ranks", draw_average_ranks(ranks, title), f"figure1-{who}", title)
        for metric in results.metrics:
            comparison = compare(results, metric)
            if comparison.decides_pairs:
                alt = f"Critical-difference diagram of {metric.title.lower()}, {owner}"
                keep("differences", draw_critical_difference(comparison), f"figure2-{metric.name}-{who}", alt)
    if recorded.has("paper-fair"):
        published, soft = recorded.rows("paper"), by_decision_values(recorded.rows("paper-fair"))
        leads = lead_table(as_published(published), as_published(soft))
        keep("leads", draw_leads(leads, ROPE), "leads", "RBRL's lead in rankings")
    of_studies: tuple[tuple[str, str, Callable[[pd.DataFrame], Any], str], ...] = (
        ("figure3", "convergence", draw_convergence, "Convergence of three solvers on emotions and arts"),
        ("figure4", "sensitivity", draw_gamma, "Sensitivity to the kernel width on image"),
        ("figure5", "sensitivity", draw_pairs, "Sensitivity to pairs of penalties on arts"),
    )
    for name, part, draw, alt in of_studies:
        if recorded.has_table(name):
            keep(part, draw(recorded.table(name)), name, alt)
    return drawn
