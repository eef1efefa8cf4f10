"""Classifiers. `REGISTRY` maps the names that plans and the command line use to their classes."""

from rbrl.estimators.binary_relevance import BinaryRelevance
from rbrl.estimators.calibrated_ranking import CalibratedLabelRanking
from rbrl.estimators.chains import EnsembleOfChains
from rbrl.estimators.cpnl import CPNL
from rbrl.estimators.label_powerset import LabelPowerset
from rbrl.estimators.ml_knn import MLkNN
from rbrl.estimators.mlfe import MLFE
from rbrl.estimators.rakel import RAkEL
from rbrl.estimators.rank_svm import CalibratedRankSVM, RankSVM, RankSVMz
from rbrl.estimators.rbrl import BRLClassifier, RBRLClassifier

REGISTRY = {
    "rbrl": RBRLClassifier,
    "brl": BRLClassifier,
    "rank-svm": RankSVM,
    "rank-svmz": RankSVMz,
    "calibrated-rank-svm": CalibratedRankSVM,
    "br": BinaryRelevance,
    "ml-knn": MLkNN,
    "clr": CalibratedLabelRanking,
    "rakel": RAkEL,
    "cpnl": CPNL,
    "mlfe": MLFE,
    "label-powerset": LabelPowerset,
    "ecc": EnsembleOfChains,
}

__all__ = [
    "CPNL",
    "MLFE",
    "REGISTRY",
    "BRLClassifier",
    "BinaryRelevance",
    "CalibratedLabelRanking",
    "CalibratedRankSVM",
    "EnsembleOfChains",
    "LabelPowerset",
    "MLkNN",
    "RAkEL",
    "RBRLClassifier",
    "RankSVM",
    "RankSVMz",
]
