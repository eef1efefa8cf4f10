"""Ranking SVMs: hinges of pairs of labels, solved in the dual, with their estimators."""

from rbrl.ranking_svm.estimators import CalibratedRankSVM as CalibratedRankSVM
from rbrl.ranking_svm.estimators import RankSVM as RankSVM
from rbrl.ranking_svm.estimators import RankSVMz as RankSVMz
from rbrl.ranking_svm.pairs import HingePairs, zero_label_pairs

__all__ = ["HingePairs", "zero_label_pairs"]
