"""Classifiers. `METHODS` describes each; `REGISTRY` maps the names that plans and the command line use to the classes."""

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
from rbrl.estimators.registry import METHODS, REGISTRY, Method

__all__ = [
    "CPNL",
    "METHODS",
    "MLFE",
    "REGISTRY",
    "BRLClassifier",
    "BinaryRelevance",
    "CalibratedLabelRanking",
    "CalibratedRankSVM",
    "EnsembleOfChains",
    "LabelPowerset",
    "MLkNN",
    "Method",
    "RAkEL",
    "RBRLClassifier",
    "RankSVM",
    "RankSVMz",
]
