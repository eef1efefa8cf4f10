"""Classifiers, thin objects of scikit-learn: validate, encode the labels, pose the problem, solve, store."""

from rbrl.estimators.chains import EnsembleOfChains
from rbrl.estimators.ml_knn import MLkNN
from rbrl.estimators.mlfe import MLFE
from rbrl.estimators.named_answers import label_names, predict_sets, predict_top
from rbrl.estimators.powersets import LabelPowerset, RAkEL
from rbrl.estimators.rbrl import CPNL, BRLClassifier, RBRLClassifier
from rbrl.estimators.reductions import BinaryRelevance, CalibratedLabelRanking

__all__ = [
    "CPNL", "MLFE", "BRLClassifier", "BinaryRelevance", "CalibratedLabelRanking", "EnsembleOfChains", "LabelPowerset",
    "MLkNN", "RAkEL", "RBRLClassifier", "label_names", "predict_sets", "predict_top",
]  # fmt: skip
