"""Classifiers. `REGISTRY` maps the names that plans and the command line use to their classes."""

from rbrl.estimators.cpnl import CPNL
from rbrl.estimators.rank_svm import CalibratedRankSVM, RankSVM, RankSVMz
from rbrl.estimators.rbrl import BRLClassifier, RBRLClassifier

REGISTRY = {
    "rbrl": RBRLClassifier,
    "brl": BRLClassifier,
    "rank-svm": RankSVM,
    "rank-svmz": RankSVMz,
    "calibrated-rank-svm": CalibratedRankSVM,
    "cpnl": CPNL,
}

__all__ = ["CPNL", "REGISTRY", "BRLClassifier", "CalibratedRankSVM", "RBRLClassifier", "RankSVM", "RankSVMz"]
