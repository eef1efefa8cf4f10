"""Classifiers. `REGISTRY` maps the names that plans and the command line use to their classes."""

from rbrl.estimators.binary_relevance import BinaryRelevance
from rbrl.estimators.calibrated_ranking import CalibratedLabelRanking
from rbrl.estimators.chains import EnsembleOfChains
from rbrl.estimators.label_powerset import LabelPowerset
from rbrl.estimators.ml_knn import MLkNN
from rbrl.estimators.mlfe import MLFE
from rbrl.estimators.rakel import RAkEL
from rbrl.estimators.rbrl import BRLClassifier, RBRLClassifier

REGISTRY = {
    "rbrl": RBRLClassifier,
    "brl": BRLClassifier,
    "br": BinaryRelevance,
    "ml-knn": MLkNN,
    "clr": CalibratedLabelRanking,
    "rakel": RAkEL,
    "label-powerset": LabelPowerset,
    "ecc": EnsembleOfChains,
    "mlfe": MLFE,
}

__all__ = [
    "MLFE",
    "REGISTRY",
    "BRLClassifier",
    "BinaryRelevance",
    "CalibratedLabelRanking",
    "EnsembleOfChains",
    "LabelPowerset",
    "MLkNN",
    "RAkEL",
    "RBRLClassifier",
]
