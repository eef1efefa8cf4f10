"""The list of all methods: name, class, and the grids that the paper searched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rbrl.estimators import (
    CPNL,
    MLFE,
    BinaryRelevance,
    BRLClassifier,
    CalibratedLabelRanking,
    EnsembleOfChains,
    LabelPowerset,
    MLkNN,
    RAkEL,
    RBRLClassifier,
)
from rbrl.estimators.base import MultiLabelClassifier
from rbrl.ranking_svm import CalibratedRankSVM, RankSVM, RankSVMz

__all__ = ["METHODS", "REGISTRY", "Method"]

# Values of parameters; every combination of the values is a candidate.
Grid: TypeAlias = Mapping[str, Sequence[float]]
# Values of the paper for the weights of penalties and losses, and for the C of SVMs.
WEIGHTS = tuple(10.0**k for k in range(-4, 3))
COSTS = tuple(10.0**k for k in range(-4, 5))


@dataclass(frozen=True)
class Method:
    """A method of the package.

    Parameters
    ----------
    name : str
        Name in plans and on the command line.
    estimator : class
        Class of the classifier.
    title : str
        Name in tables.
    page : str
        Page in docs/methods, without its ending. It is empty for the models of the paper, which
        the README describes.
    grids : tuple of dict
        Grids of Table 2 of the paper. It is empty for a method that the paper does not have.

    Examples
    --------
    >>> from rbrl.registry import METHODS
    >>> [method.name for method in METHODS if method.grids][:3]
    ['rbrl', 'brl', 'rank-svm']
    """

    name: str
    estimator: type[MultiLabelClassifier]
    title: str
    page: str = ""
    grids: tuple[Grid, ...] = ()


# All methods, those of the paper first.
METHODS = (
    Method("rbrl", RBRLClassifier, "RBRL", grids=({"ridge": WEIGHTS, "ranking": WEIGHTS, "nuclear": WEIGHTS},)),
    Method("brl", BRLClassifier, "BRL", grids=({"ridge": WEIGHTS, "nuclear": WEIGHTS},)),
    Method("rank-svm", RankSVM, "Rank-SVM", "rank-svm", ({"C": COSTS},)),
    Method("rank-svmz", RankSVMz, "Rank-SVMz", "rank-svm", ({"C": COSTS},)),
    Method("calibrated-rank-svm", CalibratedRankSVM, "Calibrated Rank-SVM", "rank-svm"),
    Method("br", BinaryRelevance, "BR", "binary-relevance", ({"C": COSTS},)),
    Method("ml-knn", MLkNN, "ML-kNN", "ml-knn", ({"n_neighbors": (4, 6, 8, 10, 12, 14, 16)},)),
    Method("clr", CalibratedLabelRanking, "CLR", "calibrated-label-ranking", ({"C": COSTS},)),
    Method(
        "rakel",
        RAkEL,
        "RAKEL",
        "rakel",
        ({"n_subsets": (10,), "subset_size": (0.5,), "C": COSTS}, {"subset_size": (3,), "C": COSTS}),
    ),
    Method("cpnl", CPNL, "CPNL", "cpnl", ({"ridge": WEIGHTS, "positive": WEIGHTS, "negative": WEIGHTS},)),
    Method("mlfe", MLFE, "MLFE", "mlfe", ({"beta1": tuple(range(1, 11)), "beta2": (1, 10, 15), "beta3": (1, 10)},)),
    Method("label-powerset", LabelPowerset, "Label powerset", "label-powerset"),
    Method("ecc", EnsembleOfChains, "Ensemble of chains", "ensemble-of-chains"),
)
# Class of each method, by its name in plans and on the command line.
REGISTRY: dict[str, type[MultiLabelClassifier]] = {method.name: method.estimator for method in METHODS}
