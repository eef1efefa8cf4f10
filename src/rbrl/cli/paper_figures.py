"""The paper's five figures, each drawn and saved."""

from pathlib import Path

from rbrl.report import figures
from rbrl.report.comparison import compare, rank_table
from rbrl.report.paper_tables import published_results


def average_ranks(results, folder, dataset, data_home, tell):
    """Figure 1: bars of overall average ranks; minimum ranks of ties, as the paper has them."""
    ranks = rank_table(results or published_results(), ties="minimum").loc["Overall"]
    return figures.save_figure(figures.draw_average_ranks(ranks), Path(folder, "figure1"))


def critical_differences(results, folder, dataset, data_home, tell):
    """Figure 2: a critical-difference diagram for each metric."""
    results, files = results or published_results(), []
    for metric in results.metrics:
        figure = figures.draw_critical_difference(compare(results, metric))
        files += figures.save_figure(figure, Path(folder, f"figure2-{metric.name}"))
    return files


def convergence(results, folder, dataset, data_home, tell):
    """Figure 3: convergence on emotions (kernel) and arts (linear), or on another data set."""
    from rbrl.report import studies

    problems = {}
    for name in [dataset] if dataset else ["emotions", "arts"]:
        data = _load(name, data_home)
        model = studies.model_for(data, ridge=1.0, ranking=0.1, nuclear=1.0)
        train, _ = studies.parts(data)
        problems[f"{data.name}, {'linear' if model.kernel == 'linear' else 'RBF kernel'}"] = (model, *train)
        tell(f"{data.name}: {train.X.shape[0]} rows")
    curves = studies.convergence(problems)
    return _save(figures.draw_convergence(curves), curves, Path(folder, "figure3"))


def gamma(results, folder, dataset, data_home, tell):
    """Figure 4: sensitivity to the kernel width on image, or on another data set, of every kernel method we have."""
    from rbrl.estimators import REGISTRY
    from rbrl.report import studies

    data = _load(dataset or "image", data_home)
    models = {"RBRL": studies.model_for(data, kernel="rbf", ridge=0.1, ranking=0.1, nuclear=0.1, tol=1e-3)}
    if "rank-svm" in REGISTRY:
        models["Rank-SVM"] = REGISTRY["rank-svm"](kernel="rbf")
    study = studies.gamma_sensitivity(models, data)
    return _save(
        figures.draw_gamma(study, f"Sensitivity to the kernel width, {data.name}"), study, Path(folder, "figure4")
    )


def pairs(results, folder, dataset, data_home, tell):
    """Figure 5: sensitivity to pairs of lambdas on arts, or on another data set; 147 fits of the linear model."""
    from rbrl.report import studies

    data = _load(dataset or "arts", data_home)
    model = studies.model_for(data, kernel="linear", ridge=0.1, ranking=0.1, nuclear=0.1, tol=1e-3)

    def progress(done, total):
        if done % 20 == 0 or done == total:
            tell(f"{done} of {total} fits")

    study = studies.pair_sensitivity(model, data, progress=progress)
    return _save(
        figures.draw_pairs(study, f"Sensitivity to pairs of penalties, {data.name}"), study, Path(folder, "figure5")
    )


def _load(name, data_home):
    from rbrl.cli.inputs import load_data

    return load_data(name, None, data_home)


def _save(figure, frame, path):
    """The figure, and the figures in it."""
    files = figures.save_figure(figure, path)
    frame.to_csv(path.with_suffix(".csv"), index=False)
    return [*files, path.with_suffix(".csv")]


FIGURES = {1: average_ranks, 2: critical_differences, 3: convergence, 4: gamma, 5: pairs}
