"""Figures of studies: convergence (Figure 3), sensitivity (Figures 4 and 5), labels and weights."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import sparse

from rbrl._common.typing import ArrayLike, MatrixLike
from rbrl.metrics import Metric, get_metric
from rbrl.report.figures import style
from rbrl.report.results import heading

FLOOR = 1e-12  # of a gap that is drawn: a logarithm needs something above zero
TOLERANCE = 1e-4  # the default of the classifiers, marked by a line


def draw_convergence(curves: pd.DataFrame) -> Figure:
    """Draw the objective against evaluations, and the certified gap against these and time; a row per problem.

    Parameters
    ----------
    curves : DataFrame
        Columns problem, solver, evaluations, seconds, objective and gap: an upper bound on the relative distance of
        the objective from its optimum.

    Examples
    --------
    >>> curves = pd.DataFrame({"problem": "yeast", "solver": "apg", "evaluations": [1, 2, 4], "seconds": [0.1, 0.2, 0.4],
    ...                        "objective": [9.0, 5.0, 4.0], "gap": [1.2, 0.2, 0.01]})
    >>> len(draw_convergence(curves).axes)
    3
    """
    problems = list(dict.fromkeys(curves.problem))
    with style.panels(len(problems), 3, 9.2, 2.5 * len(problems) + 0.3) as (figure, grid):
        for row, problem in zip(grid, problems):
            _draw_problem(row, curves[curves.problem == problem])
            row[0].set_title(problem)
        for axes, title in zip(grid[-1], ("evaluations", "evaluations", "seconds of the processor")):
            axes.set_xlabel(title)
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=len(style.DASHES))
    return figure


def _draw_problem(row: Sequence[Axes], curves: pd.DataFrame) -> None:
    left, middle, right = row
    for i, (solver, curve) in enumerate(curves.groupby("solver", sort=False)):
        look, gap = style.line_look(i) | {"label": solver}, curve.gap.clip(lower=FLOOR)
        left.plot(curve.evaluations, curve.objective, **look)
        middle.plot(curve.evaluations, gap, **look)
        right.plot(curve.seconds, gap, **look)
    left.set(xscale="log", ylabel="objective")
    middle.set_ylabel("certified relative gap")
    for axes in (middle, right):
        axes.set(xscale="log", yscale="log")
        axes.axhline(TOLERANCE, color=style.MUTED, lw=0.9, ls=":")
    style.plain_powers(*(axes.xaxis for axes in row), middle.yaxis, right.yaxis)


def draw_gamma(study: pd.DataFrame, title: str = "") -> Figure:
    """Draw each metric against the kernel width, one line per method; the paper's default is marked.

    Parameters
    ----------
    study : DataFrame
        Columns method, factor (gamma times the number of features; 1 is the default), metric, value.
    title : str
    """
    metrics = list(dict.fromkeys(study.metric))
    n_rows = -(-len(metrics) // 3)
    with style.panels(n_rows, 3, 7.6, 2.1 * n_rows + 0.4, title) as (figure, grid):
        for place, (axes, name) in enumerate(zip(grid.flat, metrics), 1):
            _gamma_panel(axes, study[study.metric == name], get_metric(name))
            if place > len(metrics) - 3:
                axes.set_xlabel("γ × number of features")
        for axes in grid.flat[len(metrics) :]:
            axes.remove()
        if study.method.nunique() > 1:
            figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _gamma_panel(axes: Axes, part: pd.DataFrame, metric: Metric) -> None:
    axes.axvline(1, color=style.MUTED, lw=0.9, ls=":")
    for i, (method, line) in enumerate(part.groupby("method", sort=False)):
        look = style.line_look(i) | {"marker": style.MARKERS[i % len(style.MARKERS)], "ms": 4}
        axes.plot(line.factor, line.value, **look, label=method)
    axes.set(xscale="log", title=heading(metric))
    style.plain_powers(axes.xaxis)
    axes.tick_params(axis="x", labelsize=7)


SYMBOLS = {"ridge": "λ₁ ridge", "ranking": "λ₂ ranking", "nuclear": "λ₃ nuclear"}


def draw_pairs(study: pd.DataFrame, title: str = "") -> Figure:
    """Draw a heat map of each metric for each pair of lambdas; the best value of each map has a ring.

    Parameters
    ----------
    study : DataFrame
        Columns fixed, at (the fixed one's value), ridge, ranking, nuclear, metric, value.
    title : str
    """
    metrics, fixed = list(dict.fromkeys(study.metric)), list(dict.fromkeys(study.fixed))
    size = 1.75 * len(metrics) + 0.9, 1.85 * len(fixed) + 0.5
    with style.panels(len(fixed), len(metrics), *size, title) as (figure, grid):
        for row, name in zip(grid, fixed):
            for axes, metric in zip(row, metrics):
                part = study[(study.fixed == name) & (study.metric == metric)]
                _pair_panel(axes, part, get_metric(metric), name, axes is row[0])
        for axes, metric in zip(grid[0], metrics):
            axes.set_title(heading(get_metric(metric)), fontsize=8.5)
    return figure


def _pair_panel(axes: Axes, part: pd.DataFrame, metric: Metric, fixed: str, first: bool) -> None:
    y_name, x_name = (name for name in SYMBOLS if name != fixed)
    values = part.pivot(index=y_name, columns=x_name, values="value")
    # Light is good in every map, whichever way the metric points.
    colours = style.HEAT if metric.greater_is_better else f"{style.HEAT}_r"
    axes.imshow(values, cmap=colours, origin="lower", aspect="auto")
    flat = values.to_numpy()
    best = np.unravel_index((flat if metric.greater_is_better else -flat).argmax(), flat.shape)
    # A dark ring with a light line in it shows on every colour.
    for colour, width in ((style.INK, 1.6), ("white", 0.6)):
        axes.plot(best[1], best[0], "o", ms=8, mfc="none", mec=colour, mew=width)
    axes.grid(visible=False)
    axes.set_xticks(range(values.shape[1]), _powers(values.columns), fontsize=6.5)
    axes.set_yticks(range(values.shape[0]), _powers(values.index), fontsize=6.5)
    axes.set_xlabel(f"{SYMBOLS[x_name]}   ({flat.min():.3f} to {flat.max():.3f})", fontsize=7.5, labelpad=1)
    if first:
        held = f"{SYMBOLS[fixed].split()[0]} = {part['at'].iloc[0]:g}"
        axes.set_ylabel(f"{held}\n{SYMBOLS[y_name]}", fontsize=7.5, labelpad=1)


def _powers(values: Iterable[float]) -> list[str]:
    """Every other value as a power of ten: more would touch."""
    texts = [f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") for value in values]
    return [text if i % 2 == 0 else "" for i, text in enumerate(texts)]


MANY_LABELS = 40
SMALLEST_SHARE = 1e-5  # of rows; a label that no row has is drawn here


def draw_cooccurrence(
    Y: MatrixLike, label_names: Sequence[str], title: str = "How often labels come together"
) -> Figure:
    """Draw the share of rows with the label of the line that also have the label of the column.

    Parameters
    ----------
    Y : array or sparse array of 0/1, shape (n_samples, n_labels)
    label_names : sequence of str
    title : str

    Examples
    --------
    >>> figure = draw_cooccurrence([[1, 1], [1, 0], [1, 1]], ["sea", "sand"])
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['sea', 'sand']
    """
    Y = sparse.csr_array(Y).astype(float)
    order = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")[:MANY_LABELS]
    together = np.asarray((Y.T @ Y).toarray())[np.ix_(order, order)]
    share = together / np.maximum(together.diagonal()[:, None], 1)
    np.fill_diagonal(share, np.nan)
    names = [style.short(label_names[i], 16) for i in order]
    size = 1.6 + 0.17 * len(order)
    with style.drawing(size + 0.8, size, title) as (figure, axes):
        image = axes.imshow(share, cmap=style.HEAT, vmin=0)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.grid(visible=False)
        figure.colorbar(image, ax=axes, shrink=0.7, label="share of the line's rows")
    return figure


def draw_singular_values(weights: ArrayLike, title: str = "Singular values of the weights") -> Figure:
    """Draw the singular values of learned weights, relative to the largest: a low rank shows as a cliff.

    Examples
    --------
    >>> figure = draw_singular_values([[3.0, 0.0], [0.0, 1.5]])
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [1.0, 0.5]
    """
    values = np.linalg.svd(np.asarray(weights, dtype=float), compute_uv=False)
    relative = np.maximum(values / max(values.max(initial=0.0), np.finfo(float).tiny), 1e-16)
    with style.drawing(4.8, 2.8, title) as (figure, axes):
        axes.plot(np.arange(1, len(relative) + 1), relative, "o-", color=style.ACCENT, ms=4)
        axes.set(yscale="log", xlabel="index", ylabel="singular value / largest")
        style.plain_powers(axes.yaxis)
    return figure


def draw_label_quality(
    frequency: ArrayLike, quality: ArrayLike, label_names: Sequence[str], measure: str = "F1"
) -> Figure:
    """Draw the quality of each label against its share of rows; the three worst are named.

    Parameters
    ----------
    frequency, quality : array, shape (n_labels,)
    label_names : sequence of str
    measure : str
        What `quality` is.

    Examples
    --------
    >>> figure = draw_label_quality([0.5, 0.1], [0.8, 0.3], ["sea", "sand"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['sand', 'sea']
    """
    share, quality = np.maximum(np.asarray(frequency, dtype=float), SMALLEST_SHARE), np.asarray(quality, dtype=float)
    look: dict[str, Any] = {"xytext": (5, 3), "textcoords": "offset points", "fontsize": 7.5, "color": style.MUTED}
    with style.drawing(4.8, 3.2, f"{measure} of each label") as (figure, axes):
        axes.scatter(share, quality, s=22, color=style.ACCENT)
        axes.set(xscale="log", xlabel="share of rows with the label", ylabel=measure)
        style.plain_powers(axes.xaxis)
        for i in np.argsort(quality, kind="stable")[:3]:
            axes.annotate(style.short(label_names[i], 18), (share[i], quality[i]), **look)
    return figure
