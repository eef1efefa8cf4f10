"""Every method: its name, its class, and what the paper did with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rbrl.estimators.base import MultiLabelClassifier
from rbrl.estimators.cpnl import CPNL
from rbrl.estimators.ensembles import EnsembleOfChains, RAkEL
from rbrl.estimators.ml_knn import MLkNN
from rbrl.estimators.mlfe import MLFE
from rbrl.estimators.rbrl import BRLClassifier, RBRLClassifier
from rbrl.estimators.reductions import BinaryRelevance, CalibratedLabelRanking, LabelPowerset
from rbrl.ranking_svm.estimators import CalibratedRankSVM, RankSVM, RankSVMz

__all__ = ["METHODS", "REGISTRY", "Method"]

KERNEL = "RBF kernel of width 1/m"
WEIGHTS = tuple(10.0**k for k in range(-4, 3))
COSTS = tuple(10.0**k for k in range(-4, 5))


@dataclass(frozen=True)
class Method:
    """One method.

    Parameters
    ----------
    name : str
        In plans and on the command line.
    estimator : class
    title : str
        In tables.
    page : str
        Its page in docs/methods, without ending; empty for the models of the paper, which the README describes.
    grids : tuple of dict
        What the paper searched, Table 2: each dict is a grid of its own. Empty for a method that it does not have.
    dense, sparse : str
        The model, or the base learner, on the paper's dense data sets (kernel) and on its text (linear).
    rule : str
        When the paper's program calls a label relevant.
    confidence : str
        How sure we are that this is the original.
    """

    name: str
    estimator: type[MultiLabelClassifier]
    title: str
    page: str = ""
    grids: tuple[Mapping[str, Any], ...] = field(default=())
    dense: str = KERNEL
    sparse: str = "linear"
    rule: str = "score above 0"
    confidence: str = ""


NEVER_EMPTY = "score above 0; a row without one gets its best label"
MULAN = "high: as Mulan does it; defaults of the base learners from general knowledge"
METHODS = (
    Method(
        name="rbrl",
        estimator=RBRLClassifier,
        title="RBRL",
        grids=({"ridge": WEIGHTS, "ranking": WEIGHTS, "nuclear": WEIGHTS},),
        rule=NEVER_EMPTY,
        confidence="certain: replays the authors' program",
    ),
    Method(
        name="brl",
        estimator=BRLClassifier,
        title="BRL",
        grids=({"ridge": WEIGHTS, "nuclear": WEIGHTS},),
        rule=NEVER_EMPTY,
        confidence="certain: RBRL without its ranking term",
    ),
    Method(
        name="rank-svm",
        estimator=RankSVM,
        title="Rank-SVM",
        page="rank-svm",
        grids=({"C": COSTS},),
        rule="score at or above a threshold learned from the scores",
        confidence="certain: tested against the MATLAB program of Zhang",
    ),
    Method(
        name="rank-svmz",
        estimator=RankSVMz,
        title="Rank-SVMz",
        page="rank-svm",
        grids=({"C": COSTS},),
        rule="score at or above that of the zero label",
        confidence="high for model and threshold; the original's solver stops early",
    ),
    Method(
        name="calibrated-rank-svm",
        estimator=CalibratedRankSVM,
        title="Calibrated Rank-SVM",
        page="rank-svm",
        confidence="as the RBRL paper states it",
    ),
    Method(
        name="br",
        estimator=BinaryRelevance,
        title="BR",
        page="binary-relevance",
        grids=({"C": COSTS},),
        dense=f"LIBSVM, {KERNEL}",
        sparse="LIBLINEAR",
        rule="positive vote; ranked by hard votes, a later label before an earlier one",
        confidence=MULAN,
    ),
    Method(
        name="ml-knn",
        estimator=MLkNN,
        title="ML-kNN",
        page="ml-knn",
        grids=({"n_neighbors": (4, 6, 8, 10, 12, 14, 16)},),
        dense="Euclidean distance, features in [0, 1]",
        sparse="Euclidean distance, features in [0, 1]",
        rule="probability above 1/2",
        confidence="certain: equal to Mulan's figures to four digits",
    ),
    Method(
        name="clr",
        estimator=CalibratedLabelRanking,
        title="CLR",
        page="calibrated-label-ranking",
        grids=({"C": COSTS},),
        dense=f"LIBSVM, {KERNEL}",
        sparse="LIBLINEAR",
        rule="as many votes as the virtual label, or more",
        confidence=MULAN,
    ),
    Method(
        name="rakel",
        estimator=RAkEL,
        title="RAKEL",
        page="rakel",
        grids=({"n_subsets": (10,), "subset_size": (0.5,), "C": COSTS}, {"subset_size": (3,), "C": COSTS}),
        dense=f"LIBSVM, {KERNEL}",
        sparse="LIBLINEAR",
        rule="at least half of the votes",
        confidence=MULAN,
    ),
    Method(
        name="cpnl",
        estimator=CPNL,
        title="CPNL",
        page="cpnl",
        grids=({"ridge": WEIGHTS, "positive": WEIGHTS, "negative": WEIGHTS},),
        rule=NEVER_EMPTY,
        confidence="certain: replays the authors' program",
    ),
    Method(
        name="mlfe",
        estimator=MLFE,
        title="MLFE",
        page="mlfe",
        grids=({"beta1": tuple(range(1, 11)), "beta2": (1, 10, 15), "beta3": (1, 10)},),
        dense="RBF kernel of the mean distance",
        sparse="RBF kernel of the mean distance",
        rule="score of 0 or more",
        confidence="certain for stages 1 and 2 and the prediction; stage 3 is a reconstruction",
    ),
    Method(
        name="label-powerset",
        estimator=LabelPowerset,
        title="Label powerset",
        page="label-powerset",
        dense=f"LIBSVM, {KERNEL}",
        sparse="LIBLINEAR",
        confidence="the textbook's",
    ),
    Method(
        name="ecc",
        estimator=EnsembleOfChains,
        title="Ensemble of chains",
        page="ensemble-of-chains",
        dense=f"LIBSVM, {KERNEL}",
        sparse="LIBLINEAR",
        confidence="on scikit-learn's chain",
    ),
)
REGISTRY: dict[str, type[MultiLabelClassifier]] = {method.name: method.estimator for method in METHODS}
