"""The paper's studies of its own method: convergence, and sensitivity to hyper-parameters."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rbrl import RBRLClassifier, evaluate
from rbrl.datasets import Dataset, Part
from rbrl.exceptions import ConvergenceWarning
from rbrl.experiments.tables import Cell, Table, count, heading, number, seconds, word
from rbrl.metrics import PAPER_METRICS, Metric, get_metric, scores_of
from rbrl.solvers import APG, QuasiNewton, SolverResult

# The names under which the figures show the solvers: the paper's first, ours last.
SOLVERS: dict[str, APG | QuasiNewton] = {
    "APG (paper)": APG(lipschitz="paper"),
    "APG with restarts": APG(restart=True),
    "quasi-Newton (default)": QuasiNewton(),
}
AUTHORS = APG(lipschitz="paper", stop="paper")
# The authors' program stops where the objective changed by at most this share of itself.
STILL = 1e-6
# Kernel widths as multiples of the default, and the penalties of the paper's figure.
FACTORS = tuple(10.0**i for i in range(-3, 4))
LAMBDAS = tuple(10.0**i for i in range(-4, 3))
# Rows and iterations of a first solve that loads compiled code.
FEW = 50
# Fits are measured once more, up to three times, while they took fewer seconds than this together.
LONG_SECONDS = 2.0
PENALTIES = ("ridge", "ranking", "nuclear")


def model_for(dataset: Dataset, **params: Any) -> RBRLClassifier:
    """Return RBRL as the paper uses it on a data set: with an RBF kernel or linear."""
    kernel = "rbf" if dataset.card is not None and dataset.card.model == "kernel" else "linear"
    weights = {"ridge": 1.0, "ranking": 0.1, "nuclear": 0.1, "intercept_ridge": None}
    return RBRLClassifier(**{"kernel": kernel, "gamma": "paper", "non_empty": True, **weights, **params})


def parts(dataset: Dataset, seed: int = 0) -> tuple[Part, Part]:
    """Return training and test part, with dense features scaled by the training part."""
    train, test = dataset.split(seed)
    if isinstance(train.X, np.ndarray):
        scaler = StandardScaler().fit(train.X)
        train, test = train._replace(X=scaler.transform(train.X)), test._replace(X=scaler.transform(test.X))
    return train, test


def convergence(
    problems: dict[str, tuple[RBRLClassifier, Any, Any]], max_iter: int = 2000, tol: float = 1e-8
) -> pd.DataFrame:
    """Return objective and certified gap of each solver, with its evaluations and its time.

    Parameters
    ----------
    problems : dict of str to (model, X, Y)
    max_iter : int
    tol : float
        Certified relative gap at which a solver may stop.

    Returns
    -------
    DataFrame
        Columns problem, solver, iteration, evaluations, seconds, objective, gap. Seconds are the processor's, in the
        solver alone: the design is the same for all. The gap is rigorous at every iteration: it is the distance from
        the best lower bound that any of the solvers proved.
    """
    frames = []
    for problem, (model, X, Y) in problems.items():
        for solver in SOLVERS.values():
            _solve(model, solver, X[:FEW], Y[:FEW], FEW, tol)  # loads compiled code before the clock starts
        recorders = {name: _solve(model, solver, X, Y, max_iter, tol) for name, solver in SOLVERS.items()}
        bound = max(one.result.objective / (1 + one.result.gap) for one in recorders.values())
        for name, one in recorders.items():
            curve = one.curve()
            frames.append(curve.assign(problem=problem, solver=name, gap=(curve.objective - bound) / bound))
    columns = ["problem", "solver", "iteration", "evaluations", "seconds", "objective", "gap"]
    return pd.concat(frames, ignore_index=True)[columns]


def thinned(curves: pd.DataFrame, n_points: int = 120) -> pd.DataFrame:
    """Return the curves with about `n_points` iterations each, evenly spread on a logarithmic axis."""
    kept = []
    for _, curve in curves.groupby(["problem", "solver"], sort=False):
        places = np.unique(np.geomspace(1, len(curve), n_points).round().astype(int)) - 1
        kept.append(curve.iloc[places])
    return pd.concat(kept, ignore_index=True)


def authors_stop(objective: ArrayLike) -> int | None:
    """Return the iteration at which the authors' program stops, a relative change of at most 1e-6; None if never.

    Examples
    --------
    >>> authors_stop([2.0, 1.0, 1.0, 0.5])
    3
    """
    values = np.asarray(objective, dtype=float)
    still = np.abs(np.diff(values)) <= STILL * values[:-1]
    return int(np.argmax(still)) + 2 if still.any() else None


def convergence_claims(curves: pd.DataFrame, claimed: dict[str, int]) -> pd.DataFrame:
    """Gaps of the curves at the iterations that the paper names.

    Parameters
    ----------
    curves : DataFrame
        Result of `convergence`, not thinned.
    claimed : dict of str to int
        Iterations within which the paper's algorithm converges, according to the paper, by problem.

    Returns
    -------
    DataFrame
        One row per problem: claimed, gap_claimed (certified, after that many iterations), stop (iteration at which the
        authors' rule ends the run), gap_stop, and iterations_1e-2, 1e-3 and 1e-4 to certified gaps; ours, the evaluations
        of our solver to 1e-4.
    """
    paper, ours = (list(SOLVERS)[i] for i in (0, -1))
    rows = []
    for problem, n_claimed in claimed.items():
        part = curves[curves.problem == problem]
        theirs = part[part.solver == paper].set_index("iteration")
        stop = authors_stop(theirs.objective)
        row = {"problem": problem, "claimed": n_claimed, "gap_claimed": theirs.gap.get(n_claimed), "stop": stop}
        row["gap_stop"] = theirs.gap.get(stop)
        row |= {f"iterations_{gap:.0e}": _first(theirs.gap, gap) for gap in (1e-2, 1e-3, 1e-4)}
        rows.append(row | {"ours": _first(part[part.solver == ours].set_index("evaluations").gap, 1e-4)})
    return pd.DataFrame(rows)


def _first(gaps: pd.Series, bound: float) -> float:
    """Return the place where a curve of gaps reaches a bound; NaN if it never does."""
    reached = gaps[gaps <= bound]
    return float(reached.index[0]) if len(reached) else float("nan")


class _Recorder:
    """A solver that runs another one and records its result and the time of every evaluation."""

    result: SolverResult

    def __init__(self, solver: APG | QuasiNewton) -> None:
        self.solver = solver
        self.evaluations, self.seconds = [0.0], [0.0]

    def solve(self, objective: Any, **options: Any) -> SolverResult:
        """Solve and record the time after every product with the design."""
        before, began = objective.evaluations, time.process_time()

        def note() -> None:
            self.evaluations.append(objective.evaluations - before)
            self.seconds.append(time.process_time() - began)

        with _watched(objective.design, note):
            self.result = self.solver.solve(objective, **options)
        return self.result

    def curve(self) -> pd.DataFrame:
        """Return the objective values with the evaluations and seconds of each."""
        history, costs = self.result.history, np.asarray(self.result.costs)
        seconds = np.interp(costs, self.evaluations, self.seconds)
        numbers = np.arange(1, len(history) + 1)
        return pd.DataFrame({"iteration": numbers, "evaluations": costs, "seconds": seconds, "objective": history})


@contextmanager
def _watched(design: Any, note: Callable[[], None]) -> Iterator[None]:
    """Call `note` after every product with the design."""

    def watch(multiply: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def watched(matrix: Any) -> Any:
            answer = multiply(matrix)
            note()
            return answer

        return watched

    design.scores, design.adjoint = watch(design.scores), watch(design.adjoint)
    try:
        yield
    finally:
        del design.scores, design.adjoint


def _solve(model: RBRLClassifier, solver: APG | QuasiNewton, X: Any, Y: Any, max_iter: int, tol: float) -> _Recorder:
    """Solve the problem of a model by another solver than its own."""
    recorder = _Recorder(solver)
    _fitted(clone(model).set_params(max_iter=max_iter, tol=tol, solver=recorder), (X, Y))
    return recorder


def gamma_sensitivity(
    models: Mapping[str, Any], dataset: Dataset, factors: Iterable[float] = FACTORS, seed: int = 0
) -> pd.DataFrame:
    """Return test metrics of kernel models over kernel widths.

    Parameters
    ----------
    models : dict of str to classifier
        Each with a parameter `gamma`.
    dataset : Dataset
    factors : iterable of float
        Multiples of the default, 1 / n_features.
    seed : int

    Returns
    -------
    DataFrame
        Columns method, factor, metric, value.
    """
    train, test = parts(dataset, seed)
    rows = []
    for method, model in models.items():
        for factor in factors:
            fitted = _fitted(clone(model).set_params(gamma=factor / dataset.n_features), train)
            rows += [(method, factor, metric, value) for metric, value in _metrics(fitted, test).items()]
    return pd.DataFrame(rows, columns=["method", "factor", "metric", "value"])


def pair_sensitivity(
    model: RBRLClassifier,
    dataset: Dataset,
    values: Sequence[float] = LAMBDAS,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Return test metrics over each pair of penalties, with the third as in the model.

    Parameters
    ----------
    model : RBRLClassifier
    dataset : Dataset
    values : sequence of float
    seed : int
    progress : callable, optional
        Called with (fits done, fits in all).

    Returns
    -------
    DataFrame
        Columns fixed, at, ridge, ranking, nuclear, metric, value.
    """
    train, test = parts(dataset, seed)
    points = [(fixed, point) for fixed in PENALTIES for point in _plane(model, fixed, values)]
    known: dict[tuple[float, ...], dict[str, float]] = {}
    rows = []
    for done, (fixed, point) in enumerate(points, 1):
        if point not in known:
            known[point] = _metrics(_fitted(clone(model).set_params(**dict(zip(PENALTIES, point))), train), test)
        rows += [(fixed, getattr(model, fixed), *point, metric, value) for metric, value in known[point].items()]
        if progress:
            progress(done, len(points))
    return pd.DataFrame(rows, columns=["fixed", "at", *PENALTIES, "metric", "value"])


def _plane(model: RBRLClassifier, fixed: str, values: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the points (ridge, ranking, nuclear) with one of them held at the model's own value."""
    return list(product(*((getattr(model, name),) if name == fixed else values for name in PENALTIES)))


def _fitted(model: Any, train: tuple[Any, Any]) -> Any:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*train)


def _metrics(model: Any, test: Part) -> dict[str, float]:
    return evaluate(test.Y, model.predict(test.X), scores_of(model, test.X), PAPER_METRICS)


def width_table(study: pd.DataFrame) -> Table:
    """Value at the default kernel width and best value over all widths, by metric and method.

    Parameters
    ----------
    study : DataFrame
        Result of `studies.reproduction.studies.gamma_sensitivity`.
    """
    rows, records = [], []
    for (name, method), part in study.groupby(["metric", "method"], sort=False):
        metric = get_metric(name)
        at_default = part[part.factor == 1.0].value.iloc[0]
        best = part.loc[_best(part, metric)]
        rows.append(
            (word(heading(metric)), word(method), number(at_default), number(best.value), word(f"{best.factor:g}"))
        )
        records.append((name, method, at_default, best.value, best.factor))
    frame = pd.DataFrame(records, columns=["metric", "method", "default", "best", "factor"])
    titles = ("Metric", "Method", "At the default width", "Best", "At this multiple of it")
    return Table("widths", "Kernel widths on image", titles, tuple(rows), frame, n_keys=2)


def penalty_table(study: pd.DataFrame) -> Table:
    """Best point of all three planes by metric, and the penalties that are inside the grid there.

    Parameters
    ----------
    study : DataFrame
        Result of `studies.reproduction.studies.pair_sensitivity`.
    """
    rows, records = [], []
    ends = {name: (study[name].min(), study[name].max()) for name in PENALTIES}
    for name, part in study.groupby("metric", sort=False):
        metric = get_metric(name)
        best, worst = part.loc[_best(part, metric)], part.loc[_best(part, metric, worst=True)]
        inside = [penalty for penalty in PENALTIES if ends[penalty][0] < best[penalty] < ends[penalty][1]]
        at = [word(f"{best[penalty]:g}") for penalty in PENALTIES]
        rows.append(
            (word(heading(metric)), number(worst.value), number(best.value), *at, word(", ".join(inside) or "none"))
        )
        records.append({"metric": name, "best": best.value, "worst": worst.value, "inside": ", ".join(inside)})
    titles = ("Metric", "Worst", "Best", *(f"{penalty} there" for penalty in PENALTIES), "Not at an end of the grid")
    return Table("penalties", "Penalties on arts", titles, tuple(rows), pd.DataFrame(records))


def _best(part: pd.DataFrame, metric: Metric, worst: bool = False) -> Any:
    """Return the row of the best value, or of the worst."""
    return part.value.idxmax() if metric.greater_is_better != worst else part.value.idxmin()


def against_authors(
    datasets: Mapping[str, Dataset],
    params: Mapping[str, dict[str, Any]],
    tell: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """Fit RBRL to the training part of split 0 of data sets, by our solver and by the authors' algorithm.

    Parameters
    ----------
    datasets : dict of str to Dataset
    params : dict of str to dict
        RBRL's parameters on each data set.
    tell : callable, optional
        Called with a line of text before each data set.

    Returns
    -------
    DataFrame
        One row per data set: ridge, ranking, nuclear; and for ours and theirs seconds, evaluations, iterations,
        objective and certified gap, from the higher of the two lower bounds. Both work with one thread.
    """
    records = []
    for name, dataset in datasets.items():
        tell(f"{name}: {params[name]}")
        train, _ = parts(dataset)
        model = model_for(dataset, **params[name])
        record: dict[str, Any] = {"dataset": name} | {penalty: getattr(model, penalty) for penalty in PENALTIES}
        # Once unmeasured, so that what is compiled on first use is not in the figures.
        _measured(model, train)
        for who, solver in (("ours", "auto"), ("theirs", AUTHORS)):
            found = _measured(clone(model).set_params(solver=solver), train)
            record |= {f"{key}_{who}": value for key, value in found.items()}
        records.append(_from_better_bound(record))
    return pd.DataFrame(records)


def _from_better_bound(record: dict[str, Any]) -> dict[str, Any]:
    """Take both gaps from the higher bound: far from the optimum a result's own says more of the bound than of it."""
    bound = max(record[f"objective_{who}"] / (1 + record[f"gap_{who}"]) for who in ("ours", "theirs"))
    return record | {f"gap_{who}": record[f"objective_{who}"] / bound - 1 for who in ("ours", "theirs")}


def _measured(model: RBRLClassifier, train: Part) -> dict[str, float]:
    """Seconds of a fit, the best of three where it is short, and what came out."""
    taken: list[float] = []
    while not taken or (sum(taken) < LONG_SECONDS and len(taken) < 3):
        started = time.perf_counter()
        fitted = _fitted(clone(model), train)
        taken.append(time.perf_counter() - started)
    found = {"evaluations": fitted.n_evaluations_, "iterations": fitted.n_iter_}
    return {"seconds": min(taken), **found, "objective": fitted.objective_, "gap": fitted.gap_}


def solver_table(frame: pd.DataFrame) -> Table:
    """Seconds of both, their ratio, and how near the optimum each ends."""
    rows = []
    for row in frame.itertuples():
        ratio = row.seconds_theirs / row.seconds_ours
        rows.append(
            (
                *(
                    word(row.dataset),
                    seconds(row.seconds_ours),
                    seconds(row.seconds_theirs),
                    Cell(f"{ratio:.3g}×", ratio),
                ),
                *(number(row.evaluations_ours, 0), count(row.iterations_theirs)),
                *(Cell(f"{value:.0e}", value) for value in (row.gap_ours, row.gap_theirs)),
            )
        )
    figures = ("Ours, s", "Authors', s", "Ratio", "Our evaluations", "Their iterations", "Our gap", "Their gap")
    mean = np.exp(np.log(frame.seconds_theirs / frame.seconds_ours).mean())
    note = f"Geometric mean of the ratios: {mean:.3g}. Gaps are certified: proved relative distances from the optimum."
    title = "RBRL by our solver and by a replay of the authors' algorithm, on split 0 with the parameters chosen there"
    return Table("solver", title, ("Data set", *figures), tuple(rows), frame, note=note)
