"""The paper's five figures, each drawn and saved; the last three are computed where they are not recorded."""

import json
from pathlib import Path

from rbrl.report import figures
from rbrl.report.comparison import compare, rank_table
from reproduction.paper import as_published, key, published_results
from reproduction.recorded import Recorded

CLAIMED = {"emotions": 500, "arts": 50}
DEFAULTS = {"rbrl": {"ridge": 1.0, "ranking": 0.1, "nuclear": 1.0}, "rank-svm": {"C": 1.0}}


class NotRecorded(ValueError):
    """A study needs parameters that no recorded result has."""


def average_ranks(request):
    """Figure 1: bars of overall average ranks; minimum ranks of ties, as the paper has them."""
    ranks = rank_table(request.results(), ties="minimum").loc["Overall"]
    return figures.save_figure(figures.draw_average_ranks(ranks), Path(request.output, "figure1"))


def critical_differences(request):
    """Figure 2: a critical-difference diagram for each metric."""
    results, files = request.results(), []
    for metric in results.metrics:
        figure = figures.draw_critical_difference(compare(results, metric))
        files += figures.save_figure(figure, Path(request.output, f"figure2-{metric.name}"))
    return files


def convergence(request):
    """Figure 3: convergence on emotions (kernel) and arts (linear), or on other data sets."""
    curves = _recorded(request, "figure3", lambda: convergence_study(request)["figure3"])
    return _save(figures.draw_convergence(curves), curves, Path(request.output, "figure3"))


def gamma(request):
    """Figure 4: sensitivity to the kernel width on image, or on another data set."""
    study = _recorded(request, "figure4", lambda: gamma_study(request)["figure4"])
    title = f"Sensitivity to the kernel width, {(request.datasets or ['image'])[0]}"
    return _save(figures.draw_gamma(study, title), study, Path(request.output, "figure4"))


def pairs(request):
    """Figure 5: sensitivity to pairs of lambdas on arts, or on another data set; 147 fits of the linear model."""
    study = _recorded(request, "figure5", lambda: pair_study(request)["figure5"])
    title = f"Sensitivity to pairs of penalties, {(request.datasets or ['arts'])[0]}"
    return _save(figures.draw_pairs(study, title), study, Path(request.output, "figure5"))


FIGURES = {1: average_ranks, 2: critical_differences, 3: convergence, 4: gamma, 5: pairs}


def convergence_study(request):
    """Curves of three solvers at the parameters chosen on split 0, and what they say of the paper's iterations."""
    from reproduction import studies

    problems, claimed = {}, {}
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


def gamma_study(request):
    """Metrics on the test part of split 0 over kernel widths, of RBRL and Rank-SVM."""
    from rbrl.registry import REGISTRY
    from reproduction import studies

    data, (rbrl, rank_svm) = _problem(request, (request.datasets or ["image"])[0], "rbrl", "rank-svm")
    kernel = {"kernel": "rbf"}
    models = {
        "RBRL": studies.model_for(data, **rbrl | kernel),
        "Rank-SVM": REGISTRY["rank-svm"](**rank_svm | kernel),
    }
    request.tell(f"{data.name}: {len(studies.FACTORS)} kernel widths")
    return {"figure4": studies.gamma_sensitivity(models, data)}


def pair_study(request):
    """Metrics on the test part of split 0 over each pair of penalties, the third as chosen there."""
    from reproduction import studies

    data, (chosen,) = _problem(request, (request.datasets or ["arts"])[0], "rbrl")
    model = studies.model_for(data, **chosen)

    def progress(done, total):
        if done % 20 == 0 or done == total:
            request.tell(f"{data.name}: {done} of {total} fits")

    return {"figure5": studies.pair_sensitivity(model, data, progress=progress)}


def solver_study(request):
    """Our solver and the authors' algorithm on split 0 of each data set, at the parameters chosen there."""
    from reproduction.studies import against_authors

    names = request.datasets or list(dict.fromkeys(request.source.rows("paper").dataset))
    chosen = {name: _chosen(request, name, "rbrl") for name in names}
    data = {name: _load(name, request.data_home) for name in names}
    return against_authors(data, chosen, request.tell)


STUDIES = {
    "figure3": convergence_study,
    "figure4": gamma_study,
    "figure5": pair_study,
    "solver": lambda request: {"solver": solver_study(request)},
}


def _problem(request, name, *methods):
    """A data set, and the parameters of some methods on it.

    Those of a known set are looked up first: nothing is downloaded for a study that is then left out.
    """
    from rbrl.datasets import CARDS

    chosen = [_chosen(request, name, method) for method in methods if name in CARDS]
    data = _load(name, request.data_home)
    return data, chosen or [_chosen(request, data.name, method) for method in methods]


def _chosen(request, dataset, method):
    """Parameters recorded for split 0; of data sets outside the plan the figure's own."""
    from rbrl.datasets import CARDS

    if dataset not in CARDS:
        request.tell(f"{dataset}: no recorded parameters, so {DEFAULTS[method]}")
        return dict(DEFAULTS[method])
    rows = request.source.rows("paper")
    found = rows[(rows.dataset == dataset) & (rows.method.map(key) == key(method)) & (rows.split == 0)]
    if found.empty:
        raise NotRecorded(
            f"There is no recorded result of {method} on split 0 of {dataset}, whose parameters are needed."
        )
    params = json.loads(found.params.iloc[0])
    request.tell(f"{dataset}: {method} with {params}")
    return params


def _recorded(request, name, compute):
    """The recorded frame, unless other data were asked for or there is none."""
    if request.datasets or request.store or not request.recorded.has_table(name):
        return compute()
    request.tell(f"from {request.recorded.folder / name}.csv")
    return request.recorded.table(name)


def _load(name, data_home):
    from rbrl.cli.inputs import load_data

    return load_data(name, None, data_home)


def _save(figure, frame, path):
    """The figure, and the figures in it."""
    files = figures.save_figure(figure, path)
    frame.to_csv(path.with_suffix(".csv"), index=False)
    return [*files, path.with_suffix(".csv")]


def draw_all(recorded: Recorded, folder: Path) -> dict[str, list[dict[str, str]]]:
    """Draw every figure that there are results for; return {part: [{file, alt}]}."""
    drawn: dict[str, list[dict[str, str]]] = {"ranks": [], "differences": [], "convergence": [], "sensitivity": []}

    def keep(part, figure, name, alt):
        figures.save_figure(figure, folder / name, formats=("svg",))
        drawn[part].append({"file": f"{name}.svg", "alt": alt})

    for who, results in (("ours", as_published(recorded.rows("paper"))), ("paper", published_results())):
        owner = "our results" if who == "ours" else "the paper's results"
        ranks = rank_table(results, ties="minimum").loc["Overall"].dropna()
        if len(ranks):
            title = f"Average rank over all metrics, {owner}"
            keep("ranks", figures.draw_average_ranks(ranks, title), f"figure1-{who}", title)
        for metric in results.metrics:
            comparison = compare(results, metric)
            if comparison.decides_pairs:
                alt = f"Critical-difference diagram of {metric.title.lower()}, {owner}"
                keep("differences", figures.draw_critical_difference(comparison), f"figure2-{metric.name}-{who}", alt)
    studies = (
        ("figure3", "convergence", figures.draw_convergence, "Convergence of three solvers on emotions and arts"),
        ("figure4", "sensitivity", figures.draw_gamma, "Sensitivity to the kernel width on image"),
        ("figure5", "sensitivity", figures.draw_pairs, "Sensitivity to pairs of penalties on arts"),
    )
    for name, part, draw, alt in studies:
        if recorded.has_table(name):
            keep(part, draw(recorded.table(name)), name, alt)
    return drawn
