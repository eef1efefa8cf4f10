"""The methods: who made them, how each is built, and the points of its search in the order in which they are tried."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

import rbrl
from rbrl.experiments import CommandClassifier

FOLDER = Path(__file__).resolve().parent
Point = Mapping[str, Any]


@dataclass(frozen=True)
class Method:
    """One method.

    Parameters
    ----------
    name : str
        Name in the rows.
    title : str
        Title in tables and figures.
    package : str
        Package that provides it.
    family : str
        Linear, kernel, trees, neighbours or network.
    build : callable
        Function that returns an estimator for a point and a seed.
    points : tuple of dict
        Points of the search, in the order of the search; the first one is the method with its defaults.
    is_slow : bool
        True for methods that run after all others, as far as time allows.
    wide : tuple of dict
        Points of a wider search, for the study of wider searches; empty if there is none.
    """

    name: str
    title: str
    package: str
    family: str
    build: Callable[[Point, int], Any]
    points: tuple[Point, ...]
    is_slow: bool = False
    wide: tuple[Point, ...] = ()


def decades(name: str, *values: float) -> tuple[Point, ...]:
    """Return the method with its defaults, then one parameter over powers of ten."""
    return ({}, *({name: value} for value in values))


COSTS = decades("C", 0.1, 0.01)
RIDGES = decades("ridge", 10.0, 100.0)
# For the study of wider searches: seven powers of ten, the default among them.
WIDE_COSTS = decades("C", 0.1, 0.01, 10.0, 0.001, 100.0, 1000.0)
WIDE_RIDGES = decades("ridge", 10.0, 100.0, 1.0, 1000.0, 0.1, 0.01)


def _plain(cls: type, **fixed: Any) -> Callable[[Point, int], Any]:
    return lambda point, seed: cls(**{**fixed, **point})


def _seeded(cls: type, **fixed: Any) -> Callable[[Point, int], Any]:
    return lambda point, seed: cls(random_state=seed, **{**fixed, **point})


def _one_vs_rest(cls: type, **fixed: Any) -> Callable[[Point, int], Any]:
    return lambda point, seed: OneVsRestClassifier(cls(**{**fixed, **point}))


def _command(environment: str, name: str, *, probabilities: bool) -> Callable[[Point, int], Any]:
    """A method in an environment of its own: see environments/ENVIRONMENT.txt and commands/NAME.py."""
    python = FOLDER / "environments" / environment / "bin" / "python"
    words = [str(python), str(FOLDER / "commands" / f"{name}.py")]
    return lambda point, seed: CommandClassifier(words, probabilities=probabilities, random_state=seed, **point)


METHODS = (
    Method(
        "rbrl-linear", "RBRL (linear)", "rbrl", "linear", _plain(rbrl.RBRLClassifier), RIDGES, wide=WIDE_RIDGES,
    ),
    Method(
        # The recorded rows have the nuclear norm that was the default of kernel models when they were run.
        "rbrl-rbf", "RBRL (RBF)", "rbrl", "kernel", _plain(rbrl.RBRLClassifier, kernel="rbf", nuclear=0.1),
        decades("ridge", 0.1, 10.0), wide=decades("ridge", 10.0, 100.0, 0.1, 1000.0, 0.01, 0.001),
    ),
    Method("brl", "BRL", "rbrl", "linear", _plain(rbrl.BRLClassifier), RIDGES, wide=WIDE_RIDGES),
    Method("cpnl", "CPNL", "rbrl", "linear", _plain(rbrl.CPNL), RIDGES),
    Method("br", "BR (linear)", "rbrl", "linear", _plain(rbrl.BinaryRelevance), COSTS),
    Method(
        "br-rbf", "BR (RBF)", "rbrl", "kernel", _plain(rbrl.BinaryRelevance, kernel="rbf", gamma="median"),
        decades("C", 0.1, 10.0), wide=WIDE_COSTS),
    Method("chains", "Chains", "rbrl", "linear", _seeded(rbrl.EnsembleOfChains, votes="soft"), COSTS, is_slow=True),
    Method("powerset", "Label powerset", "rbrl", "linear", _plain(rbrl.LabelPowerset, votes="soft"), COSTS, is_slow=True),
    Method("rakel", "RAkEL", "rbrl", "linear", _seeded(rbrl.RAkEL, votes="soft"), COSTS, is_slow=True),
    Method("clr", "CLR", "rbrl", "linear", _plain(rbrl.CalibratedLabelRanking), COSTS, is_slow=True),
    Method("rank-svm", "Rank-SVM", "rbrl", "linear", _plain(rbrl.RankSVM), COSTS),
    Method("ml-knn", "ML-kNN", "rbrl", "neighbours", _plain(rbrl.MLkNN), ({}, {"n_neighbors": 5}, {"n_neighbors": 20})),
    Method(
        "mlfe", "MLFE", "rbrl", "kernel", _plain(rbrl.MLFE), ({}, {"beta1": 5.0}, {"beta2": 10.0}),
        is_slow=True,
    ),
    Method(
        "logistic", "Logistic", "scikit-learn", "linear", _one_vs_rest(LogisticRegression),
        decades("C", 0.1, 10.0), wide=WIDE_COSTS),
    Method("linear-svc", "LinearSVC", "scikit-learn", "linear", _one_vs_rest(LinearSVC), COSTS, wide=WIDE_COSTS),
    Method(
        "extra-trees", "Extra trees", "scikit-learn", "trees", _seeded(ExtraTreesClassifier),
        ({}, {"min_samples_leaf": 3}, {"max_features": 0.3}),
    ),
    Method(
        "network", "Network", "scikit-learn", "network", _seeded(MLPClassifier),
        ({}, {"alpha": 1.0}, {"max_iter": 30}),
    ),
    Method(
        "libmultilabel", "LibMultiLabel", "libmultilabel", "linear",
        _command("libmultilabel", "libmultilabel_one_vs_rest", probabilities=False), COSTS,
    ),
    Method(
        "lightgbm", "LightGBM", "lightgbm", "trees", _command("lightgbm", "lightgbm_one_vs_rest", probabilities=True),
        ({}, {"n_estimators": 30}, {"min_child_samples": 5}),
    ),
    Method(
        "boomer", "MLRL-Boomer", "mlrl-boomer", "trees", _command("boomer", "boomer_rules", probabilities=True),
        ({}, {"max_rules": 200}, {"l2_regularization_weight": 10.0}),
    ),
)  # fmt: skip
BY_NAME = {method.name: method for method in METHODS}
