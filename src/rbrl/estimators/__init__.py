"""Classifiers with the interface of scikit-learn: `fit` checks data, encodes labels, solves, and stores the solution."""

from rbrl.estimators.compression import compress as compress
from rbrl.estimators.ensembles import EnsembleOfChains as EnsembleOfChains
from rbrl.estimators.ensembles import LabelPowerset as LabelPowerset
from rbrl.estimators.ensembles import RAkEL as RAkEL
from rbrl.estimators.ml_knn import MLkNN as MLkNN
from rbrl.estimators.mlfe import MLFE as MLFE
from rbrl.estimators.named_answers import label_names as label_names
from rbrl.estimators.named_answers import predict_sets as predict_sets
from rbrl.estimators.named_answers import predict_top as predict_top
from rbrl.estimators.rbrl import CPNL as CPNL
from rbrl.estimators.rbrl import BRLClassifier as BRLClassifier
from rbrl.estimators.rbrl import RBRLClassifier as RBRLClassifier
from rbrl.estimators.reductions import BinaryRelevance as BinaryRelevance
from rbrl.estimators.reductions import CalibratedLabelRanking as CalibratedLabelRanking
